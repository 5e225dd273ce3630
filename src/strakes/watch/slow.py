"""Find slow targets by their service time per request.

A target is slow if, in consecutive windows, its service time is several times its usual time and its peers' time.
Peers are compared for the same mixture of request types. For larger requests, a proportionally longer time is
expected. One standard error is subtracted from the service time, if its variance is known. The first report after
n normal windows has the confidence n / (n + 1).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from strakes.base.units import format_seconds
from strakes.watch.reading import LONGEST_S, WINDOW_S, OfKind, Work
from strakes.watch.values import WatchEvent

# A target is slow at this multiple of its usual service time and of its peers' service time. A multiple of 1.5 gives
# the same results in tests/watch. Double the multiple misses two targets that take six times as long as their peers.
TIMES = 3.0
_LEAST_S = 0.001  # Minimum service time of a slow target. Caches and interrupts may more than triple shorter times.
_WINDOWS, _WITHOUT_PAST = 3, 6
# Minimum number of requests in a window. A mean of 4 values has a standard error of half the standard deviation.
_FEWEST_REQUESTS = 4.0
# Maximum number of stored windows (memory grows in proportion). A usual service time needs at least 4 windows.
_KEPT, _USUAL_FROM = 240, 4
_APART_S = 4 * WINDOW_S  # Maximum between two slow windows of one event. In some, no request may complete.


class SlowTargets:
    """Detector of slow members of a group of similar devices, such as the disks of data targets."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._first: tuple[float, Mapping[str, Work]] | None = None
        self._deviations: dict[str, deque[float]] = {}
        self._slow_for: dict[str, list[tuple[float, _Compared]]] = {}
        self._quiet_for: dict[str, int] = {}
        self.told: dict[str, WatchEvent] = {}
        """Member -> its event, while the member is slow."""
        self.took: dict[str, float] = {}
        """Member -> its service time in the last window in seconds, if it had enough requests."""

    def add(self, time_s: float, work: dict[str, Work], targets: Mapping[str, str] | None = None) -> list[WatchEvent]:
        """Add counters. Return events that begin or end. ``targets``: mapping of disk to target."""
        if self._first is None or not 0 <= time_s - self._first[0] <= LONGEST_S:
            self._first = (time_s, work)
            return []
        began_s, before = self._first
        if time_s - began_s < WINDOW_S:
            return []
        self._first = (time_s, work)
        since = {name: now.since(before[name]) for name, now in work.items() if name in before}
        enough = {name: done for name, done in since.items() if done.requests >= _FEWEST_REQUESTS and done.busy_s > 0}
        self.took = {name: done.busy_s / done.requests for name, done in enough.items()}
        all_of = _by_kind(enough.values())
        events = []
        for name, done in enough.items():
            compared, target = _compared(done, all_of), (targets or {}).get(name, name)
            if compared and (event := self._judge(name, compared, target, began_s, time_s)):
                events.append(event)
        return events

    def _judge(self, name: str, compared: _Compared, target: str, began_s: float, ended_s: float) -> WatchEvent | None:
        took, others = compared.took_s, compared.others_s
        past = self._deviations.setdefault(name, deque(maxlen=_KEPT))
        deviation = math.log(took / others)
        own = math.exp(median(past)) if len(past) >= _USUAL_FROM else 1.0
        # To begin an event, subtract the standard error from the service time. To end an event, do not subtract it.
        sure = took if name in self.told else compared.least_s
        slow = sure >= TIMES * others * max(own, 1.0) and took >= _LEAST_S
        if name in self.told:
            self._quiet_for[name] = 0 if slow else self._quiet_for[name] + 1
            if self._quiet_for[name] < _WINDOWS - 1:
                return None
            return replace(self.told.pop(name), ended_s=began_s - (ended_s - began_s))
        if not slow:
            self._slow_for.pop(name, None)
            past.append(deviation)
            return None
        run = self._slow_for.get(name, [])
        if not run or began_s - run[-1][0] > _APART_S:
            run = self._slow_for[name] = []
        run.append((began_s, compared))
        wanted = _WINDOWS if len(past) >= _USUAL_FROM else _WITHOUT_PAST
        return self._tell(name, run, target, ended_s) if len(run) >= wanted else None

    def _tell(self, name: str, run: list[tuple[float, _Compared]], target: str, ended_s: float) -> WatchEvent:
        subject = f"{self._group} {name}"
        if name != target:
            subject = f"{target} ({self._group} {name.rpartition(' ')[2]})"
        ratios = sorted(times.took_s / times.others_s for _, times in run)
        quiet = sum(map(len, self._deviations.values())) // _WINDOWS
        took, others = (median(getattr(times, each) for _, times in run) for each in ("took_s", "others_s"))
        self.told[name] = WatchEvent(
            "slow-target",
            subject,
            run[0][0],
            ended_s,
            f"{subject} is slow: {format_seconds(took)} of work per request, its peers {format_seconds(others)}",
            size=median(ratios),
            low=ratios[0],
            high=ratios[-1],
            unit="times its peers",
            sure=quiet / (quiet + 1),
            evidence={
                "target": target,
                "s_per_request": took,
                "equals_s_per_request": others,
                "windows": len(run),
                "quiet_runs": quiet,
            },
        )
        del self._slow_for[name]
        self._quiet_for[name] = 0
        return self.told[name]


@dataclass(frozen=True)
class _Compared:
    took_s: float
    least_s: float
    others_s: float


@dataclass
class _OfAll:
    took_s: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    requests: float = 0.0

    def others_s(self, done: OfKind) -> float:
        size = done.moved / done.requests
        others_size = _median_without(self.sizes, size)
        larger = max(1.0, size / others_size) if others_size else 1.0
        return larger * _median_without(self.took_s, done.busy_s / done.requests)


def _median_without(ordered: Sequence[float], one: float) -> float:
    at = bisect_left(ordered, one)
    count = len(ordered) - 1
    low, high = (ordered[each + (each >= at)] for each in ((count - 1) // 2, count // 2))
    return (low + high) / 2


def _kinds(work: Work) -> Mapping[str, OfKind]:
    return work.kinds or {"": OfKind(work.requests, work.busy_s)}


def _by_kind(members: Iterable[Work]) -> dict[str, _OfAll]:
    all_of: dict[str, _OfAll] = {}
    for member in members:
        for kind, done in _kinds(member).items():
            of_all = all_of.setdefault(kind, _OfAll())
            of_all.took_s.append(done.busy_s / done.requests)
            of_all.sizes.append(done.moved / done.requests)
            of_all.requests += done.requests
    for of_all in all_of.values():
        of_all.took_s.sort()
        of_all.sizes.sort()
    return all_of


def _compared(one: Work, all_of: Mapping[str, _OfAll]) -> _Compared | None:
    """Return the service times of a target and of its peers, or None with too few comparable requests.

    >>> syncs, opens = Work(8, 24, kinds={"sync": OfKind(8, 24, 72)}), Work(9, 9, kinds={"open": OfKind(9, 9)})
    >>> _compared(syncs, _by_kind([syncs, opens])) is None
    True
    >>> both = Work(109, 17, kinds={"sync": OfKind(9, 9), "open": OfKind(100, 8)})
    >>> _compared(syncs, _by_kind([syncs, both]))
    _Compared(took_s=3.0, least_s=3.0, others_s=1.0)
    """
    requests = of_others = took_s = others_s = variance_s2 = 0.0
    for kind, done in _kinds(one).items():
        of_all = all_of[kind]
        if len(of_all.took_s) > 1:
            requests += done.requests
            of_others += of_all.requests - done.requests
            took_s += done.busy_s
            others_s += done.requests * of_all.others_s(done)
            variance_s2 += done.variance_s2
    if min(requests, of_others) < _FEWEST_REQUESTS or took_s <= 0 or others_s <= 0:
        return None
    return _Compared(took_s / requests, (took_s - math.sqrt(variance_s2)) / requests, others_s / requests)
