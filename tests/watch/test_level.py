"""Level shifts: planted ones are found, and false alarms are as rare as requested, even with autocorrelation."""

from __future__ import annotations

import numpy as np
import pytest
from bench.watch.__main__ import ours
from bench.watch.year import ShiftedLevel
from numpy.typing import NDArray

from strakes.watch.level import LevelDetector
from strakes.watch.reading import CounterReading
from strakes.watch.replay import changes_of
from strakes.watch.values import WatchedSeries, WatchEvent
from strakes.watch.watch import FOR_CHANCE, LEVEL_S, Watch

DAY_S = 86400.0
MONTH = 30.4375


def find_changes(series: WatchedSeries, alarms_a_month: float) -> list[ShiftedLevel]:
    return list(ours(alarms_a_month / FOR_CHANCE)(series))


def correlated(
    generator: np.random.Generator, count: int, correlation: float, spread: float = 0.15
) -> NDArray[np.float64]:
    noise = generator.standard_normal(count) * np.sqrt(1 - correlation**2)
    values = np.empty(count)
    values[0] = noise[0]
    for index in range(1, count):
        values[index] = correlation * values[index - 1] + noise[index]
    return np.asarray(100 * np.exp(spread * values), dtype=np.float64)


def days(count: int) -> NDArray[np.float64]:
    return np.asarray(1_500_000_000 + DAY_S * np.arange(count), dtype=np.float64)


@pytest.mark.parametrize("correlation", [0.5, *(pytest.param(more, marks=pytest.mark.more) for more in (0.0, 0.8))])
def test_noise_raises_no_more_alarms_than_requested(correlation: float) -> None:
    generator = np.random.default_rng(5)
    years, alarms = 25, 0
    for _ in range(years):
        series = WatchedSeries("", days(365), correlated(generator, 365, correlation))
        alarms += len(find_changes(series, 0.1))
    asked = 0.1 * years * 365 / MONTH
    # The number of alarms is Poisson distributed; the limit is three standard deviations above the requested number.
    assert alarms <= asked + 3 * np.sqrt(asked)


@pytest.mark.parametrize(("ratio", "found"), [(0.6, 0.9), pytest.param(0.8, 0.6, marks=pytest.mark.more)])
def test_a_planted_change_is_found_with_its_size(ratio: float, found: float) -> None:
    generator = np.random.default_rng(6)
    hits, covered, tries = 0, 0, 40
    for _ in range(tries):
        values = correlated(generator, 260, 0.3)
        values[180:] *= ratio
        changes = [change for change in find_changes(WatchedSeries("", days(260), values), 0.03) if change.told >= 180]
        hits += bool(changes) and changes[0].ratio < 1 and abs(changes[0].since - 180) <= 14
        covered += bool(changes) and changes[0].low <= ratio <= changes[0].high
    assert hits >= found * tries
    # The interval covers the true ratio in 90 % of the cases, less three standard deviations.
    assert covered >= 0.9 * hits - 3 * np.sqrt(0.09 * hits)


@pytest.mark.parametrize(
    ("lowest", "below", "unit", "size"),
    [(0.0, 0.0, "ratio", 0.6), (-90.0, 0.0, "ratio", 0.6), (0.0, 200.0, "difference", -40)],
)
def test_values_of_zero_or_less_do_not_falsify_the_size(lowest: float, below: float, unit: str, size: float) -> None:
    values = 100 + 5 * np.random.default_rng(8).standard_normal(260)
    values[180:] *= 0.6
    values[20] = lowest
    events = changes_of(WatchedSeries("rate", days(260), values - below), 0.03, worse_up=False)
    (event,) = [event for event in events if event.alarm]
    assert event.unit == unit and event.size == pytest.approx(size, rel=0.15)
    assert event.low is not None and event.high is not None and event.low <= size <= event.high
    assert ("%" in event.text) == (unit == "ratio")


def test_a_daily_rhythm_is_not_a_change() -> None:
    generator = np.random.default_rng(7)
    hours = np.arange(24 * 7 * 6)
    rhythm = np.where((hours % 24 >= 8) & (hours % 24 < 18) & (hours // 24 % 7 < 5), 1.8, 1.0)
    values = rhythm * correlated(generator, len(hours), 0.3, 0.05)
    changes = find_changes(WatchedSeries("", np.asarray(1_500_000_000 + 3600.0 * hours, dtype=np.float64), values), 0.2)
    # The detector learns the rhythm in the first three weeks.
    assert not [change for change in changes if change.told > 24 * 7 * 3]


def test_the_end_of_a_slow_week_is_detected() -> None:
    values = correlated(np.random.default_rng(8), 200, 0.0, 0.05)
    values[120:127] *= 0.6
    events = changes_of(WatchedSeries("rate", days(200), values), 0.1, worse_up=False)
    (event,) = (event for event in events if event.kind == "level")
    assert abs(event.began_s - days(200)[120]) <= DAY_S
    assert event.ended_s is not None and abs(event.ended_s - days(200)[127]) <= 2 * DAY_S


@pytest.mark.parametrize(("lasted", "alarms"), [(20, 0), (100, 1)])
def test_the_end_of_a_gain_is_an_alarm_once_the_gain_is_the_usual_level(lasted: int, alarms: int) -> None:
    values = correlated(np.random.default_rng(8), 300, 0.0, 0.05)
    values[100 : 100 + lasted] *= 1.5
    events = changes_of(WatchedSeries("rate", days(300), values), 0.1, worse_up=False)
    gain, *losses = (event for event in events if event.kind == "level")
    assert gain.gain and gain.ended_s is not None and abs(gain.ended_s - days(300)[100 + lasted]) <= 2 * DAY_S
    assert [event.alarm for event in losses] == [True] * alarms


def test_a_change_after_a_slow_decline_is_dated_to_the_fall() -> None:
    values = correlated(np.random.default_rng(9), 260, 0.0, 0.05)
    # A slow decline of 6 % precedes the fall of 15 %.
    values[150:200] *= np.exp(-0.06 * np.arange(50) / 50)
    values[200:] *= np.exp(-0.06) * 0.85
    changes = [change for change in find_changes(WatchedSeries("", days(260), values), 0.1) if change.told >= 200]
    assert changes and abs(changes[0].since - 200) <= 3


def test_unusable_values_are_skipped() -> None:
    detector = LevelDetector("rate", 1.0)
    assert not any(detector.add(float(index), value) for index, value in enumerate([float("nan"), 0.0, -1.0] * 40))


def test_equal_values_have_no_change() -> None:
    values = np.zeros(150)
    assert changes_of(WatchedSeries("rate", days(150), values), 1.0, worse_up=False) == []
    values[100:] = 1000.0
    (event,) = (
        event
        for event in changes_of(WatchedSeries("rate", days(150), values), 1.0, worse_up=False)
        if event.kind == "level"
    )
    assert abs(event.began_s - days(150)[100]) <= DAY_S and event.gain


def test_the_interval_of_a_fall_to_zero_is_not_negative() -> None:
    generator = np.random.default_rng(5)
    values = 1000 * np.exp(0.1 * generator.standard_normal(360)) * (1 + 0.1 * (np.arange(360) % 7 == 0))
    values[300:] = 0.0
    (event,) = (
        event
        for event in changes_of(WatchedSeries("rate", days(360), values), 0.1, worse_up=False)
        if event.kind == "level"
    )
    assert event.low is not None and event.high is not None and event.size is not None
    assert 0 <= event.low <= event.size <= event.high and float(event.evidence["after"]) < 10


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_a_second_fall_soon_after_the_first_is_reported(correlation: float) -> None:
    generator = np.random.default_rng(13)
    told = 0
    for _ in range(10):
        values = correlated(generator, 230, correlation, 0.05)
        values[180:] *= 0.8
        values[192:] *= 0.5
        falls = [change for change in find_changes(WatchedSeries("", days(230), values), 0.03) if change.told >= 180]
        told += [round((change.since - 186) / 6) for change in falls] == [-1, 1]
    assert told >= 6


def test_a_large_fall_soon_after_a_small_one_is_reported() -> None:
    generator = np.random.default_rng(16)
    told = 0
    for _ in range(10):
        values = correlated(generator, 230, 0.0, 0.05)
        values[180:184] *= 0.85
        values[184:] *= 0.6
        falls = [change for change in find_changes(WatchedSeries("", days(230), values), 0.1) if change.told >= 180]
        told += any(change.since in range(182, 187) and change.ratio < 0.8 for change in falls)
    assert told >= 8


def watched(slow: slice) -> list[WatchEvent]:
    """Watch a latency that is 1.67 times as long in the slice ``slow``; return the events except gaps."""
    values = correlated(np.random.default_rng(8), 160, 0.0, 0.05)
    values[slow] /= 0.6
    watch, events = Watch(1.0), []
    for number, value in enumerate(values.tolist()):
        events += watch.add(CounterReading("made up", 1.5e9 + LEVEL_S * number, figures={"p99": value}))
    return [event for event in events if event.kind != "gap"]


def test_an_early_warning_comes_first_and_ends_when_the_change_is_confirmed() -> None:
    warning, over, change = watched(slice(120, None))
    assert warning.kind == over.kind == "early-warning" and warning.key == over.key and not warning.alarm
    assert change.kind == "level" and change.alarm and over.ended_s == change.told_s
    assert warning.told_s < change.told_s and warning.began_s == pytest.approx(1.5e9 + LEVEL_S * 120, abs=LEVEL_S)


def test_three_outliers_raise_no_alarm() -> None:
    events = watched(slice(120, 123))
    assert not [event for event in events if event.alarm]
    assert all(event.ended_s is not None for event in {event.key: event for event in events}.values())
