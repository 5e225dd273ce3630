"""What is asked of each ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.measure import Results, Series
from bench.work import Work
from strakes.statistics.contrast import paired_ratio
from strakes.statistics.interval import Estimate
from strakes.units import KIB

CONFIDENCE = 0.9
_METADATA = ("file-create", "file-stat", "file-remove", "dir-create", "dir-remove")


def bar_of(peer: str, work: Work, operation: str) -> float | None:
    """The least the engine's rate over the peer's may be; None where nothing is asked."""
    if work.kind == "pool":
        return 1.5
    if peer not in ("floor", "C library loop"):
        return 1.0
    if work.kind == "data":
        return 0.95 if work.transfer_bytes == 4 * KIB else None
    return 0.9 if operation in _METADATA else None


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
        if series.contender != ours or theirs is None:
            continue
        comparisons[series.work, series.operation] = Comparison(
            work=series.work,
            operation=series.operation,
            peer=peer,
            peer_rate=sorted(theirs.values())[len(theirs) // 2],
            ratio=paired_ratio(rates, theirs, CONFIDENCE),
            bar=bar_of(peer, series.work, series.operation) if asked else None,
        )
    return comparisons
