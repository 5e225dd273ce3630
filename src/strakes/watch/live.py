"""A file system watched live: counters and probe in, events out to the store, to metrics and to people.

It goes on whatever fails.
"""

from __future__ import annotations

import errno
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from strakes.accept.service_level import ServiceLevel
from strakes.errors import EnvironmentLacksError, MeasurementError, StrakesError
from strakes.interrupts import interrupts_deferred
from strakes.launch.messages import LoggedOperation
from strakes.neighbour.control import Control, Felt
from strakes.neighbour.probe import Probe
from strakes.targets.marker import WATCH_RUN
from strakes.units import counted, format_bytes, format_duration
from strakes.watch.alerts import AlertSender
from strakes.watch.budgets import Budgets
from strakes.watch.clocks import NO_BREAK, Break, Clocks
from strakes.watch.earlier import PAUSE_S, Earlier, ended, untold_since_s
from strakes.watch.histogram import Histogram
from strakes.watch.metrics import Metrics, Now
from strakes.watch.outage import Outage
from strakes.watch.own_load import OwnLoad, own_load
from strakes.watch.probed import (
    AGAIN_S,
    OPERATIONS,
    RATE_PER_S,
    Probed,
    fails,
    gap_of,
    make_workspace,
    remove_remains,
    waits_s,
)
from strakes.watch.reading import CounterReading
from strakes.watch.ring import Ring, RingRow
from strakes.watch.sources import CounterSource
from strakes.watch.values import CLOCK, WatchEvent
from strakes.watch.watch import Watch

_MINUTE_S = 60.0
# An alarm that is over when it is reported stays in the metrics for this long, or no scrape would see it.
_NEWS_S = 300.0
_TICK_S = 1.0
_SOON_S = 30.0
_THINNED_EACH_S = 3600.0
# Slower than that, and the probe pauses as a measurement with --neighbour would.
_SLOW_S = 5.0
# A longer operation measures the waiting time of clients in an outage.
_STALL_S = 1.0
_MOST_OPEN = 1000
# Time until the probes run, when the load of the watch is first measured.
_STARTED_S = 15.0
# Interval between checks of the mount point.
_MOUNTED_EACH_S = 10.0
# Catch-up time of a probe after the watch was stopped.
_DRAINED_S = 2.0
# Errors of a directory that was removed or replaced.
_GONE = ("ENOENT", "ENOTDIR", "ESTALE")
# A longer outage of a server does not explain that operations hang now.
_EXPLAINS_S = 600.0
_NOT_THERE = os.strerror(errno.ENOENT)


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
        self.budgets = Budgets(levels, ring)
        self._watch = watch or Watch()
        self._sources, self._ring, self._alerts = sources, ring, alerts
        self._say, self._clock = say, clock
        # The name is permanent, so that a restarted watch can remove the workspace of a killed one.
        self._run = f"{WATCH_RUN}{ring.identity}"
        self._probes = [Probed(directory) for directory in directories] if probe else []
        self._due_s = dict.fromkeys((source.name for source in sources), 0.0)
        self._minute: tuple[float, dict[str, Histogram]] = (clock(), {})
        self._recent: dict[tuple[str, str], Histogram] = {}
        # Open events, and alarms that were reported at their end, with the time until which metrics show them.
        self._open: dict[tuple[str, str, float], WatchEvent] = {}
        self._news: dict[tuple[str, str, float], tuple[WatchEvent, float]] = {}
        self._told: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()
        self._unread: dict[str, tuple[Outage, str]] = {}
        self._read_s: dict[str, float] = {}
        self._read_any = False
        self._judged: set[str] = set()
        self._full: dict[str, float] = {}
        self._counters: dict[tuple[str, str], float] = {}
        self._thinned_s = 0.0
        self._full_store: WatchEvent | None = None
        self._begun: tuple[float, OwnLoad] = (time.monotonic(), own_load())
        self._loads: tuple[float, OwnLoad, float] = (*self._begun, 0.0)
        self._most_bytes = 0.0
        self._kept_until_s = ring.kept_until_s()
        self._earlier = self._close_earlier(self._clock())

    @property
    def own_load_text(self) -> str:
        """Return the load of the watch itself in words."""
        load, passed_s = own_load(), time.monotonic() - self._begun[0]
        share = (load.processor_s - self._begun[1].processor_s) / max(passed_s, 1.0)
        return (
            f"own load: {share:.2%} of a processor over {format_duration(passed_s)}, "
            f"{format_bytes(round(max(load.memory_bytes, self._most_bytes)))} of memory at most"
        )

    def step(self, since: Break = NO_BREAK) -> None:
        """Read the sources that are due and report new events. ``since``: stops and clock steps since the last step."""
        now_s = self._clock()
        events = [*self._away(now_s), *self._broken(since, now_s)]
        for source in self._sources:
            due_s = self._due_s[source.name]
            # A clock that was set back makes everything due.
            if now_s >= due_s or due_s - now_s > 2 * source.every_s:
                events += self._read(source, now_s)
                # The source adapts its interval to its cost; after an error it is read again soon.
                soon_s = _SOON_S if source.name in self._unread else math.inf
                self._due_s[source.name] = now_s + min(source.every_s, soon_s)
        for probed in self._probes:
            events += self._felt(probed, now_s)
        began_s = self._minute[0]
        if not 0 <= now_s - began_s < _MINUTE_S:
            events += self._end_minute(now_s)
        if not self._most_bytes and time.monotonic() - self._begun[0] > _STARTED_S:
            self._measure_itself()
        self._tell(events, now_s)

    def close(self) -> None:
        """End the probes and store the last minute."""
        # Measure while the probes still run.
        self._measure_itself()
        now_s = self._clock()
        events = []
        for probed in self._probes:
            self._stop(probed)
            events += remove_remains(probed, self._run, now_s)
        self._tell([*events, *self._end_minute(now_s)], now_s)

    def _away(self, now_s: float) -> list[WatchEvent]:
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
        self._read_s.clear()
        self._watch.passed(since.stopped_s + since.stepped_s)
        for probed in self._probes:
            # The probe goes by the clock as it was, until its next plan.
            probed.stopped_s = now_s if since.stepped_s >= 0 else -math.inf
            probed.worked_s = -math.inf
            probed.due_s.clear()
            probed.unanswered.pause()
        if since.stopped_s:
            text = f"the watch was stopped for {format_duration(since.stopped_s)}: nothing of that time is counted"
            events.append(WatchEvent("gap", "watch", began_s, now_s, text, began_s + since.stopped_s))
        if since.stepped_s:
            by = format_duration(abs(since.stepped_s))
            text = f"the clock was set forward by {by}" if since.stepped_s > 0 else f"the clock was set back by {by}"
            times = sorted((now_s - since.stepped_s, now_s))
            events.append(WatchEvent("gap", CLOCK, times[0], now_s, text, times[1]))
        return events

    def _close_earlier(self, now_s: float) -> Earlier:
        """End the open events of the previous watch, except recent alarms, which may continue."""
        kept_until_s = self._kept_until_s or 0.0
        held, events = [], self._ring.events()
        if 0 <= now_s - kept_until_s < PAUSE_S:
            over = [event for event in events if event.kind == "fail-over" and event.ended_s is not None]
            self._watch.look_back(untold_since_s(events, kept_until_s), over)
        for event in events:
            if event.ended_s is not None:
                continue
            if event.kind == "service-level" and self.budgets.go_on_with(event):
                self._open[event.key] = event
            elif event.alarm and event.kind != "service-level" and 0 <= now_s - kept_until_s < PAUSE_S:
                held.append(event)
                self._open[event.key] = event
            else:
                self._ring.add_event(ended(event, kept_until_s))
        return Earlier(held, kept_until_s, now_s)

    def _read(self, source: CounterSource, now_s: float) -> list[WatchEvent]:
        reading = source.read(now_s)
        said = "; ".join(reading.missing)[:300]
        events = []
        if not said and source.name not in self._judged:
            self._judged.add(source.name)
            events = [
                WatchEvent(
                    "gap",
                    f"{source.name}: {text.partition(':')[0]}",
                    now_s,
                    now_s,
                    f"{source.name}: not watched: {text}",
                )
                for text in source.lacking(reading)
            ]
        self._read_any |= not said
        outage, before = self._unread.get(source.name, (None, ""))
        if said:
            self._missed[source.name] += 1
            outage = outage or Outage(self._read_s.get(source.name, now_s), now_s, now_s)
            self._unread[source.name] = replace(outage, still_s=now_s), said
            if said != before:
                text = f"{source.name} cannot be read: {said}"
                events.append(WatchEvent("gap", source.name, outage.began_s, now_s, text))
        else:
            self._read_s[source.name] = now_s
            if outage:
                del self._unread[source.name]
                text = f"{source.name} can be read again; it could not be read for {outage.how_long(now_s)}: {before}"
                events.append(WatchEvent("gap", source.name, outage.began_s, now_s, text, outage.ended_s(now_s)))
        self._full |= dict(list(reading.full.items())[:500])
        self._counters |= {(source.name, name): value for name, value in list(reading.counters.items())[:400]}
        return [*events, *self._watch.add(reading)]

    def _felt(self, probed: Probed, now_s: float) -> list[WatchEvent]:
        if probed.probe is None:
            return self._not_begun(probed, now_s)
        try:
            if not 0 <= now_s - probed.mounted_s < _MOUNTED_EACH_S:
                probed.mounted_s = now_s
                if why_not := probed.mounted.why_not():
                    raise EnvironmentLacksError(why_not)
            operations = [
                operation for operation in probed.probe.take() if operation.due_s > probed.stopped_s + _DRAINED_S
            ]
        except StrakesError as error:
            self._stop(probed)
            # The error of an operation is more specific than the error of the plan.
            fails_why = str(probed.failing[0].evidence["why"]) if probed.failing else ""
            why = probed.mounted.why_not() or fails_why or error.why or error.what
            return self._failed(probed, EnvironmentLacksError(why), now_s)
        probed.worked_s = max([probed.worked_s, *(each.ended_s for each in operations if each.acknowledged)])
        if any(operation.errno in _GONE for operation in operations):
            # The directory is gone, so these latencies are meaningless. The next start of the probe reports it.
            self._stop(probed)
            probed.failed(now_s)
            probed.again_s = max(now_s, probed.started_s + AGAIN_S)
            return []
        stalls: list[tuple[float, float]] = []
        for operation in operations:
            self._count(probed, operation)
            if operation.ended_s - operation.due_s > _STALL_S:
                stalls.append((operation.due_s, operation.ended_s))
            # The probe recreates its files from time to time, and may wait before an operation is due.
            next_s = probed.due_s.get(operation.phase, operation.due_s) + 1 / RATE_PER_S
            if operation.due_s - next_s > _STALL_S:
                stalls.append((next_s, operation.due_s))
            probed.due_s[operation.phase] = operation.due_s
            # Operations that queued behind a slow one are not slow.
            slow = operation.acknowledged and operation.ended_s - operation.begun_s > _SLOW_S
            probed.control = probed.control.after(Felt(operation.phase, slow))
            (probed.slow.add if slow else probed.slow.discard)(operation.phase)
        if probed.control.stopped and operations and not probed.slow:
            # The file system has recovered, so the probe need not pause.
            probed.control = Control()
        if stalls:
            self._watch.add_stalls(stalls)
        events = [*self._unanswered(probed, operations, now_s), *fails(probed, operations, now_s)]
        if probed.control.stopped:
            # Pause the probe in favour of other users.
            self._stop(probed)
            probed.control, probed.again_s = Control(), now_s + AGAIN_S
            long = format_duration(AGAIN_S)
            text = (
                f"the probe of {probed.directory} pauses for {long}: its operations take more than "
                f"{format_duration(_SLOW_S)}"
            )
            events.append(gap_of(probed, now_s, text, probed.again_s))
        return events

    def _unanswered(self, probed: Probed, operations: Sequence[LoggedOperation], now_s: float) -> list[WatchEvent]:
        explained = any(
            event.kind == "fail-over" and now_s - event.began_s < _EXPLAINS_S for event in self._open.values()
        )
        return probed.unanswered.add(operations, now_s, explained=explained)

    def _not_begun(self, probed: Probed, now_s: float) -> list[WatchEvent]:
        if probed.answer.awaited and not probed.mounted.why_not():
            probed.failed(now_s)
            probed.unanswered.begin_in_vain(now_s)
            return self._unanswered(probed, [], now_s)
        return self._start(probed, now_s) if now_s >= probed.again_s or probed.again_s - now_s > 2 * AGAIN_S else []

    def _start(self, probed: Probed, now_s: float) -> list[WatchEvent]:
        stack = ExitStack()
        probed.refused = refused = 0
        try:
            if why_not := probed.mounted.why_not():
                probed.answer.forget()
                raise EnvironmentLacksError(why_not)
            # Workspace.create raises the error itself.
            refused = probed.answer.require()
            with interrupts_deferred():
                workspace = stack.enter_context(make_workspace(probed, self._run))
            probed.probe = stack.enter_context(Probe(workspace.path, rate_per_s=RATE_PER_S))
        except StrakesError as error:
            stack.close()
            probed.refused = refused
            if isinstance(error, MeasurementError):
                probed.unanswered.begin_in_vain(now_s)
            else:
                probed.unanswered.pause()
            events = self._failed(probed, error, now_s)
            if probed.answer.awaited:
                # The probe starts with the first answer.
                probed.again_s = now_s
            return events
        probed.stack, probed.started_s = stack, now_s
        probed.unanswered.begin(now_s)
        gap, probed.gap = probed.gap, None
        outage, probed.outage = probed.outage, None
        if gap is None or outage is None:
            return []
        long = outage.how_long(now_s)
        text = f"the probe of {probed.directory} works again; it could not work for {long}: {gap.evidence['why']}"
        return [replace(gap, told_s=now_s, ended_s=outage.ended_s(now_s), text=text)]

    def _failed(self, probed: Probed, error: StrakesError, now_s: float) -> list[WatchEvent]:
        # Checking the mount point is cheap.
        probed.again_s = now_s + (_MOUNTED_EACH_S if probed.mounted.why_not() else AGAIN_S)
        outage = probed.failed(now_s)
        self._missed[str(probed.directory)] += 1
        # Omit a redundant reason.
        why = f"{error.what}: {error.why}" if error.why and error.why != _NOT_THERE else error.what
        if probed.gap is not None:
            # The event has the first reason; its end will have the last one.
            probed.gap = replace(probed.gap, evidence={"why": why})
            return []
        gap = gap_of(probed, now_s, f"the probe of {probed.directory} cannot work: {why}")
        probed.gap = replace(gap, began_s=outage.began_s, evidence={"why": why})
        return [probed.gap]

    @staticmethod
    def _stop(probed: Probed) -> None:
        stack, probed.stack, probed.probe = probed.stack, None, None
        probed.due_s.clear()
        probed.unanswered.pause()
        if stack is not None:
            # The next start or the end of the watch removes the remains.
            with suppress(StrakesError):
                stack.close()

    def _count(self, probed: Probed, operation: LoggedOperation) -> None:
        figures = self._minute[1]
        took_s = operation.ended_s - operation.due_s if operation.acknowledged else math.inf
        figures.setdefault(_figure(probed, operation.phase), Histogram()).add(max(took_s, 1e-7))

    def _measure_itself(self) -> None:
        before_s, before, _ = self._loads
        at_s, load = time.monotonic(), own_load()
        share = (load.processor_s - before.processor_s) / max(at_s - before_s, 1.0)
        self._loads = (at_s, load, max(0.0, share))
        self._most_bytes = max(self._most_bytes, load.memory_bytes)

    def _end_minute(self, now_s: float) -> list[WatchEvent]:
        self._measure_itself()
        began_s, figures = self._minute
        self._minute = (now_s, {})
        read, self._read_any = self._read_any, False
        values = {
            figure: value
            for name, histogram in figures.items()
            for directory, _, operation in (name.partition(" probe "),)
            for figure, share in (
                (f"median of {operation} on {directory}", 0.5),
                (f"p95 of {operation} on {directory}", 0.95),
            )
            if math.isfinite(value := histogram.percentile(share))
        }
        # Service levels include the waiting time of hanging operations.
        for probed in self._probes:
            for kind, wait_s in waits_s(probed, now_s).items():
                figures.setdefault(_figure(probed, kind), Histogram()).add(wait_s)
        parts = ((name.partition(" probe "), histogram) for name, histogram in figures.items())
        self._recent = {(directory, operation): histogram for (directory, _, operation), histogram in parts}
        if not figures and not read:
            return []
        events = []
        # A row without figures says that the watch ran.
        row = RingRow(began_s, min(max(now_s - began_s, 1.0), 600.0), figures)
        if self._ring.add(row) and self._full_store:
            lost = counted(self._ring.lost, "line")
            long = format_duration(max(0.0, now_s - self._full_store.began_s))
            why = self._ring.why
            text = f"the store can be written again; for about {long} it could not, {lost} could not be stored: {why}"
            events = [replace(self._full_store, told_s=now_s, ended_s=max(now_s, self._full_store.began_s), text=text)]
            self._full_store = None
        if not 0 <= now_s - self._thinned_s < _THINNED_EACH_S:
            self._thinned_s = now_s
            self._ring.thin(now_s)
        if values:
            events += self._watch.add(CounterReading("probe", began_s, figures=values))
        return [*events, *self.budgets.add(row, now_s)]

    def _tell(self, events: list[WatchEvent], now_s: float) -> None:
        if self._ring.failing and self._full_store is None:
            text = f"the store cannot be written ({self._ring.why}): new readings are not stored"
            self._full_store = WatchEvent("gap", str(self._ring.directory), now_s, now_s, text)
            events.append(self._full_store)
        told = [(event, self._earlier.known(event)) for event in events]
        over = self._earlier.over(now_s)
        events = [known for _, known in told] + over + self._alerts.troubles(now_s)
        # Send only the end of events that the previous watch reported.
        news = [known for event, known in told if known is event or known.ended_s is not None] + over
        for event in events:
            self._ring.add_event(event)
            self._say(event)
            known = self._open.pop(event.key, None) is not None
            self._told[event.kind] += not known
            if event.ended_s is None and len(self._open) < _MOST_OPEN:
                self._open[event.key] = event
            elif event.alarm and not known:
                self._news[event.key] = (event, now_s + _NEWS_S)
        self._news = {key: news for key, news in self._news.items() if 0 <= news[1] - now_s <= _NEWS_S}
        self._alerts.tell(news)
        alarms = [event for event in self._open.values() if event.alarm] + [news for news, _ in self._news.values()]
        self.metrics.now = Now(
            latencies={
                (directory, operation, f"{100 * share:g}"): histogram.percentile(share)
                for (directory, operation), histogram in self._recent.items()
                for share in (0.5, 0.95, 0.99)
            },
            full=self._full,
            service_s=self._watch.service_s,
            counters=self._counters,
            own={"processor share": self._loads[2], "memory bytes": self._loads[1].memory_bytes},
            top=self._watch.top,
            alarms={(event.kind, event.subject): 1 for event in alarms},
            events=dict(self._told),
            budgets={kept.level.text: kept.budget_left for kept in self.budgets.kept},
            missed={**self._missed, **({"store": self._ring.lost} if self._ring.lost else {})},
            deliveries=self._alerts.counts,
        )


def _figure(probed: Probed, kind: str) -> str:
    return f"{probed.directory} probe {OPERATIONS.get(kind, kind)}"


def run_live(live: LiveWatch, stopping: Callable[[], bool]) -> None:
    """Step until told to stop."""
    os.nice(5)
    clocks, since = Clocks(), NO_BREAK
    try:
        while not stopping():
            live.step(since)
            since = clocks.rest(_TICK_S)
    finally:
        live.close()
