"""What levels refute is not believed, and a part is named on evidence only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from strakes.predict.asked import not_bounded
from strakes.predict.evidence import growth_of, sift
from strakes.predict.model import Model
from strakes.predict.scale import MeasuredLevel, Part, Scale


def at(ranks: int, clients: int = 1) -> Scale:
    return Scale(clients=clients, ranks=ranks)


def counted(rate_of: Mapping[int, float], busy: Mapping[Part, float]) -> list[MeasuredLevel]:
    return [MeasuredLevel(at(ranks), math.log(rate), 0.02, busy) for ranks, rate in rate_of.items()]


SIX_RISE = {1: 20e3, 2: 38e3, 4: 65e3, 5: 73e3, 6: 81e3, 8: 91e3}


def test_a_counter_that_its_own_levels_refute_counts_for_nothing() -> None:
    """Processors that wait in a loop are busy all the time, and carry more with more ranks all the same."""
    told = counted(SIX_RISE, {"clients": 1.0})
    assert sift(told, {}).counters == ("clients",)
    with_counter, without = Model(told).forecast(at(64)), Model(counted(SIX_RISE, {})).forecast(at(64))
    assert with_counter == without
    assert with_counter.median > 91e3 and with_counter.saturates is None


def test_a_counter_that_agrees_with_its_levels_is_believed() -> None:
    rates = {1: 100.0, 2: 200.0, 4: 290.0, 8: 299.0}
    told = [MeasuredLevel(at(ranks), math.log(rate), 0.01, {"mdts": rate / 300}) for ranks, rate in rates.items()]
    sifted = sift(told, {"osts": 400.0})
    assert not sifted.counters and not sifted.limits and list(sifted.levels) == told


def test_what_grows_dearer_is_not_refuted_by_carrying_less() -> None:
    falling = [MeasuredLevel(at(ranks), math.log(400.0 / ranks), 0.02, {"shared": 1.0}) for ranks in (4, 8, 16)]
    assert not sift(falling, {}).counters


def test_a_device_that_is_always_busy_and_does_ever_more_bounds_nothing() -> None:
    told = [MeasuredLevel(at(ranks), math.log(100.0 * ranks), 0.02, {"osts": 1.0}) for ranks in (1, 2, 4, 8)]
    assert sift(told, {}).counters == ("osts",)
    assert Model(told).forecast(at(16)).median > 900


def test_a_stated_limit_below_what_was_measured_is_left_out() -> None:
    told = counted({1: 400.0, 2: 790.0, 4: 1600.0, 8: 3100.0}, {})
    assert sift(told, {"mdts": 100.0, "osts": 9000.0}).limits == ("mdts",)
    assert Model(told, stated={"mdts": 100.0}).forecast(at(64)) == Model(told).forecast(at(64))


def test_a_stated_limit_is_a_soft_bound() -> None:
    """Parts carry a fifth less than is stated, within 1.35: no median on a clamp, and no interval without width."""
    told = counted({1: 400.0, 2: 790.0, 4: 1600.0, 8: 3100.0}, {})
    for capacity in (4000.0, 6500.0, 12000.0):
        forecast = Model(told, stated={"mdts": capacity, "osts": 1e7}).forecast(at(64))
        assert 0.5 * capacity < forecast.median < 1.05 * capacity
        assert forecast.high > 1.15 * forecast.low and forecast.high < 1.5 * capacity


def test_a_limit_far_from_what_is_usual_changes_nothing_where_another_part_is_full() -> None:
    told = counted({1: 100.0, 2: 200.0, 4: 290.0, 8: 300.0, 16: 301.0}, {})
    plain, beside = Model(told).forecast(at(64)), Model(told, stated={"osts": 1e7}).forecast(at(64))
    assert beside.median == pytest.approx(plain.median, rel=0.05)


LINEAR = {1: 100.0, 2: 200.0, 4: 400.0, 8: 800.0, 16: 1600.0}


@pytest.mark.parametrize("busy", [{}, {"clients": 0.05}])
def test_growth_in_step_with_the_ranks_names_no_part_and_may_go_on(busy: Mapping[Part, float]) -> None:
    told = counted(LINEAR, busy)
    assert growth_of(told) == "linear"
    model = Model(told)
    forecast = model.forecast(at(256))
    assert forecast.likely is None
    assert forecast.low < 25600 <= forecast.high
    assert forecast.measurement is not None and forecast.measurement[1] >= 25600
    (point,) = model.curve([at(256)])
    assert point.high == forecast.high


def test_an_end_of_growth_is_evidence_and_so_is_what_more_targets_bring() -> None:
    assert growth_of(counted({1: 100.0, 4: 400.0, 8: 600.0}, {})) == "bent"
    one = MeasuredLevel(at(4), math.log(100.0), 0.02)
    two = MeasuredLevel(replace(at(4), mdts=2), math.log(150.0), 0.02)
    assert growth_of([one, two]) == "bent"
    assert growth_of([one, replace(two, log_value=one.log_value)]) is None
    assert growth_of([one]) is None


def test_each_doubling_of_the_files_widens_the_interval_downwards() -> None:
    told = [MeasuredLevel(Scale(ranks=2, files=files), math.log(6e4), 0.01) for files in (5_000, 20_000, 60_000)]
    model = Model(told)
    widths = []
    for files in (60_000, 240_000, 3_840_000, 60_000_000):
        forecast = model.forecast(Scale(ranks=2, files=files))
        widths.append(math.log(forecast.high / forecast.low))
        assert forecast.high < 7.5e4
    assert all(wider > width + 0.02 for width, wider in pairwise(widths))
    assert widths[-1] > 0.7


def test_clients_that_are_busy_at_every_number_of_them_tell_nothing_of_servers() -> None:
    told = [MeasuredLevel(at(n, n), math.log(1000.0 * n), 0.02, {"clients": 1.0}) for n in (1, 2, 4, 8)]
    sifted = sift(told, {})
    assert sifted.always_busy and not sifted.counters and not any(level.busy for level in sifted.levels)
    forecast = Model(told).forecast(at(64, 64))
    assert forecast.high > 4 * forecast.low and forecast.high >= 64000 and forecast.likely is None
    assert not sift(told, {"mdts": 50e3}).always_busy
    idle_at_first = [replace(told[0], busy={"clients": 0.5}), *told[1:]]
    assert not sift(idle_at_first, {}).always_busy


def test_one_client_that_is_busy_itself_says_nothing_of_more_clients() -> None:
    told = [MeasuredLevel(at(ranks), math.log(1000.0 + ranks), 0.02, {"clients": 0.97}) for ranks in (1, 2, 4)]
    why = not_bounded(told, at(64, 16), {})
    assert "measure with more nodes" in why
    assert not not_bounded(told, at(64, 16), {"mdts": 50e3})
    assert not not_bounded(told, at(64), {})
    assert not not_bounded([replace(level, busy={"clients": 0.4}) for level in told], at(64, 16), {})


@pytest.mark.parametrize(
    ("scale", "what"), [(at(8001, 8001), "clients"), (at(8001), "ranks"), (replace(at(8, 8), files=8_000_001), "files")]
)
def test_sizes_further_out_than_a_thousand_times_are_unknown(scale: Scale, what: str) -> None:
    told = [MeasuredLevel(Scale(n, n, files=1000 * n), math.log(100.0 * n), 0.02) for n in (1, 2, 4, 8)]
    why = not_bounded(told, scale, {})
    assert why == f"asked for more than 1,000 times as many {what} as were measured"
    assert not not_bounded(told, at(8000, 8000), {})
