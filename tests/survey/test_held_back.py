"""Figures of runs under a load limit are marked, and not combined with runs under other limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strakes.model.cell import Cell
from strakes.model.sample import HeldBack, Sample
from strakes.runs.impact import UNLIMITED, Impact
from strakes.runs.records import Visit
from strakes.studies.processes_per_node import ProcessesPerNode
from strakes.survey.analysis_answers import answers_of, questions_of
from strakes.survey.analysis_collect import collect
from strakes.survey.analysis_held_back import held_back, held_share, under_one_limit
from strakes.survey.schedule import Schedule
from studies.world import context, flat, stored, visits_of

HALF = Impact(share=0.5)


def cells() -> list[Cell]:
    return [one for one in ProcessesPerNode().cells(context()) if isinstance(one, Cell)]


def free_visits(cells: list[Cell], blocks: int, noise: float = 0.01) -> list[Visit]:
    return stored(visits_of(cells, flat, blocks, noise))


def slowed(visits: list[Visit], limit: Impact, share: float) -> list[Visit]:

    def held(sample: Sample) -> Sample:
        waited = HeldBack(share * sample.elapsed_s * len(sample.ranks))
        return replace(sample, impact=waited, bytes_per_s=sample.bytes_per_s * (1 - share))

    return [replace(visit, impact=limit, samples=tuple(map(held, visit.samples))) for visit in visits]


def test_figures_come_from_the_limit_with_most_runs() -> None:
    some = cells()[:2]
    free, half = free_visits(some, 3), slowed(free_visits(some, 5), HALF, 0.5)
    for visits in (free + half, half + free):
        results = collect(some, visits, 0.9, {})
        assert {one.estimate.runs for one in results.measured if one.estimate} == {5}
        assert all(held_back(one) == pytest.approx(0.5) for one in results.measured if not one.is_side)
    results = collect(some, free + half[: 2 * len(some)], 0.9, {})
    assert {one.estimate.runs for one in results.measured if one.estimate} == {3}
    assert not any(held_back(one) for one in results.measured)


def test_cells_slowed_by_a_limit_answer_no_question() -> None:
    study, every = ProcessesPerNode(), cells()
    for visits, answered in ((free_visits(every, 12), True), (slowed(free_visits(every, 12), HALF, 0.5), False)):
        results = collect(every, visits, 0.9, {})
        assert bool(answers_of(questions_of([study], results), results)) == answered


def test_the_limit_that_allows_more_load_wins_a_tie() -> None:
    some = cells()[:1]
    free, half = free_visits(some, 4), slowed(free_visits(some, 4), HALF, 0.5)
    assert [visit.impact for visit in under_one_limit(half + free)] == [UNLIMITED] * len(free)


def test_a_visit_that_yielded_does_not_count_as_a_run() -> None:
    some = cells()[:1]
    assert under_one_limit([replace(visit, ended="yielded") for visit in free_visits(some, 4)]) == []


def test_a_limit_that_is_never_reached_marks_no_figure() -> None:
    some = cells()[:1]
    visits = slowed(free_visits(some, 5), Impact(bytes_per_s=1e12), 0.001)
    results = collect(some, visits, 0.9, {})
    assert not any(held_back(one) for one in results.measured)


def test_the_share_of_paused_time_counts_only_ranks_with_operations() -> None:
    rows = [[0, 5], [1, 0], [2, 0], [3, 0]]
    sample = Sample("write", elapsed_s=2.0, columns=["rank", "operations"], ranks=rows, impact=HeldBack(1.0))
    assert held_share(sample) == 0.5


def test_a_schedule_counts_runs_separately_for_each_limit() -> None:
    some = cells()
    plan = Schedule(some, [], 0.1, seed=3, phase_s=0.1)
    free = free_visits(some, 6, 0.001)
    for visit in free:
        plan.record(visit)
    assert plan.runs(some[0].key) == 6
    half = slowed(free_visits(some[:1], 1, 0.001), HALF, 0.5)[0]
    plan.take(half, [*free, half])
    assert plan.runs(some[0].key) == 1 and plan.runs(some[1].key) == 0
    # A cell without runs is expected to take twice as long at half the load.
    assert plan.expected_s(some[1]) == pytest.approx(2 * Schedule(some, [], 0.1, 3, 0.1).expected_s(some[1]))
    plan.take(free[-1], [*free, half])
    assert plan.runs(some[0].key) == 6
