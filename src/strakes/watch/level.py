"""Level shifts of one figure on a logarithmic or plain scale, without its daily and weekly seasonality."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal

from strakes.stats.change import LEARN, Change, Detector, Grade

HOUR_S = 3600.0
MONTH_S = 30.4375 * 86400.0
# The seasonality learns a value after this many further ones, if no change began meanwhile. Doubled, it
# learns twice as late.
_LEARNED_AFTER = 8
# Changes below 5% are not reported.
_SMALLEST_CHANGE = 0.05


@dataclass(frozen=True)
class LevelChange:
    """A change of level; ``ratio`` is after / before.

    A change from a level that is not clearly above zero is not ``relative``: ``ratio`` is 1 plus the difference.
    """

    began_s: float
    told_s: float
    ratio: float
    low: float
    high: float
    before: float
    after: float
    relative: bool
    grade: Grade


@dataclass(frozen=True)
class LevelEnd:
    """The last change of this grade ended at ``ended_s``: the old level is back, or the warning was false."""

    ended_s: float
    grade: Grade


class LevelDetector:
    """Detects level shifts. ``alarms_a_month``: accepted number of false changes of this figure, to both sides."""

    def __init__(self, alarms_a_month: float, scale: Literal["log", "plain"] = "log") -> None:
        self.alarms_a_month = alarms_a_month
        self._scale = scale
        self._changes = Detector(0.0)
        self._rhythm: Rhythm | None = None
        self._times: list[float] = []
        self._first: list[float] = []
        self._waiting: deque[tuple[float, float]] = deque(maxlen=_LEARNED_AFTER + 1)
        self._dropped = 0
        self._lowest = math.inf
        self._confirmed: Change | None = None
        self._warned = False

    def add(self, time_s: float, value: float) -> LevelChange | LevelEnd | None:
        """Add a value; return a change or an end that it shows.

        Values that are not finite, or not above zero on a logarithmic scale, are ignored.
        """
        if not math.isfinite(value) or (self._scale == "log" and value <= 0):
            return None
        self._lowest = min(self._lowest, value)
        figure = math.log(value) if self._scale == "log" else value
        self._keep(time_s)
        self._learn(time_s, figure)
        self._changes.alarms_per_value = self.alarms_a_month * self._seconds_per_value() / MONTH_S
        rest = figure - (self._rhythm.expected(time_s) if self._rhythm else 0.0)
        change = self._changes.add(rest)
        if change is None:
            if self._warned and self._changes.early is None:
                self._warned = False
                return LevelEnd(time_s, "early")
            return None
        if change.grade == "confirmed":
            self._warned = False
            self._waiting.clear()
            known, self._confirmed = self._confirmed, change
            if known is not None and _is_back(known, change):
                self._confirmed = None
                return LevelEnd(self._time(change.begin), "confirmed")
        reported = self._reported(change)
        self._warned |= reported is not None and change.grade == "early"
        return reported

    def _keep(self, time_s: float) -> None:
        self._times.append(time_s)
        if len(self._times) > 1024:
            del self._times[:512]
            self._dropped += 512

    def _time(self, index: int) -> float:
        return self._times[max(0, index - self._dropped)]

    def _seconds_per_value(self) -> float:
        return (self._times[-1] - self._times[0]) / max(len(self._times) - 1, 1)

    def _learn(self, time_s: float, figure: float) -> None:
        """Update the seasonality; the first values are learned together, once their level is known.

        Values more than an hour apart have no seasonality: for the daily values of docs/watch.md it lowers precision.
        """
        if self._rhythm is not None:
            self._waiting.append((time_s, figure))
            if len(self._waiting) > _LEARNED_AFTER and self._changes.early is None:
                at_s, known = self._waiting.popleft()
                self._rhythm.learn(at_s, known - self._changes.level)
            return
        if len(self._first) == LEARN:
            return
        self._first.append(figure)
        if len(self._first) == LEARN and self._seconds_per_value() <= HOUR_S:
            self._rhythm = Rhythm()
            level = sorted(self._first)[LEARN // 2]
            for at_s, each in zip(self._times, self._first, strict=True):
                self._rhythm.learn(at_s, each - level)

    def _reported(self, change: Change) -> LevelChange | None:
        before, after, low, high = change.before, change.after, change.low, change.high
        if self._scale == "plain" and self._lowest >= 0:
            # Without the seasonality, values can become negative.
            before, after = max(before, 0.0), max(after, 0.0)
            low, high = min(max(low, -before), after - before), max(high, after - before)
        relative = self._scale == "log" or before > self._changes.scale
        sizes = [after - before, low, high]
        if self._scale == "log":
            ratios = [math.exp(min(size, 700.0)) for size in sizes]
            before, after = math.exp(before), math.exp(after)
        else:
            ratios = [1 + size / (before if relative else 1.0) for size in sizes]
        smallest = _SMALLEST_CHANGE * (1.0 if relative else max(abs(before), abs(after)))
        if abs(ratios[0] - 1) < smallest:
            return None
        began_s, told_s = self._time(change.begin), self._time(change.seen)
        ratio, low, high = ratios
        return LevelChange(began_s, told_s, ratio, low, high, before, after, relative, change.grade)


def _is_back(known: Change, change: Change) -> bool:
    """Return whether a change reverses more than half of the previous one."""
    return change.size * known.size < 0 and 2 * abs(change.after - known.before) < abs(known.size)


# Cells of the seasonality: the hours of a day, and the hours of a week.
_CYCLES_H = (24, 168)
# Values of prior weight (no seasonality): a cell is shrunk by n / (n + 8). Doubled, half of a
# deviation is learned after 16 values instead of 8.
_PRIOR_VALUES = 8.0
# Values that a cell remembers: half a year of weeks. Doubled, it follows a new rhythm half as fast.
_MEMORY_VALUES = 26.0
# Mean deviations at which a cell clips what it learns. Doubled, one outlier moves a cell by twice the distance.
_CLIP = 2.0


class Rhythm:
    """Seasonality: means for each hour of the day, and of their residuals for each hour of the week."""

    def __init__(self) -> None:
        self._means = [[0.0] * hours for hours in _CYCLES_H]
        self._seen = [[0.0] * hours for hours in _CYCLES_H]
        self._offsets = [0.0] * len(_CYCLES_H)
        self._spread = 0.0

    def expected(self, time_s: float) -> float:
        """Return the expected deviation from the level at this time."""
        hour = math.floor(time_s / HOUR_S)
        # Subtract the mean so that the seasonality does not absorb the level.
        return sum(self._shrunk(cycle, hour % hours) - self._offsets[cycle] for cycle, hours in enumerate(_CYCLES_H))

    def learn(self, time_s: float, deviation: float) -> None:
        """Learn a deviation from the level."""
        hour = math.floor(time_s / HOUR_S)
        self._spread += (abs(deviation) - self._spread) * 0.02 if self._spread else abs(deviation)
        far = _CLIP * max(self._spread, 1e-12)
        for cycle, hours in enumerate(_CYCLES_H):
            cell, means, seen = hour % hours, self._means[cycle], self._seen[cycle]
            rest = deviation - self._shrunk(cycle, cell)
            seen[cell] = min(seen[cell] + 1.0, _MEMORY_VALUES)
            means[cell] += (min(max(deviation, -far), far) - means[cell]) / seen[cell]
            self._offsets[cycle] = sum(self._shrunk(cycle, at) * seen[at] for at in range(hours)) / sum(seen)
            deviation = rest

    def _shrunk(self, cycle: int, cell: int) -> float:
        seen = self._seen[cycle][cell]
        return self._means[cycle][cell] * seen / (seen + _PRIOR_VALUES)
