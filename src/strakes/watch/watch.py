"""All detectors of a watch, which turn readings into events. Pure, online, and in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from strakes.base.units import format_duration
from strakes.stats.change import Grade
from strakes.watch.heavy import HeavyJobs, OneOfUnits
from strakes.watch.level import LevelChange, LevelDetector, LevelEnd
from strakes.watch.outages import Outages
from strakes.watch.reading import DATA_TARGETS, DISKS, METADATA_TARGETS, CounterReading, Work
from strakes.watch.saturation import SaturationDetector
from strakes.watch.slow import Named, SlowTargets
from strakes.watch.values import WatchEvent

ALARMS_A_MONTH = 1.0
# False level shifts per accepted false alarm: half of the shifts are gains, which raise no alarm.
FOR_CHANCE = 2.0
# A false alarm within a peer group blames one member, so it costs more.
FOR_CHANCE_OF_EQUALS = 0.5
# The cause of a change to the better, which raises no alarm.
GAIN = "a gain"
# Levels are detected in medians over this time, which resolve the daily seasonality.
LEVEL_S = 300.0
# Limit of the number of figures.
MOST_FIGURES = 200
# A longer interval between two readings is reported as a gap.
_GAP_S = 300.0


class Watch:
    """All detectors. ``alarms_a_month``: accepted number of false level alarms a month over all figures."""

    def __init__(self, alarms_a_month: float = ALARMS_A_MONTH) -> None:
        self._alarms = FOR_CHANCE * alarms_a_month
        self.outages = Outages()
        self._slow = {group: SlowTargets(group) for group in (DISKS, DATA_TARGETS, METADATA_TARGETS)}
        self._heavy = {"operations": HeavyJobs("operations"), "bytes": HeavyJobs("bytes")}
        self._heavy["requests of clients"] = HeavyJobs("requests", "")
        self._one_of_units = OneOfUnits()
        # Group -> source -> time and counters, since a peer group may span several servers.
        self._work_of: dict[str, dict[str, tuple[float, Mapping[str, Work]]]] = {}
        self._saturation: dict[str, SaturationDetector] = {}
        self._names: dict[str, Named] = {}
        self._levels: dict[str, LevelDetector] = {}
        self._batches: dict[str, tuple[float, list[float]]] = {}
        self._last_s: dict[str, float] = {}
        self._changed: dict[tuple[str, Grade], WatchEvent] = {}
        self._slow_told: dict[str, str] = {}
        self.left_out = 0
        """Number of figures beyond the limit."""

    def add(self, reading: CounterReading) -> list[WatchEvent]:
        """Add a reading; return its events in order of their onset."""
        events = self._gap(reading)
        events += self.outages.add(reading)
        events += self._work(reading)
        counts = {
            "operations": reading.jobs,
            "bytes": reading.job_bytes,
            "requests of clients": {"": reading.clients} if reading.clients else {},
        }
        heavy = {
            unit: self._heavy[unit].add(reading.source, reading.time_s, of_unit)
            for unit, of_unit in counts.items()
            if of_unit
        }
        events += self._one_of_units.add(heavy)
        saturation = self._saturation.setdefault(reading.source, SaturationDetector())
        events += saturation.add(reading.time_s, reading.full, reading.locks)
        for name, value in reading.figures.items():
            events += self._figure(reading.time_s, name, value)
        return sorted(events, key=lambda event: event.began_s)

    @property
    def service_s(self) -> dict[str, float]:
        """Return the service time per request of each target in the last window, in seconds."""
        return {name: took for slow in self._slow.values() for name, took in slow.took.items()}

    @property
    def top(self) -> dict[str, list[tuple[str, float]]]:
        """Return the jobs or clients that cause the load, by unit: name and share."""
        return {unit: heavy.top for unit, heavy in self._heavy.items()}

    def passed(self, seconds: float) -> None:
        """Skip the time during which the watch was stopped or by which the clock was set. The caller reports it."""
        self._last_s = {source: last_s + seconds for source, last_s in self._last_s.items()}

    def _gap(self, reading: CounterReading) -> list[WatchEvent]:
        last_s = self._last_s.get(reading.source)
        self._last_s[reading.source] = reading.time_s
        if last_s is None or -5 < reading.time_s - last_s < _GAP_S:
            return []
        if reading.time_s < last_s:
            text = f"{reading.source}: the clock was set back by {format_duration(last_s - reading.time_s)}"
        else:
            long = format_duration(reading.time_s - last_s)
            text = f"{reading.source}: nothing was read for {long}, or the clock was set forward by that"
        return [
            WatchEvent(
                "gap", reading.source, min(last_s, reading.time_s), reading.time_s, text, max(last_s, reading.time_s)
            )
        ]

    def _work(self, reading: CounterReading) -> list[WatchEvent]:
        events = []
        for group in (DATA_TARGETS, METADATA_TARGETS):
            if group in reading.work:
                work = self._together(group, reading, reading.work[group])
                events += self._new(self._slow[group].add(reading.time_s, work))
        targets = reading.work.get(DATA_TARGETS, {})
        disks = reading.work.get(DISKS, {})
        # Two servers may have disks with the same name.
        keys = {f"{reading.source} {disk}": disk for disk in disks if reading.devices.get(disk) in targets}
        if keys:
            for key, disk in keys.items():
                target = reading.devices[disk]
                self._names[key] = Named(f"{target} ({DISKS} {disk})", target)
            work = self._together(DISKS, reading, {key: disks[disk] for key, disk in keys.items()})
            events += self._new(self._slow[DISKS].add(reading.time_s, work, self._names))
        return events

    def _together(self, group: str, reading: CounterReading, work: Mapping[str, Work]) -> dict[str, Work]:
        """Return the newest counters of each member of a group, over all servers."""
        of_sources = self._work_of.setdefault(group, {})
        of_sources[reading.source] = (reading.time_s, work)
        together: dict[str, Work] = {}
        for _, of_source in sorted(of_sources.values(), key=lambda each: each[0]):
            together |= of_source
        return together

    def _new(self, events: list[WatchEvent]) -> list[WatchEvent]:
        """Drop duplicate events: if a disk is slow, its target is slow, too."""
        new = []
        for event in events:
            target = str(event.evidence["target"])
            if event.ended_s is None:
                first = self._slow_told.setdefault(target, event.subject) == event.subject
            elif first := self._slow_told.get(target) == event.subject:
                del self._slow_told[target]
            if first:
                new.append(event)
        return new

    def _figure(self, time_s: float, name: str, value: float) -> list[WatchEvent]:
        began_s, values = self._batches.get(name, (time_s, []))
        if name not in self._batches and len(self._batches) >= MOST_FIGURES:
            self.left_out += 1
            return []
        if 0 <= time_s - began_s < LEVEL_S:
            self._batches[name] = (began_s, [*values, value])
            return []
        self._batches[name] = (time_s, [value])
        if name not in self._levels:
            self._levels[name] = LevelDetector(self._alarms)
            for detector in self._levels.values():
                detector.alarms_a_month = self._alarms / len(self._levels)
        told = self._levels[name].add(began_s, median(values)) if values else None
        return self._level_events(name, told)

    def _level_events(self, name: str, told: LevelChange | LevelEnd | None) -> list[WatchEvent]:
        """Return the event of a change, and the end of the warning or change before it."""
        if told is None:
            return []
        key = (name, told.grade)
        if isinstance(told, LevelEnd):
            known = self._changed.pop(key, None)
            return [] if known is None else [replace(known, ended_s=max(told.ended_s, known.began_s))]
        events = []
        if told.grade == "confirmed" and (warning := self._changed.pop((name, "early"), None)) is not None:
            events.append(replace(warning, ended_s=told.told_s))
        self._changed[key] = level_event(name, told, worse_up=True)
        return [*events, self._changed[key]]


def level_event(
    name: str, told: LevelChange, *, worse_up: bool, cause: str = "", of_equals: bool = False
) -> WatchEvent:
    """Return the event of a change of level. A change to the better has the cause "a gain" and raises no alarm.

    ``of_equals``: the level is relative to the peer group.
    """
    better = (told.ratio < 1) == worse_up
    sizes = [_change(size, relative=told.relative) for size in (told.ratio, told.low, told.high)]
    if of_equals:
        text = (
            f"{name} changed by {sizes[0]} ({sizes[1]} to {sizes[2]}) against the others, "
            f"from {told.before:.2f} to {told.after:.2f} times their mean"
        )
    else:
        text = f"{name} changed by {sizes[0]} ({sizes[1]} to {sizes[2]}), from {told.before:.4g} to {told.after:.4g}"
    offset = 0.0 if told.relative else 1.0
    return WatchEvent(
        "level" if told.grade == "confirmed" else "early-warning",
        name,
        told.began_s,
        told.told_s,
        text,
        size=told.ratio - offset,
        low=told.low - offset,
        high=told.high - offset,
        unit="ratio" if told.relative else "difference",
        cause=cause or (GAIN if better else ""),
        evidence={"before": told.before, "after": told.after, "grade": told.grade},
    )


def _change(ratio: float, *, relative: bool) -> str:
    """Return a change with its sign.

    >>> _change(0.6, relative=True), _change(0.9999, relative=True), _change(-39.0, relative=False)
    ('-40%', '0%', '-40')
    >>> _change(1.0, relative=False)
    '0'
    """
    if not relative:
        return f"{ratio - 1:+.4g}" if ratio != 1 else "0"
    return f"{ratio - 1:+.0%}" if abs(ratio - 1) >= 0.005 else "0%"
