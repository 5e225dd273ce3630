"""The pilot against all later runs: what a survey did to the file system before any series of runs could show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from strakes.analysis import evidence
from strakes.analysis.beside import Shift
from strakes.analysis.first_work import since_pilot
from strakes.analysis.levels import Levels
from strakes.analysis.medians import medians_of
from strakes.findings.portrait import CellEstimate
from strakes.findings.results import Measured, Observation, Results
from strakes.findings.sample import Sample
from strakes.statistics.interval import median
from strakes.store.records import Visit
from strakes.units import MIB

START_S = 1000.0
RANKS = 4
STEADY = [1_000.0 + 10 * number for number in range(20)]
CREATING = {"operation": "file-create", "directory": "unique", "ranks": RANKS}
WRITING = {"operation": "write", "io": "buffered", "transfer_bytes": MIB, "ranks": RANKS}
NONE = Levels((), 0.0)


def figure(name: str, settings: dict[str, Any], rates: Sequence[float], elapsed_s: float = 0.1) -> Measured:
    study, unit = ("transfer-size", "B/s") if settings["operation"] == "write" else ("metadata-ops", "op/s")
    runs = tuple(
        Observation(
            block=1,
            purpose="measure",
            value=rate,
            asked=1,
            sample=Sample("phase", elapsed_s=elapsed_s, bytes_per_s=rate, operations_per_s=rate),
            at_s=START_S + number,
        )
        for number, rate in enumerate(rates)
    )
    estimate = CellEstimate(name, study, settings, median(rates), None, None, 0.9, len(rates), unit, "", tuple(rates))
    return Measured(name, study, settings, unit, runs, estimate)


def pilot(creates: float = 1_000.0, writes: float = 1_000.0) -> list[Visit]:
    rows = [[rank, 0.0, 0.5, 0, 0] for rank in range(RANKS)]
    written = Sample("write", elapsed_s=0.5, bytes_per_s=writes, bytes=64 * MIB, operations=64, ranks=rows)
    return [Visit(cell="pilot", samples=(written, Sample("create", operations_per_s=creates, ranks=rows)))]


def since(
    visits: Sequence[Visit], *figures: Measured, levels: Levels = NONE
) -> list[tuple[str, float, tuple[str, ...]]]:
    return [
        (shift.what, shift.after_s, shift.cells) for shift in since_pilot(visits, Results(figures, 0.9, {}), levels)
    ]


@pytest.mark.parametrize(("rate", "told"), [(20_000.0, True), (2_500.0, False), (100.0, False)])
def test_a_survey_that_slowed_creating_before_its_first_block_says_so(rate: float, told: bool) -> None:
    creating = figure("a:create", CREATING, STEADY)
    assert since(pilot(creates=rate), creating) == ([("create", 0.0, ("a:create",))] if told else [])
    assert since([], creating) == []


@pytest.mark.parametrize(("fresh", "told"), [(1, True), (4, True), (25, False)])
def test_the_first_runs_may_have_met_the_fresh_state_too(fresh: int, told: bool) -> None:
    """What half of the runs met is no beginning."""
    creating = figure("a:create", CREATING, [15_000.0] * fresh + STEADY)
    assert since(pilot(creates=20_000.0), creating) == ([("create", float(fresh), ("a:create",))] if told else [])


def test_the_warning_says_from_when_on() -> None:
    (warning,) = evidence.slowed_by_survey("write", 2000.0 * MIB, 0.25, 0.01, ["c1"], (30, 31), 2.0)
    assert "fresh 2,000 MiB/s (the pilot), then 500 MiB/s (30 of 31 runs from 2.00 s after the first on" in warning.text


@pytest.mark.parametrize(("again", "told"), [(1, True), (2, True), (3, False), (10, False)])
def test_a_state_that_comes_back_for_a_moment_is_gone_all_the_same(again: int, told: bool) -> None:
    """As on ext4 without a journal: 4 of 94 runs. What comes back often is no state of the beginning."""
    rates = [*STEADY, *STEADY, *[15_000.0] * again]
    creating = figure("a:create", CREATING, rates)
    levels = Levels(since_pilot(pilot(creates=20_000.0), Results((creating,), 0.9, {}), NONE), 0.0)
    assert [shift.later for shift in levels.shifts] == ([(40, 40 + again)] if told else [])
    assert medians_of(creating, levels, START_S) == ((20_000.0, median(rates)) if told else ())


def test_a_change_that_the_runs_themselves_show_is_not_told_again() -> None:
    creating = figure("a:create", CREATING, [15_000.0, *STEADY])
    known = Levels((Shift("create", 1.0, 0.1, 0.001, ("a:create",)),), 0.0)
    assert since(pilot(creates=20_000.0), creating, levels=known) == []


def test_only_figures_of_work_like_the_pilots_say_what_it_reached() -> None:
    small = figure("a:small", {**CREATING, "operation": "create 4 KiB"}, STEADY)
    creating = figure("a:create", CREATING, [15_000.0, *STEADY])
    directories = figure("a:dirs", {**CREATING, "operation": "dir-create"}, [9_000.0] * 21)
    results = Results((creating, small, directories), 0.9, {})
    levels = Levels(since_pilot(pilot(creates=20_000.0), results, NONE), 0.0)
    assert levels.changed == {"a:create": "create", "a:small": "create"}
    assert medians_of(creating, levels, START_S) == (20_000.0, 15_000.0, median(STEADY))
    assert 20_000.0 not in medians_of(small, levels, START_S)


@pytest.mark.parametrize(("elapsed_s", "told"), [(0.1, True), (0.01, False)])
def test_writing_counts_only_where_later_phases_are_about_as_long(elapsed_s: float, told: bool) -> None:
    """Data moved for a few milliseconds tells of starting."""
    writing = figure("a:write", WRITING, STEADY, elapsed_s)
    assert since(pilot(writes=5_000.0), writing) == ([("write", 0.0, ("a:write",))] if told else [])
    levels = Levels(since_pilot(pilot(writes=5_000.0), Results((writing,), 0.9, {}), NONE), 0.0)
    assert medians_of(writing, levels, START_S) == ((5_000.0, median(STEADY)) if told else ())
