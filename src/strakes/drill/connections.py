"""What a drill's own mount went through: connections lost, evicted and replayed, as the file system remembers them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from strakes.drill.faults.fault import Seen
from strakes.errors import StrakesError
from strakes.failover.timeline import Moment
from strakes.targets.command import Servers
from strakes.targets.description import ConnectionChange, Interruption, TargetRecovery
from strakes.targets.registry import detect
from strakes.targets.target import Target

# File systems remember some changes only (Lustre 16 for each target), and tell their times in whole seconds.
_LOOK_EVERY_S = 0.5
_WHOLE_SECONDS_S = 1.0


class ConnectionWatch:
    """What the file system under a directory remembers of its connections; silent where it remembers none."""

    def __init__(self, directory: Path, servers: Servers | None = None) -> None:
        """Remember what there was before the drill. Raises StrakesError where the directory is not one."""
        self._target: Target = detect(directory, servers)
        self._began_unix_s = time.time()
        self._known = set(self._target.connection_changes())
        self._recovered = {recovery.target: recovery for recovery in self._target.recoveries()}
        self._status = {name: recovery.status for name, recovery in self._recovered.items()}

    def watch(self, seen: Seen, stop: threading.Event) -> None:
        """Tell each change of a connection, and of what servers say of their recovery, until ``stop`` and once more."""
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
    """Return its time as closely as it is known: after the look before, within the second that was told."""
    return min(max(change.unix_s, looked_s), change.unix_s + _WHOLE_SECONDS_S)
