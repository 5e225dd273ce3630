"""Compares latencies before and after an event such as an upgrade, by days without their daily seasonality."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from strakes.watch.ring import RingRow
from strakes.watch.values import Numbers

_HOUR_S = 3600.0
# Fewest days on each side, and fewest hours of a day that both sides have.
FEWEST_DAYS, _FEWEST_HOURS = 3, 12
_DAY, _WEEK = 24, 7
_TRIMMED = 0.2
MARGIN = 0.05
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


def compare(before: Iterable[RingRow], after: Iterable[RingRow], margin: float = MARGIN) -> list[Gate]:
    """Return a verdict for each figure on both sides."""
    earlier, later = _hours(before), _hours(after)
    return [_gate(name, earlier.get(name, {}), later.get(name, {}), margin) for name in sorted({*earlier, *later})]


def _hours(rows: Iterable[RingRow]) -> dict[str, dict[int, float]]:
    collected: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        for name, histogram in row.figures.items():
            if histogram.count and 0 < (middle := histogram.middle()) < math.inf:
                collected.setdefault(name, {}).setdefault(int(row.time_s // _HOUR_S), []).append(math.log(middle))
    return {name: {hour: float(np.median(v)) for hour, v in hours.items()} for name, hours in collected.items()}


def _gate(name: str, before: dict[int, float], after: dict[int, float], margin: float) -> Gate:
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
    if low >= 1 - margin and high <= 1 + margin:
        verdict: Verdict = "SAME"
    elif low > 1:
        verdict = "SLOWER"
    elif high < 1:
        verdict = "FASTER"
    else:
        verdict = "INCONCLUSIVE"
    needs = "more days after the change are needed" if verdict == "INCONCLUSIVE" else ""
    if shortest < _WEEK and verdict in ("SLOWER", "FASTER"):
        needs = "with less than a week on each side a weekend may look like a change"
    return Gate(name, verdict, ratio, low, high, hours[0], hours[1], needs)


def _days(hours: Mapping[int, float]) -> list[dict[int, float]]:
    """Return hour of the day -> value for each day with enough hours."""
    days: dict[int, dict[int, float]] = {}
    for at, value in hours.items():
        days.setdefault(at // _DAY, {})[at % _DAY] = value
    return [day for day in days.values() if len(day) >= _FEWEST_HOURS]


def _without_rhythm(sides: Sequence[Sequence[Mapping[int, float]]]) -> list[Numbers]:
    """Return a value for each day of both sides, without the daily seasonality."""
    at_hours = []
    for side in sides:
        at_hour = {hour: [day[hour] for day in side if hour in day] for hour in set().union(*side)}
        # Weight each hour equally, even if days are incomplete.
        level = float(np.mean([np.median(values) for values in at_hour.values()]))
        at_hours.append({hour: [value - level for value in values] for hour, values in at_hour.items()})
    rhythm = {
        hour: float(np.median([value for at_hour in at_hours for value in at_hour.get(hour, [])]))
        for hour in set().union(*at_hours)
    }
    return [np.array([np.median([value - rhythm[at] for at, value in day.items()]) for day in side]) for side in sides]


def _difference(before: Numbers, after: Numbers) -> tuple[float, float, float]:
    """Return after - before and its 90 % interval: trimmed means of days, which are less correlated than hours.

    Yuen, K. K. (1974): The two-sample trimmed t for unequal population variances. Biometrika 61, 165-170.

    >>> values = np.array([0.1, 0.2, 0.3, 0.4, 9.0])
    >>> [round(bound, 2) for bound in _difference(values, values + 1)]
    [1.0, 0.75, 1.25]
    """
    from scipy.stats import t as student

    means, errors2, freedoms = [], [], []
    for values in (before, after):
        count, cut = len(values), int(_TRIMMED * len(values))
        ordered = np.sort(values)
        kept = count - 2 * cut
        spread2 = np.var(np.clip(ordered, ordered[cut], ordered[-1 - cut]), ddof=1)
        means.append(float(ordered[cut : count - cut].mean()))
        errors2.append(float((count - 1) * spread2 / (kept * (kept - 1))))
        freedoms.append(kept - 1)
    error2 = sum(errors2)
    difference = means[1] - means[0]
    if not error2:
        return difference, difference, difference
    freedom = error2**2 / sum(each**2 / free for each, free in zip(errors2, freedoms, strict=True))
    reach = float(student.ppf(0.95, freedom)) * math.sqrt(error2)
    return difference, difference - reach, difference + reach
