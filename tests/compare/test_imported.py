"""Import, measure again, compare: what the remedy says leads to a comparison."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from strakes.cli.main import run as strakes
from strakes.store import Store

SAMPLES = Path(__file__).parents[1] / "interop" / "samples"


def imported(name: str, place: Path, tmp_path: Path, replacing: dict[str, str]) -> str:
    """A sample as if it had been measured in that place; returns the command that its warning tells to type."""
    text = (SAMPLES / name).read_text()
    for before, after in {**replacing, "/scratch/try/s": str(place)}.items():
        text = text.replace(before, after)
    (tmp_path / name).write_text(text)
    assert strakes(["import", str(tmp_path / name)]) == 0
    run = Store().open("latest")
    return str(run.manifest["options"]["imported"]["again"])


@pytest.mark.parametrize("name", ["ior-4.1.txt", "mdtest-4.1.txt"])
def test_what_the_remedy_says_can_be_compared(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "measured"
    place.mkdir()
    words = shlex.split(imported(name, place, tmp_path, {}))
    first = Store().open("latest").id
    assert words[:4] == ["strakes", "run", "-n", "2"]
    assert strakes(["run", "--budget", "2s", "-q", *words[2:]]) == 0
    second = Store().open("latest").id
    capsys.readouterr()
    for a, b in ((first, second), (second, first)):
        assert strakes(["compare", a, b, "--json", "-"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert len(document["cells"]) >= 2
        assert {cell["verdict"].lower() for cell in document["cells"]} == {"inconclusive"}
        assert any("single points" in text for text in document["caution"])


def test_other_work_is_refused_with_the_command_that_does_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = imported("ior-4.1.txt", tmp_path, tmp_path, {})
    first = Store().open("latest").id
    command = ["run", "--budget", "1s", "-q", "-n", "2", "ior", "-F", "-t", "64k", "-b", "1m", "-o", f"{tmp_path}/f"]
    assert strakes(command) == 0
    assert strakes(["compare", first, Store().open("latest").id]) == 2
    error = capsys.readouterr().err
    assert "transfer_bytes: 1048576 in A, 65536 in B" in error
    assert again in error


def test_two_surveys_of_one_directory_are_alike_with_like(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey = ["survey", str(tmp_path), "--budget", "2s", "-q"]
    assert strakes(survey) == 0
    first = Store().open("latest")
    assert strakes([*survey, "--like", first.id]) == 0
    second = Store().open("latest")
    assert [cell.key for cell in second.cells] == [cell.key for cell in first.cells]
    capsys.readouterr()
    assert strakes(["compare", first.id, second.id, "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert not [one for one in document["unlike"] if "not measured" not in one["why"]]
    assert any(cell["id"].startswith("metadata-ops") for cell in document["cells"])


def test_like_takes_no_amounts_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert strakes(["survey", str(tmp_path), "--like", "latest", "--phase", "1s"]) == 2
    assert "--like cannot be used with amounts" in capsys.readouterr().err
