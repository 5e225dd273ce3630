"""Commands that repeat an imported measurement or a stored run, and figures as images."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from strakes.cli.main import run as strakes
from strakes.runs.store import Store

SAMPLES = Path(__file__).parents[1] / "interop" / "samples"


def imported(name: str, place: Path, tmp_path: Path) -> str:
    """Import a sample as if it had been measured in ``place``, and return the command that repeats it."""
    (tmp_path / name).write_text((SAMPLES / name).read_text().replace("/scratch/try/s", str(place)))
    assert strakes(["import", str(tmp_path / name)]) == 0
    run = Store().open("latest")
    return str(run.manifest["options"]["imported"]["again"])


@pytest.mark.parametrize("name", ["ior-4.1.txt", "mdtest-4.1.txt"])
def test_the_command_of_the_remedy_runs_but_its_figures_are_not_compared_with_imported_ones(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "measured"
    place.mkdir()
    words = shlex.split(imported(name, place, tmp_path))
    first = Store().open("latest").id
    assert words[:4] == ["strakes", "run", "-n", "2"] and strakes(["run", "--budget", "2s", "-q", *words[2:]]) == 0
    assert strakes(["compare", first, Store().open("latest").id]) == 2
    assert "imported runs and runs of strakes cannot be compared" in capsys.readouterr().err


def test_an_amount_bounded_only_by_a_deadline_is_reduced_to_fit(tmp_path: Path) -> None:
    words = shlex.split(imported("mdtest-stonewall.txt", tmp_path, tmp_path))
    assert "-n 100000000" in " ".join(words) and strakes(["run", "--budget", "4s", "-q", *words[2:]]) == 0


def test_the_remedy_for_a_run_of_a_plan_names_its_command_and_not_the_option_like(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for operation in ("-C", "-T"):
        command = ["run", "--budget", "1s", "-q", "mdtest", operation, "-n", "9", "-d", str(tmp_path)]
        assert strakes(command) == 0
    first, second = Store().runs()
    assert strakes(["compare", first.id, second.id]) == 2
    error = capsys.readouterr().err
    assert "the command of the first" in error and "--like" not in error


def test_a_survey_with_like_repeats_the_cells_of_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey = ["survey", str(tmp_path), "--budget", "2s", "-q"]
    assert strakes(survey) == 0
    first = Store().open("latest")
    assert strakes([*survey, "--like", first.id]) == 0
    second = Store().open("latest")
    assert [cell.key for cell in second.cells] == [cell.key for cell in first.cells]
    capsys.readouterr()
    assert strakes(["compare", first.id, second.id, "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert not [one for one in document["unlike"] if "of the runs" not in one["why"]]
    assert any(cell["id"].startswith("overview/") for cell in document["cells"])
    assert strakes(["study", "stream", str(tmp_path), "--like", first.id]) == 2
    cells = first.path / "cells.jsonl"
    good = [json.loads(line) for line in cells.read_text().splitlines()]
    for planted, why in (
        ({"knobs": {"queue.read_ahead_kb": "16"}}, "--knob does not name queue.read_ahead_kb"),
        ({"place": {"kept": "k", "entries": {f"{tmp_path}/x": {"kind": "inherit"}}}}, "not the name of a directory"),
        ({"place": {"kept": "../x", "drawn": True}}, "not the name of a directory"),
        ({"place": {"target": "against"}}, "no cells of this study"),
        ({"plan": good[0]["plan"] | {"phases": []}}, "phases must be a list"),
        ({"plan": good[0]["plan"] | {"team": {"ranks": 2, "memory_hog_bytes": 1 << 40}}}, "takes memory of the node"),
    ):
        cells.write_text("".join(json.dumps(cell | planted) + "\n" for cell in good))
        assert strakes([*survey, "--like", first.id]) == 2
        assert why in capsys.readouterr().err and not (tmp_path / "x").exists()
    cells.write_text("".join(json.dumps(cell) + "\n" for cell in good))
    events = first.path / "events.jsonl"
    events.write_text(re.sub(r'"overhead_s":[^,}]+', '"overhead_s":"x"', events.read_text()))
    assert strakes([*survey, "--like", first.id]) == 2
    assert "overhead_s: 'x' is not a valid float" in capsys.readouterr().err


def test_like_cannot_be_combined_with_amounts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert strakes(["survey", str(tmp_path), "--like", "latest", "--phase", "1s"]) == 2
    assert "--like cannot be used with --data-per-rank, --files or --phase" in capsys.readouterr().err


def test_a_figure_is_written_as_an_image(tmp_path: Path) -> None:
    assert strakes(["study", "transfer-size", str(tmp_path), "--budget", "2s", "-q"]) == 0
    for name, begin in (("figure.svg", b"<?xml"), ("figure.png", b"\x89PNG")):
        assert strakes(["report", "figure", "latest", "transfer-size", "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(begin)
