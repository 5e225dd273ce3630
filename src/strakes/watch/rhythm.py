"""Daily and weekly seasonality of a figure, learned robustly and in bounded memory."""

from __future__ import annotations

import math

HOUR_S = 3600.0
_HOURS, _WEEK = 24, 168
# Weight of the prior (no seasonality) in values: a cell is shrunk by n / (n + 8).
_DOUBT = 8.0
# Memory of a cell in values: half a year of weeks.
_MEMORY = 26.0
# Deviations are clipped at this many spreads before a cell learns them.
_FAR = 2.0


class Rhythm:
    """Means for each hour of the day, and for each hour of the week their residuals."""

    def __init__(self) -> None:
        self._hours = [0.0] * _HOURS
        self._hours_seen = [0.0] * _HOURS
        self._weeks = [0.0] * _WEEK
        self._weeks_seen = [0.0] * _WEEK
        self._spread = 0.0
        self._mean_hours = self._mean_weeks = 0.0

    def expected(self, time_s: float) -> float:
        """Return the expected deviation from the level at this time."""
        hour, week = _cells(time_s)
        # Subtract the mean so that the seasonality does not absorb the level.
        of_hour = _shrunk(self._hours, self._hours_seen, hour) - self._mean_hours
        return of_hour + _shrunk(self._weeks, self._weeks_seen, week) - self._mean_weeks

    def learn(self, time_s: float, deviation: float) -> None:
        """Learn a deviation from the level."""
        hour, week = _cells(time_s)
        self._spread += (abs(deviation) - self._spread) * 0.02 if self._spread else abs(deviation)
        far = _FAR * max(self._spread, 1e-12)
        known = _shrunk(self._hours, self._hours_seen, hour)
        _update(self._hours, self._hours_seen, hour, min(max(deviation, -far), far))
        rest = deviation - known
        _update(self._weeks, self._weeks_seen, week, min(max(rest, -far), far))
        self._mean_hours = _mean(self._hours, self._hours_seen)
        self._mean_weeks = _mean(self._weeks, self._weeks_seen)


def _cells(time_s: float) -> tuple[int, int]:
    hour = math.floor(time_s / HOUR_S)
    return hour % _HOURS, hour % _WEEK


def _shrunk(table: list[float], seen: list[float], cell: int) -> float:
    return table[cell] * seen[cell] / (seen[cell] + _DOUBT)


def _mean(table: list[float], seen: list[float]) -> float:
    """Return the mean over the cells, weighted by their numbers of values."""
    return sum(_shrunk(table, seen, cell) * seen[cell] for cell in range(len(table))) / sum(seen)


def _update(table: list[float], seen: list[float], cell: int, value: float) -> None:
    seen[cell] = min(seen[cell] + 1.0, _MEMORY)
    table[cell] += (value - table[cell]) / seen[cell]
