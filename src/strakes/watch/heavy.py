"""Who causes the load: the heaviest jobs or clients, counted in bounded memory, and whose work is out of the ordinary.

Space-Saving (Metwally, Agrawal, El Abbadi, ICDT 2005, 398): of so many counters the smallest is given to whoever comes
new, with its count as the error; whoever has more than 1/counters of the load is surely among them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappush, heapreplace
from itertools import pairwise
from statistics import median

from strakes.units import format_bytes
from strakes.watch.values import WatchEvent
from strakes.watch.windows import WINDOW_S, grown

COUNTERS = 256
TOP = 20
# The load has to be so many times the usual, and the job has to do so many times what it usually does.
_LOAD_TIMES, _OWN_TIMES = 2.0, 4.0
_SHARE = 0.5
_WINDOWS = 2
# A job that does less than this share of what was told is quiet; one that does less than the other was partly so.
_QUIET, _FULL_SHARE = 0.25, 0.75
_USUAL_FROM, _KNOWN_FROM, _KEPT = 4, 8, 240
# A load that was out of the ordinary for so many windows is what is usual now.
_NEW_USUAL = 120
# Two readings of a source further apart say nothing of what was between them.
_LONGEST_S = 20 * WINDOW_S
# Of what a job did, so much is forgotten with each window of a minute and a half.
_FORGET = math.exp(-WINDOW_S / 3600)


class SpaceSaving:
    """Weights of the heaviest keys; ``capacity`` bounds the memory."""

    def __init__(self, capacity: int = COUNTERS) -> None:
        self._capacity = capacity
        self._weights: dict[str, float] = {}
        self._errors: dict[str, float] = {}
        # The smallest first; a weight may have grown since.
        self._smallest: list[tuple[float, str]] = []

    def add(self, key: str, weight: float) -> None:
        """Count ``weight`` for ``key``."""
        if key in self._weights:
            self._weights[key] += weight
        elif len(self._weights) < self._capacity:
            self._weights[key], self._errors[key] = weight, 0.0
            heappush(self._smallest, (weight, key))
        else:
            while self._smallest[0][0] != self._weights[self._smallest[0][1]]:
                grown_key = self._smallest[0][1]
                heapreplace(self._smallest, (self._weights[grown_key], grown_key))
            floor, least = self._smallest[0]
            del self._weights[least]
            del self._errors[least]
            self._weights[key], self._errors[key] = floor + weight, floor
            heapreplace(self._smallest, (floor + weight, key))

    def top(self, count: int = TOP) -> list[tuple[str, float, float]]:
        """Return key, weight and by how much it may be too large, first those that surely weigh most."""
        ordered = sorted(self._weights, key=self.surely, reverse=True)[:count]
        return [(key, self._weights[key], self._errors[key]) for key in ordered]

    def surely(self, key: str) -> float:
        """Return the least that ``key`` can weigh."""
        return self._weights.get(key, 0.0) - self._errors.get(key, 0.0)

    def forget(self, share: float) -> None:
        """Keep ``share`` of every weight."""
        for key in self._weights:
            self._weights[key] *= share
            self._errors[key] *= share
        self._smallest = [(weight, key) for key, weight in self._weights.items()]
        heapify(self._smallest)

    def __len__(self) -> int:
        """Return the number of counters in use."""
        return len(self._weights)


@dataclass
class _Heavy:
    """``share``: of the rate that was told, in the last window that began at ``window_s``."""

    event: WatchEvent
    window_s: float
    share: float = 1.0
    quiet: int = 0
    over_s: float = 0.0


@dataclass
class _Apart:
    """What a job did while it was told, and for how long."""

    weight: float = 0.0
    seconds: float = 0.0


class HeavyJobs:
    """Of one unit: operations or bytes. ``who`` comes before a name in sentences."""

    def __init__(self, unit: str, who: str = "job ") -> None:
        self._unit, self._who = unit, who
        self._of_unit = "" if unit == "bytes" else f" {unit}"
        self._before: dict[str, tuple[float, Mapping[str, Mapping[str, float]]]] = {}
        self._grown: dict[str, float] = {}
        self._from_s: float | None = None
        self._unusual = 0
        self._usual: deque[float] = deque(maxlen=_KEPT)
        self._seconds = 0.0
        self._counted = SpaceSaving()
        self._rises: dict[str, list[tuple[float, float, float]]] = {}
        self._told: dict[str, _Heavy] = {}
        self._apart: dict[str, _Apart] = {}

    @property
    def top(self) -> list[tuple[str, float, float]]:
        """The heaviest of the last hour: name, share of the load, and by how much that may be too large."""
        total = sum(weight for _, weight, _ in self._counted.top(COUNTERS)) or 1.0
        return [(job, weight / total, error / total) for job, weight, error in self._counted.top()]

    def add(self, source: str, time_s: float, counts: Mapping[str, Mapping[str, float]]) -> list[WatchEvent]:
        """Take in counters of a source (target -> job -> count); return whose load begins and ends to be unusual."""
        before_s, before = self._before.get(source, (time_s, {}))
        self._before[source] = (time_s, counts)
        if self._from_s is None or not 0 <= time_s - self._from_s <= _LONGEST_S:
            self._from_s, self._grown = time_s, {}
            return []
        if 0 <= time_s - before_s <= _LONGEST_S:
            # A target that begins anew, or was not read before, must not make old counts of its jobs new ones.
            for target in counts.keys() & before.keys():
                earlier = before[target]
                for job, count in counts[target].items():
                    if more := grown(earlier.get(job, 0.0), count):
                        self._grown[job] = self._grown.get(job, 0.0) + more
        seconds = time_s - self._from_s
        if seconds < WINDOW_S:
            return []
        began_s = self._from_s
        rates = {job: more / seconds for job, more in self._grown.items()}
        self._from_s, self._grown = time_s, {}
        events = self._judge(began_s, time_s, rates)
        self._count(rates, seconds)
        return events

    def _count(self, rates: Mapping[str, float], seconds: float) -> None:
        self._counted.forget(_FORGET)
        self._seconds = self._seconds * _FORGET + seconds
        for job, rate in rates.items():
            self._counted.add(job, rate * seconds)
        for job, apart in list(self._apart.items()):
            apart.weight, apart.seconds = apart.weight * _FORGET, apart.seconds * _FORGET
            if apart.seconds < 1:
                del self._apart[job]
        for job in self._told:
            apart = self._apart.setdefault(job, _Apart())
            apart.weight += rates.get(job, 0.0) * seconds
            apart.seconds += seconds

    def _own(self, job: str) -> float:
        """Return how much a job usually does a second: without what was told, unless that is most of the time."""
        if not self._seconds:
            return 0.0
        apart = self._apart.get(job, _Apart())
        unusual = apart.weight if apart.seconds < self._seconds / 2 else 0.0
        return max(0.0, self._counted.surely(job) - unusual) / self._seconds

    def _expected(self, job: str, others: float, usual: float) -> float:
        """Return how much a job would do if its load had risen as that of all others, which is no less than usual."""
        own = self._own(job)
        # Soon after the beginning, what it did is mostly what is to be judged.
        if len(self._usual) < _KNOWN_FROM:
            return own
        return own * max(1.0, others / max(usual - own, own, 1e-9))

    def _judge(self, began_s: float, ended_s: float, rates: Mapping[str, float]) -> list[WatchEvent]:
        total = sum(rates.values())
        usual = median(self._usual) if len(self._usual) >= _USUAL_FROM else math.inf
        events = self._ended(began_s, ended_s, rates)
        risen = total > _LOAD_TIMES * max(usual, 1e-9) and total > max(self._usual, default=0.0) and usual < math.inf
        ordinary = not risen and not self._told
        self._unusual = 0 if ordinary else self._unusual + 1
        if ordinary or self._unusual > _NEW_USUAL:
            self._usual.append(total)
        if not risen:
            self._rises.clear()
            return events
        rise = total - usual
        for job in list(self._rises):
            if rates.get(job, 0.0) < _SHARE * rise:
                del self._rises[job]
        for job, rate in rates.items():
            if job in self._told or rate < _SHARE * rise:
                continue
            if job in self._rises or rate >= _OWN_TIMES * self._expected(job, total - rate, usual):
                run = self._rises.setdefault(job, [])
                run.append((began_s, rate, total))
                if len(run) >= _WINDOWS:
                    events.append(self._tell(job, run, ended_s, usual))
        return events

    def _tell(self, job: str, run: list[tuple[float, float, float]], ended_s: float, usual: float) -> WatchEvent:
        full = [row for row in run if row[1] >= _FULL_SHARE * max(rate for _, rate, _ in run)]
        rate, total = median([row[1] for row in full]), median([row[2] for row in full])
        # In its first window it may have begun late.
        first_s = run[0][0] + (1 - min(1.0, run[0][1] / run[-1][1])) * (run[1][0] - run[0][0])
        rest = {f"next {number}": name for number, (name, _, _) in enumerate(self.top[:3], 1) if name != job}
        event = WatchEvent(
            "heavy",
            job,
            first_s,
            ended_s,
            f"{self._who}{job} causes {rate / total:.0%} of the load: {self._amount(rate)}{self._of_unit} a second, "
            f"all together {self._amount(total)}, usual {self._amount(usual)}",
            size=rate / total,
            low=min(row[1] / row[2] for row in run),
            high=max(row[1] / row[2] for row in run),
            unit="share of the load",
            sure=len(self._usual) / (len(self._usual) + 1),
            evidence={f"{self._unit}_per_s": rate, "all": total, "usual": usual, **rest},
        )
        del self._rises[job]
        self._told[job] = _Heavy(event, run[-1][0])
        # The last window is counted with those that follow.
        apart = self._apart.setdefault(job, _Apart())
        for (began_s, rate, _), (until_s, *_) in pairwise(run):
            apart.weight += rate * (until_s - began_s)
            apart.seconds += until_s - began_s
        return event

    def _amount(self, rate: float) -> str:
        return format_bytes(round(rate)) if self._unit == "bytes" else f"{rate:,.0f}"

    def _ended(self, began_s: float, ended_s: float, rates: Mapping[str, float]) -> list[WatchEvent]:
        events = []
        for job, heavy in list(self._told.items()):
            share = min(1.0, rates.get(job, 0.0) / float(heavy.event.evidence[f"{self._unit}_per_s"]))
            heavy.quiet = heavy.quiet + 1 if share < _QUIET else 0
            if heavy.quiet == 1:
                # It was over in the course of this window, or of the one before where that is lower already.
                lower = heavy.share < _FULL_SHARE
                heavy.over_s = (
                    heavy.window_s + heavy.share * (began_s - heavy.window_s)
                    if lower
                    else began_s + share * (ended_s - began_s)
                )
            heavy.window_s, heavy.share = began_s, share
            if heavy.quiet >= _WINDOWS:
                del self._told[job]
                events.append(replace(heavy.event, ended_s=max(heavy.over_s, heavy.event.began_s)))
        return events


class OneOfUnits:
    """A job that is heavy in operations and in bytes is one event, from when the first is told until both are over."""

    def __init__(self) -> None:
        self._open: dict[str, WatchEvent] = {}
        self._units: dict[str, set[str]] = {}

    def add(self, events: Mapping[str, list[WatchEvent]]) -> list[WatchEvent]:
        """Take in what was told at one time, unit by unit; return what is news."""
        new: dict[str, WatchEvent] = {}
        ended = []
        for unit, of_unit in events.items():
            for event in of_unit:
                job = event.subject
                if event.ended_s is None:
                    self._units.setdefault(job, set()).add(unit)
                    if job in new:
                        also = event.text.rpartition(": ")[2]
                        new[job] = replace(
                            new[job], text=f"{new[job].text}; {also}", evidence={**event.evidence, **new[job].evidence}
                        )
                    elif job not in self._open:
                        new[job] = event
                else:
                    self._units[job].discard(unit)
                    if not self._units[job]:
                        del self._units[job]
                        ended.append(replace(self._open.pop(job), ended_s=event.ended_s))
            self._open |= new
        return [*new.values(), *ended]
