"""An NFS mount as a source: the client's counters of requests, and whether the server answers.

Only the kernel's counters are read, never the mount, so that this works while the server does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from strakes.targets.description import Interruption
from strakes.targets.nfs import NfsMount, NfsOperation, read_mountstats
from strakes.watch.reading import CounterReading, grown

_MOUNTSTATS = Path("/proc/self/mountstats")
# The rest are operations on names and attributes.
_CLASSES = {"READ": "read", "WRITE": "write", "COMMIT": "write"}
# Least time in seconds; the kernel counts whole milliseconds.
_LEAST_S = 1e-5
# Linux 3.10 counts below zero, which is printed as a number of 64 bits.
_WRAPPED_S = 2.0**62 / 1000
# Consecutive readings with waiting requests and no replies until an outage is reported.
_SILENT = 2


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
        # Last reading in which no request was waiting, or in which replies had arrived, and number of readings since.
        self._answered_s, self._silent = 0.0, 0

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
            self._answered_s = time_s
            return CounterReading(self.name, time_s)
        figures, waits = self._figures(before, now), self._waits(time_s, before, now)
        return CounterReading(self.name, time_s, figures=figures, waits=waits)

    def lacking(self, reading: CounterReading) -> tuple[str, ...]:
        """Return nothing, because errors are in the readings."""
        del reading
        return ()

    def _figures(self, before: NfsMount, now: NfsMount) -> dict[str, float]:
        """Return the times of an operation of each class."""
        totals: dict[str, list[float]] = {}
        for name, operation in now.operations.items():
            if name != "NULL" and max(operation.queue_s, operation.rtt_s, operation.execute_s) <= _WRAPPED_S:
                earlier = before.operations.get(name, NfsOperation(0.0, 0.0, 0.0))
                total = totals.setdefault(_CLASSES.get(name, "metadata"), [0.0, 0.0, 0.0])
                total[0] += grown(earlier.operations, operation.operations)
                total[1] += grown(earlier.rtt_s, operation.rtt_s)
                total[2] += grown(earlier.queue_s, operation.queue_s)
        figures = {}
        for name, (count, rtt_s, queue_s) in totals.items():
            if count:
                figures[f"answer to {name} on {self._mount_point}"] = max(rtt_s / count, _LEAST_S)
                figures[f"queue of {name} on {self._mount_point}"] = max(queue_s / count, _LEAST_S)
        return figures

    def _waits(self, time_s: float, before: NfsMount, now: NfsMount) -> tuple[Interruption, ...]:
        """Return the interruption while the server does not answer, and once when it has ended."""
        answered_s, silent = self._answered_s, self._silent
        if now.received == before.received and now.sent > now.received:
            self._silent, ended_s = silent + 1, None
        else:
            self._answered_s, self._silent, ended_s = time_s, 0, time_s
        if max(silent, self._silent) < _SILENT:
            return ()
        return (Interruption(self._server, answered_s, ended_s, within_s=self.every_s),)
