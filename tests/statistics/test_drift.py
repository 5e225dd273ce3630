"""Trends in time, of one cell and of many together."""

from __future__ import annotations

import itertools
import math

import pytest
from bench.simulate.claims import drift_claims, pooled_drift_claims
from bench.simulate.shapes import Shape, bimodal, normal, slowed_down
from hypothesis import given
from hypothesis import strategies as st

from strakes.statistics.drift import pooled_trend, trend

TRIES = 2000


def tolerance(share: float, tries: int) -> float:
    """A share this far off is met by chance but once in 10,000 simulations."""
    return 3.7 * math.sqrt(share * (1 - share) / tries)


@pytest.mark.parametrize("runs", [2, 5, 7])
def test_p_values_are_what_counting_every_order_gives(runs: int) -> None:
    def score(order: tuple[int, ...]) -> int:
        return abs(sum(1 if later > earlier else -1 for earlier, later in itertools.combinations(order, 2)))

    orders = list(itertools.permutations(range(runs)))
    for order in orders[:: max(1, len(orders) // 50)]:
        as_extreme = sum(score(other) >= score(order) for other in orders)
        assert trend([float(value) for value in order]).p_value == pytest.approx(as_extreme / len(orders))


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=25))
def test_turning_time_around_turns_the_trend_around(values: list[float]) -> None:
    forward, back = trend(values), trend(values[::-1])
    turned = {"up": "down", "down": "up", "none": "none"}
    assert (back.direction, back.p_value) == (turned[forward.direction], forward.p_value)
    assert (1 + back.change) * (1 + forward.change) == pytest.approx(1)
    assert 0 <= forward.p_value <= 1


def test_a_straight_fall_is_found_with_its_size() -> None:
    found = trend([100 - 10 * run / 9 for run in range(10)])
    assert (found.direction, found.runs) == ("down", 10)
    assert found.change == pytest.approx(-(20 / 3) * (7 / 6) / (100 - 10 / 9))
    assert found.p_value < 1e-5


def test_equal_values_and_a_single_run_have_no_trend() -> None:
    for values in ([5.0] * 8, [5.0]):
        found = trend(values)
        assert (found.direction, found.p_value, found.change) == ("none", 1.0, 0.0)


def test_one_outlier_is_no_trend() -> None:
    assert trend([100.0] * 4 + [101.0, 99.0, 100.0, 5.0]).p_value > 0.1


def test_fast_cells_count_no_more_than_slow_ones() -> None:
    falling = {block: 1000.0 - block for block in range(8)}
    rising = {block: 1.0 + block for block in range(8)}
    assert pooled_trend([falling, rising]).direction == "none"
    assert pooled_trend([falling, rising, rising]).direction == "up"


def test_cells_that_stopped_early_still_count() -> None:
    cells = [{block: 100.0 - block for block in range(blocks)} for blocks in (6, 8, 12)]
    found = pooled_trend([*cells, {0: 50.0}])
    assert (found.direction, found.runs) == ("down", 12)


def test_without_a_cell_measured_twice_there_is_no_pooled_trend() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        pooled_trend([{0: 1.0}, {3: 2.0}])


@pytest.mark.parametrize("shape", [normal(0.05), slowed_down(0.1), bimodal(0.7, 0.6)], ids=lambda shape: shape.name)
def test_no_drift_is_called_no_more_often_than_stated(shape: Shape) -> None:
    for runs in (5, 12):
        assert drift_claims(shape, runs, change=0.0, tries=TRIES, seed=runs) <= 0.05 + tolerance(0.05, TRIES)
    for block_noise in (0.0, 0.1):
        claimed = pooled_drift_claims(shape, cells=10, blocks=7, change=0.0, tries=500, seed=3, block_noise=block_noise)
        assert claimed <= 0.05 + tolerance(0.05, 500)


def test_many_cells_together_show_a_drift_that_one_cell_cannot() -> None:
    shape = normal(0.05)
    assert drift_claims(shape, 7, change=0.1, tries=500, seed=1) < 0.4
    assert pooled_drift_claims(shape, cells=20, blocks=7, change=0.1, tries=200, seed=1) > 0.9
