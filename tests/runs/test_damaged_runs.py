"""Every command that reads a damaged stored run names it, and other runs remain usable."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from runs.test_older_runs import RUNS, unpack
from strakes.cli.main import run as strakes
from strakes.runs.run import Run
from strakes.runs.store_files import store_error

OPEN_CLOSE = next(path for path in RUNS if path.name.startswith("open-close"))
FILES = ("run.json", "environment.json", "cells.jsonl", "visits.jsonl", "events.jsonl")
SOUND = "20300101-000000-sound-0000"


@pytest.fixture
def runs() -> Path:
    return Path(os.environ["STRAKES_STORE"]) / "runs"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["gone", "empty", "cut"])
def test_a_missing_or_torn_file_is_named(
    name: str, how: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged, sound = unpack(OPEN_CLOSE, runs), unpack(OPEN_CLOSE, runs, SOUND)
    file = damaged / name
    content = file.read_bytes()
    file.unlink()
    if how != "gone":
        file.write_bytes(content[: len(content) // 2 if how == "cut" else 0])
    for words in (
        ["report", damaged.name],
        ["compare", sound.name, damaged.name],
        ["export", damaged.name, "--format", "csv"],
        ["predict", damaged.name, "--at", "clients=100"],
    ):
        capsys.readouterr()
        reads_environment = words[0] in ("report", "compare")
        if name == "environment.json" and not reads_environment:
            continue
        assert strakes(words) == 2, words
        assert str(file) in (error := capsys.readouterr().err) and "backup" in error, error
    assert strakes(["report", "latest"]) == 0 and strakes(["report", "guide", "-o", str(tmp_path / "guide.md")]) == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("options", {"beside": 5}),
        ("options", {"beside": [1]}),
        ("resumed", 5),
        ("created", "0001-01-01T00:00:00+14:00"),
        ("created", "9999-12-31T23:59:59-14:00"),
        ("target", "/x" * 100_000),
        ("more", [[]] * 300_000),
        ("more", "x" * 5_000_000),
    ],
)
def test_a_run_with_impossible_values_hides_no_other(
    key: str, value: object, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged, _ = unpack(OPEN_CLOSE, runs), unpack(OPEN_CLOSE, runs, SOUND)
    manifest = json.loads((damaged / "run.json").read_text())
    (damaged / "run.json").write_text(json.dumps(manifest | {key: value}))
    for words in (["runs"], ["report", "latest"], ["runs", "history"]):
        assert strakes(words) == 0
    output = capsys.readouterr().out
    assert f"{damaged.name}  " in output and "damaged" in output and len(output) < 100_000


@pytest.mark.parametrize("words", ["report", f"compare {SOUND}", "predict --at ranks=64", "export --format csv"])
def test_a_run_with_extreme_figures_is_named(words: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next(path for path in RUNS if path.name.startswith("survey"))
    damaged, _ = unpack(path, runs), unpack(path, runs, SOUND)
    visits = [json.loads(line) for line in (damaged / "visits.jsonl").read_text().splitlines()]
    for visit in visits:
        for sample in visit["samples"]:
            sample["operations_per_s"] = sample["bytes_per_s"] = (1e308, 5e-324)[visit["block"] % 2]
            sample["histograms"] = {"write": {"sub_bits": 10**9, "buckets": [[10**12, 1]]}}
        visit["client_s"] = 0
    (damaged / "visits.jsonl").write_text("".join(json.dumps(visit) + "\n" for visit in visits))
    assert strakes([*words.split(), damaged.name]) in (0, 2) and "internal error" not in capsys.readouterr().err


def test_a_report_elsewhere_is_written_although_the_run_cannot_be(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = unpack(OPEN_CLOSE, runs)
    read_only = OSError(errno.EROFS, os.strerror(errno.EROFS))
    monkeypatch.setattr(Run, "write", Mock(side_effect=store_error(read_only, run)))
    assert strakes(["report", "latest", "--html", str(tmp_path / "page.html")]) == 3
    assert (tmp_path / "page.html").exists() and "Free some space" not in capsys.readouterr().err


@pytest.mark.parametrize("kept", [(), ("study", "key", "settings", "measures")])
def test_a_history_goes_on_without_a_damaged_run(
    kept: tuple[str, ...], runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = unpack(OPEN_CLOSE, runs)
    for number in range(2):
        unpack(OPEN_CLOSE, runs, f"{SOUND}{number}")
    cells = [json.loads(line) for line in (damaged / "cells.jsonl").read_text().splitlines()]
    rows = (json.dumps({name: cell[name] for name in kept}) + "\n" for cell in cells)
    (damaged / "cells.jsonl").write_text("".join(rows))
    assert strakes(["runs", "history"]) == 0
    output = capsys.readouterr()
    assert "left out: " in output.err and damaged.name in output.err
    assert "2 runs" in output.out


def test_a_bug_is_not_reported_as_a_damaged_run(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object) -> None:
        raise KeyError("planted")

    sound = unpack(OPEN_CLOSE, runs)
    monkeypatch.setattr("strakes.survey.analysis_build._results_of", wrong)
    assert strakes(["report", sound.name]) == 2
    error = capsys.readouterr().err
    assert "is damaged" not in error and "rm -r" not in error
    log = Path(error.rpartition("with this log: ")[2].strip())
    assert "in wrong" in log.read_text()
    log.unlink()
