"""A real Slurm on several hosts: ranks started by srun, unsuitable PMI versions, and a cancelled job of sbatch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import wait_for
from integration.test_lab_hosts import ENDLESS, Hosts
from lab.running import Labs
from runs.test_mpi import needs_mpi
from runs.test_mpi_family import needs_open_mpi
from strakes.runs.mpi_family import mpi_engines

pytestmark = [pytest.mark.lab, pytest.mark.more, needs_mpi]
SLURM = ("--launcher", "slurm", "--ranks-per-node", "1")
JOB = ("salloc", "--quiet", "-N", "4", "--ntasks-per-node=1")


@pytest.fixture(scope="module")
def slurm(shared_labs: Labs) -> Hosts:
    return Hosts(shared_labs, "slurm")


@pytest.mark.parametrize(
    ("words", "budget", "site"),
    [
        (("survey",), "4s", False),
        (("study", "writers"), "2s", False),
        (("study", "startup-load"), "2s", False),
        pytest.param(("study", "open-close"), "2s", True, marks=[needs_open_mpi, pytest.mark.long]),
    ],
    ids=["survey", "writers", "startup-load", "open-mpi"],
)
def test_srun_starts_the_ranks_on_the_nodes_of_the_allocation(
    slurm: Hosts, words: tuple[str, ...], budget: str, site: bool
) -> None:
    words = (*words, str(slurm.directory), *SLURM, "--budget", budget, "--json", "-", "-q")
    done = slurm.strakes(*words, before=JOB, engine=mpi_engines()[1] if site else None)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert ("Open MPI" in document["environment"]["engine"]["mpi"]) == site
    assert (
        document["scope"].startswith("4 clients (one on each node) measured")
        and "4 nodes (n1, n2, n3, n4)" in document["scope"]
    )
    assert [node["host"] for node in document["target"]["nodes"]["compared"]] == ["n1", "n2", "n3", "n4"]
    _, visits = slurm.measured(document["run"]["id"])
    assert all(visit["ended"] == "ok" for visit in visits) and not slurm.left()


OPTIONS = ("--launcher", "slurm", "--launcher-options")
COMMAND = ("-n", "4", "--launcher-command")


@pytest.mark.parametrize(
    ("words", "status", "site"),
    [
        ((*OPTIONS, "--mpi=pmix"), 2, False),
        ((*COMMAND, "srun --mpi=none --input=0 -n {ranks} {engine}"), 3, False),
        ((*COMMAND, "srun --mpi=pmix --input=0 -n {ranks} {engine}"), 3, False),
        pytest.param((*OPTIONS, "--mpi=pmi2"), 2, True, marks=needs_open_mpi),
        pytest.param((*COMMAND, "srun --mpi=pmi2 --input=0 -n {ranks} {engine}"), 3, True, marks=needs_open_mpi),
    ],
)
def test_an_unsuitable_pmi_version_is_refused_before_measuring(
    slurm: Hosts, words: tuple[str, ...], status: int, site: bool
) -> None:
    engine = mpi_engines()[1] if site else None
    done = slurm.strakes("survey", slurm.directory, *words, "-q", before=JOB, engine=engine)
    assert done.returncode == status and ("--mpi=pmix" if site else "--mpi=pmi2") in done.stderr, done.stderr
    assert not slurm.left()


def test_another_launcher_can_be_given_as_a_command(slurm: Hosts) -> None:
    command = "srun --mpi=pmi2 --input=0 -N 2 -n {ranks} {engine}"
    words = ("study", "open-close", slurm.directory, "-n", "2", "--launcher-command", command, "--budget", "1s", "-q")
    done = slurm.strakes(*words, before=JOB)
    assert done.returncode == 0, done.stderr


def test_a_cancelled_job_can_be_resumed_without_repeating_visits(slurm: Hosts) -> None:
    shutil.rmtree(slurm.home / "store", ignore_errors=True)
    study = ("study", "open-close", slurm.directory, *SLURM, "--budget")
    job = submitted(slurm, *study, "20s")
    assert job.stdout is not None
    number = job.stdout.readline().strip()
    wait_for(lambda: sum(visit["purpose"] == "measure" for visit in visits(slurm)) > 2, 80)
    subprocess.run(slurm.words("login", "scancel", "--batch", "--signal=TERM", number), check=True)
    job.communicate(timeout=60)
    assert job.returncode == 130 and "--resume" in (slurm.home / f"{number}.out").read_text()
    before = visits(slurm)
    spent_s = sum(visit["elapsed_s"] for visit in before)
    again = submitted(slurm, *study, f"{1.5 * spent_s + 4:.0f}s", "--resume")
    again.communicate(timeout=90)
    assert again.returncode == 0
    after = visits(slurm)
    assert after[: len(before)] == before and len(after) > len(before)
    measured = [
        (visit["block"], visit["cell"]) for visit in after if visit["purpose"] == "measure" and visit["ended"] == "ok"
    ]
    assert len(set(measured)) == len(measured)
    (run,) = json.loads(slurm.strakes("runs", "--json").stdout)
    assert run["status"] == "complete" and not slurm.left()


def submitted(slurm: Hosts, *words: str | Path) -> subprocess.Popen[str]:
    """Submit strakes as docs/guide/clusters.md does. The process prints the number of the job and ends with it."""
    job = f"exec {sys.executable} -m strakes {' '.join(map(str, words))}"
    options = ("--parsable", "--wait", "-N", "2", "--signal=B:TERM@60", f"--output={slurm.home}/%j.out")
    command = slurm.words("login", "sbatch", *options, "--wrap", job)
    return subprocess.Popen(command, env=slurm.environment, stdout=subprocess.PIPE, text=True)


def visits(slurm: Hosts) -> list[dict[str, Any]]:
    found = [*(slurm.home / "store/runs").glob("*/visits.jsonl")]
    return [json.loads(line) for line in found[0].read_text().splitlines() if line.endswith("}")] if found else []


# Must be the last test of the file, as n4 stays off.
def test_a_host_that_fails_during_a_phase_is_named_and_the_job_cleans_up(slurm: Hosts) -> None:
    process = slurm.begin_phase(ENDLESS.replace("ranks = 8", "ranks = 4"), *SLURM, "--budget", "60s", before=JOB)
    slurm.control("power", "n4", "off")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert "host n4" in said and not slurm.left()
