"""Estimate the clock offsets of recorded machines from outages that both a server and its clients recorded."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from statistics import median

from strakes.watch.reading import PING_S, CounterReading

# Minimum clock offset to detect. Even with equal clocks, a server and its client record an outage up to 25 s apart.
_LEAST_S = 30.0
_MOST_S = 600.0  # Maximum clock offset to detect. With a larger limit, different outages would look like one.
_MOST_OUTAGES = 32  # Maximum number of compared outages per target. Run time grows with its square.


@dataclass
class _Source:
    first_s: float
    lost: dict[str, set[float]] = field(default_factory=lambda: defaultdict(set))
    back: dict[str, set[float]] = field(default_factory=lambda: defaultdict(set))
    listed: dict[str, float] = field(default_factory=dict)
    serves: bool = False

    def add(self, reading: CounterReading) -> None:
        self.serves |= bool(reading.serving)
        for target, at_s in reading.recovered.items():
            self.back[target].add(at_s)
        for wait in reading.waits:
            # Use only waits that ended with a restart of the server, because the server records these waits as well.
            if wait.ended_unix_s is not None and not (wait.reconnected or wait.evicted):
                if not wait.or_earlier:
                    self.lost[wait.target].add(wait.began_unix_s)
                self.back[wait.target].add(wait.ended_unix_s)
        if reading.serving is not None:
            for target in self.listed.keys() - reading.serving.keys():
                self.lost[target].add(self.listed.pop(target) + PING_S)
            self.listed |= dict.fromkeys(reading.serving, reading.time_s)


def clocks_ahead(readings: Iterable[CounterReading]) -> dict[str, float]:
    """Return source -> seconds by which its clock is ahead of most others. Omit sources with offsets below 30 s."""
    sources: dict[str, _Source] = {}
    for reading in readings:
        sources.setdefault(reading.source, _Source(reading.time_s)).add(reading)
    servers = {name: source for name, source in sources.items() if source.serves}
    listed = [(at_s, target, server) for server in servers.values() for target, at_s in server.listed.items()]
    last_s = {target: at_s for at_s, target, _ in sorted(listed, key=lambda each: each[0])}
    for at_s, target, server in listed:
        if at_s < last_s[target]:
            # Another server has listed the target later, so this server lost it.
            server.lost[target].add(at_s + PING_S)
    links = {}
    for pair in product(servers, (name for name in sources if name not in servers)):
        if link := _link(sources[pair[0]], sources[pair[1]]):
            links[pair] = link
    return _of_most(sources, links) if any(abs(ahead_s) >= _LEAST_S for ahead_s, _ in links.values()) else {}


def _link(server: _Source, client: _Source) -> tuple[float, bool] | None:
    lost, back = (
        sorted(
            at_s - seen_s
            for target in of_server.keys() & of_client.keys()
            for at_s, seen_s in product(*(sorted(each[target])[-_MOST_OUTAGES:] for each in (of_server, of_client)))
            if abs(at_s - seen_s) <= _MOST_S
        )
        for of_server, of_client in ((server.lost, client.lost), (server.back, client.back))
    )
    if not lost and not back:
        return None
    best = max((*lost, *back), key=lambda one: (len(_near(lost, one)) + len(_near(back, one)), -abs(one)))
    return median(_near(back, best) or _near(lost, best)), bool(_near(back, best))


def _near(ordered: list[float], one: float) -> list[float]:
    return ordered[bisect_left(ordered, one - _LEAST_S) : bisect_right(ordered, one + _LEAST_S)]


def _of_most(sources: Mapping[str, _Source], links: Mapping[tuple[str, str], tuple[float, bool]]) -> dict[str, float]:
    began_s = {name: source.first_s for name, source in sources.items()}
    reference = next(client for _, client in links)
    known = {reference: 0.0}
    for _ in sources:
        for (server, client), (ahead_s, _) in links.items():
            if client in known:
                known.setdefault(server, known[client] + ahead_s)
            elif server in known:
                known[client] = known[server] - ahead_s
    precise = {name for pair, (_, is_precise) in links.items() if is_precise for name in pair}
    if all(abs(began_s[one] - began_s[other] - ahead_s) < _LEAST_S for (one, other), (ahead_s, _) in links.items()):
        # All recordings began at the same moment, so use the differences of their first times as clock offsets.
        known |= {name: at_s - began_s[reference] for name, at_s in began_s.items() if name not in precise}
    ordered = sorted(known.values())
    right_s = known[max(known, key=lambda name: (name in precise, len(_near(ordered, known[name]))))]
    return {name: ahead_s - right_s for name, ahead_s in known.items() if abs(ahead_s - right_s) >= _LEAST_S}


def set_back(reading: CounterReading, seconds: float) -> CounterReading:
    """Subtract ``seconds`` from all times of a reading."""

    def earlier(times: Mapping[str, float]) -> dict[str, float]:
        return {target: at_s and at_s - seconds for target, at_s in times.items()}

    waits = []
    for wait in reading.waits:
        ended_s = None if wait.ended_unix_s is None else wait.ended_unix_s - seconds
        waits.append(replace(wait, began_unix_s=wait.began_unix_s - seconds, ended_unix_s=ended_s))
    serving = None if reading.serving is None else earlier(reading.serving)
    recovered, connected = earlier(reading.recovered), earlier(reading.connected)
    moved = replace(reading, waits=tuple(waits), serving=serving, recovered=recovered, connected=connected)
    return replace(moved, time_s=reading.time_s - seconds)
