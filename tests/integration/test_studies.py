"""Whole studies: two file systems measured in turn, and a growing population of files that can be resumed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from conftest import StrakesRunner
from integration.conftest import most_measured, started, wait_for_visits
from strakes.runs.records import PopulationRemoved
from strakes.runs.store import Store


def population(directory: Path, *more: str) -> list[str]:
    return ["study", "population", str(directory), "--files", "24000", "--budget", "60s", "--quiet", *more]


def test_two_directories_are_measured_alternately_and_left_empty(
    strakes: StrakesRunner, target: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    done = strakes("study", "open-close", target, "--against", other, "--budget", "12s", "--json", "-", "--quiet")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert {cell["settings"]["side"] for cell in document["cells"]} == {"A", "B"}
    assert any(answer["id"].startswith("against") for answer in document["answers"])
    assert document["target"]["against"]["path"] == str(other)
    assert not list(target.iterdir()) and not list(other.iterdir())


def broken_off(directory: Path, visits: int, kind: signal.Signals, *more: str) -> int:
    """Run a growing population, send the signal after ``visits`` more measuring visits, and return the exit status."""
    visits += most_measured()
    running = started(*population(directory, "--keep", *more))
    wait_for_visits(running, visits)
    running.send_signal(kind)
    running.communicate()
    return running.returncode


def files_in(directory: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(directory))


def test_a_population_can_be_interrupted_killed_resumed_and_removed(strakes: StrakesRunner, target: Path) -> None:
    assert broken_off(target, 3, signal.SIGINT) == 130
    there = files_in(target)
    assert there >= 3 * 400
    assert Store().open("latest").id in strakes("clean", target, "--dry-run").stdout, "it is marked as what it is"
    assert broken_off(target, 4, signal.SIGKILL, "--resume") == -signal.SIGKILL
    assert files_in(target) >= there + 4 * 400, "what had grown is kept, and grew on"
    done = strakes(*population(target, "--resume", "--json", "-"))
    assert done.returncode == 0, done.stderr
    run = Store().open("latest")
    rounds = [visit.cell for visit in run.visits if visit.ended_well and visit.is_measurement]
    assert rounds == sorted(rounds) and len(rounds) == 32, "each step has its eight rounds, in order"
    document = json.loads(done.stdout)
    (figure,) = [one for one in document["figures"] if one["title"] == "A growing population of files"]
    assert [point["x"] for point in figure["series"][0]["points"]] == [6000 * step for step in range(1, 5)]
    findings = {one["id"]: one for one in document["findings"]}
    assert "24,000 files were created" in findings["population-size"]["statement"]
    assert [event.files for event in run.events_of(PopulationRemoved)] == [24_000] and not list(target.iterdir())


def test_a_population_that_spent_its_budget_can_be_resumed_with_another(strakes: StrakesRunner, target: Path) -> None:
    short = [word if word != "60s" else "0.01s" for word in population(target, "--keep", "--json", "-")]
    first = json.loads(strakes(*short).stdout)
    size = next(one for one in first["findings"] if one["id"] == "population-size")
    assert size["verdict"] == "inconclusive" and "of 24,000" in size["statement"]
    assert first["run"]["status"] == "partial" and any("--resume" in one["reason"] for one in first["skipped"])
    done = strakes(*population(target, "--resume", "--json", "-"))
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout)
    assert last["run"]["id"] == first["run"]["id"] and last["run"]["status"] == "complete" and not last["skipped"]
    size = next(one for one in last["findings"] if one["id"] == "population-size")
    assert "24,000 files were created" in size["statement"]


def test_an_interrupted_population_without_keep_names_the_option(target: Path) -> None:
    running = started(*population(target))
    wait_for_visits(running, 3)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate()
    assert running.returncode == 130 and "start the run with --keep" in errors and not list(target.iterdir())


def test_a_population_whose_files_are_gone_is_not_resumed(strakes: StrakesRunner, target: Path) -> None:
    assert broken_off(target, 3, signal.SIGINT) == 130 and strakes("clean", target).returncode == 0
    done = strakes(*population(target, "--resume"))
    assert done.returncode == 2 and "are gone" in done.stderr


def test_studies_that_need_targets_are_refused_with_the_reason(strakes: StrakesRunner, target: Path) -> None:
    for name in ("target-baseline", "namespace-scaling"):
        done = strakes("study", name, target, "--budget", "2s", "--quiet")
        assert done.returncode == 2 and "visible" in done.stderr
    assert not list(target.iterdir())
