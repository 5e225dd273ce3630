"""The contest of detectors: variants, rivals tuned on other series, results kept in parts, a verdict that can fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench.watch import crossed
from bench.watch.changes import Finder, find_changes
from bench.watch.crossed import BEST, KINDS, OURS, VARIANTS, Judged, difference, draws, judge, tune, variants
from bench.watch.kept import Kept, keep, read_kept
from bench.watch.known import GRIDS
from bench.watch.long_run import store_mib
from bench.watch.page import render
from bench.watch.yardstick import DAY_S, Detector, Score
from bench.watch.year import alarms_of

from strakes.watch.values import ShiftedLevel, WatchedSeries


def noise_of(seed: int, days: int = 300) -> WatchedSeries:
    times = np.asarray(1.5e9 + DAY_S * np.arange(days), dtype=np.float64)
    values = 100 * np.exp(0.05 * np.random.default_rng(seed).standard_normal(days))
    return WatchedSeries(f"fs{seed} a", times, np.asarray(values), {"load": np.arange(days) / days})


def at_once(series: list[WatchedSeries]) -> Detector:
    """Return a detector that knows what is recorded and tells each plant two days after it began."""

    def detect(one: WatchedSeries) -> list[ShiftedLevel]:
        recorded = next(each.values for each in series if each.name == one.name)
        fallen = np.flatnonzero(one.values < 0.99 * recorded[: len(one.values)])
        return [ShiftedLevel(int(fallen[0]), int(fallen[0]) + 2, 0.9, 0.8, 0.95, 0.9)] if len(fallen) > 2 else []

    return detect


def always(one: WatchedSeries) -> list[ShiftedLevel]:
    return [ShiftedLevel(at, at, 0.9, 0.8, 0.95, 0.9) for at in range(0, len(one.values), 10)]


def test_variants_turn_time_and_levels_round_and_take_the_columns_along() -> None:
    one, other = noise_of(1), noise_of(2, 200)
    recorded, reversed_, inverted, both = variants([one, other])
    assert recorded == [one, other]
    again = variants(reversed_)[1][1]
    assert np.array_equal(again.times, other.times) and np.array_equal(again.values, other.values)
    # What happened on one day of several series still does.
    assert reversed_[0].times[-1] == reversed_[1].times[-1] == one.times[-1]
    assert reversed_[0].causes["load"][0] == one.causes["load"][-1]
    assert np.allclose(inverted[0].values[5] / np.median(one.values), np.median(one.values) / one.values[5])
    assert np.array_equal(both[0].values, inverted[0].values[::-1])


def test_a_rival_is_tuned_to_what_finds_most_at_one_alarm_a_month(monkeypatch: pytest.MonkeyPatch) -> None:
    series = [noise_of(1), noise_of(2)]
    grids = {
        "theirs": {"never": lambda one: [], "at once": at_once(series), "always": always},
        "others": {"never": lambda one: []},
    }
    monkeypatch.setattr(crossed, "GRIDS", grids)
    assert tune([series], 0) == {"theirs": "at once", "others": "never", BEST: "theirs"}


def test_a_judged_half_counts_finds_and_alarms_of_each_variant() -> None:
    series = [noise_of(1), noise_of(2)]
    found = judge([series], 1, "theirs", "at once", lambda: at_once(series))
    assert found.a_month == (0.0,) and all(score.found == 1 and score.precision == 1 for score in found.scores.values())
    assert len(found.scores) == 2 * len(KINDS)
    woken = judge([series], 1, "theirs", "always", lambda: always)
    assert woken.a_month[0] > 1 and next(iter(woken.scores.values())).strict_precision < 0.5


def test_differences_are_of_whole_series_of_each_half() -> None:
    drawn = draws(5, count=50)
    assert np.all(drawn[:, :3] < 3) and np.all(drawn[:, 3:] >= 3) and drawn.shape == (50, 5)
    apart = difference(np.array([1.0, 1, 1, 1, 1]), np.array([0.0, 0, 0, 1, 1]), drawn)
    assert apart.mean == apart.low == apart.high == pytest.approx(0.6)


def kept_with(ours: int, alarms: float = 0.5) -> Kept:
    """Return a contest of two series in which strakes finds so many of four plants and each rival two."""
    kept = Kept({half: {**dict.fromkeys(GRIDS, "k=1"), BEST: "CUSUM"} for half in (0, 1)})
    for name in (OURS, *GRIDS):
        for half in (0, 1):
            found = ours if name == OURS else 2
            scores = {
                (variant, 0, *kind): Score(4, (DAY_S,) * found, 1, 2, 1)
                for variant in range(len(VARIANTS))
                for kind in KINDS
            }
            kept.judged[name, half] = Judged(name, half, "k=1", (alarms,) * 4, (0,) * 4, scores)
    return kept


@pytest.mark.parametrize(
    ("ours", "alarms", "verdict"),
    [
        (2, 0.5, "**strakes is no worse than the best rival**"),
        (3, 0.5, "(sum of the four differences: +100 points)"),
        (1, 0.5, "**strakes is worse than the best rival: it finds fewer changes of the kind level -10%; "),
        (1, 0.5, "the sum of the found shares is 100 points lower**"),
    ],
)
def test_the_verdict_can_fail(ours: int, alarms: float, verdict: str) -> None:
    assert verdict in render([noise_of(1), noise_of(2)], kept_with(ours, alarms))


def test_whoever_alarms_more_often_than_the_best_rival_and_once_a_month_is_worse() -> None:
    kept = kept_with(3)
    for half in (0, 1):
        one = kept.judged[OURS, half]
        kept.judged[OURS, half] = Judged(OURS, half, "", (1.2,) * 4, (0,) * 4, one.scores)
    assert "worse than the best rival: it gives 1.20 alarms a month**" in render([noise_of(1), noise_of(2)], kept)


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    kept = kept_with(2)
    kept.targets["strakes", 0, 0.6] = Score(3, (2 * DAY_S,), 1, 0)
    kept.year, kept.year_a_month = (
        [("2017-05-01", "fs1 a", "-20%", "-10%", "none in the columns", "CUSUM", "jobs 80%")],
        0.5,
    )
    keep(tmp_path / "kept.json", kept)
    assert read_kept(tmp_path / "kept.json") == kept
    assert read_kept(tmp_path / "none.json") == Kept()
    page = render([noise_of(1), noise_of(2)], kept)
    assert "| strakes | 33%, 2 d, 0.50 | 0.50 (1 false) |" in page
    assert "Of 1 falls without a cause, rivals (with the settings above) report 1, too" in page


def test_alarms_of_a_plant_that_come_too_late_are_neither_found_nor_false() -> None:
    series = [noise_of(1, 400)]

    def late(one: WatchedSeries) -> list[ShiftedLevel]:
        return [replace_told(change, one) for change in at_once(series)(one)]

    def replace_told(change: ShiftedLevel, one: WatchedSeries) -> ShiftedLevel:
        return ShiftedLevel(change.since, min(change.since + 70, len(one.values) - 1), 0.9, 0.8, 0.95, 0.9)

    scores = judge([series], 0, "theirs", "late", lambda: late).scores.values()
    assert sum(score.late for score in scores) == 24 and all(not score.delays_s and not score.false for score in scores)


def test_false_alarms_are_told_apart() -> None:
    series = [noise_of(1, 400)]

    def early_and_again(one: WatchedSeries) -> list[ShiftedLevel]:
        found = at_once(series)(one)
        early = [ShiftedLevel(change.since - 30, change.told, 0.9, 0.8, 0.95, 0.9) for change in found]
        again = [ShiftedLevel(change.since + 70, change.told + 70, 0.9, 0.8, 0.95, 0.9) for change in found]
        return [*early, *found, *again]

    scores = list(judge([series], 0, "theirs", "twice", lambda: early_and_again).scores.values())
    assert all(score.false == 2 * score.planted and score.precision == pytest.approx(1 / 3) for score in scores)
    assert all(score.early == score.again == score.planted for score in scores)
    # Noise alone seldom falls by 5 % and more.
    assert sum(score.moved for score in scores) < 0.2 * sum(score.false for score in scores)


def test_the_column_that_comes_nearest_to_a_cause_is_named() -> None:
    days = np.asarray(1.5e9 + DAY_S * np.arange(100), dtype=np.float64)
    columns = {"fs_ave_mds_cpu": np.arange(100) % 10.0, "fs_ave_oss_cpu": np.full(100, np.nan)}
    columns["fs_ave_mds_cpu"][70:] = 7.5
    one = WatchedSeries("fs a", days, np.ones(100), columns)
    rows = list(alarms_of([one], {"fs a": [ShiftedLevel(70, 75, 0.8, 0.7, 0.9, 0.9)]}, [{}, {}]))
    assert rows[0][4:] == ("none in the columns", "", "load of the metadata servers 80%, of 1 column")


@pytest.mark.parametrize("confirm", [False, True])
def test_what_begins_alike_is_gone_through_once_with_the_same_result(confirm: bool) -> None:
    one = noise_of(3, 140)
    finder = Finder(0.1, confirm=confirm)
    told = []
    for begin in (110, 90):
        values = one.values.copy()
        values[begin:] *= 0.7
        trial = WatchedSeries(one.name, one.times, values)
        told.append(list(finder(trial)))
        assert told[-1] == find_changes(trial, 0.1, confirm=confirm)
    assert all(told)


def test_a_store_grows_by_hours_and_events_once_it_is_older_than_two_weeks() -> None:
    assert store_mib(2, (3.0, 1.0, 0.1), 0.0) == 6
    assert store_mib(30, (3.0, 1.0, 0.1), 0.2) == pytest.approx(3 * 3 + 12 * 1 + 15 * 0.1 + 30 * 0.2)
