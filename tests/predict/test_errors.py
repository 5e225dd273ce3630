"""What is not known of the scatter of a figure is not taken for none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from strakes.predict.gather import TYPICAL_SCATTER, level_from, settle_errors
from strakes.predict.model import Model
from strakes.predict.scale import MeasuredLevel, Scale


def level(*values: float, ranks: int = 1) -> MeasuredLevel:
    return level_from([math.log(value) for value in values], Scale(ranks, ranks), {})


def errors(*levels: MeasuredLevel) -> list[float]:
    return [each.log_error for each in settle_errors(levels)]


def test_single_runs_scatter_as_is_typical() -> None:
    assert errors(level(100.0), level(150.0, ranks=2)) == pytest.approx([TYPICAL_SCATTER] * 2)


def test_two_runs_that_happen_to_agree_are_not_taken_for_exact() -> None:
    (error,) = errors(level(100.0, 100.0))
    assert 0.4 * TYPICAL_SCATTER < error < 0.8 * TYPICAL_SCATTER


def test_a_single_run_scatters_as_the_repeated_ones_of_its_figure_do() -> None:
    quiet = [level(*np.exp(np.random.default_rng(ranks).normal(0, 0.01, 20)), ranks=ranks) for ranks in (1, 2, 4)]
    *_, single = errors(*quiet, level(2.0, ranks=8))
    assert single < 0.4 * TYPICAL_SCATTER


@pytest.mark.parametrize("scatter", [0.02, 0.3])
def test_many_runs_tell_their_own_scatter(scatter: float) -> None:
    logs = np.random.default_rng(1).normal(0, scatter, 1000)
    (error,) = settle_errors([level_from(logs.tolist(), Scale(), {})])
    assert error.log_error == pytest.approx(max(0.01, 1.25 * scatter / math.sqrt(1000)), rel=0.1)


def test_a_forecast_from_single_runs_is_less_sure_than_one_from_many() -> None:
    def width(runs: int) -> float:
        logs = {ranks: np.full(runs, math.log(100.0 * ranks)) + 1e-3 * np.arange(runs) for ranks in (1, 2, 4)}
        levels = settle_errors([level_from(each.tolist(), Scale(ranks, ranks), {}) for ranks, each in logs.items()])
        forecast = Model(levels).forecast(Scale(8, 8))
        return math.log(forecast.high / forecast.low)

    assert width(1) > 1.3 * width(20)
