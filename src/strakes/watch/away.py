"""Targets that were away: for how long, and how long clients waited. Read from servers, from clients, or from both."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from strakes.targets.description import Interruption
from strakes.units import format_seconds
from strakes.watch.reading import CounterReading
from strakes.watch.values import WatchEvent

# Clients find back later than the target is there; what they tell until then belongs to it.
_PATIENCE_S = 30.0
# One that is away for so long is told before it is back.
_LONG_S = 60.0
_MOST_STALLS = 256
# A target counts before its mounting has ended: by about a second (1.1 and 1.3 s of two Lustre targets), or two.
_MOUNTING_S = 1.0


@dataclass
class _Away:
    seen_s: float
    missed_s: float
    began_anew_s: float | None = None
    back_s: float | None = None
    still_away_s: float = 0.0
    recovered_s: float | None = None
    told: bool = False
    waits: dict[tuple[float, str], float] = field(default_factory=dict)

    @property
    def began_s(self) -> float:
        """Return when it probably went away."""
        return (self.seen_s + self.missed_s) / 2


class AwayTargets:
    """One for all sources: a target may move from one server to another."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float, str]] = {}
        self._away: dict[str, _Away] = {}
        self._began_s: float | None = None
        self._waits_told: dict[str, float] = {}
        self._client_waits: dict[str, Interruption] = {}
        self._lasting_told: dict[str, float] = {}
        self._stalls: deque[tuple[float, float]] = deque(maxlen=_MOST_STALLS)

    def add(self, reading: CounterReading) -> list[WatchEvent]:
        """Take in a reading; return what is away for long, and what is back."""
        self._began_s = reading.time_s if self._began_s is None else self._began_s
        if reading.serving is not None:
            self._servers(reading)
        for wait in reading.waits:
            if wait.began_unix_s >= self._began_s - 1:
                self._client(wait)
        return [*self._of_servers(reading.time_s), *self._of_clients(reading.time_s)]

    def add_stalls(self, stalls: Sequence[tuple[float, float]]) -> None:
        """Take in when operations of a probe began and ended that took unusually long."""
        self._stalls.extend(stalls)

    def _servers(self, reading: CounterReading) -> None:
        assert reading.serving is not None
        for target, start_s in reading.serving.items():
            seen_s, start_before, source = self._seen.get(target, (reading.time_s, start_s, reading.source))
            if target not in self._away and start_s > start_before + 1 and start_s > seen_s - 1:
                # Gone and back between two readings.
                self._away[target] = _Away(seen_s, start_s)
            self._seen[target] = (reading.time_s, start_s, reading.source)
            away = self._away.get(target)
            if away is not None:
                if away.back_s is None:
                    away.back_s, away.began_anew_s = reading.time_s, start_s
                if away.recovered_s is None and target not in reading.recovering:
                    away.recovered_s = reading.time_s
        for target, (seen_s, _, source) in self._seen.items():
            if source == reading.source and target not in reading.serving:
                away = self._away.setdefault(target, _Away(seen_s, reading.time_s))
                if away.back_s is None:
                    away.still_away_s = reading.time_s

    def _client(self, wait: Interruption) -> None:
        if wait.target in self._away:
            away = self._away[wait.target]
            if wait.ended_unix_s is not None and wait.began_unix_s >= away.seen_s - 1:
                away.waits[wait.began_unix_s, wait.target] = wait.ended_unix_s
        elif wait.began_unix_s > self._waits_told.get(wait.target, 0.0) + 1:
            known = self._client_waits.get(wait.target)
            if known and wait.or_earlier and known.ended_unix_s in (None, wait.ended_unix_s):
                # The client forgets how it began while it tries again and again.
                wait = replace(wait, began_unix_s=known.began_unix_s)
            self._client_waits[wait.target] = wait

    def _of_servers(self, now_s: float) -> list[WatchEvent]:
        events = []
        for target, away in list(self._away.items()):
            if away.recovered_s is not None and now_s >= away.recovered_s + _PATIENCE_S:
                events.append(self._back(target, away, now_s))
                del self._away[target]
                self._client_waits.pop(target, None)
                self._waits_told[target] = now_s
            elif not away.told and away.back_s is None and now_s - away.missed_s >= _LONG_S:
                away.told = True
                text = f"{target} is away, for at least {format_seconds(now_s - away.missed_s)}"
                events.append(WatchEvent("fail-over", target, away.began_s, now_s, text))
        return events

    def _back(self, target: str, away: _Away, now_s: float) -> WatchEvent:
        assert away.back_s is not None and away.recovered_s is not None
        missed, still = away.missed_s, away.still_away_s or away.missed_s
        began = away.began_s
        anew = away.began_anew_s or away.back_s
        ended = anew if still <= anew <= away.back_s else (still + away.back_s) / 2
        low, high = max(0.0, min(still, ended) - missed), away.back_s - away.seen_s
        if ended == anew < away.back_s:
            ended += _MOUNTING_S
            high = max(high, ended + _MOUNTING_S - away.seen_s)
        connected = max((ended_s for ended_s in away.waits.values()), default=away.recovered_s)
        # What operations of the probe waited was measured; without them it is from when the target was last seen until
        # clients were back, at most.
        stalled = [
            (begun_s, end_s) for begun_s, end_s in self._stalls if begun_s <= connected and end_s >= away.seen_s - 1
        ]
        waited = max(connected - away.seen_s, 0.0)
        if stalled:
            longest = max(stalled, key=lambda stall: stall[1] - stall[0])
            waited = longest[1] - longest[0]
            ended = min(away.back_s, longest[1])
            # What was told before keeps its begin.
            began = began if away.told else max(away.seen_s, longest[0])
        between = (
            f"between {format_seconds(low)} and {format_seconds(high)}" if low else f"{format_seconds(high)} at most"
        )
        text = (
            f"{target} was away for about {format_seconds(max(ended - began, low))} ({between}); "
            f"clients waited up to {format_seconds(waited)}"
        )
        evidence: dict[str, float | str] = {"waited_s": waited, "recovered_unix_s": away.recovered_s}
        if stalled:
            evidence["operations_that_waited"] = len(stalled)
        if away.waits:
            evidence["client_connected_unix_s"] = connected
        return WatchEvent(
            "fail-over", target, began, now_s, text, ended, max(ended - began, low), low, high, "s", evidence=evidence
        )

    def _of_clients(self, now_s: float) -> list[WatchEvent]:
        """Return what only clients have told: nobody who was asked serves the target."""
        events = []
        for target, wait in list(self._client_waits.items()):
            if target in self._away:
                # Its server has told since that it is away.
                del self._client_waits[target]
                continue
            if wait.ended_unix_s is None:
                lasts_s = now_s - wait.began_unix_s
                if lasts_s >= _LONG_S and self._lasting_told.get(target) != wait.began_unix_s:
                    self._lasting_told[target] = wait.began_unix_s
                    text = f"{target} does not answer a client, for at least {format_seconds(lasts_s - wait.within_s)}"
                    events.append(WatchEvent("fail-over", target, wait.began_unix_s, now_s, text))
                continue
            if now_s < wait.ended_unix_s + _PATIENCE_S:
                continue
            del self._client_waits[target]
            self._waits_told[target] = wait.ended_unix_s
            waited = wait.ended_unix_s - wait.began_unix_s
            evicted = ", and the client was evicted" if wait.evicted else ""
            text = f"{target} did not serve a client for {format_seconds(waited)} (± {wait.within_s:g} s){evicted}"
            low, high = max(0.0, waited - wait.within_s), waited + wait.within_s
            events.append(
                WatchEvent(
                    "fail-over", target, wait.began_unix_s, now_s, text, wait.ended_unix_s, waited, low, high, "s"
                )
            )
        return events
