"""Whether clients stayed connected to a target, by when they were read: whatever their own clocks say."""

from __future__ import annotations

from dataclasses import dataclass

from strakes.watch.reading import CounterReading


@dataclass
class _Connection:
    """Since when it is, as the client says (0: it is not), and from when to when that was read."""

    said_s: float
    first_s: float
    last_s: float


class Connected:
    """What clients tell of being connected, each by its own source."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, _Connection]] = {}

    def add(self, reading: CounterReading) -> None:
        """Take in a reading."""
        for target, said_s in reading.connected.items():
            of = self._of.setdefault(target, {})
            before = of.get(reading.source)
            if before is None or before.said_s != said_s:
                before = of[reading.source] = _Connection(said_s, reading.time_s, reading.time_s)
            before.last_s = reading.time_s

    def until_s(self, target: str, from_s: float) -> float:
        """Return until when all clients were connected that whole time; 0 where one was not, or none is known."""
        of = self._of.get(target, {}).values()
        if not all(connection.said_s and connection.first_s <= from_s for connection in of):
            return 0.0
        return max((connection.last_s for connection in of), default=0.0)
