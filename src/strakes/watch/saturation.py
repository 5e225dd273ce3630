"""Saturation: space, inodes and locks that are nearly exhausted, and disks that are always busy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strakes.watch.reading import Work
from strakes.watch.values import WatchEvent
from strakes.watch.windows import Windows

_FULL, _LOCKS, _BUSY = 0.90, 0.90, 0.95
# Hysteresis: an event ends at this much below its bound.
_LESS = 0.03
# A disk is reported after this time.
_BUSY_FOR_S = 180.0
# With longer gaps between readings the onset is unknown.
_SELDOM_S = 300.0


class SaturationDetector:
    """Compares shares of capacity with bounds."""

    def __init__(self) -> None:
        self._told: dict[str, WatchEvent] = {}
        # Subject -> last time below its bound.
        self._less_s: dict[str, float] = {}
        self._windows = Windows()
        self._busy_since: dict[str, float] = {}
        self._busy_until_s = 0.0

    def add(self, time_s: float, full: Mapping[str, float], locks: Mapping[str, float]) -> list[WatchEvent]:
        """Add shares; return the events that begin and end."""
        return [
            *self._bounds(time_s, full, _FULL, "{} is {:.0%} full"),
            *self._bounds(time_s, locks, _LOCKS, "{} has given out {:.0%} of its locks"),
        ]

    def disks(self, time_s: float, disks: dict[str, Work], explained: frozenset[str]) -> list[WatchEvent]:
        """Add the counters of disks. Disks in ``explained`` are slow, and are reported as such elsewhere."""
        window = self._windows.add(time_s, disks)
        if window is None:
            return []
        if window.began_s != self._busy_until_s:
            # The windows do not adjoin, so the time between them is unknown.
            self._busy_since.clear()
        self._busy_until_s = window.ended_s
        lasting, since = {}, {}
        for name, work in window.work.items():
            subject, share = f"disk {name}", min(1.0, work.busy_s / window.seconds)
            if share >= _BUSY and name not in explained:
                since[subject] = self._busy_since.setdefault(name, window.began_s)
            else:
                self._busy_since.pop(name, None)
            long = window.ended_s - since.get(subject, time_s) >= _BUSY_FOR_S
            lasting[subject] = share if long or subject in self._told else 0.0
        return self._bounds(time_s, lasting, _BUSY, "{} is busy {:.0%} of the time", since)

    def _bounds(
        self,
        time_s: float,
        shares: Mapping[str, float],
        bound: float,
        words: str,
        since: Mapping[str, float] | None = None,
    ) -> list[WatchEvent]:
        events = []
        for subject, share in shares.items():
            told = self._told.get(subject)
            if told is None and share >= bound:
                text = words.format(subject, share)
                less_s = self._less_s.get(subject, time_s)
                between_s = (less_s + time_s) / 2 if 0 <= time_s - less_s <= _SELDOM_S else time_s
                told = WatchEvent(
                    "saturation",
                    subject,
                    between_s if since is None else since.get(subject, time_s),
                    time_s,
                    text,
                    size=share,
                    unit="share",
                    evidence={"bound": bound},
                )
                self._told[subject] = told
                events.append(told)
            elif told is not None and share < bound - _LESS:
                del self._told[subject]
                events.append(replace(told, ended_s=time_s))
            if share < bound:
                self._less_s[subject] = time_s
        return events
