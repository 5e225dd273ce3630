"""Changes of level in a series."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapes import Shape, bimodal, heavy_tailed, normal, slowed_down
from strakes.statistics.change_points import SHORTEST, change_points

TRIES = 300


def tolerance(share: float) -> float:
    """A share this far off is met by chance but once in 10,000 simulations."""
    return 3.7 * math.sqrt(share * (1 - share) / TRIES)


@pytest.mark.parametrize(
    "shape", [normal(0.1), heavy_tailed(0.2), slowed_down(0.4), bimodal(0.7, 0.6)], ids=lambda shape: shape.name
)
def test_a_steady_series_is_given_a_change_no_more_often_than_stated(shape: Shape) -> None:
    series = shape.draw(np.random.default_rng(1), (TRIES, 24)).tolist()
    assert sum(bool(change_points(values, error=0.05)) for values in series) / TRIES <= 0.05 + tolerance(0.05)


@pytest.mark.parametrize("shape", [normal(0.05), slowed_down(0.1)], ids=lambda shape: shape.name)
def test_a_rate_that_halves_is_found_where_it_happens(shape: Shape) -> None:
    factor = np.where(np.arange(30) < 18, 1.0, 0.5)
    series = (shape.draw(np.random.default_rng(2), (40, 30)) * factor).tolist()
    places = [[change.index for change in change_points(values)] for values in series]
    assert sum(len(found) == 1 for found in places) >= 38
    assert sum(bool(found) and abs(found[0] - 18) <= 1 for found in places) >= 36


def test_two_steps_are_found_with_the_levels_on_both_sides() -> None:
    noise = np.random.default_rng(3).normal(0, 1, 60)
    values = np.concatenate([np.full(20, 100.0), np.full(25, 70.0), np.full(15, 40.0)]) + noise
    first, second = change_points(values.tolist())
    assert (first.index, second.index) == (20, 45)
    assert first.before == pytest.approx(100, abs=1)
    assert first.after == second.before == pytest.approx(70, abs=1)
    assert second.after == pytest.approx(40, abs=1)
    assert max(first.p_value, second.p_value) <= 0.01


def test_one_far_outlier_is_no_change() -> None:
    values = [100.0 + step % 3 for step in range(30)]
    values[17] = 1e9
    assert change_points(values) == ()


def test_a_series_too_short_for_two_levels_has_no_change() -> None:
    assert change_points([100.0] * (SHORTEST - 1) + [1.0] * SHORTEST) == ()
    assert change_points([5.0]) == ()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=10, max_size=30))
def test_only_the_order_of_sizes_matters(values: list[int]) -> None:
    plain = change_points([float(value) for value in values], error=0.1)
    bent = change_points([math.log(value) * 100 for value in values], error=0.1)
    assert [(one.index, one.p_value) for one in plain] == [(one.index, one.p_value) for one in bent]


def test_levels_are_never_shorter_than_five_runs() -> None:
    values = [1.0] * 3 + [100.0 + step for step in range(40)]
    ends = [0, *(change.index for change in change_points(values)), len(values)]
    assert min(after - before for before, after in itertools.pairwise(ends)) >= SHORTEST


def test_nothing_to_look_at_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        change_points([])


CELLS = ["a", "b", "c", "d"] * 30


@pytest.mark.parametrize("rough", [5, 15, 40])
@pytest.mark.parametrize("first", [True, False])
def test_of_several_groups_scatter_that_begins_or_ends_is_no_change_of_level(rough: int, first: bool) -> None:
    generator = np.random.default_rng(rough)
    series = generator.standard_normal((TRIES, len(CELLS)))
    series[:, slice(rough) if first else slice(-rough, None)] *= 8
    found = sum(bool(change_points(values, error=0.002, shortest=3, groups=CELLS)) for values in series.tolist())
    assert found / TRIES <= 0.002 + tolerance(0.002)


@pytest.mark.parametrize("runs", [3, 5, 20])
def test_of_several_groups_few_runs_far_away_are_a_level(runs: int) -> None:
    generator = np.random.default_rng(runs)
    series = 0.05 * generator.standard_normal((20, len(CELLS)))
    series[:, :runs] += math.log(3)
    for values in series.tolist():
        (change,) = change_points(values, error=0.002, shortest=3, groups=CELLS)
        assert abs(change.index - runs) <= 2
