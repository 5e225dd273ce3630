"""``strakes tune`` on the command line, on a real directory."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import StrakesRunner, wait_for
from strakes.cli.main import run as run_command
from strakes.runs.records import Visit
from strakes.runs.store import Store

APP = """
title = "small"
interface = "posix"
ranks = 64
ranks_per_node = 2
grouping = 2
[[phase]]
name = "dump"
operation = "write"
files = "shared"
data_per_rank = "256KiB"
record_size = "16KiB"
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.toml"
    path.write_text(APP)
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "target"
    path.mkdir()
    return path


@pytest.mark.more
def test_a_search_ends_with_a_statement_and_a_report_and_leaves_no_files(
    strakes: StrakesRunner, app: Path, place: Path
) -> None:
    done = strakes("tune", "--app", app, place, "--budget", "5s", "--seed", "1", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "dump: default" in done.stdout and list(place.iterdir()) == []
    run = Store().open("latest")
    assert run.manifest["kind"] == "tune" and run.manifest["status"] == "complete"
    assert "Main effects" in (run.path / "report.html").read_text()
    # The run stores all trials, and a report from the store has the same findings.
    assert run.visits[0].stage == "screen" and len(run.cells) > 1
    document = json.loads(strakes("report", "latest", "--json", "-").stdout)
    assert {finding["id"] for finding in document["findings"]} >= {"tune-gain", "tune-mattered"}


def test_an_interrupted_search_goes_on_where_it_stopped(
    strakes: StrakesRunner, app: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-m", "strakes", "tune", "--app", str(app), str(place), "--budget", "6s", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: len(_visits()) >= 4)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert b"--resume" in errors and list(place.iterdir()) == []
    before = _visits()
    events = Store().open("latest").path / "events.jsonl"
    good = events.read_text()
    # Another user may have written the stored search.
    for old, new, said in (
        ('"name":"transfer_bytes"', '"name":"knob:vm.swappiness"', "vm.swappiness"),
        ('"data_bytes":', '"data_bytes":1', "size of trials"),
        ('"limit_s":', '"limit_s":"x","was":', "cannot use"),
        (
            '{"event":"space"',
            '{"event":"confirmation","best":{"x":1},"runs":9}\n{"event":"space"',
            "none of this search",
        ),
    ):
        assert old in good
        events.write_text(good.replace(old, new))
        assert run_command(["tune", "--app", str(app), str(place), "--budget", "6s", "--quiet", "--resume"]) == 2
        assert said in capsys.readouterr().err and list(place.iterdir()) == []
    events.write_text(good)
    done = strakes("tune", "--app", app, place, "--budget", "6s", "--quiet", "--resume")
    assert done.returncode == 0, done.stderr
    run = Store().open("latest")
    assert len(Store().runs()) == 1 and run.manifest["status"] == "complete"
    assert run.visits[: len(before)] == before and len(run.visits) > len(before)


def test_unknown_settings_are_refused_before_anything_is_measured(
    app: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in ((["--only", "stripe count=3"], "next: One of: "), (["--knobs", "no.such.knob=1"], "next:")):
        assert run_command(["tune", "--app", str(app), str(place), *words, "--quiet"]) == 2
        assert said in capsys.readouterr().err
    assert Store().runs() == [] and list(place.iterdir()) == []


def _visits() -> list[Visit]:
    runs = Store().runs()
    return Store().open(runs[-1].id).visits if runs else []
