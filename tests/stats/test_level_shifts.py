"""Level shifts in short series of runs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from shapes import Shape, bimodal, heavy_tailed, normal, slowed_down
from strakes.stats.level_shifts import SHORTEST, level_shifts

_SERIES = 300


def _tolerance(share: float) -> float:
    return 3.7 * math.sqrt(share * (1 - share) / _SERIES)


def _autoregressions(correlation: float, runs: int, number: int, seed: int) -> np.ndarray:
    series = np.random.default_rng(seed).standard_normal((number, runs))
    for run in range(1, runs):
        series[:, run] = correlation * series[:, run - 1] + math.sqrt(1 - correlation**2) * series[:, run]
    return series


@pytest.mark.parametrize(
    "shape", [normal(0.1), heavy_tailed(0.2), slowed_down(0.4), bimodal(0.7, 0.6)], ids=lambda shape: shape.name
)
def test_a_steady_series_has_false_shifts_no_more_often_than_stated(shape: Shape) -> None:
    series = np.log(shape.draw(np.random.default_rng(1), (_SERIES, 24)))
    assert np.mean([bool(level_shifts(values, 0.05)) for values in series.tolist()]) <= 0.05 + _tolerance(0.05)


@pytest.mark.parametrize("correlation", [0.4, 0.7])
def test_autocorrelated_runs_have_false_shifts_no_more_often_than_stated(correlation: float) -> None:
    series = _autoregressions(correlation, 60, 100, 2)
    assert np.mean([bool(level_shifts(values, 0.05)) for values in series.tolist()]) <= 0.05 + _tolerance(0.05)


@pytest.mark.parametrize(("correlation", "size"), [(0.0, 2.5), (0.5, 4.0)])
def test_a_shift_is_found_where_it_happens(correlation: float, size: float) -> None:
    series = _autoregressions(correlation, 60, 40, 3)
    series[:, 40:] -= size
    found = [[shift.index for shift in level_shifts(values)] for values in series.tolist()]
    assert sum(any(abs(index - 40) <= 3 for index in indices) for indices in found) >= 36


def test_one_outlier_hides_no_shift_and_is_not_a_shift() -> None:
    values = [*np.log([100.0, 102.0, 99.0, 101.0, 98.0, 103.0] * 3), *np.log([80.0, 82.0, 79.0, 81.0] * 3)]
    values[5] = math.log(2.0)
    (shift,) = level_shifts(values)
    assert shift.index == 18 and level_shifts(values[:18]) == ()


def test_two_shifts_are_found_with_the_levels_on_both_sides() -> None:
    noise = np.random.default_rng(3).normal(0, 1, 60)
    values = np.concatenate([np.full(20, 100.0), np.full(25, 70.0), np.full(15, 40.0)]) + noise
    first, second = level_shifts(values.tolist())
    assert (first.index, second.index) == (20, 45)
    assert [first.before, first.after, second.after] == pytest.approx([100, 70, 40], abs=1)
    assert first.after == second.before and max(first.p_value, second.p_value) <= 0.01


def test_a_level_has_at_least_five_runs() -> None:
    values = [1.0] * 3 + [100.0 + step for step in range(40)]
    ends = [0, *(shift.index for shift in level_shifts(values)), len(values)]
    assert min(end - begin for begin, end in itertools.pairwise(ends)) >= SHORTEST
    assert level_shifts([100.0] * (SHORTEST - 1) + [1.0] * SHORTEST) == ()


def test_equal_values_have_no_shift_and_no_values_are_refused() -> None:
    assert level_shifts([5.0] * 30) == ()
    with pytest.raises(ValueError, match="at least one value"):
        level_shifts([])
