"""Forecasts of made-up systems: known laws are met, intervals widen outwards, and what nobody can know is not said."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np
import pytest
from bench.prediction.made_up import SHAPES, Size, make_tasks, units_of
from bench.prediction.model import judge_made_up

from strakes.predict.asked import not_bounded
from strakes.predict.families import Caps, Scales, StationNetwork
from strakes.predict.model import Model
from strakes.predict.scale import PARTS, MeasuredLevel, Scale


def at(clients: int, mdts: int = 1) -> Scale:
    return Scale(clients=clients, ranks=clients, mdts=mdts)


def levels(rate_of: dict[int, float]) -> list[MeasuredLevel]:
    return [MeasuredLevel(at(clients), math.log(rate), 0.01) for clients, rate in rate_of.items()]


def test_a_rate_that_doubles_with_the_clients_goes_on_and_one_that_has_stopped_does_not() -> None:
    linear = Model(levels({number: 100.0 * number for number in (1, 2, 4, 8)})).forecast(at(16))
    assert linear.low < 1600 and linear.median == pytest.approx(1600, rel=0.2)
    capped = Model(levels({1: 100.0, 2: 200.0, 4: 300.0, 8: 300.0, 16: 300.0})).forecast(at(64))
    assert capped.low < 300 < capped.high and capped.median == pytest.approx(300, rel=0.1)


def test_an_interval_is_wider_the_further_out_it_is() -> None:
    model = Model(levels({1: 100.0, 2: 190.0, 4: 350.0, 8: 600.0}))
    widths = [math.log(forecast.high / forecast.low) for forecast in map(model.forecast, (at(8), at(32), at(256)))]
    assert widths == sorted(widths) and widths[0] < widths[2]


def test_what_will_be_measured_scatters_more_than_the_truth_by_the_error_of_a_measurement() -> None:
    model = Model([MeasuredLevel(at(number), math.log(100.0 * min(number, 4)), 0.2) for number in (1, 2, 4, 8, 16)])
    forecast, half = model.forecast(at(64)), model.forecast(at(64), 0.5)
    assert forecast.measurement is not None and forecast.low < half.low < half.high < forecast.high
    low, high = forecast.measurement
    assert low < forecast.low < forecast.high < high
    assert math.log(high / low) > 0.9 * 2 * 1.28 * 0.2


def test_the_same_levels_give_the_same_forecast() -> None:
    told = levels({1: 100.0, 2: 190.0, 4: 350.0})
    assert Model(told).forecast(at(32)) == Model(told).forecast(at(32))


def test_without_counters_and_limits_no_single_part_of_the_servers_is_named() -> None:
    forecast = Model(levels({1: 100.0, 2: 200.0, 4: 300.0, 8: 300.0, 16: 300.0})).forecast(at(64))
    assert forecast.saturates is None
    assert forecast.likely is not None and set(forecast.likely[0]) == {"mdts", "osts", "shared"}


def test_a_busy_counter_names_the_part() -> None:
    told = [
        MeasuredLevel(at(clients), math.log(rate), 0.01, {"mdts": rate / 300, "osts": 0.05, "clients": 0.1})
        for clients, rate in {1: 100.0, 2: 200.0, 4: 290.0, 8: 299.0}.items()
    ]
    model = Model(told)
    assert model.forecast(at(64)).saturates == "mdts"
    assert model.gain(at(64), at(64, mdts=2)).median > 1.5
    assert model.gain(at(64), Scale(clients=64, ranks=64, osts=2)).high < 1.1


def test_a_stated_limit_bounds_a_rate_that_has_not_felt_it() -> None:
    growing = levels({number: 100.0 * number for number in (1, 2, 4, 8)})
    free, stated = Model(growing).forecast(at(512)), Model(growing, stated={"mdts": 2000.0}).forecast(at(512))
    assert stated.high < 3000 < free.high


def test_what_neither_changed_nor_was_counted_nor_is_stated_bounds_nothing() -> None:
    told = tuple(levels({1: 100.0, 2: 200.0}))
    assert not not_bounded(told, at(64), {})
    assert "metadata targets" in not_bounded(told, at(64, mdts=4), {})
    assert not not_bounded(told, at(64, mdts=4), {"mdts": 1000.0})
    assert "clients" in not_bounded(tuple(levels({4: 100.0})), at(64), {})


def test_a_network_of_one_customer_waits_for_nobody_and_of_many_reaches_what_the_scarce_part_carries() -> None:
    demands = np.array([[-1.0, -2.0, -0.5, -1.5, -2.0, -9.0]])
    one, many = StationNetwork(dearer=True).rates(demands, Scales.of([at(1), at(10_000)]))[0][0]
    assert math.exp(one) == pytest.approx(1 / (1 + sum(10 ** demands[0, : len(PARTS)])), rel=0.01)
    assert math.exp(many) == pytest.approx(10**0.5, rel=0.02)
    sharp = np.append(demands, [[2.0]], axis=1)
    assert math.exp(Caps(dearer=True).rates(sharp, Scales.of([at(10_000)]))[0][0, 0]) == pytest.approx(
        10**0.5, rel=0.02
    )


def test_a_lock_that_grows_dearer_counts_only_where_the_rate_falls() -> None:
    def dearer(rates: dict[int, float]) -> float:
        # What a family counts is known to some tenths from one set of draws.
        families = [Model(levels(rates), seed=seed).families for seed in range(1, 7)]
        return fmean(sum(weight for name, weight in each.items() if "dearer" in name) for each in families)

    flat = dearer({1: 100.0, 2: 200.0, 4: 300.0, 8: 300.0, 16: 300.0, 32: 300.0})
    assert flat < 0.55
    assert dearer({1: 100.0, 2: 200.0, 4: 300.0, 8: 260.0, 16: 190.0, 32: 120.0}) > 0.9


def test_a_rate_that_will_fall_by_the_universal_law_is_not_taken_to_stay() -> None:
    """Serial work of 2 %, and 0.25 % for each pair of ranks: the rate is highest at 20 ranks."""

    def law(ranks: int) -> float:
        return 1000 * ranks / (1 + 0.02 * (ranks - 1) + 0.0025 * ranks * (ranks - 1))

    measured = [
        MeasuredLevel(Scale(ranks, ranks), math.log(law(ranks)), 0.015, {"clients": 0.1}) for ranks in (1, 4, 16, 32)
    ]
    forecast = Model(measured).forecast(Scale(128, 128))
    assert forecast.low <= law(128) <= forecast.high
    assert forecast.low < 0.6 * law(32)


def test_made_up_systems_carry_no_more_than_their_scarcest_part() -> None:
    for task in make_tasks(8, seed=5):
        size = Size(64, mdts=2)
        bound = min(units_of(size)[part] / demand for part, demand in task.system.demand_s.items())
        assert task.system.rate(size) <= bound * (1 + 1e-9)


def test_some_made_up_systems_are_forecast_well() -> None:
    judged = [judge_made_up(task) for task in make_tasks(2 * len(SHAPES), seed=11)]
    assert sum(each.covered for each in judged) >= len(judged) / 2
    assert sum(each.factor < 1.5 for each in judged) >= len(judged) / 2


def test_the_busiest_server_of_undivided_directories_ends_the_phase() -> None:
    cap = 100.0

    def level(clients: int, mdts: int) -> MeasuredLevel:
        scale = Scale(clients, clients, mdts, undivided=True)
        return MeasuredLevel(scale, math.log(cap * scale.units("mdts")), 0.03, {"mdts": 0.98})

    model = Model([level(2, 1), level(2, 2)])
    four = model.forecast(Scale(4, 4, 3, undivided=True))
    assert four.median == pytest.approx(2 * cap, rel=0.15) and four.saturates == "mdts"
    assert model.forecast(Scale(4, 4, 4, undivided=True)).median > 1.5 * four.median


def test_no_forecast_exceeds_what_a_counter_says_servers_can_carry() -> None:
    told = [MeasuredLevel(at(clients), math.log(100.0), 0.03, {"mdts": 0.95}) for clients in (1, 2)]
    assert Model(told).forecast(at(64)).high < 140


def test_a_counter_of_the_servers_bounds_the_growth_with_clients() -> None:
    one_number = (MeasuredLevel(at(2), 5.0, 0.1, {"mdts": 0.9}), MeasuredLevel(at(2, 2), 5.3, 0.1, {"mdts": 0.7}))
    assert not not_bounded(one_number, at(8, 3), {})
