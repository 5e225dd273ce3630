"""Batch jobs: their submission, record and state, with stubs of the Slurm commands."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.runs.batch import script, state_of, submit_job, without_batch
from strakes.runs.choice import Launch
from strakes.runs.jobs import Job, Jobs


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def tool(directory: Path, name: str, body: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{body}\n")
    (directory / name).chmod(0o755)


def test_a_job_is_recorded_with_its_command_and_its_run(tools: Path) -> None:
    tool(tools, "sbatch", f'echo "$@" >{tools}/told; echo 42')
    jobs = Jobs(tools / "store")
    assert submit_job("survey", ["survey", "/scratch"], Launch("slurm", ranks_per_node=2), ["-N", "4"], jobs) == "42"
    told = (tools / "told").read_text()
    assert "--ntasks-per-node=2" in told and "-N 4" in told and "--job-name=strakes-survey" in told
    jobs.take_note("20260101-run", {"SLURM_JOB_ID": "42"})
    jobs.take_note("20260101-other", {"SLURM_JOB_ID": "43"})
    found = jobs.all()
    assert [(job.id, job.command, job.run, job.status) for job in found] == [
        ("42", ("strakes", "survey", "/scratch"), "20260101-run", None)
    ]


def test_a_refused_job_passes_on_the_message_of_sbatch(tools: Path) -> None:
    tool(tools, "sbatch", "echo 'sbatch: error: invalid partition specified: fast' >&2; exit 1")
    with pytest.raises(EnvironmentLacksError) as caught:
        submit_job("survey", ["survey"], Launch("slurm"), ["-p", "fast"], Jobs(tools / "store"))
    assert "invalid partition" in caught.value.why and not Jobs(tools / "store").all()


@pytest.mark.parametrize(
    ("queue", "state"), [("echo 'RUNNING (None)'", "RUNNING"), ("echo 'PENDING (Resources)'", "PENDING (Resources)")]
)
def test_the_state_of_a_job_comes_from_the_queue(tools: Path, queue: str, state: str) -> None:
    tool(tools, "squeue", queue)
    assert state_of(Job("42", "survey", (), "", "")) == state


def test_a_job_that_left_the_queue_without_an_exit_status_was_killed(tools: Path) -> None:
    tool(tools, "squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    job = Job("42", "survey", (), "", "")
    assert state_of(job) == "KILLED"
    assert state_of(Job("42", "survey", (), "", "", status=0)) == "ENDED"


def test_the_job_script_forwards_the_signal_and_keeps_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAKES_STORE", "/a store")
    text = script(["x"], tmp_path)
    assert "export STRAKES_STORE='/a store'" in text
    stub = tmp_path / "stub"
    tool(tmp_path, "stub", "trap 'exit 130' TERM; touch $0.up; while :; do sleep 0.05; done")
    line = next(line for line in text.splitlines() if line.endswith(" x &"))
    (tmp_path / "job").write_text(text.replace(line, f"{stub} &"))
    process = subprocess.Popen(["/bin/sh", tmp_path / "job"], env={"SLURM_JOB_ID": "9", "PATH": "/usr/bin:/bin"})
    while not (tmp_path / "stub.up").exists():
        assert process.poll() is None
    process.terminate()
    assert process.wait(10) == 130 and (tmp_path / "9.status").read_text() == "130\n"


def test_the_command_line_inside_the_job_does_not_submit_again() -> None:
    assert without_batch(["run", "p.toml", "/d", "--launcher", "slurm", "--batch", "-N 2", "--budget=5s"]) == [
        *("run", "p.toml", "/d", "--launcher", "slurm", "--budget=5s")
    ]


def test_an_unknown_job_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError):
        Jobs(tmp_path).find("7")


@pytest.mark.parametrize("job", ["../../outside", "..", "a/b", "", "../jobs/1", "1.json"])
def test_an_invalid_job_id_leaves_the_store_unchanged(tmp_path: Path, job: str) -> None:
    record = {"schema": 1, "id": job, "name": "n", "command": [], "submitted": "", "output": "", "run": ""}
    (tmp_path / "store" / "jobs").mkdir(parents=True)
    (tmp_path / "outside.json").write_text(json.dumps(record))
    jobs = Jobs(tmp_path / "store")
    with pytest.raises(BadInputError, match="has submitted no job"):
        jobs.find(job)
    jobs.take_note("run", {"SLURM_JOB_ID": job})
    (tmp_path / "store" / "jobs" / "1.json").write_text(json.dumps(record))
    with pytest.raises(BadInputError, match="damaged"):
        jobs.find("1")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["1.json", "jobs", "outside.json", "store"]
