"""A target that is slow against its equals: seconds of work a request, held against theirs and against its own past.

A target that has more to do is not slow: only the time that each request keeps it busy counts. Nothing is assumed of
how windows depend on each other: the slowest of the last windows has to be beyond the bound, and how sure that is
follows from how many runs of as many windows, of all equals, were not.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from statistics import median

from strakes.units import format_seconds
from strakes.watch.reading import Work
from strakes.watch.values import WatchEvent
from strakes.watch.windows import Window, Windows

# How many times as long as the others', and as its own usual time: nobody asks after less on one day.
TIMES = 3.0
# Below that a difference is felt by nobody.
_LEAST_S = 0.005
_WINDOWS, _WITHOUT_PAST = 3, 6
_FEWEST_REQUESTS = 4.0
_KEPT = 240
_USUAL_FROM = 4


class SlowTargets:
    """Of one group of equals, such as disks of data targets."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._windows = Windows()
        self._deviations: dict[str, deque[float]] = {}
        self._slow_for: dict[str, list[tuple[float, float, float]]] = {}
        self._quiet_for: dict[str, int] = {}
        self.told: dict[str, WatchEvent] = {}
        """Targets that are slow now."""
        self.took: dict[str, float] = {}
        """Seconds of work a request, of those that had enough of them in the last window."""

    def add(self, time_s: float, work: dict[str, Work], names: dict[str, str] | None = None) -> list[WatchEvent]:
        """Take in counters; return what begins and what ends. ``names``: what a member is called besides."""
        window = self._windows.add(time_s, work)
        if window is None:
            return []
        times = {
            name: done.busy_s / done.requests
            for name, done in window.work.items()
            if done.requests >= _FEWEST_REQUESTS and done.busy_s > 0
        }
        self.took = times
        events = []
        for name, took in times.items():
            others = [other for member, other in times.items() if member != name]
            if others and (event := self._judge(name, took, median(others), window, (names or {}).get(name, ""))):
                events.append(event)
        return events

    def _judge(self, name: str, took: float, others: float, window: Window, also: str) -> WatchEvent | None:
        past = self._deviations.setdefault(name, deque(maxlen=_KEPT))
        deviation = math.log(took / others)
        own = math.exp(median(past)) if len(past) >= _USUAL_FROM else 1.0
        slow = took >= TIMES * others * max(own, 1.0) and took >= _LEAST_S
        if name in self.told:
            return self._perhaps_over(name, slow, window)
        if not slow:
            self._slow_for.pop(name, None)
            past.append(deviation)
            return None
        run = self._slow_for.setdefault(name, [])
        run.append((window.began_s, took, others))
        wanted = _WINDOWS if len(past) >= _USUAL_FROM else _WITHOUT_PAST
        return self._tell(name, run, window, also) if len(run) >= wanted else None

    def _tell(self, name: str, run: list[tuple[float, float, float]], window: Window, also: str) -> WatchEvent:
        ratios = sorted(took / others for _, took, others in run)
        quiet = sum(map(len, self._deviations.values())) // _WINDOWS
        took, others = (median(column) for column in list(zip(*run, strict=True))[1:])
        subject = f"{also} ({self._group} {name})" if also else f"{self._group} {name}"
        self.told[name] = WatchEvent(
            "slow-target",
            subject,
            run[0][0],
            window.ended_s,
            f"{subject} is slow: {format_seconds(took)} of work per request, its peers {format_seconds(others)}",
            size=median(ratios),
            low=ratios[0],
            high=ratios[-1],
            unit="times its peers",
            sure=quiet / (quiet + 1),
            evidence={
                "target": also or name,
                "s_per_request": took,
                "equals_s_per_request": others,
                "windows": len(run),
                "quiet_runs": quiet,
            },
        )
        del self._slow_for[name]
        self._quiet_for[name] = 0
        return self.told[name]

    def _perhaps_over(self, name: str, slow: bool, window: Window) -> WatchEvent | None:
        self._quiet_for[name] = 0 if slow else self._quiet_for[name] + 1
        if self._quiet_for[name] < _WINDOWS - 1:
            return None
        event = self.told.pop(name)
        return replace(event, ended_s=window.began_s - (window.ended_s - window.began_s))
