"""What is asked of each ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.contenders import FLOOR, LOOP
from bench.measure import Results, Series
from bench.work import Work
from strakes.statistics.contrast import paired_ratio
from strakes.statistics.interval import Estimate
from strakes.units import KIB

CONFIDENCE = 0.9
# How far behind an equal may seem: no measurement shows that two are equal.
MARGIN = 0.03
# Where the loop is not further ahead of a peer, nobody has anything to gain there.
WORTH_WHILE = 1.08
_LOOKING = ("file-stat", "file-open-close", "dir-stat")
LOOKING_BAR = 1.25
_OF_THE_LOOP = 0.95
# Calls in place are what no program has that goes through its C library.
_OF_THE_FLOOR = 0.9


def bar_of(peer: str, work: Work, operation: str, loop_ahead: float | None) -> float | None:
    """Return the least that the engine's rate over the peer's may be; None where nothing is asked.

    ``loop_ahead``: the rate of the C library loop over the peer's, where it is known.
    """
    if peer in (FLOOR, LOOP) and work.kind == "data":
        return _OF_THE_LOOP if work.transfer_bytes == 4 * KIB else None
    if peer == FLOOR:
        return _OF_THE_FLOOR if work.kind in ("files", "directories") else None
    if peer == LOOP:
        return _OF_THE_LOOP if work.place == "tmpfs" else 1 - MARGIN
    if loop_ahead is None or loop_ahead <= WORTH_WHILE:
        return 1 - MARGIN
    return LOOKING_BAR if operation in _LOOKING else 1.0


@dataclass(frozen=True)
class Comparison:
    """The engine's rate over another one's."""

    work: Work
    operation: str
    peer: str
    peer_rate: float
    ratio: Estimate
    bar: float | None

    @property
    def verdict(self) -> Literal["met", "missed", "open", ""]:
        """By the whole interval: open means that it holds the bar, and that more blocks would tell."""
        if self.bar is None or self.ratio.interval is None:
            return ""
        if self.ratio.interval.low >= self.bar:
            return "met"
        return "missed" if self.ratio.interval.high < self.bar else "open"


def compare(results: Results, ours: str, peer: str, *, asked: bool = True) -> dict[tuple[Work, str], Comparison]:
    """Of everything both have done."""
    comparisons = {}
    for series, rates in results.items():
        theirs = results.get(Series(peer, series.work, series.operation))
        if series.contender != ours or theirs is None or not rates.keys() & theirs.keys():
            continue
        loop = results.get(Series(LOOP, series.work, series.operation))
        ahead = paired_ratio(loop, theirs, CONFIDENCE).median if loop and loop.keys() & theirs.keys() else None
        comparisons[series.work, series.operation] = Comparison(
            work=series.work,
            operation=series.operation,
            peer=peer,
            peer_rate=sorted(theirs.values())[len(theirs) // 2],
            ratio=paired_ratio(rates, theirs, CONFIDENCE),
            bar=bar_of(peer, series.work, series.operation, ahead) if asked else None,
        )
    return comparisons
