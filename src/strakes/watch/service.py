"""Alarms on service levels: a level that is missed in several successive minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.model.service_level import Minute, ServiceLevel, is_exceeded
from strakes.watch.values import WatchEvent

# Successive minutes beyond a level until its alarm, and within it until the end. A longer-term error budget is computed
# by Prometheus from the metric strakes_watch_service_level_met.
_MINUTES = 5


class ServiceAlarms:
    """Judges each minute. ``met``: 1 or 0 for each level in the last minute."""

    def __init__(self, levels: Sequence[ServiceLevel]) -> None:
        self._levels = levels
        self.met: dict[str, float] = {}
        # Level -> number of successive minutes that contradict its present state.
        self._against: dict[str, int] = {}
        self._open: dict[str, WatchEvent] = {}

    def add(self, row: Minute, now_s: float) -> list[WatchEvent]:
        """Add a minute; return the alarms that begin or end."""
        events = []
        for level in self._levels:
            exceeded = is_exceeded(level, row)
            if exceeded is None:
                continue
            text = level.text
            self.met[text] = float(not exceeded)
            known = self._open.get(text)
            self._against[text] = self._against.get(text, 0) + 1 if exceeded == (known is None) else 0
            if self._against[text] < _MINUTES:
                continue
            self._against[text] = 0
            if known is None:
                began_s = row.time_s - 60 * (_MINUTES - 1)
                why = f"{text}: exceeded in each of the last {_MINUTES} minutes"
                self._open[text] = WatchEvent("service-level", text, began_s, now_s, why)
                events.append(self._open[text])
            else:
                del self._open[text]
                ended_s = max(known.began_s, now_s - 60 * _MINUTES)
                events.append(replace(known, told_s=now_s, ended_s=ended_s, text=f"{text}: met again"))
        return events
