"""An NFS mount as a source: the client's counters of requests, and whether the server answers.

Only the kernel's counters are read, never the mount, so that this works while the server does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from strakes.targets.description import Interruption
from strakes.targets.nfs import NfsMount, NfsOperation, read_mountstats
from strakes.watch.reading import CounterReading
from strakes.watch.windows import grown

_MOUNTSTATS = Path("/proc/self/mountstats")
# The rest are operations on names and attributes.
_CLASSES = {"READ": "read", "WRITE": "write", "COMMIT": "write"}
_NAMES = "metadata"
# Least time in seconds; the kernel counts whole milliseconds.
_LEAST_S = 1e-5
# Linux 3.10 counts below zero, which is printed as a number of 64 bits.
_WRAPPED_S = 2.0**62 / 1000
# Consecutive readings with waiting requests and no replies until an outage is reported.
_SILENT = 2


@dataclass(frozen=True)
class _Since:
    """The last reading in which no request was waiting, or in which new replies had arrived."""

    time_s: float
    silent: int = 0


class NfsSource:
    """Source for an NFS mount. ``server``: server in the mount source. ``read_text`` returns /proc/self/mountstats."""

    every_s = 10.0

    def __init__(
        self,
        mount_point: str,
        server: str,
        read_text: Callable[[], str] = lambda: _MOUNTSTATS.read_text("utf-8", "replace"),
    ) -> None:
        self.name = f"{mount_point} NFS client"
        self._mount_point, self._server, self._read_text = mount_point, server, read_text
        self._before: NfsMount | None = None
        self._answered: _Since | None = None

    def read(self, time_s: float) -> CounterReading:
        """Return the increase since the last reading, or a reading with the error."""
        try:
            now = read_mountstats(self._read_text(), self._mount_point)
        except OSError as error:
            return CounterReading(self.name, time_s, missing=(f"{_MOUNTSTATS} cannot be read: {error.strerror}",))
        if now is None:
            return CounterReading(self.name, time_s, missing=(f"{_MOUNTSTATS} has no entry for {self._mount_point}",))
        before, self._before = self._before, now
        if before is None:
            self._answered = _Since(time_s)
            return CounterReading(self.name, time_s)
        figures, counters = self._figures(before, now)
        return CounterReading(
            self.name, time_s, figures=figures, counters=counters, waits=self._waits(time_s, before, now)
        )

    def lacking(self, reading: CounterReading) -> tuple[str, ...]:
        """Return nothing, because errors are in the readings."""
        del reading
        return ()

    def _figures(self, before: NfsMount, now: NfsMount) -> tuple[dict[str, float], dict[str, float]]:
        """Return the times of an operation of each class, and all counters since the mount."""
        done: dict[str, list[NfsOperation]] = {}
        for name, operation in now.operations.items():
            if name != "NULL" and not _wrapped(operation):
                earlier = before.operations.get(name, NfsOperation(0.0, 0.0, 0.0))
                done.setdefault(_CLASSES.get(name, _NAMES), []).append(_since(earlier, operation))
        figures = {}
        for name, operations in done.items():
            count = sum(operation.operations for operation in operations)
            if count:
                rtt_s = sum(operation.rtt_s for operation in operations) / count
                queue_s = sum(operation.queue_s for operation in operations) / count
                figures[f"answer to {name} on {self._mount_point}"] = max(rtt_s, _LEAST_S)
                figures[f"queue of {name} on {self._mount_point}"] = max(queue_s, _LEAST_S)
        counters = {}
        for name, operation in now.operations.items():
            if operation.operations and not _wrapped(operation):
                counters[f"{name} operations"] = operation.operations
                counters[f"{name} retransmissions"] = max(0.0, operation.transmissions - operation.operations)
                counters[f"{name} timeouts"] = operation.timeouts
                counters[f"{name} seconds in the queue"] = operation.queue_s
                counters[f"{name} seconds until the answer"] = operation.rtt_s
        return figures, counters | {"connections made": now.connected}

    def _waits(self, time_s: float, before: NfsMount, now: NfsMount) -> tuple[Interruption, ...]:
        """Return the interruption while the server does not answer, and once when it has ended."""
        answered = self._answered or _Since(time_s)
        if now.received == before.received and now.sent > now.received:
            self._answered = _Since(answered.time_s, answered.silent + 1)
            return (self._wait(answered.time_s, None),) if answered.silent + 1 >= _SILENT else ()
        self._answered = _Since(time_s)
        return (self._wait(answered.time_s, time_s),) if answered.silent >= _SILENT else ()

    def _wait(self, began_s: float, ended_s: float | None) -> Interruption:
        return Interruption(self._server, began_s, ended_s, within_s=self.every_s)


def _wrapped(operation: NfsOperation) -> bool:
    return max(operation.queue_s, operation.rtt_s, operation.execute_s) > _WRAPPED_S


def _since(before: NfsOperation, now: NfsOperation) -> NfsOperation:
    return NfsOperation(
        grown(before.operations, now.operations),
        grown(before.transmissions, now.transmissions),
        grown(before.timeouts, now.timeouts),
        grown(before.queue_s, now.queue_s),
        grown(before.rtt_s, now.rtt_s),
    )
