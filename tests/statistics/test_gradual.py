"""What goes steadily is told from what wanders."""

from __future__ import annotations

import numpy as np
import pytest

from strakes.statistics.change_points import change_points, correlation_of
from strakes.statistics.gradual import rest_of_lines


@pytest.mark.parametrize("runs", [40, 60, 200])
def test_a_steady_change_is_no_dependence_of_runs(runs: int) -> None:
    generator = np.random.default_rng(runs)
    steady = found = 0
    for _ in range(20):
        values = (-0.7 * np.arange(runs) / runs + 0.04 * generator.standard_normal(runs)).tolist()
        steady += rest_of_lines(values) is not None
        found += bool(change_points(values, 0.002, correlation=correlation_of(values)))
    assert min(steady, found) >= 18


def test_a_steady_change_and_the_jump_back_are_no_dependence_of_runs() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        slow = np.concatenate([np.linspace(0, -0.9, 170), np.zeros(30)])
        values = (slow + 0.06 * generator.standard_normal(200)).tolist()
        assert len(change_points(values, 0.002, correlation=correlation_of(values))) > 1


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("runs", [20, 50, 200])
def test_what_wanders_goes_steadily_in_hardly_any_series(correlation: float, runs: int) -> None:
    generator = np.random.default_rng(runs)
    steady = 0
    for _ in range(500):
        values = [float(generator.standard_normal())]
        for fresh in generator.standard_normal(runs - 1):
            values.append(correlation * values[-1] + (1 - correlation**2) ** 0.5 * float(fresh))
        steady += rest_of_lines(values) is not None
    assert steady <= 5


def test_equal_values_go_nowhere() -> None:
    assert rest_of_lines([1.0] * 30) is None
    assert rest_of_lines([1.0, 2.0]) is None
