"""A contest of detectors that is run in parts gives the same page as one that is run at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from bench.watch.contest import KINDS, Contestant
from bench.watch.curve import RATES, best_at, points, table
from bench.watch.kept import keep, read_kept
from bench.watch.page import render
from bench.watch.yardstick import DAY_S, AsItIs, Score

from strakes.watch.values import ShiftedLevel, WatchedSeries


def contestant(name: str, targets: int) -> Contestant:
    scores = {
        ("level", 0.9): Score(4, (86400.0, 3 * 86400.0), 1, 2),
        ("target", 0.6): Score(targets, (), 0, 0),
    }
    return Contestant(name, "k=1", AsItIs(3, {"fullness": 2}, 12.0), scores)


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    both = {name: contestant(name, count) for name, count in (("ours", 3), ("theirs", 9))}
    keep(tmp_path / "kept.json", both.values())
    assert read_kept(tmp_path / "kept.json") == both
    assert read_kept(tmp_path / "none.json") == {} == read_kept(None)


def test_the_page_says_how_many_plants_each_had_and_what_was_found() -> None:
    page = render([contestant("ours", 3), contestant("theirs", 9)], 0.05, 36, 18)
    assert "Planted into 18 of the 36 series: those that were not used to choose" in page
    assert "Plants of each level and week: 4.\nOf slow targets: 3 for ours, 9 for theirs.\n" in page
    assert "| level -10% | 50%, 2 d, 0.67 (0.40) | 50%, 2 d, 0.67 (0.40) |" in page
    assert "| ours | k=1 | 0.25 | 2 fullness |" in page and "| a slow target, -40% | 0%, 1.00 (1.00) |" in page


def test_at_equal_rates_the_setting_that_finds_most_is_taken_and_what_comes_later_changes_nothing() -> None:
    times = np.asarray(1.5e9 + DAY_S * np.arange(300), dtype=np.float64)
    values = np.asarray(100 * np.exp(0.05 * np.random.default_rng(1).standard_normal(300)), dtype=np.float64)
    series = [WatchedSeries("fs a", times, values)]

    def planted_at_once(one: WatchedSeries) -> list[ShiftedLevel]:
        fallen = np.flatnonzero(one.values < 0.99 * values[: len(one.values)])
        return [ShiftedLevel(int(fallen[0]), int(fallen[0]) + 2, 0.9, 0.8, 0.95, 0.9)] if len(fallen) > 2 else []

    def always(one: WatchedSeries) -> list[ShiftedLevel]:
        return [ShiftedLevel(at, at, 0.9, 0.8, 0.95, 0.9) for at in range(0, len(one.values), 10)]

    grid = {"never": lambda one: [], "at once": planted_at_once, "always": always}
    found = list(points(series, "theirs", grid, 1, 5))
    assert [point.settings for point in found] == ["never", "at once"]
    best = best_at(found, "theirs", RATES[0])
    assert best is not None and best.settings == "at once" and best.found == len(KINDS)
    assert all(delay == 2 * DAY_S for delays in best.delays_s.values() for delay in delays)
    assert f"| {RATES[0]:g} | theirs | at once | 0.00 | 100% (" in table(found)
