"""Live watch: reads counters and probes, and sends events to the store, metrics and people. Errors do not stop it."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from strakes.base.units import counted, format_duration
from strakes.model.service_level import ServiceLevel
from strakes.runs.messages import LoggedOperation
from strakes.targets.marker import WATCH_RUN
from strakes.watch.alerts import AlertSender
from strakes.watch.clocks import NO_BREAK, Break, Clocks
from strakes.watch.histogram import Histogram
from strakes.watch.metrics import Metrics, Now
from strakes.watch.probing import OPERATIONS, DirectoryProbe
from strakes.watch.reading import CounterReading
from strakes.watch.ring import Ring, RingRow
from strakes.watch.service import ServiceAlarms
from strakes.watch.sources import CounterSource
from strakes.watch.values import CLOCK, WatchEvent
from strakes.watch.watch import Watch

_MINUTE_S = 60.0
# Seconds that an alarm stays in the metrics if it has ended when it is reported; otherwise no scrape would see it.
_NEWS_S = 300.0
_TICK_S = 1.0
_SOON_S = 30.0
_DAY_S = 86400.0
_MOST_OPEN = 1000
# A watch that begins within an hour continues the open alarms of the last one. Alarms that it does not find again
# within 15 minutes are over.
_CONTINUE_S, _FOUND_AGAIN_S = 3600.0, 900.0


class LiveWatch:
    """A live watch. Call ``step`` about once a second; ``close`` ends the probes and removes their workspaces."""

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
        say: Callable[[WatchEvent], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.metrics = Metrics()
        self._watch = watch or Watch()
        self._sources, self._ring, self._alerts = sources, ring, alerts
        self._say, self._clock = say, clock
        self._service = ServiceAlarms(levels)
        # The name is permanent, so that a restarted watch can remove the workspace of a killed one.
        run = f"{WATCH_RUN}{ring.identity}"
        self._probes = [DirectoryProbe(directory, run) for directory in directories] if probe else []
        self._due_s = dict.fromkeys((source.name for source in sources), 0.0)
        self._minute: tuple[float, dict[str, Histogram]] = (clock(), {})
        self._recent: dict[tuple[str, str], Histogram] = {}
        # Open events, and alarms that were reported at their end, with the time until which metrics show them.
        self._open: dict[tuple[str, str, float], WatchEvent] = {}
        self._news: dict[tuple[str, str, float], tuple[WatchEvent, float]] = {}
        self._reported: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()
        self._unread: dict[str, tuple[WatchEvent, str]] = {}
        self._read_any = False
        self._judged: set[str] = set()
        self._full: dict[str, float] = {}
        self._counters: dict[tuple[str, str], float] = {}
        self._thinned_s = 0.0
        self._full_store: WatchEvent | None = None
        self._kept_until_s = ring.kept_until_s()
        # Open alarms of the previous watch, by kind and subject, and the time until which they may be found again.
        self._earlier = self._continued(clock())
        self._earlier_until_s = clock() + _FOUND_AGAIN_S
        self._earlier_ended_s = self._kept_until_s or 0.0

    def step(self, since: Break = NO_BREAK) -> None:
        """Read the sources that are due and report new events. ``since``: stops and clock steps since the last step."""
        now_s = self._clock()
        events = [*self._before(now_s), *self._broken(since, now_s)]
        for source in self._sources:
            due_s = self._due_s[source.name]
            # If the clock was set back, everything is due.
            if now_s >= due_s or due_s - now_s > 2 * source.every_s:
                events += self._read(source, now_s)
                # The source adapts its interval to its cost; after an error it is read again soon.
                soon_s = _SOON_S if source.name in self._unread else math.inf
                self._due_s[source.name] = now_s + min(source.every_s, soon_s)
        for probe in self._probes:
            operations, found = probe.step(now_s)
            events += found
            for operation in operations:
                self._count(probe, operation)
            if (hang := probe.hang(now_s)) is not None:
                reading = CounterReading(f"probe of {probe.directory}", now_s, waits=(hang,))
                events += self._watch.outages.add(reading)
        began_s = self._minute[0]
        if not 0 <= now_s - began_s < _MINUTE_S:
            events += self._end_minute(now_s)
        self._report(events, now_s)

    def close(self) -> None:
        """End the probes and store the last minute."""
        now_s = self._clock()
        events = [event for probe in self._probes for event in probe.close(now_s)]
        self._report([*events, *self._end_minute(now_s)], now_s)

    def _before(self, now_s: float) -> list[WatchEvent]:
        """Report, once, the gap since the last stored minute."""
        since_s, self._kept_until_s = self._kept_until_s, None
        if since_s is None or now_s - since_s <= _MINUTE_S:
            return []
        text = f"nothing was recorded in the {format_duration(now_s - since_s)} before this watch began"
        return [WatchEvent("gap", "watch", since_s, now_s, text, ended_s=now_s)]

    def _broken(self, since: Break, now_s: float) -> list[WatchEvent]:
        """Report that the watch was stopped or the clock was set."""
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
            by = format_duration(abs(since.stepped_s))
            text = f"the clock was set forward by {by}" if since.stepped_s > 0 else f"the clock was set back by {by}"
            times = sorted((now_s - since.stepped_s, now_s))
            events.append(WatchEvent("gap", CLOCK, times[0], now_s, text, times[1]))
        return events

    def _continued(self, now_s: float) -> dict[tuple[str, str], WatchEvent]:
        """Return the open alarms of the previous watch that may last; end its other open events."""
        kept_until_s = self._kept_until_s or 0.0
        recent = 0 <= now_s - kept_until_s < _CONTINUE_S
        events = self._ring.events()
        if recent:
            self._watch.outages.resume(kept_until_s, [event for event in events if event.kind == "outage"])
        held: dict[tuple[str, str], WatchEvent] = {}
        for event in events:
            if event.ended_s is None and event.alarm and recent:
                held[event.kind, event.subject] = self._open[event.key] = event
            elif event.ended_s is None:
                self._ring.add_event(_closed(event, kept_until_s))
        return held

    def _known(self, event: WatchEvent) -> WatchEvent:
        """Return an event, with the onset that the previous watch reported for it, if any."""
        held = self._earlier.get((event.kind, event.subject))
        # An outage that began later is another one.
        if held is None or (event.kind == "outage" and event.began_s > self._earlier_until_s - _FOUND_AGAIN_S + 60):
            return event
        if event.ended_s is not None:
            del self._earlier[event.kind, event.subject]
        return replace(event, began_s=held.began_s)

    def _not_found_again(self, now_s: float) -> list[WatchEvent]:
        """Return, once, the end of the earlier alarms that were not found again."""
        if now_s < self._earlier_until_s:
            return []
        self._earlier_until_s = math.inf
        return [_closed(event, self._earlier_ended_s) for event in self._earlier.values() if event.key in self._open]

    def _read(self, source: CounterSource, now_s: float) -> list[WatchEvent]:
        reading = source.read(now_s)
        said = "; ".join(reading.missing)[:300]
        events = []
        if not said and source.name not in self._judged:
            self._judged.add(source.name)
            for text in source.lacking(reading):
                subject = f"{source.name}: {text.partition(':')[0]}"
                events.append(WatchEvent("gap", subject, now_s, now_s, f"{source.name}: not watched: {text}"))
        self._read_any |= not said
        gap, before = self._unread.get(source.name, (None, ""))
        if said:
            self._missed[source.name] += 1
            text = f"{source.name} cannot be read: {said}"
            gap = gap or WatchEvent("gap", source.name, now_s, now_s, text)
            self._unread[source.name] = gap, said
            if said != before:
                events.append(replace(gap, told_s=now_s, text=text))
        elif gap:
            del self._unread[source.name]
            long = format_duration(max(0.0, now_s - gap.began_s))
            text = f"{source.name} can be read again; for {long} it could not be read: {before}"
            events.append(replace(gap, told_s=now_s, ended_s=max(now_s, gap.began_s), text=text))
        self._full |= dict(list(reading.full.items())[:500])
        self._counters |= {(source.name, name): value for name, value in list(reading.counters.items())[:400]}
        return [*events, *self._watch.add(reading)]

    def _count(self, probe: DirectoryProbe, operation: LoggedOperation) -> None:
        took_s = operation.ended_s - operation.due_s if operation.acknowledged else math.inf
        self._minute[1].setdefault(_figure(probe, operation.phase), Histogram()).add(max(took_s, 1e-7))

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
        # Service levels include the waiting time of hanging operations.
        for probe in self._probes:
            for kind, wait_s in probe.waits_s(now_s).items():
                figures.setdefault(_figure(probe, kind), Histogram()).add(wait_s)
        parts = ((name.partition(" probe "), histogram) for name, histogram in figures.items())
        self._recent = {(directory, operation): histogram for (directory, _, operation), histogram in parts}
        if not figures and not read:
            return []
        events = []
        # A row without figures shows that the watch ran.
        row = RingRow(began_s, min(max(now_s - began_s, 1.0), 600.0), figures)
        if self._ring.add(row) and self._full_store:
            lost = counted(self._ring.lost, "line")
            text = f"the store can be written again; {lost} could not be stored: {self._ring.why}"
            events = [replace(self._full_store, told_s=now_s, ended_s=max(now_s, self._full_store.began_s), text=text)]
            self._full_store = None
        if not 0 <= now_s - self._thinned_s < _DAY_S:
            self._thinned_s = now_s
            self._ring.thin(now_s)
        if values:
            events += self._watch.add(CounterReading("probe", began_s, figures=values))
        return [*events, *self._service.add(row, now_s)]

    def _report(self, events: list[WatchEvent], now_s: float) -> None:
        if self._ring.failing and self._full_store is None:
            text = f"the store cannot be written ({self._ring.why}): new readings are not stored"
            self._full_store = WatchEvent("gap", str(self._ring.directory), now_s, now_s, text)
            events.append(self._full_store)
        known_events = [*map(self._known, events), *self._not_found_again(now_s)]
        # The command gets each alarm once, and its end.
        news = [event for event in known_events if event.ended_s is not None or event.key not in self._open]
        for event in [*known_events, *self._alerts.troubles(now_s)]:
            self._ring.add_event(event)
            self._say(event)
            known = self._open.pop(event.key, None) is not None
            self._reported[event.kind] += not known
            if event.ended_s is None and len(self._open) < _MOST_OPEN:
                self._open[event.key] = event
            elif event.alarm and not known:
                self._news[event.key] = (event, now_s + _NEWS_S)
        self._news = {key: news for key, news in self._news.items() if 0 <= news[1] - now_s <= _NEWS_S}
        self._alerts.tell(news)
        alarms = [event for event in self._open.values() if event.alarm] + [event for event, _ in self._news.values()]
        missed = {str(probe.directory): probe.missed for probe in self._probes if probe.missed}
        self.metrics.now = Now(
            latencies={
                (directory, operation, f"{100 * share:g}"): histogram.percentile(share)
                for (directory, operation), histogram in self._recent.items()
                for share in (0.5, 0.95, 0.99)
            },
            full=self._full,
            service_s=self._watch.service_s,
            counters=self._counters,
            top=self._watch.top,
            alarms={(event.kind, event.subject): 1 for event in alarms},
            events=dict(self._reported),
            levels=self._service.met,
            missed={**self._missed, **missed, **({"store": self._ring.lost} if self._ring.lost else {})},
            deliveries=self._alerts.counts,
        )


def _closed(event: WatchEvent, kept_until_s: float) -> WatchEvent:
    """Return the end of an event of the previous watch."""
    text = event.text if event.kind == "gap" else f"{event.text} (the watch ended before it was over)"
    return replace(event, ended_s=max(kept_until_s, event.told_s), text=text)


def _figure(probe: DirectoryProbe, kind: str) -> str:
    return f"{probe.directory} probe {OPERATIONS.get(kind, kind)}"


def run_live(live: LiveWatch, stopping: Callable[[], bool]) -> None:
    """Step until ``stopping`` returns True."""
    os.nice(5)
    clocks, since = Clocks(), NO_BREAK
    try:
        while not stopping():
            live.step(since)
            since = clocks.rest(_TICK_S)
    finally:
        live.close()
