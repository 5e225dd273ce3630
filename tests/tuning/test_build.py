"""Findings and warnings in a portrait (the content of a report) that is built from stored visits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from report.document import validate
from strakes.base.errors import BadInputError
from strakes.base.finite import finite
from strakes.base.units import GIB, MIB
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.plan import Plan
from strakes.model.portrait import Portrait
from strakes.report.facts import facts_of
from strakes.runs.published import PublishedRun
from strakes.studies.plan_run import PlanRun
from strakes.studies.registry import NAMES, studies, study_named
from strakes.tuning.portraits import build_portrait
from studies.world import NEEDS, context, flat, store_run, stored, visits_of

FACTS = {"file_system": "xfs", "remote": False, "direct_io": True, "cpus": 2, "memory_bytes": 24 * GIB}
TRANSFERS = [cell for cell in study_named("transfer-size").cells(context()) if isinstance(cell, Cell)]
Build = Callable[..., Portrait]


@pytest.fixture
def portrait_of(tmp_path: Path) -> Build:
    """Return a function that stores a run with these visits, reads it back and returns its portrait."""

    def build(
        visits: list[dict[str, Any]], cells: list[Cell] = TRANSFERS, *names: str, facts: Mapping[str, Any] = FACTS
    ) -> Portrait:
        target = tmp_path / "target"
        target.mkdir()
        environment = {"host": "n1", "load_average": [0.1, 0.1, 0.1], "cpus": 2}
        studies = list(names) or ["transfer-size"]
        run = store_run(target, cells, stored(visits), facts, environment=environment, studies=studies)
        return build_portrait(run)

    return build


def test_the_rate_of_the_first_files_is_reported_where_later_ones_take_longer(portrait_of: Build) -> None:
    """ext4 without a journal, for example, creates files much faster until the first ones are removed."""
    cells = [cell for cell in study_named("overview").cells(context()) if isinstance(cell, Cell)]
    pilot = Cell("pilot", "pilot", {}, Plan(2, (MetadataPhase("create", "file-create", "unique", 100),)))
    first = visits_of([pilot], lambda phase, ranks: 40 * flat(phase, ranks), 1, 0.01, purpose="pilot")
    portrait = portrait_of([*first, *visits_of(cells, flat, 6, 0.01)], cells, "overview")
    fresh = {cell.id: cell.fresh for cell in portrait.cells if cell.fresh is not None}
    assert set(fresh) == {"overview/own-directories:file-create", "overview/shared-directory:file-create"}
    assert fresh["overview/own-directories:file-create"] == pytest.approx(800_000, rel=0.1)


def test_the_portrait_of_a_whole_survey_validates(portrait_of: Build) -> None:
    cells = [
        cell
        for study in studies()
        for cell in study.cells(context(**NEEDS.get(study.name, {})))
        if isinstance(cell, Cell)
    ]
    portrait = portrait_of(visits_of(cells, flat, 8, 0.01), cells, *NAMES)
    validate(finite(asdict(portrait)))
    ids = {cell.id for cell in portrait.cells}
    assert portrait.answers and all(answer.measure in ids for answer in portrait.answers)
    assert {figure.study for figure in portrait.figures} == set(NAMES)


def test_a_failed_visit_carries_no_value(portrait_of: Build) -> None:
    visits = visits_of(TRANSFERS, flat, 6, 0.01)
    visits[0] = {**visits[0], "ended": "failed"}
    runs = {cell.id: cell.runs for cell in portrait_of(visits).cells}
    assert runs[TRANSFERS[0].measure_id("write")] == 5 and runs[TRANSFERS[1].measure_id("write")] == 6


def test_a_read_of_cached_pages_is_suspect(portrait_of: Build) -> None:
    cached = {"method": "cachestat", "file_bytes": 10**12, "resident_before_bytes": 10**12}
    visits = visits_of(TRANSFERS, flat, 6, 0.01)
    for sample in (sample for visit in visits for sample in visit["samples"] if sample["name"] == "read"):
        sample["cache"] = cached
    portrait = portrait_of(visits)
    suspect = {cell for warning in portrait.warnings if warning.code == "cache-suspect" for cell in warning.cells}
    assert TRANSFERS[0].measure_id("read") in suspect and TRANSFERS[0].measure_id("write") not in suspect
    assert all("cache-suspect" in cell.warnings for cell in portrait.cells if cell.id in suspect)


def test_two_runs_without_start_times_have_the_warning_few_runs_and_no_start_skew(portrait_of: Build) -> None:
    portrait = portrait_of(visits_of(TRANSFERS, flat, 2, 0.01))
    assert "begun_together" not in portrait.run and "Phases started" not in dict(facts_of(portrait))
    assert any(warning.code == "few-runs" for warning in portrait.warnings)
    assert all(cell.low is None for cell in portrait.cells)


@pytest.mark.parametrize(
    ("file_system", "below", "code"),
    [("tmpfs", "", "memory-file-system"), ("xfs", "tmpfs", "memory-file-system"), ("xfs", "ext4", "cache-below")],
)
def test_memory_and_a_loop_device_are_not_taken_for_storage(
    portrait_of: Build, file_system: str, below: str, code: str
) -> None:
    device = {"name": "loop0", "backing_file": "/image", "backing_file_system": below} if below else None
    facts = {**FACTS, "file_system": file_system, "block_device": device}
    portrait = portrait_of(visits_of(TRANSFERS, flat, 6, 0.01), facts=facts)
    assert {warning.code for warning in portrait.warnings} & {"memory-file-system", "cache-below"} == {code}


def test_reads_of_a_search_are_marked_as_those_of_a_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    run = PublishedRun(Path(__file__).parents[1] / "runs" / "stored" / "tune.json.gz")
    device = {"backing_file": "/image", "backing_file_system": "ext4"}
    monkeypatch.setattr(PublishedRun, "facts", {**run.facts, "file_system": "xfs", "block_device": device})
    marked = {cell.id for cell in build_portrait(run).cells if "cache-below" in cell.warnings}
    assert marked == {"tune/default:restart", "tune/best:restart"}
    monkeypatch.setattr("strakes.tuning.trial._MOST_PAIRS", 100)
    with pytest.raises(BadInputError, match="more trials or combinations"):
        build_portrait(run)


def begun_apart(visits: list[dict[str, Any]], late_s: Sequence[float], **words: Any) -> list[dict[str, Any]]:
    """Add two ranks to the first phase of one visit per value of ``late_s``; rank 1 starts that many seconds later."""
    for visit, late in zip(visits, late_s, strict=False):
        starts = {"columns": ["rank", "start_s"], "ranks": [[0, 0.0], [1, late]], "begun": {"last_host": "n2", **words}}
        visit["samples"] = [{**visit["samples"][0], **starts}, *visit["samples"][1:]]
    return visits


def test_a_run_states_the_start_skew_of_its_ranks(portrait_of: Build) -> None:
    visits = begun_apart(visits_of(TRANSFERS, flat, 5, 0.01), [0.00002, 0.00005, 0.0004], clock_uncertainty_s=0.00003)
    portrait = portrait_of(visits)
    expected = {
        "phases": 3,
        "median_s": 0.00005,
        "worst_s": 0.0004,
        "apart": 0,
        "crowded": 0,
        "clock_uncertainty_s": 0.00003,
    }
    assert portrait.run["begun_together"] == expected
    assert dict(facts_of(portrait))["Phases started"] == "all ranks within 50.0 us (median of 3 phases; worst 400 us)"
    assert not [warning for warning in portrait.warnings if warning.code == "begun-apart"]


def test_a_large_start_skew_is_a_warning_that_names_the_last_rank(portrait_of: Build) -> None:
    visits = visits_of(TRANSFERS, flat, 5, 0.01)
    portrait = portrait_of(begun_apart(visits, [0.1 * visits[0]["samples"][0]["elapsed_s"]] * len(visits)))
    (warning,) = [warning for warning in portrait.warnings if warning.code == "begun-apart"]
    assert "the last rank started after more than 5 % of the phase" in warning.text
    assert warning.text.endswith("of that phase), rank 1 on n2.")
    assert {cell.id for cell in portrait.cells if "begun-apart" in cell.warnings} == set(warning.cells) != set()


def test_hints_in_effect_are_a_finding_and_ignored_hints_a_warning(portrait_of: Build) -> None:
    hints = (("cb_nodes", "2"), ("no_such_hint", "1"))
    write = TransferPhase(
        "dump", "write", "shared-file", "segmented", MIB, MIB, backend="mpiio", collective=True, hints=hints
    )
    cells = [cell for cell in PlanRun(Plan(4, (write,))).cells(context()) if isinstance(cell, Cell)]
    visits = visits_of(cells, flat, 4, 0.01)
    for visit in visits:
        for sample in visit["samples"]:
            others = {"cb_nodes": ["2", "1"], "no_such_hint": ["1", ""]}
            sample["effective"] = {
                "hints": {"cb_nodes": "1", "romio_cb_write": "automatic"},
                "hints_not_in_effect": others,
            }
    portrait = portrait_of(visits, cells, "plan")
    assert [finding.statement for finding in portrait.findings] == [
        "Hints in effect in dump: cb_nodes 1, romio_cb_write automatic."
    ]
    texts = [warning.text for warning in portrait.warnings if warning.code == "setting-differs"]
    assert texts == [
        "hint cb_nodes: 2 was asked for, 1 is in effect.",
        "hint no_such_hint: 1 was asked for, nothing is in effect.",
    ]
