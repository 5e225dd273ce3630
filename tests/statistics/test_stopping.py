"""The stopping rule, and that its intervals cover whatever stopped them."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from pathlib import Path

import pytest
from bench.simulate.shapes import Shape, bimodal, coverage_shapes, normal
from bench.simulate.stopping import Stop, coverage_under, ever_missed
from hypothesis import given
from hypothesis import strategies as st

from strakes.statistics.interval import coverage, symmetric_rank
from strakes.statistics.stopping import StoppingRule, first_look, runs_for, sequential_rank

SRC = Path(__file__).resolve().parents[2] / "src"
TRIES = 2000
# Coverage of at least 88 % passes a simulation of 2,000 tries but once in 10,000.
TOLERANCE = 3.7 * math.sqrt(0.88 * 0.12 / TRIES)

confidences = st.sampled_from([0.8, 0.9, 0.95, 0.99])


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_the_chance_that_any_interval_ever_misses_is_within_the_error(confidence: float) -> None:
    assert ever_missed(400, confidence) <= 1 - confidence + 1e-9


def test_the_chance_of_a_miss_is_what_counting_every_sequence_gives() -> None:
    runs = 14
    ranks = [sequential_rank(count, 0.9) for count in range(runs + 1)]
    missed = 0
    for sequence in itertools.product((0, 1), repeat=runs):
        below = list(itertools.accumulate(sequence, initial=0))
        missed += any(not ranks[count] <= below[count] <= count - ranks[count] for count in range(1, runs + 1))
    assert ever_missed(runs, 0.9) == pytest.approx(missed / 2**runs, abs=1e-12)


def test_the_usual_interval_looked_at_after_every_run_misses_far_more_often() -> None:
    usual = [symmetric_rank(count, 0.9) for count in range(61)]
    assert ever_missed(60, 0.9, usual) > 0.3


@given(st.integers(0, 300), confidences)
def test_ranks_grow_with_the_runs_and_each_interval_covers_by_itself(runs: int, confidence: float) -> None:
    rank = sequential_rank(runs, confidence)
    assert rank <= sequential_rank(runs + 1, confidence) <= rank + 1
    assert rank == 0 or coverage(runs, rank) >= confidence
    assert (rank > 0) == (runs >= first_look(confidence))


@pytest.mark.parametrize("shape", coverage_shapes(), ids=lambda shape: shape.name)
@pytest.mark.parametrize("stop", ["width", "runs", "time"])
def test_coverage_is_nominal_whatever_stops_the_cell(shape: Shape, stop: Stop) -> None:
    assert coverage_under(shape, stop, TRIES, seed=20).covered >= 0.88 - TOLERANCE


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_coverage_is_nominal_at_other_confidences_and_widths(confidence: float) -> None:
    rule = StoppingRule(confidence, relative_half_width=0.05, max_runs=40)
    for shape in (normal(0.1), bimodal(0.5, 0.8)):
        assert coverage_under(shape, "width", TRIES, seed=21, rule=rule).covered >= confidence - 0.02 - TOLERANCE


@given(st.lists(st.floats(1.0, 100.0), min_size=1, max_size=70), confidences, st.sampled_from([0.05, 0.1, 0.5]))
def test_a_cell_stops_at_the_first_narrow_interval_or_at_the_most_runs(
    values: list[float], confidence: float, wanted: float
) -> None:
    judgement = StoppingRule(confidence, wanted).judge(values)
    if judgement.estimate.relative_half_width <= wanted:
        assert (judgement.stop, judgement.reason) == (True, "interval-reached")
    elif len(values) >= 60:
        assert (judgement.stop, judgement.reason) == (True, "max-runs")
    else:
        assert (judgement.stop, judgement.reason) == (False, "continue")


def test_four_runs_never_stop_a_cell_however_much_they_agree() -> None:
    rule = StoppingRule()
    assert not rule.judge([100.0] * 4).stop
    assert rule.judge([100.0] * 5).reason == "interval-reached"


def test_rates_of_zero_go_on_until_the_most_runs() -> None:
    rule = StoppingRule(max_runs=8)
    assert rule.judge([0.0] * 7).reason == "continue"
    assert rule.judge([0.0] * 8).reason == "max-runs"


def test_the_simulation_judges_as_the_rule_does() -> None:
    import numpy as np

    rule = StoppingRule(max_runs=20)
    shape, tries = normal(0.12), 50
    covered, made = 0, 0
    for row in shape.draw(np.random.default_rng(5), (tries, rule.max_runs)).tolist():
        runs = next(count for count in range(5, 21) if rule.judge(row[:count]).stop)
        interval = rule.estimate(row[:runs]).interval
        covered += interval is not None and interval.contains(1.0)
        made += runs
    simulated = coverage_under(shape, "width", tries, seed=5, rule=rule)
    assert (simulated.covered, simulated.mean_runs) == (covered / tries, made / tries)


def test_the_guess_of_runs_needed_is_the_square_of_the_ratio_of_widths() -> None:
    estimate = StoppingRule().estimate([80.0, 90.0, 100.0, 110.0, 120.0])
    assert runs_for(estimate, 0.1) == 20
    assert runs_for(estimate, 0.5) == 5
    assert runs_for(StoppingRule().estimate([1.0]), 0.1) is None


def test_estimating_two_hundred_cells_is_quick_because_it_imports_nothing_heavy() -> None:
    script = (
        "import sys; from strakes.statistics.stopping import StoppingRule; rule = StoppingRule()\n"
        "for cell in range(200): rule.judge([1.0 + (cell * run) % 7 for run in range(60)])\n"
        "print('numpy' in sys.modules or 'scipy' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(SRC)}, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "False"
