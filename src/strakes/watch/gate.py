"""Compares latencies before and after an event such as an upgrade, by days without their daily seasonality."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from strakes.watch.ring import RingRow

_HOUR_S = 3600.0
# Fewest days on each side, and fewest hours of a day that both sides have.
FEWEST_DAYS, _FEWEST_HOURS = 3, 12
# Hours of a day, and days of a week.
_DAY, _WEEK = 24, 7
# Share of days that is cut off at each end: 20%, so that one bad day in five does not decide.
_TRIMMED = 0.2
# Ratios within 5% of 1 are called SAME.
_MARGIN = 0.05
Verdict = Literal["SLOWER", "FASTER", "SAME", "INCONCLUSIVE"]


@dataclass(frozen=True)
class Gate:
    """``ratio`` of latencies, after / before, with its 90 % interval; ``needs``: the missing data."""

    figure: str
    verdict: Verdict
    ratio: float
    low: float
    high: float
    hours_before: int
    hours_after: int
    needs: str = ""

    def __str__(self) -> str:
        """Return the verdict as text."""
        if math.isnan(self.ratio):
            return f"{self.figure}: {self.verdict}; {self.needs}"
        interval = f"{self.ratio - 1:+.1%} ({self.low - 1:+.1%} to {self.high - 1:+.1%})"
        text = (
            f"{self.figure}: {self.verdict}, latency {interval}; "
            f"{self.hours_before} hours before, {self.hours_after} after"
        )
        return f"{text}; {self.needs}" if self.needs else text


def compare(before: Iterable[RingRow], after: Iterable[RingRow]) -> list[Gate]:
    """Return a verdict for each figure on both sides."""
    earlier, later = _hours(before), _hours(after)
    return [_gate(name, earlier.get(name, {}), later.get(name, {})) for name in sorted({*earlier, *later})]


def _hours(rows: Iterable[RingRow]) -> dict[str, dict[int, float]]:
    """Return figure -> hour -> the median over its rows of the logarithm of the latency."""
    collected: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        for name, histogram in row.figures.items():
            if histogram.count and 0 < (middle := histogram.middle()) < math.inf:
                collected.setdefault(name, {}).setdefault(int(row.time_s // _HOUR_S), []).append(math.log(middle))
    return {name: {hour: median(v) for hour, v in hours.items()} for name, hours in collected.items()}


def _gate(name: str, before: dict[int, float], after: dict[int, float]) -> Gate:
    # Keep the hours of the day that both sides have.
    of_day = {at % _DAY for at in before} & {at % _DAY for at in after}
    sides = [_days({at: value for at, value in side.items() if at % _DAY in of_day}) for side in (before, after)]
    hours = [sum(map(len, side)) for side in sides]
    shortest = min(map(len, sides))
    if shortest < FEWEST_DAYS:
        needs = (
            f"too few days: each side needs {FEWEST_DAYS}, each with at least {_FEWEST_HOURS} hours that the other "
            f"side also has; there are {len(sides[0])} before and {len(sides[1])} after"
        )
        return Gate(name, "INCONCLUSIVE", math.nan, math.nan, math.nan, hours[0], hours[1], needs)
    ratio, low, high = (math.exp(bound) for bound in _difference(*_without_rhythm(sides)))
    needs = ""
    if low >= 1 - _MARGIN and high <= 1 + _MARGIN:
        verdict: Verdict = "SAME"
    elif low > 1 or high < 1:
        verdict = "SLOWER" if low > 1 else "FASTER"
        if shortest < _WEEK:
            needs = "with less than a week on each side a weekend may look like a change"
    else:
        verdict, needs = "INCONCLUSIVE", "more days after the change are needed"
    return Gate(name, verdict, ratio, low, high, hours[0], hours[1], needs)


def _days(hours: Mapping[int, float]) -> list[dict[int, float]]:
    """Return hour of the day -> value for each day with enough hours."""
    days: dict[int, dict[int, float]] = {}
    for at, value in hours.items():
        days.setdefault(at // _DAY, {})[at % _DAY] = value
    return [day for day in days.values() if len(day) >= _FEWEST_HOURS]


def _without_rhythm(sides: Sequence[Sequence[Mapping[int, float]]]) -> list[list[float]]:
    """Return a value for each day of both sides, without the daily seasonality."""
    deviations: dict[int, list[float]] = {}
    for side in sides:
        at_hour = {hour: [day[hour] for day in side if hour in day] for hour in set().union(*side)}
        # Weight each hour equally, even if days are incomplete.
        level = fmean(median(values) for values in at_hour.values())
        for hour, values in at_hour.items():
            deviations.setdefault(hour, []).extend(value - level for value in values)
    rhythm = {hour: median(values) for hour, values in deviations.items()}
    return [[median(value - rhythm[at] for at, value in day.items()) for day in side] for side in sides]


def _difference(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float]:
    """Return after - before and its 90 % interval: trimmed means of days, which are less correlated than hours.

    Yuen, K. K. (1974): The two-sample trimmed t for unequal population variances. Biometrika 61, 165-170.

    >>> values = [0.1, 0.2, 0.3, 0.4, 9.0]
    >>> [round(bound, 2) for bound in _difference(values, [value + 1 for value in values])]
    [1.0, 0.75, 1.25]
    """
    from scipy.stats import trim_mean, ttest_ind

    difference = float(trim_mean(after, _TRIMMED) - trim_mean(before, _TRIMMED))
    # Equal values have no variance, about which scipy warns.
    with warnings.catch_warnings(action="ignore"):
        interval = ttest_ind(after, before, equal_var=False, trim=_TRIMMED).confidence_interval(0.9)
    low, high = (difference if math.isnan(bound) else float(bound) for bound in interval)
    return difference, low, high
