"""Studies for real: two file systems in turn, runs that can be compared, a population that is interrupted and grows on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT, StrakesRunner
from mounts import tmpfs_mounted
from strakes.store import Run, Store


@pytest.fixture
def target() -> Iterator[Path]:
    with tmpfs_mounted("256m") as place:
        yield place


def population(directory: Path, *more: str) -> list[str]:
    return ["study", "population", str(directory), "--files", "24000", "--budget", "60s", "--quiet", *more]


def test_two_directories_are_measured_in_turn_and_both_left_empty(strakes: StrakesRunner, target: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    done = strakes("study", "open-close", target, "--against", other, "--budget", "4s", "--json", "-", "--quiet")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert {cell["settings"]["target"] for cell in document["cells"]} == {"A", "B"}
    assert any(finding["id"] == "against:open-close-overall" for finding in document["findings"])
    assert document["target"]["against"]["path"] == str(other)
    assert not list(target.iterdir()) and not list(other.iterdir())


def test_a_run_like_another_can_be_compared_with_it(strakes: StrakesRunner, target: Path) -> None:
    assert strakes("study", "open-close", target, "--budget", "3s", "--quiet").returncode == 0
    first = Store().open("latest").id
    assert strakes("study", "open-close", target, "--budget", "3s", "--like", first, "--quiet").returncode == 0
    second = Store().open("latest").id
    compared = strakes("compare", first, second, "--json", "-")
    assert compared.returncode == 0, compared.stderr
    document = json.loads(compared.stdout)
    assert document["cells"] and not document["unlike"]
    assert strakes("study", "stream", target, "--like", first).returncode == 2


def test_a_population_is_interrupted_goes_on_and_is_removed(strakes: StrakesRunner, target: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "strakes", *population(target, "--keep")]
    running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    for _ in range(600):
        runs = Store().runs()
        if runs and len(Run(runs[-1].path).visits) >= 4:
            break
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    begun = len(Store().open("latest").visits)
    assert any(target.iterdir()), "what had grown is kept"
    done = strakes(*population(target, "--resume"))
    assert done.returncode == 0, done.stderr
    run = Store().open("latest")
    assert len([visit for visit in run.visits if visit["purpose"] == "measure"]) == 60
    assert begun < 61
    cleaned = next(event for event in run.events if event["event"] == "clean-up")
    assert cleaned["files"] == 24_000
    assert not list(target.iterdir())


def test_a_population_whose_files_are_gone_is_not_gone_on_with(strakes: StrakesRunner, target: Path) -> None:
    command = [sys.executable, "-m", "strakes", *population(target, "--keep")]
    running = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    for _ in range(600):
        runs = Store().runs()
        if runs and len(Run(runs[-1].path).visits) >= 3:
            break
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    running.communicate()
    assert strakes("clean", target).returncode == 0
    done = strakes(*population(target, "--resume"))
    assert done.returncode == 2
    assert "is gone" in done.stderr


def test_studies_that_need_targets_say_what_is_missing(strakes: StrakesRunner, target: Path) -> None:
    for name in ("target-baseline", "namespace-scaling"):
        done = strakes("study", name, target, "--budget", "2s", "--quiet")
        assert done.returncode == 2
        assert "told apart" in done.stderr
    assert not list(target.iterdir())
