"""Differences of counters over windows of at least 15 s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from strakes.watch.reading import OfKind, Work

# Shorter windows hold too few requests for a comparison.
WINDOW_S = 15.0
_NONE = OfKind(0.0, 0.0)


@dataclass(frozen=True)
class Window:
    """Differences between two readings of one source."""

    began_s: float
    ended_s: float
    work: Mapping[str, Work]

    @property
    def seconds(self) -> float:
        """Return the length in seconds."""
        return self.ended_s - self.began_s


class Windows:
    """Cuts the counters of one group into windows.

    A counter that was reset counts from zero; a clock step ends the window.
    """

    def __init__(self, least_s: float = WINDOW_S) -> None:
        self._least_s = least_s
        self._first: tuple[float, Mapping[str, Work]] | None = None

    def add(self, time_s: float, work: Mapping[str, Work]) -> Window | None:
        """Add counters; return the window that they complete, if any."""
        if self._first is None or not 0 <= time_s - self._first[0] <= 20 * self._least_s:
            self._first = (time_s, work)
            return None
        began_s, before = self._first
        if time_s - began_s < self._least_s:
            return None
        self._first = (time_s, work)
        return Window(
            began_s, time_s, {name: _since(before[name], now) for name, now in work.items() if name in before}
        )


def grown(before: float, now: float) -> float:
    """Return the increase of a counter that may have been reset.

    >>> grown(10.0, 12.0), grown(10.0, 3.0)
    (2.0, 3.0)
    """
    return now - before if now >= before else now


def _since(before: Work, now: Work) -> Work:
    if now.requests < before.requests:
        return now
    kinds = {
        kind: done.since(earlier)
        for kind, done in now.kinds.items()
        if done.requests > (earlier := before.kinds.get(kind, _NONE)).requests
    }
    return Work(
        now.requests - before.requests,
        max(0.0, now.busy_s - before.busy_s),
        kinds,
    )
