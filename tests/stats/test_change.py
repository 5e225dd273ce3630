"""Change-point detection finds and dates planted changes, with the requested rate of false alarms."""

from __future__ import annotations

import numpy as np
import pytest

from strakes.stats.change import LEARN, Change, Detector, Numbers, aligned, segments


def autocorrelated(generator: np.random.Generator, count: int, correlation: float) -> Numbers:
    values = generator.standard_normal(count) * np.sqrt(1 - correlation**2)
    for index in range(1, count):
        values[index] += correlation * values[index - 1]
    return np.asarray(values, dtype=np.float64)


def changes(values: Numbers, alarms_per_value: float = 1e-4) -> list[Change]:
    detector = Detector(alarms_per_value)
    return [change for value in values.tolist() if (change := detector.add(value)) is not None]


@pytest.mark.parametrize("correlation", [0.0, 0.5])
@pytest.mark.parametrize(("series", "rate", "least"), [(8, 0.004, 0.0), (6, 0.012, 0.5)])
def test_noise_raises_half_to_twice_as_many_alarms_as_requested(
    series: int, rate: float, least: float, correlation: float
) -> None:
    generator, count = np.random.default_rng(5), 300
    false = sum(
        change.grade == "confirmed"
        for _ in range(series)
        for change in changes(autocorrelated(generator, count, correlation), rate)
    )
    assert least <= false / (rate * series * (count - LEARN)) <= 2


def test_a_large_change_is_confirmed_after_seven_values_and_dated_exactly() -> None:
    values = np.random.default_rng(6).standard_normal(160)
    values[120:] -= 8.0
    early, confirmed = changes(values)
    assert (early.begin, early.grade) == (120, "early") and early.seen < confirmed.seen
    assert (confirmed.begin, confirmed.seen, confirmed.grade) == (120, 126, "confirmed")
    assert confirmed.low <= -8.0 <= confirmed.high


def test_pelt_finds_the_change_points_of_a_whole_series() -> None:
    values = np.random.default_rng(7).standard_normal(300)
    values[100:200] += 4.0
    begins = segments(values, 6 * np.log(300), 10)
    assert begins[0] == 0 and len(begins) == 3 and abs(begins[1] - 100) <= 1 and abs(begins[2] - 200) <= 1


def test_values_before_a_change_are_shifted_to_the_last_level() -> None:
    values = np.random.default_rng(8).standard_normal(120)
    values[60:] += 6.0
    assert abs(np.median(aligned(values)[:60]) - np.median(values[60:])) < 0.5
