"""A contest of detectors that is run in parts gives the same page as one that is run at once."""

from __future__ import annotations

from pathlib import Path

from bench.watch.contest import Contestant
from bench.watch.kept import keep, read_kept
from bench.watch.page import render
from bench.watch.yardstick import AsItIs, Score


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
