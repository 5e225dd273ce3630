"""Service levels: ``p99 of create <= 20 ms in 99 % of minutes``, and what is left of the error budget.

An alarm is due when the budget of 30 days is used up too fast, over a long time and lately (Beyer et al., The Site
Reliability Workbook (2018), chapter 5, "multiwindow, multi-burn-rate alerts").
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from strakes.errors import BadInputError
from strakes.units import counted, format_duration, format_seconds, parse_seconds

_LEVEL = re.compile(
    r"^\s*p(\d+(?:\.\d+)?)\s+of\s+(\S+)\s*(?:<=|≤)\s*(\d+(?:\.\d+)?\s*\S+)\s+in\s+(\d+(?:\.\d+)?)\s*%\s+of\s+minutes\s*$"
)
# Seconds of both windows, and how many times too fast the budget is used up in them. What was not seen counts as good.
_BURN_RATES = ((3600.0, 300.0, 14.4), (6 * 3600.0, 1800.0, 6.0), (3 * 86400.0, 6 * 3600.0, 1.0))
_REMEDY = "Write, for example, 'p99 of create <= 20 ms in 99 % of minutes'"


class LatencyCounts(Protocol):
    """Of one operation in one minute."""

    @property
    def count(self) -> int:
        """Return how many there are."""

    def percentile(self, share: float) -> float:
        """Return the one that ``share`` of all do not exceed, in seconds."""


class Minute(Protocol):
    """What was seen for ``seconds``: figure -> latencies."""

    @property
    def time_s(self) -> float:
        """Return when it began, in Unix time."""

    @property
    def seconds(self) -> float:
        """Return its length."""

    @property
    def figures(self) -> Mapping[str, LatencyCounts]:
        """Return what was seen; figures of the probe end with its operation."""


@dataclass(frozen=True)
class ServiceLevel:
    """``percentile`` of ``operation`` is at most ``most_s`` in the share ``of_minutes`` of all minutes."""

    text: str
    percentile: float
    operation: str
    most_s: float
    of_minutes: float


@dataclass(frozen=True)
class Kept:
    """``bad`` of ``minutes`` were beyond.

    ``budget_left``: of those that may be, 1 when none was, below 0 when it is spent.
    """

    level: ServiceLevel
    minutes: float
    bad: float

    def __add__(self, later: Kept) -> Kept:
        """Return the minutes of both."""
        return replace(self, minutes=self.minutes + later.minutes, bad=self.bad + later.bad)

    @property
    def _allowed(self) -> float:
        """Return how many minutes may be bad: one, before there are so many that one of them may."""
        share = 1 - self.level.of_minutes
        return max(share * self.minutes, 1.0) if share else 0.0

    @property
    def kept(self) -> bool | None:
        """Tell whether it is kept; None where nothing was measured."""
        return None if not self.minutes else self.bad <= self._allowed

    @property
    def budget_left(self) -> float:
        """Return the share of the error budget that is left."""
        return 1 - self.bad / self._allowed if self._allowed else float(self.bad == 0)

    @property
    def budget(self) -> str:
        """Return what is left of the error budget in words."""
        if self.kept or not self._allowed:
            return f"{max(0.0, self.budget_left):.0%} of the error budget is left"
        return f"the error budget is used up {self.bad / self._allowed:.3g} times"

    def __str__(self) -> str:
        """Return it in words."""
        if self.kept is None:
            return f"{self.level.text}: UNKNOWN, nothing was measured"
        seen = f"exceeded in {self.bad:,.0f} of {counted(self.minutes, 'minute')}"
        if self.kept:
            return f"{self.level.text}: PASS, {seen}, {self.budget}"
        return f"{self.level.text}: FAIL, {seen}, {self.budget}"


def parse_service_level(text: str) -> ServiceLevel:
    """Read one. Raises BadInputError.

    >>> level = parse_service_level("p99 of create <= 20 ms in 99 % of minutes")
    >>> level.percentile, level.operation, level.most_s, level.of_minutes
    (0.99, 'create', 0.02, 0.99)
    """
    match = _LEVEL.match(text)
    if not match:
        raise BadInputError(f"not a service level: {text!r}", remedy=_REMEDY)
    percentile, share = float(match[1]) / 100, float(match[4]) / 100
    if not 0 < percentile < 1 or not 0 < share <= 1:
        raise BadInputError(f"not a service level: {text!r}", why="shares are between 0 and 100 %", remedy=_REMEDY)
    if match[3][-1].isdecimal():
        raise BadInputError(f"not a service level: {text!r}", why=f"{match[3]} has no unit", remedy=_REMEDY)
    most_s = parse_seconds(match[3].replace(" ", ""))
    plain = f"p{match[1]} of {match[2]} <= {format_seconds(most_s).replace('.0 ', ' ')} in {match[4]} % of minutes"
    return ServiceLevel(plain, percentile, match[2], most_s, share)


def judge(level: ServiceLevel, rows: Iterable[Minute]) -> Kept:
    """Count the minutes beyond. A row of ten minutes that is beyond counts as ten, one of two directories as one."""
    minutes = bad = 0.0
    for row in rows:
        beyond = _beyond(level, row)
        if beyond is not None:
            minutes += _minutes(row)
            bad += _minutes(row) * beyond
    return Kept(level, minutes, bad)


def used_up_too_fast(level: ServiceLevel, rows: Sequence[Minute], now_s: float) -> str:
    """Return in words why somebody is to be told; empty where nobody is."""
    bad = [row for row in rows if now_s - row.time_s <= _BURN_RATES[-1][0] and _beyond(level, row)]

    def rate(window_s: float) -> tuple[float, float]:
        bad_s = 60 * sum(_minutes(row) for row in bad if now_s - row.time_s <= window_s)
        share = (1 - level.of_minutes) * window_s
        return bad_s, bad_s / share if share else math.inf if bad_s else 0.0

    for long_s, short_s, times in _BURN_RATES:
        bad_s, found = rate(long_s)
        if found >= times and rate(short_s + 60)[1] >= times:
            seen = f"exceeded in {counted(bad_s / 60, 'minute')} of the last {format_duration(long_s)}"
            often = f"{found:.3g} times as often as it may be" if found < math.inf else "where it never may be"
            return f"{level.text}: the error budget is used up too fast, {seen}, {often}"
    return ""


def _minutes(row: Minute) -> float:
    """Return how many it holds: what a watch took longer for a minute makes it no more than one."""
    minutes = row.seconds / 60
    return min(minutes, max(1.0, round(minutes)))


def _beyond(level: ServiceLevel, row: Minute) -> bool | None:
    """Tell whether one of the directories was beyond; None where none was probed."""
    histograms = [
        histogram
        for name, histogram in row.figures.items()
        if name.endswith(f"probe {level.operation}") and histogram.count
    ]
    return any(each.percentile(level.percentile) > level.most_s for each in histograms) if histograms else None
