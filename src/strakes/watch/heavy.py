"""Find the jobs or clients that cause most of the load (heavy hitters), and report unusual increases of the load."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from heapq import nlargest
from itertools import pairwise
from statistics import median

from strakes.base.units import format_bytes
from strakes.watch.reading import LONGEST_S, WINDOW_S
from strakes.watch.values import WatchEvent

_MOST_JOBS, _MOST_CHARACTERS = 256, 1000  # Maximum number of jobs in memory, and of characters in a job's name.
_LOAD_TIMES, _OWN_TIMES = 2.0, 4.0
_TOP = 20  # Maximum number of jobs in the metric strakes_watch_load_share. Scrapes grow in proportion.
_SHARE = 0.5
# A heavy load ends below 25 % of its reported rate: the median of windows with at least 75 % of its highest rate.
_QUIET, _FULL_SHARE = 0.25, 0.75
_WINDOWS = 2  # A heavy load or its end is reported after this number of windows (15 seconds each).
_USUAL_FROM, _KNOWN_FROM, _KEPT = 4, 8, 240
_NEW_USUAL = 120  # Number of windows (1,800 seconds) after which an unusual load counts as usual.
_FORGET = math.exp(-WINDOW_S / 3600)


class HeavyJobs:
    """Detector of jobs or clients that cause an unusual load.

    ``unit``: unit of the load, such as "operations" or "bytes". ``who``: prefix of job names in messages.
    """

    def __init__(self, unit: str, who: str = "job ") -> None:
        self._unit, self._who = unit, who
        self._before: dict[str, tuple[float, Mapping[str, Mapping[str, float]]]] = {}
        self._grown: dict[str, float] = {}
        self._from_s: float | None = None
        self._unusual = 0
        self._usual: deque[float] = deque(maxlen=_KEPT)
        self._seconds = self._total = 0.0
        self._counted: dict[str, float] = {}  # Job -> exponentially decaying sum of its load.
        self._rises: dict[str, list[tuple[float, float, float]]] = {}
        self._told: dict[str, WatchEvent] = {}
        self._quiet_s: dict[str, list[float]] = {}
        self._apart: dict[str, tuple[float, float]] = {}

    @property
    def top(self) -> list[tuple[str, float]]:
        """Return the jobs with the most load in about the last hour: (job, share of the load), highest share first."""
        total = self._total or 1.0
        heaviest = sorted(self._counted.items(), key=lambda item: item[1], reverse=True)[:_TOP]
        return [(job, weight / total) for job, weight in heaviest]

    def add(self, source: str, time_s: float, counts: Mapping[str, Mapping[str, float]]) -> list[WatchEvent]:
        """Add a source's counters (by target, then by job). Return events for heavy loads that begin or end."""
        before_s, before = self._before.get(source, (time_s, {}))
        self._before[source] = (time_s, counts)
        if self._from_s is None or not 0 <= time_s - self._from_s <= LONGEST_S:
            self._from_s, self._grown = time_s, {}
            return []
        if 0 <= time_s - before_s <= LONGEST_S:
            for target in counts.keys() & before.keys():
                earlier = before[target]
                for job, count in counts[target].items():
                    known = earlier.get(job, 0.0)
                    # A counter that decreased was reset to 0, so all of its value is new.
                    if more := count - known if count >= known else count:
                        name = job[:_MOST_CHARACTERS]
                        self._grown[name] = self._grown.get(name, 0.0) + more
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
        self._seconds = self._seconds * _FORGET + seconds
        self._total = self._total * _FORGET + sum(rates.values()) * seconds
        weights = {job: weight * _FORGET for job, weight in self._counted.items()}
        for job, rate in rates.items():
            weights[job] = weights.get(job, 0.0) + rate * seconds
        self._counted = dict(nlargest(_MOST_JOBS, weights.items(), key=lambda item: item[1]))
        apart = {job: (weight * _FORGET, long_s * _FORGET) for job, (weight, long_s) in self._apart.items()}
        self._apart = {job: each for job, each in apart.items() if each[1] >= 1}
        for job in self._told:
            self._add_apart(job, rates.get(job, 0.0), seconds)

    def _add_apart(self, job: str, rate: float, seconds: float) -> None:
        weight, long_s = self._apart.get(job, (0.0, 0.0))
        self._apart[job] = weight + rate * seconds, long_s + seconds

    def _expected(self, job: str, others: float, usual: float) -> float:
        if not self._seconds:
            return 0.0
        weight, long_s = self._apart.get(job, (0.0, 0.0))
        unusual = weight if long_s < self._seconds / 2 else 0.0
        own = max(0.0, self._counted.get(job, 0.0) - unusual) / self._seconds
        # A short history consists mostly of the present load, so do not scale the job's rate with the total load.
        if len(self._usual) < _KNOWN_FROM:
            return own
        return own * max(1.0, others / max(usual - own, own, 1e-9))

    def _judge(self, began_s: float, ended_s: float, rates: Mapping[str, float]) -> list[WatchEvent]:
        total = sum(rates.values())
        usual = median(self._usual) if len(self._usual) >= _USUAL_FROM else math.inf
        events = self._ended(began_s, rates)
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
        of_unit = "" if self._unit == "bytes" else f" {self._unit}"
        own, all_jobs, before = (
            f"{amount:,.0f}" if of_unit else format_bytes(round(amount)) for amount in (rate, total, usual)
        )
        event = WatchEvent(
            "heavy",
            job,
            run[0][0],
            ended_s,
            f"{self._who}{job} causes {rate / total:.0%} of the load: {own}{of_unit} a second, "
            f"all jobs together {all_jobs}, usually {before}",
            size=rate / total,
            low=min(row[1] / row[2] for row in run),
            high=max(row[1] / row[2] for row in run),
            unit="share of the load",
            sure=len(self._usual) / (len(self._usual) + 1),
            evidence={f"{self._unit}_per_s": rate, "all": total, "usual": usual},
        )
        del self._rises[job]
        self._told[job], self._quiet_s[job] = event, []
        for (began_s, rate, _), (until_s, *_) in pairwise(run):
            self._add_apart(job, rate, until_s - began_s)
        return event

    def _ended(self, began_s: float, rates: Mapping[str, float]) -> list[WatchEvent]:
        events = []
        for job, event in list(self._told.items()):
            quiet = rates.get(job, 0.0) < _QUIET * float(event.evidence[f"{self._unit}_per_s"])
            self._quiet_s[job] = [*self._quiet_s[job], began_s] if quiet else []
            if len(self._quiet_s[job]) >= _WINDOWS:
                del self._told[job]
                events.append(replace(event, ended_s=self._quiet_s[job][0]))
        return events
