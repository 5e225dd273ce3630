"""Slurm jobs that outlive the submitting shell: write the script, submit it with sbatch, ask squeue for its state."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from strakes.base.errors import EnvironmentLacksError, MeasurementError
from strakes.base.files import remove_kept, replace_kept
from strakes.base.processes import python_module
from strakes.runs.choice import Launch
from strakes.runs.jobs import Job, Jobs, is_job_id
from strakes.runs.slurm import slurm_tool
from strakes.runs.store_files import store_error
from strakes.targets import command

_ASK_S = 20.0
# Slurm sends SIGTERM this long before the time limit, so that the run ends in order and can be resumed.
_WARNING_S = 60
_OPTION = "--batch"


def submit_job(name: str, arguments: Sequence[str], launch: Launch, options: Sequence[str], jobs: Jobs) -> str:
    """Submit ``strakes ARGUMENTS`` with further ``options`` of sbatch and return the job's id.

    Raises EnvironmentLacksError if sbatch is missing or refuses the job.
    """
    directory = jobs.make_directory()
    sbatch = slurm_tool("sbatch")
    words = (*_placement(launch), *options)
    path = directory / f".{os.getpid()}.sh"
    try:
        replace_kept(path, script(arguments, directory).encode())
    except OSError as error:
        raise store_error(error, path) from error
    slug = re.sub(r"[^a-zA-Z0-9]+", "-", name).strip("-") or "run"
    argv = [str(sbatch), "--parsable", f"--job-name=strakes-{slug}", f"--output={directory}/%j.out", *words, str(path)]
    try:
        done = command.run(argv, _ASK_S)
    finally:
        remove_kept(path)
    if done.status != 0:
        raise EnvironmentLacksError(
            "Slurm did not accept the job",
            where=shlex.join(argv[:-1]),
            why=_last(done.stderr),
            remedy="Change the options given with --batch.",
        )
    job = done.stdout.strip().partition(";")[0]
    if not is_job_id(job):
        raise EnvironmentLacksError("Slurm did not say the number of the job", where=shlex.join(argv[:-1]), why=job)
    now = datetime.now(UTC).isoformat()
    jobs.remember(Job(job, name, ("strakes", *arguments), now, str(directory / f"{job}.out")))
    return job


def script(arguments: Sequence[str], directory: Path) -> str:
    """Return the job's shell script. It stores its exit status in a file, so that no Slurm accounting is needed.

    >>> print(script(["survey", "/scratch/my dir"], Path("/home/u/.strakes/jobs")).splitlines()[1])
    #SBATCH --signal=B:TERM@60 --no-requeue
    """
    strakes = shlex.join(python_module("strakes", *arguments))
    store = os.environ.get("STRAKES_STORE", "")
    return f"""#!/bin/sh
#SBATCH --signal=B:TERM@{_WARNING_S} --no-requeue
{f"export STRAKES_STORE={shlex.quote(store)}" if store else ":"}
signalled=
trap 'signalled=yes; kill -TERM $!' TERM
cd {shlex.quote(os.getcwd())} || exit 2
{strakes} &
strakes=$!
wait $strakes
status=$?
# A signal ends wait, not the process. Status 127: the process had ended before the signal.
while [ -n "$signalled" ]; do
    signalled=
    wait $strakes
    again=$?
    [ $again = 127 ] || status=$again
done
echo $status >{shlex.quote(str(directory))}/$SLURM_JOB_ID.status
exit $status
"""


def without_batch(arguments: Sequence[str]) -> list[str]:
    """Return the command line of the job itself.

    >>> without_batch(["survey", "/d", "--batch", "-N 4", "--launcher", "slurm"])
    ['survey', '/d', '--launcher', 'slurm']
    >>> without_batch(["survey", "--batch=-N 4", "/d"])
    ['survey', '/d']
    """
    found: list[str] = []
    skip = False
    for word in arguments:
        if skip or word.startswith(f"{_OPTION}="):
            skip = False
        elif word == _OPTION:
            skip = True
        else:
            found.append(word)
    return found


def state_of(job: Job) -> str:
    """Return the job's state in the queue (PENDING, RUNNING, ...) with its reason.

    ``ENDED``: the job stored its exit status; ``KILLED``: it left the queue without storing one.

    Raises EnvironmentLacksError if squeue is missing, MeasurementError if the queue does not answer.
    """
    if job.status is not None:
        return "ENDED"
    done = command.run([str(slurm_tool("squeue")), "--noheader", f"--jobs={job.id}", "--format=%T (%r)"], _ASK_S)
    if done.status != 0 and "Invalid job id" not in done.stderr:
        raise MeasurementError(
            "the Slurm queue does not answer", where="squeue", why=_last(done.stderr), remedy="Try again later."
        )
    state = done.stdout.strip().removesuffix(" (None)")
    left = not state or re.match(r"(CANCELLED|COMPLETED|FAILED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED)\b", state)
    return "KILLED" if left else state


def cancel(job: Job) -> None:
    """Cancel a job. Raises MeasurementError if scancel fails."""
    done = command.run([str(slurm_tool("scancel")), job.id], _ASK_S)
    if done.status != 0:
        raise MeasurementError(f"job {job.id} cannot be cancelled", where="scancel", why=_last(done.stderr))


def _placement(launch: Launch) -> list[str]:
    """Return the sbatch options that allocate the ranks and hosts of the launch."""
    words = [] if launch.ranks is None else [f"--ntasks={launch.ranks}"]
    if launch.ranks_per_node is not None:
        words.append(f"--ntasks-per-node={launch.ranks_per_node}")
    if launch.hosts:
        words += [f"--nodes={len(launch.hosts)}", f"--nodelist={','.join(launch.hosts)}"]
    return words


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"
