"""What a figure usually is at this hour of this day of the week, learned robustly and in bounded memory."""

from __future__ import annotations

import math

HOUR_S = 3600.0
_HOURS, _WEEK = 24, 168
# A cell is taken as much for true as it has values, against this many that say nothing.
_DOUBT = 8.0
# What has been learned is forgotten with this many values of one cell.
_MEMORY = 26.0
# A value further off than that many spreads teaches no more than one that is so far off.
_FAR = 2.0


class Rhythm:
    """Two tables, of the hour and of the hour of the week: each is what the one before leaves open."""

    def __init__(self) -> None:
        self._hours = [0.0] * _HOURS
        self._hours_seen = [0.0] * _HOURS
        self._weeks = [0.0] * _WEEK
        self._weeks_seen = [0.0] * _WEEK
        self._spread = 0.0
        self._mean_hours = self._mean_weeks = 0.0

    def expected(self, time_s: float) -> float:
        """Return how far from its level the figure usually is at that time."""
        hour, week = _cells(time_s)
        # The rhythm is about its own mean: a level is none of it.
        of_hour = _shrunk(self._hours, self._hours_seen, hour) - self._mean_hours
        return of_hour + _shrunk(self._weeks, self._weeks_seen, week) - self._mean_weeks

    def learn(self, time_s: float, deviation: float) -> None:
        """Take in how far the figure was from its level."""
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
    """Return the mean of what the cells say, each as often as it was seen."""
    return sum(_shrunk(table, seen, cell) * seen[cell] for cell in range(len(table))) / sum(seen)


def _update(table: list[float], seen: list[float], cell: int, value: float) -> None:
    seen[cell] = min(seen[cell] + 1.0, _MEMORY)
    table[cell] += (value - table[cell]) / seen[cell]
