"""Short budgets, concurrent measurements of one directory, and errors on an overloaded client."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from strakes.base.errors import EnvironmentLacksError, MeasurementError
from strakes.cli.main import run as strakes
from strakes.runs.engine import NOT_ENDED
from strakes.runs.messages import EngineError
from strakes.runs.records import OthersSeen
from strakes.runs.store import Store
from strakes.studies import measure_visit as visit
from strakes.targets.clean import others_at_work
from strakes.targets.registry import detect
from strakes.targets.workspace import Workspace


def test_a_run_reports_another_run_in_its_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Workspace.create(tmp_path, "20260101-000000-other"):
        assert strakes(["survey", str(tmp_path), "--budget", "20ms", "-q"]) == 0
        run = Store().open("latest")
        (seen, *more) = run.events_of(OthersSeen)
        assert (seen.when, more) == ("before", [])
        assert f"run 20260101-000000-other, process {os.getpid()}" in seen.who[0]
        capsys.readouterr()
        assert strakes(["report", run.id, "--json", "-"]) == 0
        assert "other-measurement" in [one["code"] for one in json.loads(capsys.readouterr().out)["warnings"]]
    assert strakes(["survey", str(tmp_path), "--budget", "20ms", "-q"]) == 0
    assert not Store().open("latest").events_of(OthersSeen)


def test_workspaces_of_the_run_itself_and_of_dead_runs_are_not_other_runs(tmp_path: Path) -> None:
    with Workspace.create(tmp_path, "mine"), Workspace.create(tmp_path, "mine.neighbour"):
        assert others_at_work(tmp_path, "mine") == () and len(others_at_work(tmp_path, "yours")) == 2
    assert others_at_work(tmp_path / "moved by its owner", "mine") == ()
    (tmp_path / "strakes-nothing").mkdir()
    assert others_at_work(tmp_path, "mine") == ()


def test_the_first_block_ends_with_the_budget(tmp_path: Path) -> None:
    assert strakes(["survey", str(tmp_path), "--budget", "20ms", "-q"]) == 0
    run = Store().open("latest")
    assert 1 <= len({one.cell for one in run.visits if one.is_measurement}) < len(run.cells) / 2


def test_a_budget_that_is_too_short_is_reported_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strakes.survey.runner._LEAST_S", 0.5)
    for budget, told in (("400ms", True), ("500ms", False)):
        assert strakes(["study", "open-close", str(tmp_path), "--budget", budget]) == 0
        assert capsys.readouterr().err.startswith(f"a budget of {budget} is too short ") is told


def test_amounts_that_are_refused_after_the_pilot_leave_no_run(tmp_path: Path) -> None:
    asked = ["survey", str(tmp_path), "--budget", "2s", "--phase", "60s", "-q"]
    assert strakes(asked) == 2 and Store().runs() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("study", "remedy"), [("nodes", "--launcher mpi with --hosts"), ("striping", "layouts can be")]
)
def test_the_next_step_follows_the_reason_why_nothing_can_be_measured(
    study: str, remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert strakes(["study", study, str(tmp_path), "--budget", "2s", "-q"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert remedy in told and "free space" not in told


def failed(what: str, load: float, monkeypatch: pytest.MonkeyPatch, place: Path) -> Exception:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    return visit.failure("error", [EngineError(what)], "a place", detect(place))


def test_a_slow_plan_on_an_overloaded_machine_is_not_a_failure_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, crowd = "the plan took longer than its limit of 60 s", 50.0 * (os.cpu_count() or 1)
    assert isinstance(failed(slow, crowd, monkeypatch, tmp_path), EnvironmentLacksError)
    assert isinstance(failed(slow, 0.1, monkeypatch, tmp_path), MeasurementError)
    hung = [EngineError(slow), EngineError("the plan did not end within 70 s", why=NOT_ENDED)]
    error = visit.failure("limit", hung, "a place", detect(tmp_path))
    assert error.exit_status == 1 and NOT_ENDED in error.why and slow in error.why
    assert isinstance(failed("write failed: EIO", crowd, monkeypatch, tmp_path), MeasurementError)
