"""Reports outages of targets and the waiting times of clients, read from servers, from clients, or from both."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from strakes.targets.description import Interruption
from strakes.units import format_duration
from strakes.watch.absence import Absence, Ended
from strakes.watch.connected import Connected
from strakes.watch.grouping import PATIENCE_S, Span, Together, Told, names
from strakes.watch.reading import CounterReading, directory_of
from strakes.watch.values import WatchEvent

_MOST_STALLS = 256
# For smaller estimates only the upper bound is reported.
_SMALLEST_ESTIMATE_S = 1e-3
# Numbers of recent intervals between readings that are kept, and required, to predict the next one.
_INTERVALS, _FEWEST_INTERVALS = 20, 5
# A client pings its targets each 25 s, so it notices a new mount within this time.
_NOTICED_S = 26.0


class AwayTargets:
    """One for all sources: a target may move from one server to another."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float, str]] = {}
        self._away: dict[str, Absence] = {}
        self._connected = Connected()
        self._recovered: dict[str, float] = {}
        self._together = Together()
        self._began_s: float | None = None
        self._told_before: Sequence[WatchEvent] = ()
        self._waits_told: dict[str, float] = {}
        self._client_waits: dict[str, Interruption] = {}
        self._client_outages: dict[str, tuple[float, float]] = {}
        self._read_s: dict[str, float] = {}
        self._intervals: dict[str, deque[float]] = {}
        self._stalls: deque[tuple[float, float]] = deque(maxlen=_MOST_STALLS)

    def add(self, reading: CounterReading) -> list[WatchEvent]:
        """Add a reading; return long outages and ended ones."""
        self._began_s = reading.time_s if self._began_s is None else self._began_s
        self._connected.add(reading)
        if reading.serving is not None:
            self._servers(reading, reading.serving)
        for wait in reading.waits:
            if wait.began_unix_s >= self._began_s - 1 and not any(_tells(event, wait) for event in self._told_before):
                self._client(wait)
        return [*self._of_servers(reading.time_s), *self._of_clients(reading.time_s)]

    def look_back(self, since_s: float, told: Sequence[WatchEvent]) -> None:
        """Also report waits of clients since this time. ``told``: ended events of the previous watch."""
        self._began_s, self._told_before = since_s, told

    def add_stalls(self, stalls: Sequence[tuple[float, float]]) -> None:
        """Add begin and end of slow operations of a probe."""
        self._stalls.extend(stalls)

    def _servers(self, reading: CounterReading, serving: Mapping[str, float]) -> None:
        usual_s = self._usual_s(reading)
        for target, start_s in serving.items():
            seen_s, start_before, source = self._seen.get(target, (reading.time_s, start_s, reading.source))
            if target not in self._away and start_s > start_before + 1 and start_s > seen_s - 1:
                # The outage lies between two readings.
                self._away[target] = Absence(
                    source, seen_s, start_s, usual_s, start_before, self._recovered.get(target)
                )
            self._seen[target] = (reading.time_s, start_s, reading.source)
            if away := self._away.get(target):
                if away.back_s is None:
                    away.back_s, away.began_anew_s = reading.time_s, start_s
                away.clients_back_s = reading.recovered.get(target)
                away.was_recovering |= target in reading.recovering
                if away.recovered_s is None and target not in reading.recovering:
                    away.recovered_s = reading.time_s
        for target, (seen_s, start_before, source) in self._seen.items():
            if source == reading.source and target not in serving:
                spared = target in reading.spared
                before_s = self._recovered.get(target)
                away = self._away.setdefault(
                    target,
                    Absence(source, seen_s, reading.time_s, usual_s, start_before, before_s, spared=spared),
                )
                if away.back_s is not None and away.recovered_s is None:
                    away.leave_again()
                if away.back_s is None:
                    away.still_away_s = reading.time_s
        self._recovered |= reading.recovered

    def _usual_s(self, reading: CounterReading) -> float:
        """Return the longest recent interval between readings of a source; infinity if too few are known."""
        intervals = self._intervals.setdefault(reading.source, deque(maxlen=_INTERVALS))
        usual_s = max(intervals) if len(intervals) >= _FEWEST_INTERVALS else float("inf")
        if (before_s := self._read_s.get(reading.source)) is not None:
            intervals.append(reading.time_s - before_s)
        self._read_s[reading.source] = reading.time_s
        return usual_s

    def _client(self, wait: Interruption) -> None:
        if wait.target in self._away:
            away = self._away[wait.target]
            left_again = wait.ended_unix_s is None and away.back_s is not None and wait.began_unix_s >= away.back_s
            if left_again and away.recovered_s is None:
                away.leave_again()
            if wait.ended_unix_s is not None and wait.began_unix_s >= away.seen_s - 1:
                away.waits[wait.began_unix_s] = wait.ended_unix_s
        elif wait.began_unix_s > self._waits_told.get(wait.target, 0.0) + 1:
            known = self._client_waits.get(wait.target)
            if known and wait.or_earlier and known.ended_unix_s in (None, wait.ended_unix_s):
                # The client forgets the onset while it retries.
                wait = replace(wait, began_unix_s=known.began_unix_s)
            self._client_waits[wait.target] = wait

    def _of_servers(self, now_s: float) -> list[WatchEvent]:
        spans = {
            target: Span(away.source, away.missed_s, away.back_s, self._over_s(target, away, now_s))
            for target, away in self._away.items()
        }
        events = []
        for told, targets in self._together.over(spans, now_s):
            gone = {target: self._away.pop(target) for target in targets}
            over = {
                target: away.ended(self._stalls)
                for target, away in gone.items()
                if told or not (self._was_there(target, away) or self._known_by_clients(target, away))
            }
            if over:
                events.append(_over(spans[targets[0]].source, over, told, now_s))
            for target in over:
                self._client_waits.pop(target, None)
                self._waits_told[target] = now_s
        for targets in self._together.long({target: spans[target] for target in self._away}, now_s):
            told = self._together.tell(targets, min(self._away[target].began_s for target in targets))
            source, least_s = (
                directory_of(spans[targets[0]].source),
                now_s - max(spans[target].missed_s for target in targets),
            )
            text = f"{told.subject} is away, for at least {format_duration(least_s)}"
            if len(targets) > 1:
                text = (
                    f"{len(targets)} targets of {source} are away, for at least {format_duration(least_s)}: "
                    f"{told.subject}"
                )
            events.append(WatchEvent("fail-over", told.subject, told.began_s, now_s, text))
        return events

    def _over_s(self, target: str, away: Absence, now_s: float) -> float | None:
        """Return the end, or None while connected clients may still notice the outage."""
        read_s = self._connected.until_s(target, away.seen_s)
        noticed_s = away.missed_s + _NOTICED_S
        waiting = not away.missed_by_clients and 0 < read_s < noticed_s and now_s < noticed_s + PATIENCE_S
        return None if waiting else away.recovered_s

    def _was_there(self, target: str, away: Absence) -> bool:
        """Return whether the target was only not read, or its counters were reset by hand."""
        if away.missed_by_clients:
            return False
        return away.went_on or self._connected.until_s(target, away.seen_s) >= away.missed_s + _NOTICED_S

    def _known_by_clients(self, target: str, away: Absence) -> bool:
        """Return whether clients already reported this outage."""
        began_s, ended_s = self._client_outages.get(target, (math.inf, -math.inf))
        return away.back_s is not None and began_s <= away.back_s and ended_s >= away.seen_s

    def _of_clients(self, now_s: float) -> list[WatchEvent]:
        """Return the outages that only clients report."""
        # Drop targets whose servers report the outage.
        waits = self._client_waits = {
            target: wait for target, wait in self._client_waits.items() if target not in self._away
        }
        spans = {
            target: Span("", wait.began_unix_s, wait.ended_unix_s, wait.ended_unix_s) for target, wait in waits.items()
        }
        events = []
        for told, targets in self._together.over(spans, now_s):
            event = _not_served([waits.pop(target) for target in targets], told, now_s)
            events.append(event)
            self._waits_told |= {target: spans[target].over_s or now_s for target in targets}
            self._client_outages |= dict.fromkeys(targets, (event.began_s, event.ended_s or now_s))
        for targets in self._together.long({target: spans[target] for target in waits}, now_s):
            told = self._together.tell(targets, min(waits[target].began_unix_s for target in targets))
            least_s = min(now_s - waits[target].began_unix_s - waits[target].within_s for target in targets)
            text = f"{told.subject} does not answer a client, for at least {format_duration(least_s)}"
            if len(targets) > 1:
                text = (
                    f"{len(targets)} targets do not answer a client, for at least {format_duration(least_s)}: "
                    f"{told.subject}"
                )
            events.append(WatchEvent("fail-over", told.subject, told.began_s, now_s, text))
        return events


def _tells(event: WatchEvent, wait: Interruption) -> bool:
    """Return whether the ended event includes this wait."""
    named = wait.target in event.subject or event.subject.endswith(" more")
    ended_s, over_s = event.ended_s or event.began_s, wait.ended_unix_s or float("inf")
    return named and wait.began_unix_s <= ended_s + 1 and over_s >= event.began_s - 1


def _over(source: str, over: Mapping[str, Ended], told: Told | None, now_s: float) -> WatchEvent:
    """Return the event of ended outages."""
    source = directory_of(source)
    longest, shortest = (pick(over, key=lambda target: over[target].size_s) for pick in (max, min))
    most, least = over[longest], over[shortest]
    low_s, high_s = most.low_s, most.high_s
    lows, highs = [ended.low_s for ended in over.values()], [ended.high_s for ended in over.values()]
    as_long = max(lows) <= min(highs)
    if as_long:
        low_s, high_s = min(lows), max(highs)
    waited_s = max(ended.waited_s for ended in over.values())
    about, high = (format_duration(seconds) for seconds in (most.size_s, high_s))
    waited = f"; clients waited up to {format_duration(waited_s)}" if waited_s else ""
    if waited_s < most.size_s and "operations_that_waited" in most.evidence:
        # Earlier operations may have waited longer than the measured one.
        waited = f"; clients waited at least {format_duration(waited_s)}"
    between = f"between {format_duration(low_s)} and {high}" if low_s else f"{high} at most"
    how_long = f"for about {about} ({between})" if most.size_s > _SMALLEST_ESTIMATE_S else f"for at most {high}"
    if len(over) == 1:
        text = f"{longest} was away {how_long}{waited}"
    elif as_long:
        text = f"{len(over)} targets of {source} were away {how_long}{waited}: {names(list(over))}"
    else:
        text = (
            f"{len(over)} targets of {source} were away, {longest} for about {about} ({between}), {shortest} for about "
            f"{format_duration(least.size_s)}{waited}: {names(list(over))}"
        )
    return WatchEvent(
        "fail-over",
        told.subject if told else names(list(over)),
        told.began_s if told else min(ended.began_s for ended in over.values()),
        now_s,
        text,
        max(ended.ended_s for ended in over.values()),
        most.size_s,
        low_s,
        high_s,
        "s",
        evidence={**most.evidence, "waited_s": waited_s},
    )


def _not_served(waits: Sequence[Interruption], told: Told | None, now_s: float) -> WatchEvent:
    """Return the event of ended outages that clients reported."""
    lengths = {wait.target: (wait.ended_unix_s or now_s) - wait.began_unix_s for wait in waits}
    longest = max(waits, key=lambda wait: lengths[wait.target])
    waited, within = lengths[longest.target], f"± {longest.within_s:g} s"
    evicted = ", and the client was evicted" if any(wait.evicted for wait in waits) else ""
    text = f"{longest.target} did not serve a client for {format_duration(waited)} ({within}){evicted}"
    if len(waits) > 1:
        text = (
            f"{len(waits)} targets did not serve a client, {longest.target} for {format_duration(waited)} ({within})"
            f"{evicted}: {names(list(lengths))}"
        )
    return WatchEvent(
        "fail-over",
        told.subject if told else names(list(lengths)),
        told.began_s if told else min(wait.began_unix_s for wait in waits),
        now_s,
        text,
        max(wait.ended_unix_s or now_s for wait in waits),
        waited,
        max(0.0, waited - longest.within_s),
        waited + longest.within_s,
        "s",
    )
