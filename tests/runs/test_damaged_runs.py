"""Every command that reads a damaged stored run names it, and other runs remain usable."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import strakes as library
from runs.test_older_runs import RUNS, unpack
from strakes.base.errors import StrakesError
from strakes.cli.main import run as strakes
from strakes.runs.store import Store

SMALL = [path for path in RUNS if path.name.split(".")[0] in ("open-close", "tune", "import-ior-a", "startup-load")]
FILES = ("run.json", "environment.json", "cells.jsonl", "visits.jsonl", "events.jsonl")
OTHER: tuple[Any, ...] = (None, 5, -1.5, "x", "", [], [1], {}, {"a": None}, True)
SOUND = "20300101-000000-sound-0000"
EXAMPLES = Path(__file__).parents[2] / "examples"


def damage(path: Path, chance: random.Random) -> str:
    """Damage a file in a random way; return a description."""
    how = chance.choice(["gone", "empty", "cut", "cut at a line", "a line gone", "other", "key gone", "value", "value"])
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    if how == "gone":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(data[: chance.randrange(len(data))])
    elif how == "cut at a line":
        path.write_bytes(b"".join(lines[: chance.randrange(len(lines))]))
    elif how == "a line gone":
        del lines[chance.randrange(len(lines))]
        path.write_bytes(b"".join(lines))
    elif how == "other":
        path.write_text(json.dumps(chance.choice(OTHER)) + "\n")
    elif lines:
        rows = [json.loads(data)] if path.suffix == ".json" else [json.loads(line) for line in lines]
        place: Any = chance.choice(rows)
        trace: list[Any] = []
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = chance.choice(keys)
            trace.append(key)
            if not isinstance(place[key], dict | list) or not place[key] or chance.random() < 0.4:
                break
            place = place[key]
        if how == "key gone":
            del place[key]
        else:
            place[key] = chance.choice(OTHER)
        how = f"{how} {trace}"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return how


def commands(run: str, sound: str, place: Path) -> list[list[str]]:
    app = str(sorted((EXAMPLES / "apps").glob("*.toml"))[0])
    return [
        ["runs"],
        ["runs", "--json"],
        ["report", run],
        ["report", "figure", run],
        ["export", run],
        *(["export", run, "--format", form] for form in ("csv", "openmetrics", "io500")),
        ["compare", run, sound],
        ["compare", sound, run],
        ["compare", f"{sound},{run}", f"{run},{sound}"],
        ["report", "guide", run],
        ["report", "guide", "-o", str(place / "guide.md")],
        ["advise", "--app", app, "--from", run],
        ["advise", "--app", app],
        ["accept", str(EXAMPLES / "needs-s3.toml"), "--from", run],
        ["predict", run, "--at", "clients=100"],
        ["runs", "history"],
    ]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STRAKES_STORE", str(tmp_path / "store"))
    return tmp_path / "store" / "runs"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["gone", "empty", "cut"])
def test_a_missing_or_torn_file_is_named(
    name: str, how: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = next(path for path in RUNS if path.name.startswith("open-close"))
    damaged, sound = unpack(path, runs), unpack(path, runs, SOUND)
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
    assert strakes(["report", "latest"]) == 0
    assert strakes(["report", "guide", "-o", str(tmp_path / "guide.md")]) == 0


def test_a_history_goes_on_without_a_damaged_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next(path for path in RUNS if path.name.startswith("open-close"))
    damaged = unpack(path, runs)
    for number in range(2):
        unpack(path, runs, f"{SOUND}{number}")
    (damaged / "cells.jsonl").write_text("")
    assert strakes(["runs", "history"]) == 0
    output = capsys.readouterr()
    assert "left out: a file of the store is damaged" in output.err and damaged.name in output.err
    assert "2 runs" in output.out


def test_a_bug_is_not_reported_as_a_damaged_run(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object) -> None:
        raise KeyError("planted")

    sound = unpack(SMALL[0], runs)
    monkeypatch.setattr("strakes.survey.analysis_build._results_of", wrong)
    assert strakes(["report", sound.name]) == 2
    error = capsys.readouterr().err
    assert "is damaged" not in error and "rm -r" not in error
    log = Path(error.rpartition("with this log: ")[2].strip())
    assert "in wrong" in log.read_text()
    log.unlink()


@pytest.mark.parametrize("seed", range(10))
def test_random_damage_causes_no_internal_error(
    seed: int, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(seed)
    path, name = chance.choice(SMALL), chance.choice(FILES)
    damaged, sound = unpack(path, runs), unpack(path, runs, SOUND)
    how = damage(damaged / name, chance)
    for words in commands(damaged.name, sound.name, tmp_path):
        capsys.readouterr()
        status = strakes(words)
        error = capsys.readouterr().err
        told = f"{name}, {how}: strakes {' '.join(words)}: {error}"
        # `accept` ends with status 1 if a need is not met.
        assert status in ((0, 1, 2) if words[0] == "accept" else (0, 2)) and "internal error" not in error, told
        if "of the store is damaged" in error or "cannot use a stored run" in error:
            assert damaged.name in error, told
    with suppress(StrakesError):
        opened = library.open(damaged.name)
        _ = repr(opened), opened.cells.to_dicts(), opened.samples.to_dicts()
    assert {run.id for run in Store().runs()} >= {sound.name}
