"""Forecasts of simulated systems: growth continues or saturates as measured, and intervals widen with distance."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.predict.asked import Asked, Stated, why_unknown
from strakes.predict.capacity import evidence_of
from strakes.predict.forecasts import forecast_document, forecast_figures
from strakes.predict.levels import FigureLevels, MeasuredLevel, Part, Scale
from strakes.predict.model import Model, after_transient, krige, log_likelihood, walk


def at(clients: int, mdts: int = 1) -> Scale:
    return Scale(clients=clients, ranks=clients, mdts=mdts)


def levels(rate_of: Mapping[int, float], error: float = 0.01) -> list[MeasuredLevel]:
    return [MeasuredLevel(at(clients), math.log(rate), error) for clients, rate in rate_of.items()]


def counted(rate_of: Mapping[int, float], part: Part, share_of: Mapping[int, float]) -> list[MeasuredLevel]:
    return [MeasuredLevel(at(n), math.log(rate), 0.02, {part: share_of[n]}) for n, rate in rate_of.items()]


def test_linear_growth_continues_and_a_saturated_rate_stays() -> None:
    linear = Model(levels({number: 100.0 * number for number in (1, 2, 4, 8)})).forecast(at(16))
    assert linear.low < 1600 < linear.high and linear.median == pytest.approx(1600, rel=0.25)
    capped = Model(levels({1: 100.0, 2: 200.0, 4: 300.0, 8: 300.0, 16: 300.0})).forecast(at(64))
    assert capped.low < 300 < capped.high and capped.median == pytest.approx(300, rel=0.15)


@given(st.floats(-2, 2), st.floats(-2, 2))
def test_only_levels_before_the_last_superlinear_growth_are_left_out(first: float, second: float) -> None:
    scales, limit = [at(1), at(2), at(4)], math.log(2) + 0.01
    kept = after_transient(scales, [0.0, first, first + second])
    assert kept == ([2] if second > limit else [1, 2] if first > limit else [0, 1, 2])


def test_a_forecast_from_three_sizes_has_a_narrower_interval_than_one_from_one_size() -> None:
    one, three = Model(levels({8: 800.0})), Model(levels({2: 200.0, 4: 400.0, 8: 800.0}))
    widths = [math.log(each.high / each.low) for each in (model.forecast(at(32)) for model in (one, three))]
    assert widths[0] > widths[1] > 0.2 and widths[0] > math.log(2)
    further = [math.log(forecast.high / forecast.low) for forecast in map(three.forecast, (at(8), at(32), at(256)))]
    assert further == sorted(further)


def test_a_time_grows_with_the_number_of_ranks_and_of_files() -> None:
    measured = levels({1: 0.0076, 4: 0.0125, 16: 0.0412})
    forecasts = [Model(measured, is_time=True).forecast(at(ranks)) for ranks in (16, 64, 256)]
    assert forecasts[0].low < 0.0412 < forecasts[0].high and 0.0412 < forecasts[1].median < forecasts[2].median
    # Published recovery times of clients, proportional to the number of clients (study S2, table 2).
    recovery = Model(levels({50: 10.0, 100: 23.0, 200: 41.0, 500: 108.0, 1000: 211.0}), is_time=True)
    forecast = recovery.forecast(at(2000))
    assert forecast.low < 420 < forecast.high and forecast.median == pytest.approx(420, rel=0.2)
    of_files = [
        MeasuredLevel(Scale(files=files), math.log(value), 0.0)
        for files, value in {10**4: 0.488, 10**5: 4.88, 10**6: 51.4}.items()
    ]
    forecast = Model(of_files, is_time=True).forecast(Scale(files=10**7))
    assert forecast.median == pytest.approx(487, rel=0.2) and forecast.high > 700


def test_a_busy_counter_caps_the_rate_and_names_the_part() -> None:
    rates = {1: 100.0, 2: 200.0, 4: 290.0, 8: 299.0}
    model = Model(counted(rates, "mdts", {number: rate / 300 for number, rate in rates.items()}))
    forecast = model.forecast(at(64))
    assert forecast.likely is not None and forecast.likely[0] == "mdts" and forecast.high < 450
    assert model.forecast(at(64, mdts=2)).median > 1.2 * forecast.median


def test_a_stated_limit_caps_a_rate_that_has_not_reached_it() -> None:
    growing = levels({number: 100.0 * number for number in (1, 2, 4, 8)})
    free, stated = Model(growing).forecast(at(256)), Model(growing, stated={"mdts": 2000.0}).forecast(at(256))
    assert stated.high < 3000 < free.high
    assert stated.likely is not None and stated.likely[0] == "mdts" and free.likely is None


def test_counters_and_limits_that_measurements_contradict_are_left_out() -> None:
    busy = counted({1: 100.0, 8: 800.0}, "osts", {1: 1.0, 8: 1.0})
    evidence = evidence_of(busy, {"mdts": 300.0})
    assert evidence.counters == ("osts",) and evidence.limits == ("mdts",) and not evidence.parts


def test_with_undivided_directories_the_busiest_server_ends_the_phase() -> None:
    def level(clients: int, mdts: int) -> MeasuredLevel:
        scale = Scale(clients, clients, mdts, undivided=True)
        return MeasuredLevel(scale, math.log(100 * scale.units("mdts")), 0.03, {"mdts": 0.98})

    model = Model([level(2, 1), level(2, 2)])
    four = model.forecast(Scale(4, 4, 3, undivided=True))
    assert four.median == pytest.approx(200, rel=0.15) and four.likely is not None
    assert model.forecast(Scale(4, 4, 4, undivided=True)).median > 1.4 * four.median


def test_a_forecast_beyond_the_largest_number_is_unknown_and_null_in_the_document() -> None:
    figure = FigureLevels("imported", "create", "op/s", {}, (MeasuredLevel(at(8), 707.0, 0.0),))
    (said,) = forecasts = forecast_figures([figure], Asked({"clients": 8000}), Stated())
    assert said.forecast is None and "too large" in said.why
    (entry,) = json.loads(json.dumps(forecast_document([], Asked({}), Stated(), forecasts), allow_nan=False))["figures"]
    assert entry["forecast"] is None and entry["unknown_because"] == said.why


def test_a_forecast_for_more_targets_or_files_needs_several_measured_numbers_of_them() -> None:
    one, two = levels({4: 100.0}), levels({2: 50.0, 4: 100.0})
    assert not why_unknown(one, at(64), {}, ranks_needed=False)
    assert "number of ranks" in why_unknown(one, at(64), {}, ranks_needed=True)
    assert not why_unknown(two, at(64), {}, ranks_needed=True)
    assert "metadata targets" in why_unknown(two, at(64, mdts=4), {}, ranks_needed=False)
    assert not why_unknown(two, at(64, mdts=4), {"mdts": 1000.0}, ranks_needed=False)
    assert "1,000 times the measured number of clients" in why_unknown(two, at(5000), {}, ranks_needed=False)


def test_kriging_goes_through_exact_values() -> None:
    means, deviation = krige(np.array([[0.0, 1.0], [5.0, 3.0]]), walk(np.log([1.0, 4.0, 4.0001])) + 1e-9 * np.eye(3))
    assert means == pytest.approx([1.0, 3.0], abs=1e-3) and deviation < 1e-2


def test_the_likelihood_of_two_values_is_that_of_their_difference() -> None:
    expected = -(0.1**2) / (2 * 0.02) - math.log(0.02) / 2  # normal distribution with variance 0.01 + 0.01
    assert log_likelihood(np.array([[7.0, 7.1], [0.0, 0.1]]), np.diag([0.01, 0.01])) == pytest.approx([expected] * 2)
