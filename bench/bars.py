"""Bars (required ratios of rates), and the group-sequential test of whether ratios reach their bars.

Ratios are tested after fixed numbers of blocks. The allowed error is divided equally among these tests (Bonferroni).
So the interval of a ratio misses the true ratio in at most 10 % of benches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.contenders import FLOOR, LOOP
from bench.measure import Results, Series
from bench.work import Work
from strakes.base.units import KIB
from strakes.stats.interval import Estimate
from strakes.stats.ratios import paired_ratio

CONFIDENCE = 0.9
# Margin of equivalence, as a difference of ratios. Users do not notice smaller differences.
MARGIN = 0.05
# Required speed relative to the minimal C program, which is up to 10 % faster because it avoids the C library.
_OF_THE_FLOOR = 0.9
LOOKING_BAR = 1.25
_LOOKING = ("file-stat", "file-open-close", "dir-stat")

Verdict = Literal["met", "missed", "at its bar", "too noisy", ""]


def bar_of(peer: str, work: Work, operation: str) -> float | None:
    """Return the smallest allowed ratio of the engine's rate to the peer's, or None if there is no bar.

    Bars are fixed before anything is measured. For short calls, the engine must be faster. Where time in the kernel or
    the device hides the overhead of programs, it must be equally fast.
    """
    if peer in (FLOOR, LOOP):
        if work.kind == "data" and work.transfer_bytes != 4 * KIB:
            return None
        if peer == LOOP or work.kind == "data":
            return 1 - MARGIN
        return _OF_THE_FLOOR if work.kind in ("files", "directories") else None
    if operation in _LOOKING:
        return LOOKING_BAR
    if work.kind == "pool":
        return 1 - MARGIN
    if work.kind == "data" and (work.transfer_bytes > 4 * KIB or work.direct):
        return 1 - MARGIN
    return 1.0


@dataclass(frozen=True)
class Comparison:
    """Ratio of the engine's rate to another program's. ``is_last``: from the final analysis."""

    work: Work
    operation: str
    peer: str
    peer_rate: float
    ratio: Estimate
    bar: float | None
    is_last: bool = True

    @property
    def answer(self) -> Literal["met", "missed", None]:
        """Return "met" or "missed" if the whole interval is on one side of the bar, else None."""
        if self.bar is None or self.ratio.interval is None:
            return None
        if self.ratio.interval.low >= self.bar:
            return "met"
        return "missed" if self.ratio.interval.high < self.bar else None

    @property
    def verdict(self) -> Verdict:
        """Return the verdict. "At its bar": in the final analysis, the interval is within MARGIN of the bar."""
        if self.bar is None or self.answer is not None:
            return self.answer or ""
        interval = self.ratio.interval
        near = interval is not None and max(interval.high - self.bar, self.bar - interval.low) <= MARGIN
        return "at its bar" if self.is_last and near else "too noisy"


def look_times(blocks: int) -> tuple[int, ...]:
    """Return the numbers of blocks after which ratios are tested: a sixteenth, a quarter and all of ``blocks``.

    >>> look_times(144), look_times(3)
    ((9, 36, 144), (1, 3))
    """
    return tuple(sorted({max(1, blocks // 16), max(1, blocks // 4), blocks}))


def compare(
    results: Results, ours: str, peer: str, looks: Sequence[int], *, asked: bool = True
) -> dict[tuple[Work, str], Comparison]:
    """Return the comparison of each operation that both programs have run."""
    comparisons = {}
    for series, rates in results.items():
        theirs = results.get(Series(peer, series.work, series.operation))
        if series.contender != ours or theirs is None:
            continue
        common = sorted(rates.keys() & theirs.keys())
        bar = bar_of(peer, series.work, series.operation) if asked else None
        times = [look for look in looks if look <= len(common)] or [len(common)]
        for look in times if common else []:
            blocks = common[:look]
            comparison = Comparison(
                work=series.work,
                operation=series.operation,
                peer=peer,
                peer_rate=sorted(theirs[block] for block in blocks)[look // 2],
                ratio=paired_ratio(
                    {block: rates[block] for block in blocks},
                    {block: theirs[block] for block in blocks},
                    1 - (1 - CONFIDENCE) / len(looks),
                ),
                bar=bar,
                is_last=look == looks[-1],
            )
            comparisons[series.work, series.operation] = comparison
            if comparison.answer is not None:
                break
    return comparisons


def is_open(work: Work, results: Results, ours: str, peers: Sequence[str], looks: Sequence[int]) -> bool:
    """Return whether a bar of this workload is undecided, so that more blocks are needed."""
    of_work = {series: rates for series, rates in results.items() if series.work == work}
    return not of_work or any(
        comparison.verdict == "too noisy" and not comparison.is_last
        for peer in peers
        for comparison in compare(of_work, ours, peer, looks).values()
    )
