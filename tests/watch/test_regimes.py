"""A past with changes of level in it: cut where they are, and left whole where values only resemble their neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from bench.watch.changes import find_changes
from numpy.typing import NDArray

from strakes.watch.regimes import aligned, regime_begins
from strakes.watch.values import WatchedSeries

DAYS = np.asarray(1_500_000_000 + 86400.0 * np.arange(220), dtype=np.float64)


def correlated(count: int, correlation: float, seed: int) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    noise = 0.15 * generator.standard_normal(count) * np.sqrt(1 - correlation**2)
    for index in range(1, count):
        noise[index] += correlation * noise[index - 1]
    return np.asarray(noise, dtype=np.float64)


@pytest.mark.parametrize("correlation", [0.0, 0.4])
def test_a_level_that_changed_within_the_past_is_cut_there_and_aligned(correlation: float) -> None:
    values = correlated(90, correlation, 1)
    values[:30] -= 0.9
    begins = regime_begins(values)
    assert len(begins) == 2
    assert abs(begins[1] - 30) <= 3
    level = aligned(values, begins)
    assert abs(np.median(level[:30]) - np.median(level[30:])) < 0.05


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_noise_is_rarely_cut(correlation: float) -> None:
    cut = sum(len(regime_begins(correlated(120, correlation, seed))) > 1 for seed in range(100))
    assert cut <= 8


def test_a_few_outliers_side_by_side_are_no_regime() -> None:
    values = correlated(90, 0.0, 3)
    values[40:43] -= 3
    assert regime_begins(values) == [0]


def test_values_that_are_all_alike_are_one_regime() -> None:
    assert regime_begins(np.ones(100)) == [0]


def test_a_fall_is_found_though_the_level_changed_while_it_was_learned() -> None:
    values = 100 * np.exp(correlated(220, 0.3, 4))
    values[:25] *= 0.4
    values[110:] *= 0.6
    changes = find_changes(WatchedSeries("", DAYS, values), 0.01)
    falls = [change for change in changes if change.ratio < 1 and change.told >= 110]
    assert abs(falls[0].since - 110) <= 3
    assert falls[0].told < 125


def test_a_level_that_wanders_is_not_cut() -> None:
    for seed in range(20):
        generator = np.random.default_rng(seed)
        load = np.cumsum(0.2 * generator.standard_normal(120)) + 0.1 * generator.standard_normal(120)
        assert len(regime_begins(load)) <= 5
