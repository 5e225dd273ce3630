"""All detectors of a watch, which derive events from counters. They do no I/O, and their memory is bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from statistics import median

from strakes.base.units import format_duration
from strakes.watch.heavy import HeavyJobs
from strakes.watch.level import LevelDetector
from strakes.watch.outages import Outages
from strakes.watch.reading import DATA_TARGETS, DISKS, METADATA_TARGETS, CounterReading, Work
from strakes.watch.slow import SlowTargets
from strakes.watch.values import WatchEvent

ALARMS_A_MONTH = 1.0  # Default of --false-alarms-a-month.
LEVEL_S = 300.0
FOR_CHANCE = 2.0  # Number of false level shifts per false alarm. Half are improvements, which raise no alarm.
_GAP_S = 300.0
# A saturation begins and ends at these used shares of a capacity. With equal shares, noise would raise many alarms.
_SATURATED, _RELIEVED = 0.90, 0.87
MOST_FIGURES = 200  # Maximum number of metrics. Memory grows in proportion.
# Maximum memory in bytes for the names of a source's targets. The names of 1,000 Lustre targets need half of it.
# A name needs 50 bytes in addition to its characters.
_MOST_NAMES_BYTES, _NAME_BYTES = 1_000_000, 50


class Watch:
    """All detectors of a watch. ``alarms_a_month``: false alarms per month that the level-shift detectors may raise."""

    def __init__(self, alarms_a_month: float = ALARMS_A_MONTH) -> None:
        self._alarms = FOR_CHANCE * alarms_a_month
        self.outages = Outages()
        self._slow = {group: SlowTargets(group) for group in (DISKS, DATA_TARGETS, METADATA_TARGETS)}
        self._heavy = {"operations": HeavyJobs("operations"), "bytes": HeavyJobs("bytes")}
        self._heavy["requests of clients"] = HeavyJobs("requests", "")
        # By group of similar devices, then by source.
        self._work_of: dict[str, dict[str, tuple[float, Mapping[str, Work]]]] = {}
        self._target_of: dict[str, str] = {}
        self._saturated: dict[tuple[str, str], WatchEvent] = {}
        self._levels: dict[str, LevelDetector] = {}
        self._batches: dict[str, tuple[float, list[float]]] = {}
        self._last_s: dict[str, float] = {}
        self._reported_as: dict[tuple[str, str], str] = {}
        # Source -> names of its targets and disks, or None after it has reported too many.
        self._names: dict[str, set[str] | None] = {}

    def add(self, reading: CounterReading) -> list[WatchEvent]:
        """Add a reading. Return the resulting events, sorted by their begin."""
        events = self._gap(reading)
        if self._names.setdefault(reading.source, set()) is None:
            return events
        if self._has_endless_names(reading):
            text = f"{reading.source}: the names of its targets do not end, so its counters are not used any more"
            return [*events, WatchEvent("gap", f"names of {reading.source}", reading.time_s, reading.time_s, text)]
        events += [*self.outages.add(reading), *self._work(reading)]
        counts = {
            "operations": reading.jobs,
            "bytes": reading.job_bytes,
            "requests of clients": {"": reading.clients} if reading.clients else {},
        }
        for unit, of_unit in counts.items():
            found = self._heavy[unit].add(reading.source, reading.time_s, of_unit) if of_unit else []
            events += [event for event in found if self._is_new(event, event.subject, unit)]
        events += self._saturation(reading, reading.full, "{} is {:.0%} full")
        events += self._saturation(reading, reading.locks, "{} has given out {:.0%} of its locks")
        for name, value in reading.figures.items():
            events += self._figure(reading.time_s, name, value)
        return sorted(events, key=lambda event: event.began_s)

    @property
    def service_s(self) -> dict[str, float]:
        """Return target -> service time per request in seconds, in the last window."""
        return {name: took for slow in self._slow.values() for name, took in slow.took.items()}

    @property
    def top(self) -> dict[str, list[tuple[str, float]]]:
        """Return unit -> (name, share of the load) of the heaviest jobs or clients."""
        return {unit: heavy.top for unit, heavy in self._heavy.items()}

    def passed(self, seconds: float) -> None:
        """Exclude a suspension or clock step of ``seconds`` from the next gap, because the caller has reported it."""
        self._last_s = {source: last_s + seconds for source, last_s in self._last_s.items()}

    def _gap(self, reading: CounterReading) -> list[WatchEvent]:
        last_s = self._last_s.get(reading.source)
        self._last_s[reading.source] = now_s = reading.time_s
        if last_s is None or -5 < now_s - last_s < _GAP_S:
            return []
        long = format_duration(abs(now_s - last_s))
        text = f"{reading.source}: nothing was read for {long}, or the clock was set forward by as much"
        if now_s < last_s:
            text = f"{reading.source}: the clock was set back by {long}"
        return [WatchEvent("gap", reading.source, min(last_s, now_s), now_s, text, max(last_s, now_s))]

    def _has_endless_names(self, reading: CounterReading) -> bool:
        waits = (wait.target for wait in reading.waits)
        kinds = chain.from_iterable(work.kinds for group in reading.work.values() for work in group.values())
        new = chain(reading.serving or (), *reading.work.values(), kinds, reading.full, reading.locks, waits)
        names = {*(self._names[reading.source] or ()), *new}
        endless = sum(_NAME_BYTES + len(name) for name in names) > _MOST_NAMES_BYTES
        self._names[reading.source] = None if endless else names
        return endless

    def _work(self, reading: CounterReading) -> list[WatchEvent]:
        events = []
        for group in (DATA_TARGETS, METADATA_TARGETS):
            if group in reading.work:
                work = self._of_all_servers(group, reading, reading.work[group])
                events += self._slow[group].add(reading.time_s, work)
        targets = reading.work.get(DATA_TARGETS, {})
        disks = reading.work.get(DISKS, {})
        # Disk names such as sda are not unique across servers, so add the name of the source.
        keys = {f"{reading.source} {disk}": disk for disk in disks if reading.devices.get(disk) in targets}
        if keys:
            self._target_of |= {key: reading.devices[disk] for key, disk in keys.items()}
            work = self._of_all_servers(DISKS, reading, {key: disks[disk] for key, disk in keys.items()})
            events += self._slow[DISKS].add(reading.time_s, work, self._target_of)
        # A slow disk makes its target slow, so report only one of the two.
        return [event for event in events if self._is_new(event, str(event.evidence["target"]), event.subject)]

    def _of_all_servers(self, group: str, reading: CounterReading, work: Mapping[str, Work]) -> dict[str, Work]:
        of_sources = self._work_of.setdefault(group, {})
        of_sources[reading.source] = (reading.time_s, work)
        newest: dict[str, Work] = {}
        for _, of_source in sorted(of_sources.values(), key=lambda each: each[0]):
            newest |= of_source
        return newest

    def _is_new(self, event: WatchEvent, culprit: str, reported_as: str) -> bool:
        key = (event.kind, culprit)
        if event.ended_s is None:
            return self._reported_as.setdefault(key, reported_as) == reported_as
        return self._reported_as.get(key) == reported_as and bool(self._reported_as.pop(key))

    def _saturation(self, reading: CounterReading, shares: Mapping[str, float], words: str) -> list[WatchEvent]:
        events = []
        for subject, share in shares.items():
            key, now_s = (reading.source, subject), reading.time_s
            if key not in self._saturated and share >= _SATURATED:
                text = words.format(subject, share)
                event = WatchEvent("saturation", subject, now_s, now_s, text, size=share, unit="share")
                self._saturated[key] = event
                events.append(event)
            elif key in self._saturated and share < _RELIEVED:
                events.append(replace(self._saturated.pop(key), ended_s=now_s))
        return events

    def _figure(self, time_s: float, name: str, value: float) -> list[WatchEvent]:
        began_s, values = self._batches.get(name, (time_s, []))
        if name not in self._batches and len(self._batches) >= MOST_FIGURES:
            return []
        if 0 <= time_s - began_s < LEVEL_S:
            self._batches[name] = (began_s, [*values, value])
            return []
        self._batches[name] = (time_s, [value])
        if name not in self._levels:
            self._levels[name] = LevelDetector(name, self._alarms, worse_up=True)
            for level in self._levels.values():
                level.alarms_a_month = self._alarms / len(self._levels)
        return self._levels[name].add(began_s, median(values)) if values else []
