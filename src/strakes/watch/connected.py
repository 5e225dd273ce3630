"""Connections of clients to targets, timed by the readings and not by the clocks of the clients."""

from __future__ import annotations

from dataclasses import dataclass

from strakes.watch.reading import CounterReading


@dataclass
class _Connection:
    """Time of the connection by the clock of the client (0: disconnected), and its first and last reading."""

    said_s: float
    first_s: float
    last_s: float


class Connected:
    """Connections by target and source."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, _Connection]] = {}

    def add(self, reading: CounterReading) -> None:
        """Add a reading."""
        for target, said_s in reading.connected.items():
            of = self._of.setdefault(target, {})
            before = of.get(reading.source)
            if before is None or before.said_s != said_s:
                before = of[reading.source] = _Connection(said_s, reading.time_s, reading.time_s)
            before.last_s = reading.time_s

    def until_s(self, target: str, from_s: float) -> float:
        """Return the last time at which all clients were still connected since ``from_s``; 0 if any was not."""
        of = self._of.get(target, {}).values()
        if not all(connection.said_s and connection.first_s <= from_s for connection in of):
            return 0.0
        return max((connection.last_s for connection in of), default=0.0)
