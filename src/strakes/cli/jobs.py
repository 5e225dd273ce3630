"""``strakes runs jobs``: measurements that run as batch jobs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.errors import BadInputError, InterruptedByUser, MeasurementError
from strakes.base.files import open_regular
from strakes.cli.say import print_json, say, say_lines

if TYPE_CHECKING:
    from strakes.runs.jobs import Job, Jobs

_LOOK_EVERY_S = 2.0
# A shared file system may show the last output of a job some seconds after the queue shows its end.
_LAST_WORDS_S = 10.0
_MOST_SHOWN_BYTES = 1 << 20  # at a time


@click.command()
@click.argument("job", required=False)
@click.option("--cancel", "cancelling", is_flag=True, help="Cancel JOB cleanly; its measurements are kept.")
@click.option("--json", "as_json", is_flag=True, help="Write the jobs as a JSON list, oldest first.")
def command(job: str | None, cancelling: bool, as_json: bool) -> int:
    """List the jobs submitted with --batch; with JOB, watch that one until it ends.

    Ctrl-C stops watching, not the job. Exits with the exit status of the job.
    """
    from strakes.runs.batch import cancel
    from strakes.runs.jobs import Jobs

    jobs = Jobs()
    if job is None:
        if cancelling:
            raise BadInputError(
                "the job to cancel is missing", remedy="Give its number: strakes runs jobs JOB --cancel"
            )
        _list(jobs.all(), as_json=as_json)
        return 0
    chosen = jobs.find(job)
    if cancelling:
        cancel(chosen)
        return 0
    return _watch(jobs, chosen)


def _list(jobs: list[Job], *, as_json: bool) -> None:
    from dataclasses import asdict

    from strakes.runs.batch import state_of
    from strakes.runs.choice import how_to_get

    states = {job.id: state_of(job) for job in jobs}
    if as_json:
        print_json([{**asdict(job), "state": states[job.id]} for job in jobs])
    elif not jobs:
        way = how_to_get("slurm")
        if way:
            say(f"No jobs. They need Slurm, which this machine lacks: {way}")
        else:
            say("No jobs. Submit one: strakes survey DIR --launcher slurm --batch '-N 4'")
    for job in jobs if not as_json else ():
        ended = "" if job.status is None else f", exit status {job.status}"
        say(f"{job.id:>8}  {states[job.id].lower()}{ended}  {job.name}  {job.run or 'no run yet'}")


def _watch(jobs: Jobs, job: Job) -> int:
    """Print the output of a job from its beginning until it ends; return its exit status."""
    from strakes.runs.batch import state_of

    shown, last_state, ended_at = 0, "", 0.0
    try:
        while True:
            state = state_of(job)
            if state != last_state and state not in ("ENDED", "KILLED"):
                say(f"strakes: job {job.id}: {state.lower()}", err=True)
                last_state = state
            shown = _show_more(Path(job.output), shown)
            job = jobs.find(job.id)
            if job.status is not None:
                break
            if state == "KILLED":
                ended_at = ended_at or time.monotonic()
                if time.monotonic() - ended_at > _LAST_WORDS_S:
                    raise _killed(job)
            time.sleep(_LOOK_EVERY_S)
    except KeyboardInterrupt:
        remedy = f"Watch it again: strakes runs jobs {job.id}"
        raise InterruptedByUser("stopped watching; the job continues", where=f"job {job.id}", remedy=remedy) from None
    _show_more(Path(job.output), shown)
    return job.status or 0


def _killed(job: Job) -> MeasurementError:
    kept = (
        f"The measurements of run {job.run} are kept. Submit the same command with --resume {job.run}."
        if job.run
        else "Submit it again."
    )
    why = "it was cancelled or killed, or its node failed"
    return MeasurementError(
        f"job {job.id} has left the queue without an exit status", where=job.output, why=why, remedy=kept
    )


def _show_more(output: Path, shown: int) -> int:
    """Print the output after the first ``shown`` bytes; return the number of bytes shown by now."""
    try:
        with open_regular(output) as file:
            file.seek(shown)
            while more := file.read(_MOST_SHOWN_BYTES):
                say_lines(more.decode(errors="replace"))
                shown += len(more)
    except FileNotFoundError:
        pass
    return shown
