"""A wait for a processor that other programs use is not attributed to the file system."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from strakes.model.answers import Answer
from strakes.model.cell import Cell
from strakes.model.plan import Phase
from strakes.model.sample import Sample
from strakes.runs.records import LoadSeen
from strakes.studies.processes_per_node import ProcessesPerNode
from strakes.survey import analysis_build
from strakes.survey.analysis_answers import answers_of, questions_of, slowdown
from studies.world import context, results_of, store_run, visits_of

BUSY: Mapping[str, Any] = {
    "remote": False,
    "memory_bytes": 1 << 34,
    "cpus": 2,
    "others_running": 4.0,
    "others_busy": 0.99,
}
QUIET = {**BUSY, "others_running": 0.0, "others_busy": 0.0}
COLUMNS = ("rank", "start_s", "end_s", "running_s", "runnable_s")


def sample_of(ranks: int, alone_s: float, waiting_s: float) -> Sample:
    """Return a phase that takes ``alone_s`` without other programs, and also waits ``waiting_s`` for a processor."""
    end_s = alone_s + waiting_s
    rows = [[rank, 0.0, end_s, alone_s / ranks, waiting_s] for rank in range(ranks)]
    return Sample("write", columns=COLUMNS, ranks=rows, elapsed_s=end_s)


@given(some.integers(1, 2), some.floats(0.01, 10), some.floats(0, 10))
def test_a_rank_with_a_processor_of_its_own_would_not_have_waited(ranks: int, alone_s: float, waiting_s: float) -> None:
    found = slowdown(sample_of(ranks, alone_s, waiting_s), BUSY)
    assert math.isclose(found, (alone_s + waiting_s) / alone_s, rel_tol=1e-9)


@given(some.integers(3, 64), some.floats(0.01, 10), some.floats(0, 10))
def test_ranks_that_share_processors_wait_for_each_other(ranks: int, alone_s: float, waiting_s: float) -> None:
    sample = sample_of(ranks, alone_s, waiting_s)
    assert 1 <= slowdown(sample, BUSY) <= (alone_s + waiting_s) / alone_s * (1 + 1e-9)
    assert slowdown(sample, QUIET) == 1.0


def of_processes(delay: float, facts: Mapping[str, Any]) -> list[Answer]:
    """Return the answers if one or two ranks wait for a processor ``delay`` times as long as they run."""
    cells = [one for one in ProcessesPerNode().cells(context()) if isinstance(one, Cell)]

    def rate(_phase: Phase, ranks: int) -> float:
        return 1e8 / (1 + delay * (ranks < 3))

    results = results_of(cells, visits_of(cells, rate, 12, 0.01), facts)
    waited = [
        replace(
            cell,
            observations=tuple(
                replace(one, sample=sample_of(1, 1.0, delay * (int(cell.settings["ranks"]) < 3)))
                for one in cell.observations
            ),
        )
        for cell in results.measured
    ]
    results = replace(results, measured=tuple(waited))
    return [one for one in answers_of(questions_of([ProcessesPerNode()], results), results) if one.chosen.isdecimal()]


def test_more_processes_are_not_advised_only_because_they_get_more_processor_time() -> None:
    assert {one.grade for one in of_processes(1.0, QUIET)} == {"sure"}
    # On a busy machine, ranks rarely run at the same time, so equal rates do not rule out contention.
    assert {one.grade for one in of_processes(1.0, BUSY)} == {"undecided"}


def test_ranks_that_fall_behind_at_the_time_limit_leave_a_small_gain_undecided() -> None:
    def grades_of(slowest: int) -> set[str]:
        rows = [[0, 200 - slowest], [1, slowest]]
        behind = Sample("write", stopped_by="seconds", columns=("rank", "operations"), ranks=rows)
        cells = [one for one in ProcessesPerNode().cells(context()) if isinstance(one, Cell)]
        results = results_of(cells, visits_of(cells, lambda _phase, ranks: 1e8 * (1 + 0.5 * (ranks > 2)), 12, 0.01), {})
        measured = [
            replace(cell, observations=tuple(replace(one, sample=behind) for one in cell.observations))
            if int(cell.settings["ranks"]) > 2
            else cell
            for cell in results.measured
        ]
        results = replace(results, measured=tuple(measured))
        return {one.grade for one in answers_of(questions_of([ProcessesPerNode()], results), results)}

    assert grades_of(95) == {"sure"} and grades_of(50) == {"undecided"}


def test_load_that_ends_before_most_trials_makes_no_run_busy(tmp_path: Path) -> None:
    for looks, expected in (((1.0, 0.0, 0.1), 0.1), ((0.0, 0.9, 0.8), 0.8)):
        events = [LoadSeen(share, 2 * share) for share in looks]
        run = store_run(tmp_path, [], [], {}, studies=["overview"], events=events)
        assert analysis_build.results_of(run).facts["others_busy"] == expected
