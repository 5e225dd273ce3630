"""Live watch of directories: read counters, run probes, and report events. Errors do not end the watch."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from strakes.base.units import counted, format_duration
from strakes.model.service_level import Minute, ServiceLevel, is_exceeded
from strakes.targets.command import end_grace, is_ending
from strakes.targets.marker import WATCH_RUN
from strakes.watch.alerts import AlertSender
from strakes.watch.histogram import Histogram
from strakes.watch.metrics import Metrics
from strakes.watch.probing import OPERATIONS, DirectoryProbe, describe_failure
from strakes.watch.reading import CounterReading
from strakes.watch.ring import DAY_S, Ring, RingRow
from strakes.watch.sources import CounterSource
from strakes.watch.values import CLOCK, WatchEvent
from strakes.watch.watch import Watch

T = TypeVar("T")
_TICK_S, _MINUTE_S = 1.0, 60.0
_MOST_ROW_S = 600.0
_NEWS_S = 300.0  # Seconds that metrics still show an ended alarm. Prometheus reads metrics once a minute by default.
_SOON_S = 30.0
_MOST_OPEN = 1000  # Maximum number of unfinished events in memory. Memory grows in proportion.
_MOST_FULL, _MOST_SAID = 500, 300
_LATE_S, _STEP_S = 5.0, 2.0
_LONG_S = 5.0  # Seconds of a step after which no further source is read: half the time limit of a command.
# An alarm begins if this number of successive minutes miss a service level, and ends if as many minutes meet the level.
_MINUTES = 5
# Words of the gaps of a source, and of any other part of the watch: while it fails, and afterwards.
_READ, _WORKS = ("cannot be read", "can be read", "could not be read"), ("does not work", "works", "did not work")


def attempt(call: Callable[[], T], otherwise: T, *passed: type[Exception]) -> tuple[T, str]:
    """Return the result of a call and "", or ``otherwise`` and the text of its error. Raises the kinds ``passed``."""
    try:
        return call(), ""
    except passed:
        raise
    except Exception as error:  # noqa: BLE001 - a defect of one part must not end a watch
        return otherwise, describe_failure(error)


@dataclass(frozen=True)
class Break:
    """Suspension of this process for ``stopped_s``, and a step of the clock by ``stepped_s`` (negative: back)."""

    stopped_s: float = 0.0
    stepped_s: float = 0.0


NO_BREAK = Break()


class Clocks:
    """Detector of process suspensions and clock steps. ``steady``: monotonic clock that runs during suspensions."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._steady, self._sleep = clock, steady, sleep
        self._apart_s = clock() - steady()

    def rest(self, seconds: float) -> Break:
        """Sleep for ``seconds``. Return the suspension of this process and the clock step during the sleep.

        >>> steady, clock = iter([0.0, 1.0, 2.0, 60.0, 257.0]), iter([100.0, 7302.0, 7557.0])
        >>> clocks = Clocks(lambda: next(clock), lambda: next(steady), lambda _: None)
        >>> clocks.rest(1.0), clocks.rest(1.0)
        (Break(stopped_s=0.0, stepped_s=7200.0), Break(stopped_s=196.0, stepped_s=0.0))
        """
        began_s = self._steady()
        self._sleep(seconds)
        now_s = self._steady()
        late_s, apart_s = now_s - began_s - seconds, self._clock() - now_s
        stepped_s, self._apart_s = apart_s - self._apart_s, apart_s
        return Break(late_s if late_s > _LATE_S else 0.0, stepped_s if abs(stepped_s) > _STEP_S else 0.0)


class ServiceAlarms:
    """Alarms about missed service levels. ``met``: for each service level, 1 if the last minute met it, else 0."""

    def __init__(self, levels: Sequence[ServiceLevel]) -> None:
        self._levels = levels
        self.met: dict[str, float] = {}
        # Service level -> number of successive minutes whose state (met or missed) differs from the reported state.
        self._against: Counter[str] = Counter()
        self._open: dict[str, WatchEvent] = {}

    def add(self, row: Minute, now_s: float) -> list[WatchEvent]:
        """Compare the latencies of one minute with the service levels. Return the alarms that begin or end."""
        events = []
        for level in self._levels:
            exceeded = is_exceeded(level, row)
            if exceeded is None:
                continue
            text = level.text
            self.met[text] = float(not exceeded)
            self._against[text] = self._against[text] + 1 if exceeded == (text not in self._open) else 0
            if self._against[text] < _MINUTES:
                continue
            self._against[text] = 0
            if known := self._open.pop(text, None):
                ended_s = max(known.began_s, now_s - _MINUTE_S * _MINUTES)
                events.append(replace(known, told_s=now_s, ended_s=ended_s, text=f"{text}: met again"))
            else:
                began_s = row.time_s - _MINUTE_S * (_MINUTES - 1)
                why = f"{text}: exceeded in each of the last {_MINUTES} minutes"
                self._open[text] = WatchEvent("service-level", text, began_s, now_s, why)
                events.append(self._open[text])
        return events


class LiveWatch:
    """Live watch of directories. Call ``step`` every second, and ``close`` to end the probes and remove their files."""

    def __init__(
        self,
        directories: Sequence[Path],
        sources: Sequence[CounterSource],
        ring: Ring,
        alerts: AlertSender,
        *,
        watch: Watch | None = None,
        levels: Sequence[ServiceLevel] = (),
        probe: bool = True,
        metrics: Metrics | None = None,
        say: Callable[[WatchEvent], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.metrics = metrics or Metrics()
        self._watch = watch or Watch()
        self._sources, self._ring, self._alerts = sources, ring, alerts
        self._say, self._clock = say, clock
        self._service = ServiceAlarms(levels)
        # The store determines the name of the workspace, so that a restarted watch finds the workspace of a killed one.
        run = f"{WATCH_RUN}{ring.identity}"
        self._probes = [DirectoryProbe(directory, run) for directory in directories] if probe else []
        self._due_s = dict.fromkeys((source.name for source in sources), 0.0)
        self._minute: tuple[float, dict[str, Histogram]] = (clock(), {})
        self._recent: dict[str, Histogram] = {}
        self._open: dict[tuple[str, str, float], WatchEvent] = {}
        self._news: dict[tuple[str, str, float], tuple[WatchEvent, float]] = {}
        self._reported: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()
        self._unread: dict[str, tuple[WatchEvent, str]] = {}
        self._read_any = False
        self._judged: set[str] = set()
        self._full: dict[str, float] = {}
        self._thinned_s = 0.0
        self._full_store: WatchEvent | None = None
        self._first = self._close_earlier(clock())

    def step(self, since: Break = NO_BREAK) -> None:
        """Read the due sources, and report new events. ``since``: break since the last call."""
        now_s = self._clock()
        events, self._first = self._first, []
        events += self._guarded("clock check", partial(self._broken, since, now_s), now_s)
        began_s = time.monotonic()
        # Read unreadable sources last, because each may take a time limit. Continue with them in the next step.
        for source in sorted(self._sources, key=lambda one: (one.name in self._unread, self._due_s[one.name])):
            if time.monotonic() - began_s > _LONG_S:
                break
            due_s = self._due_s[source.name]
            # A reading that is due only in the far future shows that the clock was set back, so read now.
            if now_s >= due_s or due_s - now_s > 2 * source.every_s:
                events += self._read(source, now_s)
                soon_s = _SOON_S if source.name in self._unread else math.inf
                self._due_s[source.name] = now_s + min(source.every_s, soon_s)
        for probe in (one for one in self._probes if not is_ending()):
            events += self._probe(probe, now_s)
        if not 0 <= now_s - self._minute[0] < _MINUTE_S:
            events += self._guarded("minute summary", partial(self._end_minute, now_s), now_s)
        if is_ending():  # strakes has killed the tools that were running.
            events = [event for event in events if event.kind != "gap" or event.ended_s is not None]
        self._report(events, now_s)

    def close(self) -> None:
        """End the probes, remove their workspaces, and store the last minute."""
        now_s = self._clock()
        events = [event for probe in self._probes for event in probe.close(now_s)]
        self._report([*events, *self._guarded("minute summary", partial(self._end_minute, now_s), now_s)], now_s)

    def _guarded(self, part: str, call: Callable[[], list[WatchEvent]], now_s: float) -> list[WatchEvent]:
        events, why = attempt(call, list[WatchEvent]())
        return [*events, *self._gap(part, why, now_s, _WORKS)]

    def _gap(self, part: str, said: str, now_s: float, words: tuple[str, str, str]) -> list[WatchEvent]:
        fails, works, failed = words
        gap, before = self._unread.get(part, (None, ""))
        if said:
            text = f"{part} {fails}: {said}"
            gap = gap or WatchEvent("gap", part, now_s, now_s, text)
            self._unread[part] = gap, said
            return [replace(gap, told_s=now_s, text=text)] if said != before else []
        if gap is None:
            return []
        del self._unread[part]
        long = format_duration(max(0.0, now_s - gap.began_s))
        return [_over(gap, now_s, f"{part} {works} again; for {long} it {failed}: {before}")]

    def _probe(self, probe: DirectoryProbe, now_s: float) -> list[WatchEvent]:
        try:
            operations, events = probe.step(now_s)
            for operation in operations:
                took_s = operation.ended_s - operation.due_s if operation.acknowledged else math.inf
                self._count(self._minute[1], probe, operation.phase, took_s)
            if (hang := probe.hang(now_s)) is not None:
                reading = CounterReading(f"probe of {probe.directory}", now_s, waits=(hang,))
                events += self._watch.outages.add(reading)
        except Exception as error:  # noqa: BLE001 - it becomes a gap
            return probe.fail(error, now_s)
        return events

    def _close_earlier(self, now_s: float) -> list[WatchEvent]:
        kept_until_s = self._ring.kept_until_s()
        # If the last stored time is in the future, the clock was set back. The end of the earlier watch is unknown.
        ahead_s, until_s = (kept_until_s or 0.0) - now_s, min(kept_until_s or 0.0, now_s)
        events = self._ring.events()
        if kept_until_s is not None:
            self._watch.outages.resume(until_s, [event for event in events if event.kind == "outage"])
        for event in events:
            if event.ended_s is None:
                text = event.text if event.kind == "gap" else f"{event.text} (the watch ended before the event ended)"
                ended_s = max(event.began_s, min(now_s, max(until_s, event.told_s)))
                self._ring.add_event(replace(event, ended_s=ended_s, text=text))
        if kept_until_s is None or abs(ahead_s) <= _MINUTE_S:
            return []
        text = f"nothing was recorded in the {format_duration(now_s - until_s)} before this watch began"
        if ahead_s > 0:
            text = f"the clock was set back by at least {format_duration(ahead_s)} before this watch began: "
            text += "how long nothing was recorded is unknown"
        return [WatchEvent("gap", "watch", until_s, now_s, text, ended_s=now_s)]

    def _broken(self, since: Break, now_s: float) -> list[WatchEvent]:
        if since == NO_BREAK:
            return []
        began_s = now_s - since.stepped_s - since.stopped_s
        events = self._end_minute(max(began_s, self._minute[0]))
        self._minute = (now_s, {})
        self._watch.passed(since.stopped_s + since.stepped_s)
        for probe in self._probes:
            probe.skip(now_s, clock_set_back=since.stepped_s < 0)
        if since.stopped_s:
            text = f"the watch was stopped for {format_duration(since.stopped_s)}: nothing of that time is counted"
            events.append(WatchEvent("gap", "watch", began_s, now_s, text, began_s + since.stopped_s))
        if since.stepped_s:
            way, by = "forward" if since.stepped_s > 0 else "back", format_duration(abs(since.stepped_s))
            times = sorted((now_s - since.stepped_s, now_s))
            events.append(WatchEvent("gap", CLOCK, times[0], now_s, f"the clock was set {way} by {by}", times[1]))
        return events

    def _read(self, source: CounterSource, now_s: float) -> list[WatchEvent]:
        reading, why = attempt(partial(source.read, now_s), CounterReading(source.name, now_s))
        found, wrong = attempt(partial(self._watch.add, reading), list[WatchEvent]())
        said = "; ".join(filter(None, (*reading.missing, why, wrong)))[:_MOST_SAID]
        events = self._gap(source.name, said, now_s, _READ)
        if not said and source.name not in self._judged:
            self._judged.add(source.name)
            for text in attempt(lambda: [*source.lacking(reading)], list[str]())[0]:
                subject = f"{source.name}: {text.partition(':')[0]}"
                events.append(WatchEvent("gap", subject, now_s, now_s, f"{source.name}: not watched: {text}"))
        self._read_any |= not said
        self._missed[source.name] += bool(said)
        self._full = dict([*{**self._full, **reading.full}.items()][:_MOST_FULL])
        return [*events, *found]

    @staticmethod
    def _count(figures: dict[str, Histogram], probe: DirectoryProbe, kind: str, took_s: float) -> None:
        name = f"{probe.directory} probe {OPERATIONS.get(kind, kind)}"
        figures.setdefault(name, Histogram()).add(took_s)

    def _end_minute(self, now_s: float) -> list[WatchEvent]:
        began_s, figures = self._minute
        self._minute = (now_s, {})
        read, self._read_any = self._read_any, False
        values = {
            f"{word} of {operation} on {directory}": value
            for name, histogram in figures.items()
            for directory, _, operation in (name.partition(" probe "),)
            for word, share in (("median", 0.5), ("p95", 0.95))
            if math.isfinite(value := histogram.percentile(share))
        }
        for probe in self._probes:
            for kind, wait_s in probe.waits_s(now_s).items():
                self._count(figures, probe, kind, wait_s)
        self._recent = figures
        if not figures and not read:
            return []
        row = RingRow(began_s, min(max(now_s - began_s, 1.0), _MOST_ROW_S), figures)
        events = self._guarded("store", partial(self._store, row, now_s), now_s)
        if values:
            reading = CounterReading("probe", began_s, figures=values)
            events += self._guarded("latency detector", partial(self._watch.add, reading), now_s)
        return [*events, *self._guarded("service-level check", partial(self._service.add, row, now_s), now_s)]

    def _store(self, row: RingRow, now_s: float) -> list[WatchEvent]:
        events = []
        if self._ring.add(row) and self._full_store:
            lost = counted(self._ring.lost, "line")
            text = f"the store can be written again; {lost} could not be stored: {self._ring.why}"
            events = [_over(self._full_store, now_s, text)]
            self._full_store = None
        if not 0 <= now_s - self._thinned_s < DAY_S:
            self._thinned_s = now_s
            self._ring.thin(now_s)
        return events

    def _report(self, events: list[WatchEvent], now_s: float) -> None:
        if self._ring.failing and self._full_store is None:
            text = f"the store cannot be written ({self._ring.why}): new readings are not stored"
            self._full_store = WatchEvent("gap", str(self._ring.directory), now_s, now_s, text)
            events.append(self._full_store)
        new = [event for event in events if event.ended_s is not None or event.key not in self._open]
        events += self._guarded("alarm command", partial(self._alerts.tell, new, now_s), now_s)
        wrong = list[str]()
        for event in events:
            wrong.append(attempt(partial(self._ring.add_event, event), False)[1])
            wrong.append(attempt(partial(self._say, event), None, BrokenPipeError)[1])
            known = self._open.pop(event.key, None) is not None
            self._reported[event.kind] += not known
            if event.ended_s is None and len(self._open) < _MOST_OPEN:
                self._open[event.key] = event
            elif event.alarm and not known:
                self._news[event.key] = (event, now_s + _NEWS_S)
        self.metrics.now, why = attempt(partial(self._figures, now_s), self.metrics.now)
        if events or why:
            self._first += self._gap("report", next(filter(None, (why, *wrong)), ""), now_s, _WORKS)

    def _figures(self, now_s: float) -> Mapping[str, Mapping[Any, float]]:
        self._news = {key: news for key, news in self._news.items() if 0 <= news[1] - now_s <= _NEWS_S}
        alarms = [event for event in self._open.values() if event.alarm] + [event for event, _ in self._news.values()]
        missed = self._missed | Counter({str(probe.directory): probe.missed for probe in self._probes})
        missed["store"] = self._ring.lost
        return {
            "latencies": {
                (directory, operation, f"{100 * share:g}"): histogram.percentile(share)
                for name, histogram in self._recent.items()
                for directory, _, operation in (name.partition(" probe "),)
                for share in (0.5, 0.95, 0.99)
            },
            "alarms": {(event.kind, event.subject): 1 for event in alarms},
            "events": dict(self._reported),
            "levels": self._service.met,
            "missed": {source: count for source, count in missed.items() if count},
            "deliveries": self._alerts.counts,
            "top": {
                (unit, str(rank), name): share
                for unit, rows in self._watch.top.items()
                for rank, (name, share) in enumerate(rows, 1)
            },
            "full": self._full,
            "service_s": self._watch.service_s,
        }


def _over(gap: WatchEvent, now_s: float, text: str) -> WatchEvent:
    return replace(gap, told_s=now_s, ended_s=max(now_s, gap.began_s), text=text)


def run_live(live: LiveWatch, stopping: Callable[[], bool]) -> None:
    """Run the watch at a low priority until ``stopping`` returns True, then close it."""
    os.nice(5)
    clocks, since = Clocks(), NO_BREAK
    try:
        while not stopping():
            live.step(since)
            since = clocks.rest(_TICK_S)
    finally:
        end_grace()
        live.close()
