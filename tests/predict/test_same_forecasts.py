"""Quicker arithmetic gives the forecasts that the formulas give as they are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from strakes.predict.families import Caps, Scales, StationNetwork
from strakes.predict.model import Model
from strakes.predict.scale import PARTS, MeasuredLevel, Scale

_SCALES = [Scale(1, 1), Scale(1, 8, osts=4), Scale(4, 16, mdts=2, link=2.0), Scale(300, 9600, mdts=3)]


def at(clients: int) -> Scale:
    return Scale(clients=clients, ranks=clients)


def levels(rate_of: dict[int, float]) -> list[MeasuredLevel]:
    return [MeasuredLevel(at(clients), math.log(rate), 0.01) for clients, rate in rate_of.items()]


def counted(rate_of: dict[int, float]) -> list[MeasuredLevel]:
    return [MeasuredLevel(at(clients), math.log(rate), 0.01, {"mdts": rate / 300}) for clients, rate in rate_of.items()]


# What model 8 says: median, 80 % interval, and that of a measurement.
@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            lambda: Model(levels({1: 100.0, 2: 190.0, 4: 350.0})),
            (827.8239074319732, 487.3613859663795, 2311.909554921172, 487.3613859663795, 2311.909554921172),
        ),
        (
            lambda: Model(levels({2: 200.0, 4: 300.0, 8: 260.0}), stated={"shared": 320.0}),
            (234.6118779283827, 100.48374885803723, 297.6647051843835, 100.48374885803723, 297.9847971594719),
        ),
        (
            lambda: Model(counted({1: 100.0, 2: 200.0, 4: 290.0})),
            (292.93911440076266, 281.6477944725942, 305.1879631935322, 280.4241058935738, 305.86331965121127),
        ),
        (
            lambda: Model(levels({1: 1.0, 2: 1.5, 4: 2.2}), is_time=True),
            (11.355576036147838, 8.657323504401457, 15.293829027840934, 8.644792285904558, 15.343675641114118),
        ),
    ],
    ids=["growing", "falling below a stated limit", "counted", "a time"],
)
def test_forecasts_are_what_they_were_with_the_same_model(model: Callable[[], Model], said: Sequence[float]) -> None:
    forecast = model().forecast(at(32))
    assert forecast.measurement is not None
    assert (forecast.median, forecast.low, forecast.high, *forecast.measurement) == pytest.approx(said, rel=1e-9)


@pytest.mark.parametrize("told", [levels({1: 100.0, 2: 190.0, 4: 350.0}), counted({1: 100.0, 2: 200.0})])
def test_a_curve_goes_through_the_forecasts(told: list[MeasuredLevel]) -> None:
    model = Model(told, stated={"mdts": 900.0})
    for point, forecast in zip(model.curve(_SCALES), map(model.forecast, _SCALES), strict=True):
        assert (point.low, point.median, point.high) == (forecast.low, forecast.median, forecast.high)


@pytest.mark.parametrize("dearer", [False, True])
@pytest.mark.parametrize("scales", [_SCALES, _SCALES[:1], _SCALES[1:]])
def test_the_network_is_the_fixed_point(dearer: bool, scales: list[Scale]) -> None:
    family = StationNetwork(dearer=dearer)
    draws = family.means + family.deviations * np.random.default_rng(1).standard_normal((20, len(family.means)))
    log_rates, shares = family.rates(draws, Scales.of(scales))
    for number, draw in enumerate(draws):
        for index, scale in enumerate(scales):
            demand = _demands(draw, scale, dearer=dearer)
            rate = math.exp(log_rates[number, index])
            # The queue that each part has at this rate is the one that an operation meets there, less its own share.
            met = (scale.ranks - 1) / scale.ranks
            stay = {part: demand[part] / (1 - met * rate * demand[part]) for part in PARTS}
            assert rate == pytest.approx(
                scale.ranks / (1 + sum(stay[part] * scale.units(part) for part in PARTS)), 2e-3
            )
            assert list(shares[number, index]) == pytest.approx([rate * demand[part] for part in PARTS], rel=1e-9)
            assert max(shares[number, index]) <= 1


@pytest.mark.parametrize("dearer", [False, True])
def test_caps_are_the_generalised_least(dearer: bool) -> None:
    family = Caps(dearer=dearer)
    draws = family.means + family.deviations * np.random.default_rng(1).standard_normal((20, len(family.means)))
    log_rates, shares = family.rates(draws, Scales.of(_SCALES))
    for number, draw in enumerate(draws):
        sharp = 10 ** min(max(draw[-1], 0.0), 2.0)
        for index, scale in enumerate(_SCALES):
            demand = _demands(draw, scale, dearer=dearer)
            asked = (1 + sum(10 ** draw[: len(PARTS)])) / scale.ranks
            most = max(asked, *demand.values())
            rate = sum((each / most) ** sharp for each in (asked, *demand.values())) ** (-1 / sharp) / most
            assert math.exp(log_rates[number, index]) == pytest.approx(rate, rel=1e-9)
            carried = [min(1.0, rate * demand[part]) for part in PARTS]
            assert list(shares[number, index]) == pytest.approx(carried, rel=1e-9)


def _demands(draw: Sequence[float], scale: Scale, *, dearer: bool) -> dict[str, float]:
    demand: dict[str, float] = {part: 10 ** draw[index] / scale.units(part) for index, part in enumerate(PARTS)}
    if dearer:
        demand["shared"] *= 1 + 10 ** draw[len(PARTS)] * (scale.ranks - 1)
    return demand
