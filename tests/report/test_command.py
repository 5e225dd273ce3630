from __future__ import annotations

import json
from pathlib import Path

import pytest

from report.document import validate
from strakes.cli.main import run as strakes
from strakes.model.cell import Cell
from strakes.model.portrait import Portrait
from strakes.model.record import from_record
from strakes.runs.store import Store
from strakes.studies.registry import NAMES, studies
from studies.world import NEEDS, context, flat, store_run, visits_of
from studies.world import stored as stored_visits


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("STRAKES_STORE", str(tmp_path / "store"))
    target = tmp_path / "target"
    target.mkdir()
    contexts = ((study, context(**NEEDS.get(study.name, {}))) for study in studies())
    cells = [cell for study, known in contexts for cell in study.cells(known) if isinstance(cell, Cell)]
    facts = {"path": str(target), "file_system": "xfs", "remote": False, "memory_bytes": 2**34}
    visits = stored_visits(visits_of(cells, flat, blocks=6, noise=0.02))
    return store_run(target, cells, visits, facts, studies=list(NAMES)).id


@pytest.mark.parametrize("name", ["latest", "id", "beginning", "nothing"])
def test_a_stored_run_is_rendered_again(stored: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"latest": ["latest"], "id": [stored], "beginning": [stored[:-2]], "nothing": []}[name]
    assert strakes(["report", *words]) == 0
    html = Store().open(stored).path / "report.html"
    output = capsys.readouterr().out
    assert "How fast it is" in output and f"Report  {html}" in output
    assert html.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_findings_on_standard_output_are_the_only_output_and_can_be_read_back(
    stored: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert strakes(["report", stored, "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    validate(document)
    portrait = from_record(Portrait, document)
    assert portrait.run["id"] == stored and {cell.study for cell in portrait.cells} == set(NAMES)
