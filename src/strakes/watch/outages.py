"""Detect outages of targets from the times at which sources found a target in service or out of service.

Sources are servers, clients and probes. An outage began between the last time in service and the first time out of
service. The end of an outage is bounded in the same way. Simultaneous outages, such as outages of all targets of a
server, are one event.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from strakes.base.units import format_duration
from strakes.targets.description import Interruption
from strakes.watch.reading import PING_S, CounterReading
from strakes.watch.values import WatchEvent

_GROUP_S = 20.0
_SETTLE_S = 30.0  # All sources report the end of an outage within a ping interval.
_SAME_ONSET_S = 60.0
# A disconnection for less than 10 s without a restart of the server is no outage. If a target serves for less than 10
# s, its outage continues.
_SHORT_S = 10.0
_HANG_S = 30.0  # If operations in a directory hang for this time, report an outage of the directory.
_CLOCKS_DIFFER_S = 60.0
_MOST_NAMES = 12  # Maximum number of names in a message. The message grows in proportion.


@dataclass
class _Outage:
    """One outage of a target.

    The target was in service at ``up_s``, out of service from ``down_s`` to ``still_s``, and in service at ``back_s``.
    """

    target: str
    server: str
    detected_s: float
    up_s: float
    down_s: float
    still_s: float
    back_s: float | None = None
    mounted_s: float | None = None  # Time at which a server mounted the target again and recovery began.
    misses: int = 0
    missing: bool = False
    # Client -> time at which its wait for the target ended, or infinity while it waits.
    waits: dict[str, float] = field(default_factory=dict)
    sure: bool = False
    superseded: bool = False
    evicted: bool = False
    # True if the server restarted. The evidence: a client had to replay requests.
    restarted: bool = False
    # True if the outage may have begun before the recording, so that ``up_s`` is uncertain.
    earlier: bool = False
    # Lower bound of the clock difference between two sources, in seconds.
    apart_s: float = 0.0
    new_server: str = ""
    event: WatchEvent | None = None

    @property
    def lasts(self) -> bool:
        waits = self.missing or math.inf in self.waits.values() or self.back_s is None
        return waits and not self.superseded

    @property
    def listed_s(self) -> float:
        return math.inf if self.missing or not self.misses or self.mounted_s is None else self.mounted_s

    @property
    def is_directory(self) -> bool:
        return self.target.startswith("/")

    def fails_with(self, other: _Outage) -> bool:
        return self.server == other.server and not self.misses and self.up_s <= other.down_s <= self.down_s

    def is_settled(self, now_s: float) -> bool:
        return self.superseded or (not self.lasts and now_s >= (self.back_s or now_s) + _SETTLE_S)

    def unserved(self, now_s: float) -> None:
        self.still_s, self.back_s = max(self.still_s, now_s), None


@dataclass(frozen=True)
class _Served:
    server: str
    seen_s: float
    start_s: float
    recovered_s: float | None
    # Request counter. It has increased in every reading since ``busy_since_s``.
    requests: float
    busy_since_s: float


class Outages:
    """Detector of the outages of all targets. A target may move to another server."""

    def __init__(self) -> None:
        self._served: dict[str, _Served] = {}
        self._open: dict[str, _Outage] = {}
        self._superseded: list[_Outage] = []
        self._closed_s: dict[str, float] = {}
        self._since_s: float | None = None

    def resume(self, until_s: float, events: Iterable[WatchEvent]) -> None:
        """Continue after an earlier watch that reported ``events`` and ended at ``until_s`` (Unix time)."""
        self._since_s = until_s - _SETTLE_S - _GROUP_S
        for event in events:
            if event.ended_s is not None:
                self._closed_s |= dict.fromkeys(event.subject.split(", "), min(event.ended_s, until_s))

    def add(self, reading: CounterReading) -> list[WatchEvent]:
        """Add a reading. Return events for outages that begin or end."""
        if self._since_s is None:
            self._since_s = reading.time_s
        if reading.serving is not None:
            self._add_served(reading, reading.serving)
            self._add_missing(reading, reading.serving)
        # A client waits while any of its connections waits. The last wait decides, so sort unfinished waits last.
        waits = sorted(reading.waits, key=lambda wait: wait.ended_unix_s is None)
        newest = {wait.target: wait for wait in waits}
        for wait in waits:
            if not (wait.or_earlier and wait is not newest[wait.target] and wait.target in self._closed_s):
                self._add_wait(reading, wait)
        return [*self._begun(reading.time_s), *self._ended(reading.time_s)]

    def _add_served(self, reading: CounterReading, serving: Mapping[str, float]) -> None:
        for target, counted_s in serving.items():
            now_s, requests = reading.time_s, reading.served.get(target, 0.0)
            recovered_s = reading.recovered.get(target)
            first = _Served(reading.source, now_s, counted_s, recovered_s, requests, now_s)
            known = self._served.get(target, first)
            start_s, recovered_s = counted_s or known.start_s, recovered_s or known.recovered_s
            recovers, outage = target in reading.recovering, self._open.get(target)
            # Counters were reset, by a remount of the target or by an operator.
            restarted = start_s > known.start_s + 1
            if not (outage and outage.misses):
                closed_s = self._closed_s.get(target, -math.inf) + _CLOCKS_DIFFER_S
                restarted &= start_s > closed_s and (recovers or recovered_s != known.recovered_s)
            if outage and restarted and outage.listed_s < start_s:
                outage = self._ongoing(target, start_s, outage.listed_s)
            if restarted and outage is None:
                down_s = start_s if known.seen_s <= start_s <= now_s else now_s
                outage = self._begin(target, now_s, known.seen_s, down_s, sure=True)
            if outage and outage.event is None and not (outage.sure or outage.waits or restarted):
                if start_s:
                    # The counters were not reset, so the target never stopped, and the previous reading was incomplete.
                    del self._open[target]
                    outage = None
                else:
                    outage.sure = True
            elif outage and restarted:
                outage.sure = True
                if not outage.misses:
                    outage.apart_s = max(outage.apart_s, known.seen_s - outage.down_s)
            if outage:
                self._listed(outage, reading, start_s)
            seen_s = outage.up_s if outage and recovers else now_s
            # Requests after a long interval do not show that the target was up: the interval may hide an outage.
            busy = requests > known.requests and now_s - known.seen_s <= _GROUP_S and not (recovers or restarted)
            busy_since_s = known.busy_since_s if busy else now_s
            self._served[target] = _Served(reading.source, seen_s, start_s, recovered_s, requests, busy_since_s)

    @staticmethod
    def _listed(outage: _Outage, reading: CounterReading, start_s: float) -> None:
        if outage.mounted_s is None:
            known = outage.down_s <= start_s <= reading.time_s
            outage.mounted_s = start_s if known else outage.still_s if outage.misses else reading.time_s
            outage.still_s = max(outage.still_s, outage.mounted_s)
        outage.missing = outage.target in reading.recovering
        outage.back_s = None if outage.missing else outage.back_s or reading.time_s
        outage.new_server = reading.source if outage.server not in ("", reading.source) else ""

    def _add_missing(self, reading: CounterReading, serving: Mapping[str, float]) -> None:
        for target, known in self._served.items():
            if known.server == reading.source and target not in serving:
                outage = self._open.get(target)
                if outage:
                    missed_s = known.seen_s if math.isinf(outage.listed_s) else reading.time_s
                    outage = self._ongoing(target, missed_s, outage.listed_s)
                outage = outage or self._begin(target, reading.time_s, known.seen_s, reading.time_s)
                if outage.waits and not outage.misses:
                    outage.apart_s = max(outage.apart_s, known.seen_s - outage.down_s)
                outage.misses += 1
                # A single reading without the target may be incomplete, so require two.
                outage.sure |= outage.misses > 1
                outage.missing, outage.mounted_s = True, None
                outage.unserved(reading.time_s)

    def _add_wait(self, reading: CounterReading, wait: Interruption) -> None:
        began_s, ended_s = wait.began_unix_s, wait.ended_unix_s
        target, since_s = wait.target, self._since_s or 0.0
        if ended_s is not None and (ended_s < since_s or began_s <= self._closed_s.get(target, -math.inf)):
            return
        outage = self._open.get(target)
        outage = outage and self._ongoing(target, began_s, outage.waits.get(reading.source, math.inf))
        if outage is None:
            known = self._served.get(target)
            # The outage may have begun earlier, because a client notices an outage only at its next request or ping.
            up_s = began_s - (PING_S if target in reading.connected else wait.within_s)
            if known and wait.or_earlier:
                up_s = known.seen_s
            elif known:
                up_s = max(up_s, min(known.seen_s, began_s - wait.within_s))
            up_s = max(up_s, self._closed_s.get(target, up_s))
            outage = self._begin(target, reading.time_s, min(up_s, began_s), began_s)
        if began_s <= outage.down_s:
            outage.earlier = wait.or_earlier and not outage.server
        if outage.is_directory:
            outage.sure |= reading.time_s - began_s >= _HANG_S
        else:
            outage.sure |= not wait.reconnected or (ended_s or reading.time_s) - began_s >= _SHORT_S
        outage.waits[reading.source] = ended_s or math.inf
        outage.evicted |= wait.evicted
        outage.restarted |= ended_s is not None and not (wait.reconnected or wait.evicted or wait.or_earlier)
        if began_s < outage.down_s:
            outage.apart_s = max(outage.apart_s, outage.up_s - began_s)
            outage.down_s, outage.up_s = began_s, min(outage.up_s, began_s)
        if ended_s is None:
            outage.unserved(reading.time_s)
        else:
            outage.missing &= ended_s < outage.still_s
            outage.still_s = max(outage.down_s, min(outage.still_s, ended_s), ended_s - wait.within_s)
            outage.back_s = max(outage.back_s or 0.0, ended_s + wait.within_s)

    def _ongoing(self, target: str, unserved_s: float, served_s: float) -> _Outage | None:
        outage = self._open[target]
        if math.isinf(served_s) and not outage.lasts:
            served_s = outage.back_s or math.inf
        if unserved_s < served_s + _SHORT_S:
            return outage
        outage.superseded, outage.back_s = True, min(outage.back_s or served_s, unserved_s)
        self._superseded.append(self._open.pop(target))
        self._closed_s[target] = served_s
        return None

    def _begin(self, target: str, now_s: float, up_s: float, down_s: float, *, sure: bool = False) -> _Outage:
        known = self._served.get(target)
        outage = _Outage(target, known.server if known else "", now_s, up_s, down_s, down_s, sure=sure)
        self._open[target] = outage
        return outage

    def _is_cut_off(self, outage: _Outage) -> bool:
        known = self._served.get(outage.target)
        if known is None or not outage.waits or outage.misses or outage.superseded or outage.restarted:
            return False
        until_s = max(outage.down_s, outage.still_s - _GROUP_S) if outage.lasts else outage.back_s or math.inf
        return known.busy_since_s <= outage.down_s and known.seen_s >= until_s

    def _begun(self, now_s: float) -> list[WatchEvent]:
        unfinished = (*self._superseded, *self._open.values())
        new = [outage for outage in unfinished if outage.event is None and outage.sure]
        told = [outage for outage in unfinished if outage.event is not None]
        for outage in (outage for outage in new if outage.is_directory or not outage.misses):
            # Report a hanging directory and an outage of its target as one event.
            if known := [each for each in told if outage.is_directory or outage.fails_with(each)]:
                outage.event, outage.down_s = known[0].event, min(outage.down_s, known[0].down_s)
                told.append(outage)
        new = [outage for outage in new if outage.event is None]
        others = [outage for outage in new if not self._is_cut_off(outage)]
        # If only clients seem to be cut off, wait. A server with a different clock may still report an outage.
        new = others or [each for each in new if not each.lasts or each.down_s <= now_s - _CLOCKS_DIFFER_S]
        if not new or now_s < min(outage.detected_s for outage in new) + _GROUP_S:
            return []
        new.sort(key=lambda outage: outage.down_s, reverse=True)
        first = new[-1]
        same = (each for each in new if each.down_s - first.down_s <= _SAME_ONSET_S or each.fails_with(first))
        group = list({outage.target: outage for outage in same}.values())
        if not any(outage.lasts for outage in group) and not all(outage.is_settled(now_s) for outage in group):
            return []
        shown = _shown(group)
        # On average, an outage begins half a ping interval after the target was last in service.
        began_s = min(outage.up_s + min(outage.down_s - outage.up_s, PING_S) / 2 for outage in group)
        least_s = max(0.0, *(now_s - outage.down_s for outage in shown))
        listed = names([outage.target for outage in shown])
        alone = self._is_cut_off(shown[0])
        text = f"{_described(shown, 'is', 'are', alone=alone)}, for at least {format_duration(least_s)}"
        text += f": {listed}" if len(shown) > 1 else ""
        event = WatchEvent("outage", _clients(shown) if alone else listed, began_s, now_s, text)
        for outage in group:
            outage.event = event
        return [event] if any(outage.lasts for outage in group) else []

    def _ended(self, now_s: float) -> list[WatchEvent]:
        groups: dict[tuple[str, str, float], list[_Outage]] = {}
        for outage in (*self._superseded, *self._open.values()):
            if outage.event is not None:
                groups.setdefault(outage.event.key, []).append(outage)
            elif outage.is_settled(now_s) and not outage.sure:
                groups[outage.target, "", outage.down_s] = [outage]
        events = []
        for group in groups.values():
            if all(outage.is_settled(now_s) for outage in group):
                if group[0].event is not None:
                    alone = all(self._is_cut_off(outage) for outage in group)
                    events.append(_over(group[0].event, group, now_s, alone=alone))
                for outage in group:
                    if outage.superseded:
                        self._superseded.remove(outage)
                    else:
                        del self._open[outage.target]
                        self._closed_s[outage.target] = outage.back_s or now_s
        return events


def _shown(group: Sequence[_Outage]) -> Sequence[_Outage]:
    return [outage for outage in group if not outage.is_directory] or group


def _described(outages: Sequence[_Outage], one: str, several: str, *, alone: bool) -> str:
    count = f"{len(outages)} targets"
    if alone:
        what = outages[0].target if len(outages) == 1 else count
        return f"{_clients(outages)} was cut off from {what}, while other clients were served"
    if len(outages) == 1:
        return f"{outages[0].target} {one} unavailable"
    servers = {outage.server for outage in outages}
    of = f" of {servers.pop()}" if len(servers) == 1 and servers != {""} else ""
    return f"{count}{of} {several} unavailable"


def _clients(outages: Sequence[_Outage]) -> str:
    return names([*{source for outage in outages for source in outage.waits}])


def _over(event: WatchEvent, group: Sequence[_Outage], now_s: float, *, alone: bool) -> WatchEvent:
    shown = sorted(_shown(group), key=lambda outage: outage.back_s or now_s)
    together: list[list[_Outage]] = []
    for outage in shown:
        if not together or (outage.back_s or now_s) > (together[-1][0].back_s or now_s) + _GROUP_S:
            together.append([])
        together[-1].append(outage)
    bounds = [_bounds(each, now_s, alone=alone) for each in together]
    spans = [f"for {_in_words(*of)}" for of in bounds]
    if len(shown) > 1:
        listed = (names([outage.target for outage in each]) for each in together)
        spans = [f"{several} {span}" for several, span in zip(listed, spans, strict=True)]
    said = _described(shown, "was", "were", alone=alone)
    text = f"{said}{':' if len(shown) > 1 else ',' * alone} {'; '.join(spans)}"
    moved = sorted({f"{outage.server} to {outage.new_server}" for outage in shown if outage.new_server})
    text += f"; failed over from {' and from '.join(moved)}" if moved else ""
    text += "; a client was evicted" if any(outage.evicted for outage in shown) else ""
    middles = ((outage.still_s + (outage.back_s or now_s)) / 2 for outage in shown)
    low_s, high_s = min(low_s for low_s, _ in bounds), max(high_s for _, high_s in bounds)
    ended_s = max(event.began_s, *middles)
    high = high_s if math.isfinite(high_s) else None
    return replace(event, told_s=now_s, text=text, ended_s=ended_s, low=low_s, high=high, unit="s")


def _bounds(outages: Sequence[_Outage], now_s: float, *, alone: bool) -> tuple[float, float]:
    low_s, high_s = math.inf, 0.0
    for outage in outages:
        # Widen the bounds, because the clock offset is known only up to the interval between readings.
        wider_s = outage.apart_s + _SHORT_S if outage.apart_s > 0 else 0.0
        up_s, mounted_s = outage.up_s, outage.mounted_s or math.inf
        if alone:
            # If only clients are cut off, the times of server counters do not bound the interruption.
            up_s, mounted_s = min(up_s, outage.down_s - PING_S), math.inf
        least_s = min(outage.still_s, mounted_s) - outage.down_s - wider_s
        most_s = (outage.back_s or now_s) - up_s + wider_s
        # If the lower bound is above the upper bound, the clocks differ by more than estimated, so exchange the bounds.
        least_s, most_s = max(0.0, min(least_s, most_s)), max(0.0, least_s, most_s)
        low_s, high_s = min(low_s, least_s), max(high_s, math.inf if outage.earlier else most_s)
    return low_s, high_s


def _in_words(low_s: float, high_s: float) -> str:
    if math.isinf(high_s):
        return f"at least {format_duration(low_s)}"
    least, most = format_duration(low_s), format_duration(high_s)
    return f"at most {most}" if low_s <= 0 or least == most else f"{least} to {most}"


def names(targets: Sequence[str]) -> str:
    """Return up to 12 target names as text. If there are more, the text ends with "and N more"."""
    most = sorted(targets)[:_MOST_NAMES]
    more = len(targets) - len(most)
    return ", ".join(most) + (f" and {more} more" if more else "")
