"""Other programs on the processors give more processes a larger share, which is no property of the file system."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from strakes.model.answers import Answer
from strakes.model.cell import Cell
from strakes.model.plan import Phase
from strakes.studies.processes_per_node import ProcessesPerNode
from strakes.survey.analysis_answers import answers_of, load_gain, questions_of
from studies.world import context, results_of, visits_of

BUSY: Mapping[str, Any] = {"remote": False, "memory_bytes": 1 << 34, "cpus": 2, "others_running": 4.0}
QUIET = {**BUSY, "others_running": 0.0}


def of_processes(slope: float, facts: Mapping[str, Any]) -> list[Answer]:
    cells = [one for one in ProcessesPerNode().cells(context()) if isinstance(one, Cell)]

    def rate(_phase: Phase, ranks: int) -> float:
        return 1e8 * math.pow(ranks, slope)

    results = results_of(cells, visits_of(cells, rate, 12, 0.01), facts)
    return [one for one in answers_of(questions_of([ProcessesPerNode()], results), results) if one.chosen.isdecimal()]


def test_more_processes_are_not_advised_if_the_load_explains_their_lead() -> None:
    assert {one.grade for one in of_processes(0.3, QUIET)} == {"sure"}
    shared = of_processes(0.3, BUSY)
    assert {one.grade for one in shared} == {"undecided"}
    assert all("more processes get a larger share" in one.remark for one in shared)
    # Equal rates beside other programs mean that fewer processes would lead on idle processors.
    assert {one.grade for one in of_processes(0.0, QUIET)} == {"alike"}
    assert {one.grade for one in of_processes(0.0, BUSY)} == {"undecided"}


def test_fewer_processes_that_lead_beside_other_programs_lead_without_them() -> None:
    assert {one.grade for one in of_processes(-1.0, BUSY)} == {"sure"}


def test_the_gain_is_that_of_a_fair_scheduler() -> None:
    assert load_gain(32, 2, {**BUSY, "nodes": ["a", "b"]}) == pytest.approx(load_gain(16, 1, BUSY))
    assert load_gain(16, 1, QUIET) == load_gain(4, 4, BUSY) == 1.0
