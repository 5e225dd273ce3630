"""Changes of level: found when planted, and as rare by chance as was asked, also where values resemble their neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from bench.watch.changes import find_changes
from numpy.typing import NDArray

from strakes.watch.level import LevelChange, LevelDetector, LevelEnd, LevelNews, LevelReturns, likely_beginning
from strakes.watch.reading import CounterReading
from strakes.watch.replay import changes_of
from strakes.watch.values import WatchedSeries
from strakes.watch.watch import GAIN, LEVEL_S, Watch

DAY_S = 86400.0
MONTH = 30.4375


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
def test_chance_alone_is_told_no_more_often_than_asked(correlation: float) -> None:
    generator = np.random.default_rng(5)
    years, alarms = 25, 0
    for _ in range(years):
        series = WatchedSeries("", days(365), correlated(generator, 365, correlation))
        alarms += len(find_changes(series, 0.1))
    asked = 0.1 * years * 365 / MONTH
    # Poisson: three standard deviations above what was asked.
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
    # 90 % of the intervals should; three standard deviations below.
    assert covered >= 0.9 * hits - 3 * np.sqrt(0.09 * hits)


@pytest.mark.parametrize(
    ("lowest", "below", "unit", "size"),
    [(0.0, 0.0, "ratio", 0.6), (-90.0, 0.0, "ratio", 0.6), (0.0, 200.0, "difference", -40)],
)
def test_one_value_that_is_zero_or_less_does_not_make_sizes_wrong(
    lowest: float, below: float, unit: str, size: float
) -> None:
    values = 100 + 5 * np.random.default_rng(8).standard_normal(260)
    values[180:] *= 0.6
    values[20] = lowest
    events = changes_of(WatchedSeries("rate", days(260), values - below), 0.03, worse_up=False)
    (event,) = [event for event in events if event.alarm]
    assert event.unit == unit and event.size == pytest.approx(size, rel=0.15)
    assert event.low is not None and event.high is not None and event.low <= size <= event.high
    assert ("%" in event.text) == (unit == "ratio")


def test_a_rhythm_of_the_day_is_no_change() -> None:
    generator = np.random.default_rng(7)
    hours = np.arange(24 * 7 * 6)
    rhythm = np.where((hours % 24 >= 8) & (hours % 24 < 18) & (hours // 24 % 7 < 5), 1.8, 1.0)
    values = rhythm * correlated(generator, len(hours), 0.3, 0.05)
    changes = find_changes(WatchedSeries("", np.asarray(1_500_000_000 + 3600.0 * hours, dtype=np.float64), values), 0.2)
    # The first weeks teach it.
    assert not [change for change in changes if change.told > 24 * 7 * 3]


def test_a_slow_week_ends_by_itself() -> None:
    values = correlated(np.random.default_rng(8), 200, 0.0, 0.05)
    values[120:127] *= 0.6
    detector = LevelDetector(0.1)
    told = [detector.add(time, value) for time, value in zip(days(200).tolist(), values.tolist(), strict=True)]
    begun = [one for one in told if isinstance(one, LevelChange)]
    ended = [one for one in told if isinstance(one, LevelEnd)]
    assert len(begun) == 1 and abs(begun[0].began_s - days(200)[120]) <= DAY_S
    assert len(ended) == 1 and abs(ended[0].ended_s - days(200)[127]) <= 2 * DAY_S


def fallen(**factors: float) -> list[LevelNews]:
    """Return what is said of 220 values that are 40 % lower from the 120th on; ``factors``: of some, by v and index."""
    values = correlated(np.random.default_rng(8), 220, 0.0, 0.05)
    values[120:] *= 0.6
    for name, factor in factors.items():
        values[int(name[1:])] *= factor
    detector = LevelDetector(0.1)
    told = (detector.add(time, value) for time, value in zip(days(220).tolist(), values.tolist(), strict=True))
    return [news for news in told if news is not None]


def test_three_values_at_the_old_level_are_no_end_of_a_change() -> None:
    news = fallen(**{f"v{index}": 1 / 0.6 for index in range(128, 131)})
    assert [type(one) for one in news].count(LevelChange) == 1 and not any(isinstance(one, LevelEnd) for one in news)


def test_a_change_that_is_back_soon_after_its_end_is_the_same_one() -> None:
    news = fallen(**{f"v{index}": 1 / 0.6 for index in range(128, 137)})
    assert [type(one) for one in news if isinstance(one, LevelChange | LevelEnd | LevelReturns)] == [
        LevelChange,
        LevelEnd,
        LevelReturns,
    ]
    returned = next(one for one in news if isinstance(one, LevelReturns))
    assert abs(returned.began_s - days(220)[137]) <= 2 * DAY_S


def test_a_figure_that_is_bad_again_soon_is_the_same_event_reported_again() -> None:
    values = correlated(np.random.default_rng(8), 220, 0.0, 0.05)
    values[120:128] /= 0.6
    values[137:] /= 0.6
    watch, events = Watch(30.0), []
    for number, value in enumerate(values.tolist()):
        events += watch.add(CounterReading("made up", 1.5e9 + LEVEL_S * number, figures={"p99": value}))
    first, over, again = (event for event in events if event.kind == "level" and event.alarm)
    assert first.key == over.key == again.key and first.ended_s is None and again.ended_s is None
    assert over.ended_s is not None and first.began_s < over.ended_s <= 1.5e9 + LEVEL_S * 131


def test_one_that_goes_further_or_comes_later_is_another() -> None:
    back = {f"v{index}": 1 / 0.6 for index in range(128, 137)}
    deeper = fallen(**back, **{f"v{index}": 0.7 for index in range(137, 220)})
    later = fallen(**back, **{f"v{index}": 1 / 0.6 for index in range(137, 150)})
    for news in (deeper, later):
        assert [type(one) for one in news].count(LevelChange) == 2


def test_a_change_is_dated_where_values_fall_and_not_where_the_level_was_learned_too_high() -> None:
    values = correlated(np.random.default_rng(9), 260, 0.0, 0.05)
    # Half of the change came slowly before.
    values[150:200] *= np.exp(-0.06 * np.arange(50) / 50)
    values[200:] *= np.exp(-0.06) * 0.85
    changes = [change for change in find_changes(WatchedSeries("", days(260), values), 0.1) if change.told >= 200]
    assert changes and abs(changes[0].since - 200) <= 3


def test_a_change_smaller_than_the_noise_is_seldom_dated_a_week_off() -> None:
    generator, tries, far = np.random.default_rng(10), 400, 0
    for _ in range(tries):
        past, recent = generator.standard_normal(100), generator.standard_normal(40)
        recent[20:] -= 0.75
        far += abs(likely_beginning(past, recent, 0.0, 1.0, 32, 1.0) - 20) > 7
    # The best fit is so far off in 26 %.
    assert far <= 0.18 * tries


def test_values_that_say_nothing_are_passed_over() -> None:
    detector = LevelDetector(1.0)
    assert all(detector.add(float(index), value) is None for index, value in enumerate([float("nan"), 0.0, -1.0] * 40))
    assert detector.learning


def test_values_that_are_all_alike_have_not_changed() -> None:
    values = np.zeros(150)
    assert changes_of(WatchedSeries("rate", days(150), values), 1.0, worse_up=False) == []
    values[100:] = 1000.0
    (event,) = changes_of(WatchedSeries("rate", days(150), values), 1.0, worse_up=False)
    assert abs(event.began_s - days(150)[100]) <= DAY_S and event.cause == GAIN


def test_what_is_never_below_zero_falls_by_no_more_than_all_of_it() -> None:
    generator = np.random.default_rng(5)
    values = 1000 * np.exp(0.1 * generator.standard_normal(360)) * (1 + 0.1 * (np.arange(360) % 7 == 0))
    values[300:] = 0.0
    (event,) = changes_of(WatchedSeries("rate", days(360), values), 0.1, worse_up=False)
    assert event.low is not None and event.high is not None and event.size is not None
    assert 0 <= event.low <= event.size <= event.high and event.evidence["after"] == 0


def test_what_follows_a_past_of_equal_values_is_told_once_it_shows_its_level() -> None:
    held = 0
    for seed in range(60):
        values = 1000 * np.exp(0.1 * np.random.default_rng(seed).standard_normal(40))
        series = WatchedSeries("", days(140), np.concatenate([np.zeros(100), values]))
        change = changes_of(series, 0.1, worse_up=True)[0]
        assert change.began_s == series.times[100]
        assert change.low is not None and change.high is not None
        held += change.low <= 1000 <= change.high
    assert held >= 50
    once = np.where(np.arange(300) == 100, 1000.0, 0.0)
    assert not changes_of(WatchedSeries("", days(300), once), 0.1, worse_up=True)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_a_further_fall_is_told_while_the_first_is_not_confirmed_yet(correlation: float) -> None:
    generator = np.random.default_rng(13)
    told = 0
    for _ in range(10):
        values = correlated(generator, 230, correlation, 0.05)
        values[180:] *= 0.8
        values[192:] *= 0.5
        falls = [change for change in find_changes(WatchedSeries("", days(230), values), 0.03) if change.told >= 180]
        told += [round((change.since - 186) / 6) for change in falls] == [-1, 1]
    assert told >= 6


def test_a_single_fall_is_seldom_told_as_two() -> None:
    generator = np.random.default_rng(14)
    twice = 0
    for _ in range(20):
        values = correlated(generator, 240, 0.5)
        values[180:] *= 0.6
        changes = find_changes(WatchedSeries("", days(240), values), 0.1)
        twice += sum(change.told >= 180 and change.ratio < 1 for change in changes) > 1
    assert twice <= 3


def test_small_changes_that_need_many_values_must_stand_out_further_than_noise_alone_would_let_them() -> None:
    generator = np.random.default_rng(15)
    small, large = 0, 0
    for _ in range(10):
        wandering = np.cumsum(0.0375 * generator.standard_normal(400))
        values = correlated(generator, 400, 0.0) * np.exp(0.15 * wandering)
        changes = find_changes(WatchedSeries("", days(400), values), 0.03)
        small += len(changes)
        values[300:] *= 0.5
        large += any(change.told >= 300 for change in find_changes(WatchedSeries("", days(400), values), 0.03))
    assert small <= 3 and large == 10


def test_a_large_fall_soon_after_a_small_one_was_told_is_told() -> None:
    generator = np.random.default_rng(16)
    told = 0
    for _ in range(10):
        values = correlated(generator, 230, 0.0, 0.05)
        values[180:184] *= 0.85
        values[184:] *= 0.6
        falls = [change for change in find_changes(WatchedSeries("", days(230), values), 0.1) if change.told >= 180]
        told += any(change.since in range(182, 187) and change.ratio < 0.75 for change in falls)
    assert told >= 8
