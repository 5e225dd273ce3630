"""Detect level shifts of one metric on a logarithmic or linear scale, after removing daily and weekly seasonality."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from typing import Literal

from strakes.stats.change import LEARN, REACH, Change, Detector, Grade
from strakes.watch.values import WatchEvent

HOUR_S = 3600.0
MONTH_S = 30.4375 * 86400.0
# A value enters the seasonality after this number of newer values. Half the number would let in more of a level shift.
_LEARNED_AFTER = 8
_SMALLEST_CHANGE = 0.05  # Changes below 5% are not reported.


class LevelDetector:
    """Detector of level shifts of the metric ``name``.

    ``alarms_a_month``: accepted number of false level shifts per month. ``worse_up``: higher values are worse.
    """

    def __init__(
        self, name: str, alarms_a_month: float, scale: Literal["log", "plain"] = "log", *, worse_up: bool = False
    ) -> None:
        self.alarms_a_month = alarms_a_month
        self._name, self._scale, self._worse_up = name, scale, worse_up
        self._changes = Detector(0.0)
        self._rhythm: Rhythm | None = None
        self._times: deque[float] = deque(maxlen=16 * REACH)
        self._count = 0
        self._waiting: deque[tuple[float, float]] = deque(maxlen=LEARN)
        self._lowest = math.inf
        self._confirmed: Change | None = None
        self._open: dict[Grade, WatchEvent] = {}

    def add(self, time_s: float, value: float) -> list[WatchEvent]:
        """Add a value. Return events for a detected change, and for the end of an earlier one.

        Ignores infinite values and NaN and, on a logarithmic scale, values of zero or below.
        """
        if not math.isfinite(value) or (self._scale == "log" and value <= 0):
            return []
        self._lowest = min(self._lowest, value)
        figure = math.log(value) if self._scale == "log" else value
        self._times.append(time_s)
        self._count += 1
        seconds_per_value = (time_s - self._times[0]) / max(len(self._times) - 1, 1)
        self._learn(time_s, figure, seconds_per_value)
        self._changes.alarms_per_value = self.alarms_a_month * seconds_per_value / MONTH_S
        change = self._changes.add(figure - (self._rhythm.expected(time_s) if self._rhythm else 0.0))
        if change is None:
            return self._ended("early", time_s) if self._changes.early is None else []
        ended = []
        if change.grade == "confirmed":
            ended = self._ended("early", time_s)
            self._waiting.clear()
            known, self._confirmed = self._confirmed, change
            if known is not None and _is_back(known, change):
                ended += self._ended("confirmed", self._time(change.begin))
                # A lasting improvement has become the usual level. If it ends, report a new change for the worse.
                if (known.size < 0) != self._worse_up or change.begin - known.begin < REACH:
                    self._confirmed = None
                    return ended
        event = self._event(change, time_s)
        if event is None:
            return ended
        self._open[change.grade] = event
        return [*ended, event]

    def _ended(self, grade: Grade, ended_s: float) -> list[WatchEvent]:
        event = self._open.pop(grade, None)
        return [replace(event, ended_s=max(ended_s, event.began_s))] if event else []

    def _time(self, index: int) -> float:
        return self._times[max(0, index - self._count + len(self._times))]

    def _learn(self, time_s: float, figure: float, seconds_per_value: float) -> None:
        """Update the seasonality. Series with values over an hour apart get no seasonality (docs/watch.md)."""
        self._waiting.append((time_s, figure))
        if self._rhythm is not None:
            if len(self._waiting) > _LEARNED_AFTER and self._changes.early is None:
                at_s, known = self._waiting.popleft()
                self._rhythm.learn(at_s, known - self._changes.level)
        elif self._count == LEARN and seconds_per_value <= HOUR_S:
            self._rhythm = Rhythm()
            level = sorted(each for _, each in self._waiting)[LEARN // 2]
            for at_s, each in self._waiting:
                self._rhythm.learn(at_s, each - level)
            self._waiting.clear()

    def _event(self, change: Change, told_s: float) -> WatchEvent | None:
        """Return the event of a change, or None if the change is below 5 %.

        Its size is the ratio of the new level to the old level, or the difference if the old level is below the noise.
        """
        before, after, low, high = change.before, change.after, change.low, change.high
        if self._scale == "plain" and self._lowest >= 0:
            # Subtracting the seasonality can make a level negative even if no value is negative, so limit it to 0.
            before, after = max(before, 0.0), max(after, 0.0)
            low, high = min(max(low, -before), after - before), max(high, after - before)
        sizes = [after - before, low, high]
        relative = self._scale == "log" or before > self._changes.scale
        if self._scale == "log":
            sizes = [math.exp(min(size, 700.0)) for size in sizes]  # exp(710) would overflow
            before, after = math.exp(before), math.exp(after)
        elif relative:
            sizes = [1 + size / before for size in sizes]
        growth = sizes[0] - 1 if relative else sizes[0]
        if abs(growth) < _SMALLEST_CHANGE * (1.0 if relative else max(abs(before), abs(after))):
            return None
        by, least, most = (_change(size, relative=relative) for size in sizes)
        text = f"{self._name} changed by {by} ({least} to {most}), from {before:.4g} to {after:.4g}"
        return WatchEvent(
            "level" if change.grade == "confirmed" else "early-warning",
            self._name,
            self._time(change.begin),
            told_s,
            text,
            size=sizes[0],
            low=sizes[1],
            high=sizes[2],
            unit="ratio" if relative else "difference",
            gain=(growth < 0) == self._worse_up,
            evidence={"before": before, "after": after, "grade": change.grade},
        )


def _is_back(known: Change, change: Change) -> bool:
    return change.size * known.size < 0 and 2 * abs(change.after - known.before) < abs(known.size)


def _change(size: float, *, relative: bool) -> str:
    """Format a change with its sign. With ``relative``, ``size`` is the ratio new / old, and the text is in percent."""
    if not relative:
        return f"{size:+.4g}" if size else "0"
    return f"{size - 1:+.0%}" if abs(size - 1) >= 0.005 else "0%"


_CYCLES_H = (24, 168)
# Weight of the prior (no seasonality) as a number of values. After 8 values, half of the seasonality is learned.
_PRIOR_VALUES = 8.0
# Number of past values that a mean remembers. Doubling the number halves the speed of adaptation.
_MEMORY_VALUES = 26.0
# Deviations from the level are clipped at this multiple of their mean absolute value. In normal noise, 11 % are larger.
_CLIP = 2.0


class Rhythm:
    """Seasonality: mean deviation from the level by hour of the day, plus mean residual by hour of the week."""

    def __init__(self) -> None:
        self._means = [[0.0] * hours for hours in _CYCLES_H]
        self._seen = [[0.0] * hours for hours in _CYCLES_H]
        self._offsets = [0.0] * len(_CYCLES_H)
        self._spread = 0.0

    def expected(self, time_s: float) -> float:
        """Return the expected deviation from the level at ``time_s``."""
        hour = math.floor(time_s / HOUR_S)
        # The mean seasonality must be 0. Otherwise it would absorb part of the level.
        return sum(self._shrunk(cycle, hour % hours) - self._offsets[cycle] for cycle, hours in enumerate(_CYCLES_H))

    def learn(self, time_s: float, deviation: float) -> None:
        """Update the means with a deviation from the level at ``time_s``."""
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
