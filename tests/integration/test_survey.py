"""Whole surveys: they measure, can be killed and resumed, refuse unusable targets, and remove their files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import ROOT, StrakesRunner
from mounts import loop_mounted, tmpfs_mounted
from strakes.report.findings import validate
from strakes.store import Run, Store

BUDGET = "6s"


@pytest.fixture
def target() -> Iterator[Path]:
    with tmpfs_mounted("256m") as place:
        yield place


def started(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "strakes", *arguments]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def fill_up(path: Path) -> None:
    """Append to a file until the file system is full."""
    with suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))


def the_run() -> Run:
    return Store().open("latest")


def wait_for_visits(number: int) -> None:
    """Wait until the newest run has ``number`` finished visits besides its pilot; raises AssertionError after 30 s."""
    for _ in range(600):
        runs = Store().runs()
        if runs and sum(visit.purpose != "pilot" for visit in Run(runs[-1].path).visits) >= number:
            return
        time.sleep(0.05)
    raise AssertionError("the survey does not get going")


def test_a_survey_ends_with_a_summary_a_report_and_a_valid_document(
    strakes: StrakesRunner, target: Path, tmp_path: Path
) -> None:
    out, page = tmp_path / "out.json", tmp_path / "report.html"
    done = strakes("survey", target, "--budget", BUDGET, "--json", out, "--html", page)
    assert done.returncode == 0, done.stderr
    assert "How fast it is" in done.stdout
    document = json.loads(out.read_text())
    validate(document)
    ids = {cell["id"] for cell in document["cells"]}
    assert document["answers"] and all(one["measure"] in ids for one in document["answers"])
    assert {cell["study"] for cell in document["cells"]} == {"overview"}
    assert "<html" in page.read_text()
    assert os.listdir(target) == []


def test_json_on_standard_output_is_the_document_alone(strakes: StrakesRunner, target: Path) -> None:
    done = strakes("study", "open-close", target, "--budget", "2s", "--json", "-")
    assert done.returncode == 0, done.stderr
    validate(json.loads(done.stdout))


def test_a_killed_survey_resumes_without_repeating_visits(strakes: StrakesRunner, target: Path) -> None:
    with started("survey", str(target), "--budget", BUDGET) as process:
        wait_for_visits(8)
        os.killpg(process.pid, signal.SIGKILL)
    before = the_run().visits
    assert any(target.iterdir())
    done = strakes("survey", target, "--budget", BUDGET, "--resume")
    assert done.returncode == 0, done.stderr
    after = the_run().visits
    assert after[: len(before)] == before
    measured = [(visit.block, visit.cell, visit.purpose) for visit in after if visit.purpose != "pilot"]
    assert len(set(measured)) == len(measured)
    assert len(after) - len(measured) == sum(visit.purpose == "pilot" for visit in before)
    assert len(after) > len(before)
    assert len(Store().runs()) == 1
    assert os.listdir(target) == []


def test_clean_removes_only_the_files_of_a_killed_survey(strakes: StrakesRunner, target: Path) -> None:
    (target / "strakes-of-the-ship").write_text("mine")
    with started("survey", str(target), "--budget", BUDGET) as process:
        wait_for_visits(3)
        os.killpg(process.pid, signal.SIGKILL)
    done = strakes("clean", target)
    assert done.returncode == 0, done.stderr
    assert os.listdir(target) == ["strakes-of-the-ship"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_survey_cleans_up_and_names_resume(target: Path, number: signal.Signals) -> None:
    with started("survey", str(target), "--budget", "60s") as process:
        wait_for_visits(2)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "--resume" in errors
    assert os.listdir(target) == []
    assert the_run().manifest["status"] == "interrupted"


def test_a_full_file_system_is_refused_before_it_is_touched(strakes: StrakesRunner) -> None:
    with tmpfs_mounted("2m") as place:
        (place / "fill").write_bytes(bytes(2 << 20))
        done = strakes("survey", place, "--budget", BUDGET)
        assert done.returncode == 2
        assert "full" in done.stderr
        assert "next:" in done.stderr
        assert os.listdir(place) == ["fill"]
    assert Store().runs() == []


def test_a_study_cleans_up_if_the_file_system_fills_up_during_it(target: Path) -> None:
    with started("study", "transfer-size", str(target), "--budget", "30s") as process:
        wait_for_visits(3)
        while process.poll() is None:  # takes the space that strakes frees
            fill_up(target / "neighbour")
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert "No space left on device" in errors
    assert os.listdir(target) == ["neighbour"]
    assert the_run().manifest["status"] == "failed"


@pytest.mark.more
def test_only_a_file_system_in_memory_gets_the_warning(strakes: StrakesRunner, tmp_path: Path) -> None:
    codes = {}
    for kind, mounted in (("tmpfs", tmpfs_mounted("256m")), ("xfs", loop_mounted("xfs"))):
        with mounted as place:
            out = tmp_path / f"{kind}.json"
            done = strakes("study", "transfer-size", place, "--budget", "8s", "--json", out)
            assert done.returncode == 0, done.stderr
            document = json.loads(out.read_text())
            codes[kind] = {warning["code"] for warning in document["warnings"]}
            assert document["target"]["file_system"] == kind
    assert "memory-file-system" in codes["tmpfs"]
    assert "memory-file-system" not in codes["xfs"]


def test_a_user_plan_runs_and_reports_every_phase(strakes: StrakesRunner, target: Path, tmp_path: Path) -> None:
    plan = tmp_path / "checkpoint.toml"
    plan.write_text(
        """
ranks = 2

[[phase]]
kind = "transfer"
name = "write"
operation = "write"
layout = "shared-file"
access = "strided"
transfer_bytes = "64KiB"
block_bytes = "64KiB"
segments = 32
sync = "fsync"

[[phase]]
kind = "transfer"
name = "read-back"
operation = "read"
layout = "shared-file"
access = "strided"
transfer_bytes = "64KiB"
block_bytes = "64KiB"
segments = 32
verify = true
"""
    )
    done = strakes("run", plan, target, "--budget", "3s")
    assert done.returncode == 0, done.stderr
    assert "read-back" in done.stdout
    assert not list(target.rglob("*.data"))
    kept = strakes("run", plan, target, "--budget", "3s", "--keep")
    assert kept.returncode == 0, kept.stderr
    # Only the file of the last visit is kept.
    (data,) = target.rglob("*.data")
    assert data.stat().st_size == 2 * 32 * 64 * 1024
    assert strakes("clean", target).returncode == 0
    assert not list(target.rglob("*.data"))


def test_a_plan_with_a_wrong_key_is_refused_by_name(strakes: StrakesRunner, target: Path, tmp_path: Path) -> None:
    plan = tmp_path / "typo.toml"
    plan.write_text(
        'ranks = 1\n[[phase]]\nkind = "metadata"\nname = "a"\noperation = "file-create"\ndirectory = "unique"\nitmes = 3\n'
    )
    done = strakes("run", plan, target)
    assert done.returncode == 2
    assert "itmes" in done.stderr
    assert "typo.toml" in done.stderr
    assert os.listdir(target) == []
