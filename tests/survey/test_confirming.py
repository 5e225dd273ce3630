"""Which settings get fresh runs, and how many: what is easy to confirm comes first, and the time is never exceeded."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from strakes.findings.portrait import CellEstimate
from strakes.findings.results import Measured, Observation, Results
from strakes.findings.sample import Sample
from strakes.studies.study import Advice
from strakes.survey.confirming import planned_rounds

BLOCKS = 16
RATES = {"a": 50.0, "b": 100.0, "c": 100.0, "d": 100.0, "e": 103.0}
EASY = Advice("easy", "b", "", "b:x", "c:x", 0.9, ("b:x",), below="a:x")
HARD = Advice("hard", "e", "", "e:x", "d:x", 1.0, ("e:x",))
TIMES = dict.fromkeys(RATES, 1.0)


def results(spread: float) -> Results:
    measured = []
    for number, (name, rate) in enumerate(RATES.items()):
        values = [rate * math.exp(spread * math.sin(7 * block + 3 * number)) for block in range(BLOCKS)]
        runs = tuple(Observation(block, "measure", value, 1, Sample("x")) for block, value in enumerate(values))
        estimate = CellEstimate(f"{name}:x", "s", {}, rate, None, None, 0.9, BLOCKS, "op/s", "", tuple(values))
        measured.append(Measured(f"{name}:x", "s", {}, "op/s", runs, estimate))
    return Results(tuple(measured), 0.9, {})


def lasts_s(rounds: Mapping[str, int]) -> float:
    return sum(TIMES[cell] * number for cell, number in rounds.items())


def test_without_time_nothing_is_begun() -> None:
    assert planned_rounds([EASY, HARD], results(0.01), TIMES, 10.0) == {}


@pytest.mark.parametrize("left_s", [20.0, 40.0, 80.0, 160.0])
def test_what_is_easy_to_confirm_comes_first_and_the_time_is_kept(left_s: float) -> None:
    for advice in ([EASY, HARD], [HARD, EASY]):
        rounds = planned_rounds(advice, results(0.05), TIMES, left_s)
        assert lasts_s(rounds) <= left_s
        assert not rounds.keys() & {"d", "e"} or {"a", "b", "c"} <= rounds.keys()
        assert all(rounds[cell] == rounds["b"] for cell in ("a", "c") if cell in rounds)


def test_what_scatters_more_gets_more_runs_than_what_is_plain() -> None:
    rounds = planned_rounds([EASY, HARD], results(0.02), TIMES, 60.0)
    assert rounds["d"] == rounds["e"] > rounds["a"] > 0


def test_time_that_is_left_makes_all_surer() -> None:
    short, long = (planned_rounds([EASY], results(0.01), TIMES, left_s) for left_s in (30.0, 60.0))
    assert all(long[cell] > short[cell] for cell in short) and short
    assert max(planned_rounds([EASY], results(0.01), TIMES, 1e6).values()) < 1000
