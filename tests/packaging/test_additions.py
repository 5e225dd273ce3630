"""A study, a knob and an import that are written as docs/developers/add-*.md show pass the tests of their kind."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from conftest import ROOT
from control import test_catalogue as tests_of_knobs
from strakes import interop
from strakes.control.knob import catalogue, load
from strakes.interop import formats
from strakes.studies import registry
from studies import test_catalogue as tests_of_studies


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / "developers" / f"{page}.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_a_study_written_as_its_page_shows_passes_the_tests_of_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("strakes.studies.creators")
    exec(blocks("add-a-study", "python")[0], vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(registry._CLASSES, "creators", "Creators")
    study = registry.study_named("creators")
    for full in (False, True):
        tests_of_studies.test_every_plan_is_valid(study, full)
    tests_of_studies.test_keys_of_cells_and_ids_of_their_measures_are_unique(study)
    tests_of_studies.test_no_plan_exceeds_the_available_room(study)
    tests_of_studies.test_a_flat_file_system_yields_figures_with_points_and_findings_with_evidence(study)
    tests_of_studies.test_settings_that_are_equal_are_never_called_different(study)
    tests_of_studies.test_too_few_runs_decide_nothing(study)


def test_a_knob_written_as_its_page_shows_passes_the_test_of_knobs(monkeypatch: pytest.MonkeyPatch) -> None:
    (knob,) = load('file_systems = ["*"]\n' + blocks("add-a-knob", "toml")[0], "kernel.toml")
    monkeypatch.setattr(tests_of_knobs, "catalogue", lambda: (*catalogue(), knob))
    tests_of_knobs.test_every_knob_of_the_catalogue_is_consistent(knob)


def test_an_import_written_as_its_page_shows_reads_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, imported, line = blocks("add-an-export", "python")
    module = ModuleType("strakes.interop.reader_writer")
    exec(reader, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(interop, "reader_writer", module, raising=False)
    scope = {**vars(formats)}
    exec(f"{imported}added = ({line.strip()},)", scope)
    monkeypatch.setattr(formats, "JSON", formats.JSON + scope["added"])
    path = tmp_path / "result.json"
    path.write_text('{"writer version": "1.2", "bytes_per_s": 5e8}\n{"writer version": "1.2",')
    results = formats.read_file(path)
    assert [(test.form, test.version, test.figures[0].values) for test in results.tests] == [
        ("writer JSON", "1.2", (5e8,))
    ]
    assert "line 2 (not valid JSON" in results.left_out()
