"""One outage told twice, by servers and by clients whose clocks differ: it is said that it may be one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from strakes.units import format_duration
from strakes.watch.values import WatchEvent

_MOST = 64
# Clients wait for a while after a target is back, and notice late that it is away.
_LENGTHS_DIFFER_S = 30.0
# What differs by less is put together; no clock is wrong by more than a time zone.
_LEAST_S, _MOST_S = 10.0, 86400.0


class OtherClocks:
    """Compares what clients tell with what servers tell."""

    def __init__(self) -> None:
        # By clients, and by servers: targets, and their event.
        self._told: dict[bool, deque[tuple[frozenset[str], WatchEvent]]] = {
            by_clients: deque(maxlen=_MOST) for by_clients in (False, True)
        }

    def add(self, event: WatchEvent, targets: Iterable[str], *, by_clients: bool) -> WatchEvent:
        """Return an event of targets that are back, with what it may be the same as."""
        of = frozenset(targets)
        self._told[by_clients].append((of, event))
        for others, other in reversed(self._told[not by_clients]):
            apart_s = event.began_s - other.began_s
            alike = abs((event.size or 0.0) - (other.size or 0.0)) <= _LENGTHS_DIFFER_S
            if of & others and alike and _LEAST_S < abs(apart_s) <= _MOST_S:
                long = format_duration(round(abs(apart_s), -1))
                before = event.text
                text = f"{before}; a client told of one as long, {long} apart: the same if their clocks differ by that"
                if by_clients:
                    text = (
                        f"{before}; servers told of one as long, {long} apart: the same if their clocks differ by that"
                    )
                return replace(event, text=text)
        return event
