"""Whole surveys: they measure, can be killed and resumed, refuse unusable targets, and remove their files."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from conftest import ROOT, StrakesRunner
from integration.conftest import started, wait_for_visits
from mounts import fill_up
from report.document import validate
from strakes.runs.run import Run
from strakes.runs.store import Store

BUDGET = "6s"


def the_run() -> Run:
    return Store().open("latest")


def test_a_survey_ends_with_a_summary_a_report_and_a_valid_document(
    strakes: StrakesRunner, target: Path, tmp_path: Path
) -> None:
    out, page = tmp_path / "out.json", tmp_path / "report.html"
    done = strakes("survey", target, "--budget", "15s", "--json", out, "--html", page)
    assert done.returncode == 0, done.stderr
    assert "How fast it is" in done.stdout
    document = json.loads(out.read_text())
    validate(document)
    ids = {cell["id"] for cell in document["cells"]}
    assert document["answers"] and all(one["measure"] in ids for one in document["answers"])
    assert {cell["study"] for cell in document["cells"]} == {"overview"} and "<html" in page.read_text()
    assert os.listdir(target) == []


def test_a_killed_survey_resumes_without_repeating_visits(strakes: StrakesRunner, target: Path) -> None:
    with started("survey", target, "--budget", BUDGET) as process:
        wait_for_visits(process, 8)
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
    assert len(after) > len(before) and len(Store().runs()) == 1
    assert os.listdir(target) == []


def test_an_interrupted_survey_cleans_up_and_names_resume(target: Path) -> None:
    with started("survey", target, "--budget", "60s") as process:
        wait_for_visits(process, 2)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "--resume" in errors and os.listdir(target) == []
    assert the_run().manifest["status"] == "interrupted"


def test_a_study_cleans_up_if_the_file_system_fills_up_during_it(target: Path) -> None:
    with started("study", "transfer-size", target, "--budget", "30s") as process:
        wait_for_visits(process, 3)
        while process.poll() is None:  # also fills the space that strakes frees
            fill_up(target / "neighbour")
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert "No space left on device" in errors and os.listdir(target) == ["neighbour"]
    assert the_run().manifest["status"] == "failed"


def test_kept_files_of_a_plan_are_those_of_the_last_visit_and_clean_removes_them(
    strakes: StrakesRunner, target: Path
) -> None:
    plan = ROOT / "examples" / "checkpoint.toml"
    done = strakes("run", plan, target, "--budget", "3s", "--keep")
    assert "restart" in done.stdout and f"strakes clean {target}" in done.stderr
    assert [path.stat().st_size for path in target.rglob("*.data")] == [16 << 20] * 4
    assert strakes("clean", target).returncode == 0 and os.listdir(target) == []
