"""Connection history of the drill's mount: lost, evicted and replayed connections, from the file system's records."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from strakes.base.errors import BadInputError, StrakesError
from strakes.base.files import open_regular
from strakes.control.fault import Seen
from strakes.failover.timeline import Moment
from strakes.targets.command import Servers
from strakes.targets.description import ConnectionChange, Interruption, TargetRecovery
from strakes.targets.registry import detect
from strakes.targets.target import Target

# File systems keep a short history (Lustre: 16 changes per target), with times in whole seconds.
_LOOK_EVERY_S = 0.5
_WHOLE_SECONDS_S = 1.0


class ConnectionWatch:
    """Reports the connection history of the file system under a directory, if it keeps one."""

    def __init__(self, directory: Path, servers: Servers | None = None) -> None:
        """Remember what there was before the drill. Raises StrakesError where the directory is not one."""
        self._target: Target = detect(directory, servers)
        self._began_unix_s = time.time()
        self._known = set(self._target.connection_changes())
        self._recovered = {recovery.target: recovery for recovery in self._target.recoveries()}
        self._status = {name: recovery.status for name, recovery in self._recovered.items()}

    def watch(self, seen: Seen, stop: threading.Event) -> None:
        """Report changes of connections and of the servers' recovery until ``stop`` is set, and once more then."""
        looked_s = time.time()
        over = False
        while not over:
            over = stop.wait(_LOOK_EVERY_S)
            try:
                changes = self._target.connection_changes()
            except StrakesError as error:
                seen(Moment(time.time(), "drill", f"the connections cannot be read: {error}"))
                return
            now_s = time.time()
            for change in changes:
                if change not in self._known:
                    self._known.add(change)
                    seen(Moment(_when(change, looked_s), f"connection to {change.target}", change.state))
            looked_s = now_s
            for recovery in self._target.recoveries():
                if self._status.get(recovery.target) != recovery.status:
                    self._status[recovery.target] = recovery.status
                    seen(Moment(time.time(), recovery.target, recovery.status))

    def interruptions(self) -> tuple[Interruption, ...]:
        """Return when targets did not serve this mount since the beginning, and whether it was evicted."""
        return tuple(
            interruption
            for interruption in self._target.interruptions()
            if (interruption.ended_unix_s or time.time()) > self._began_unix_s - _WHOLE_SECONDS_S
        )

    def recoveries(self) -> tuple[TargetRecovery, ...]:
        """Return how the targets counted it that recovered since the beginning, of servers that can be asked."""
        return tuple(
            recovery for recovery in self._target.recoveries() if recovery != self._recovered.get(recovery.target)
        )


def _when(change: ConnectionChange, looked_s: float) -> float:
    """Return the best estimate of its time: after the previous reading, within the recorded second."""
    return min(max(change.unix_s, looked_s), change.unix_s + _WHOLE_SECONDS_S)


SOURCE = "alert"
_LOOK_FOR_LINES_S = 0.2
_MOST_BYTES = 1 << 20  # read at a time; a longer line is cut


class AlertListener:
    """The lines that are appended to a file from now on. Raises BadInputError for a file that cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with open_regular(path) as file:
                self._read = file.seek(0, 2)
        except OSError as error:
            raise BadInputError(
                "the alert file cannot be read", where=str(path), why=error.strerror or str(error)
            ) from error

    def watch(self, seen: Seen, stop: threading.Event) -> None:
        """Report every line that is appended to the file to ``seen``, until ``stop`` is set."""
        over = False
        while not over:
            over = stop.wait(_LOOK_FOR_LINES_S)
            for line in self._new_lines():
                seen(Moment(time.time(), SOURCE, line))

    def _new_lines(self) -> list[str]:
        try:
            with open_regular(self._path) as file:
                file.seek(self._read)
                data = file.read(_MOST_BYTES)
        except (OSError, BadInputError):
            return []  # being replaced; looked for again
        whole = data[: data.rfind(b"\n") + 1] or (data if len(data) == _MOST_BYTES else b"")
        self._read += len(whole)
        return [line for line in whole.decode(errors="replace").splitlines() if line.strip()]
