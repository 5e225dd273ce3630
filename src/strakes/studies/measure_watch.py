"""Read server counters before and after each trial, and return the differences. The time for this is limited."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from strakes.targets.description import (
    CLIENT,
    NOW,
    Interruption,
    Observation,
    TargetRecovery,
    difference,
    disturbed,
    lost_between,
)
from strakes.targets.target import Target

# Readings of counters may take at most this share of the elapsed time.
_SHARE = 0.05
# Maximum age in seconds of counters that are reused for the next trial.
_FRESH_S = 0.25
# Maximum age of counters that are slow to read, as a multiple of the time that one reading takes.
_FRESH_SHARE = 0.5
# Error in seconds of the recorded times of interruptions, which file systems record in whole seconds.
_WHOLE_SECONDS_S = 1.0
# Ignore times of a server whose clock differs by this number of seconds. NTP keeps clocks within a second.
_CLOCKS_DIFFER_S = 60.0


class TargetWatch:
    """Reader of a file system's server counters before and after each trial."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._began = time.monotonic()
        self._spent_s = 0.0
        self._look_s = 0.0
        self._recall_s = 0.0
        self._counts = True
        self._before: Observation | None = None
        self._lost: tuple[str, ...] = ()
        self._last: tuple[float, Observation] | None = None
        self._told: set[str] = set()
        self._unread: dict[str, str] = {}

    def begin(self, *, needed: bool = False) -> None:
        """Read the server counters before a trial. ``needed``: read them even if earlier readings took too long."""
        self._before, self._lost = None, ()
        dear = self._spent_s > _SHARE * max(1.0, time.monotonic() - self._began)
        if not self._counts or (dear and not needed):
            return
        age_s = math.inf if self._last is None else time.monotonic() - self._last[0]
        fresh = age_s < max(_FRESH_S, _FRESH_SHARE * self._look_s)
        self._before = self._last[1] if fresh and self._last is not None else self._look()
        self._counts = bool(self._before)

    def end(self) -> tuple[Observation, tuple[str, ...]]:
        """Return the increase of counters during the trial, and a text for each target with incomplete counters."""
        if not self._before:
            return {}, ()
        before, after = self._before, self._look()
        self._last = (time.monotonic(), after)
        self._lost = lost_between(before, after)
        counted = {name: _worth_keeping(counters) for name, counters in difference(before, after).items()}
        return {name: counters for name, counters in counted.items() if counters}, disturbed(before, after)

    def interruptions(self, began_unix_s: float, ended_unix_s: float) -> tuple[Interruption, ...]:
        """Return the interruptions of service during a trial, from the file system's records or its counters."""
        remembered: list[Interruption] = []
        if self._lost or self._recall_s <= _SHARE * (ended_unix_s - began_unix_s):
            began = time.monotonic()
            remembered += self._target.interruptions()
            self._recall_s = time.monotonic() - began
        remembered = [
            interruption
            for interruption in remembered
            if (interruption.or_earlier or interruption.began_unix_s < ended_unix_s + _WHOLE_SECONDS_S)
            and (interruption.ended_unix_s or ended_unix_s) > began_unix_s - _WHOLE_SECONDS_S
        ]
        counted = {recovery.target: recovery for recovery in self._target.recoveries()} if self._lost else {}
        with_counts = [_as_counted(interruption, counted.get(interruption.target)) for interruption in remembered]
        known = {interruption.target for interruption in remembered}
        others = [
            _as_counted(Interruption(name, began_unix_s, ended_unix_s), counted.get(name), whole=True)
            for name in self._lost
            if name not in known
        ]
        return (*with_counts, *others)

    def unread(self) -> tuple[str, ...]:
        """Return an error text for each server whose counters cannot be read. Report each server once."""
        new = tuple(sentence for host, sentence in self._unread.items() if host not in self._told)
        self._told.update(self._unread)
        return new

    def _look(self) -> Observation:
        began = time.monotonic()
        seen = self._target.observe()
        self._unread = {**self._target.unread, **self._unread}
        self._look_s = time.monotonic() - began
        self._spent_s += self._look_s
        return seen


def _worth_keeping(counters: dict[str, float]) -> dict[str, float]:
    return {
        name: value for name, value in counters.items() if name.removeprefix(CLIENT).startswith(("md.", "data.", NOW))
    }


def _as_counted(interruption: Interruption, recovery: TargetRecovery | None, *, whole: bool = False) -> Interruption:
    if recovery is None or (recovery.started_unix_s or 0.0) < interruption.began_unix_s - _WHOLE_SECONDS_S:
        return interruption
    if interruption.evicted_clients is None:
        interruption = replace(interruption, evicted_clients=recovery.evicted)
    if not whole or recovery.started_unix_s is None:
        return interruption
    if (ahead_s := recovery.started_unix_s - (interruption.ended_unix_s or math.inf)) >= _CLOCKS_DIFFER_S:
        return replace(interruption, clock_ahead_s=ahead_s)
    ended_unix_s = None if recovery.duration_s is None else recovery.started_unix_s + recovery.duration_s
    return replace(interruption, began_unix_s=recovery.started_unix_s, ended_unix_s=ended_unix_s)
