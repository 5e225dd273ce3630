"""Saturation: space, inodes and locks that are nearly exhausted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strakes.watch.values import WatchEvent

_FULL, _LOCKS = 0.90, 0.90
# Hysteresis: an event ends at this much below its bound.
_LESS = 0.03
# With longer gaps between readings the onset is unknown.
_SELDOM_S = 300.0


class SaturationDetector:
    """Compares shares of capacity with bounds."""

    def __init__(self) -> None:
        self._told: dict[str, WatchEvent] = {}
        # Subject -> last time below its bound.
        self._less_s: dict[str, float] = {}

    def add(self, time_s: float, full: Mapping[str, float], locks: Mapping[str, float]) -> list[WatchEvent]:
        """Add shares; return the events that begin and end."""
        return [
            *self._bounds(time_s, full, _FULL, "{} is {:.0%} full"),
            *self._bounds(time_s, locks, _LOCKS, "{} has given out {:.0%} of its locks"),
        ]

    def _bounds(self, time_s: float, shares: Mapping[str, float], bound: float, words: str) -> list[WatchEvent]:
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
                    between_s,
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
