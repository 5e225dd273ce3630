"""The interface of faults: cause, undo, and report the servers' states."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from strakes.control.drill_undo import Undo
from strakes.failover.timeline import Moment
from strakes.targets.command import Servers
from strakes.targets.description import TargetRecovery

Seen = Callable[[Moment], None]


@dataclass(frozen=True)
class Ask:
    """The user's options for a fault; only options that the fault uses may be set."""

    directory: Path
    command: str = ""
    restore: str = ""
    node: str = ""
    resource: str = ""
    via: str = ""
    bmc: str = ""
    bmc_user: str = ""
    bmc_password_file: Path | None = None
    target: str = ""
    nic: str = ""
    peer: str = ""
    servers: Servers | None = None


class Fault(ABC):
    """A fault, one object for each drill.

    The constructor examines the servers and raises BadInputError if the fault cannot be caused there. ``text``
    describes the fault for the user; ``undo`` is None if the fault needs no undoing.
    """

    text: str
    undo: Undo | None
    # Time limit in seconds for the servers to recover after the undoing.
    back_within_s: ClassVar[float] = 90.0

    def level(self) -> None:  # noqa: B027 - of most servers nothing is known
        """Remove what an earlier drill has left in the servers, so that each of many drills begins alike."""

    def require_serves(self, directory: Path) -> None:  # noqa: B027 - most faults know no cluster
        """Raise BadInputError if the servers that the fault is about do not serve this directory."""

    @abstractmethod
    def strike(self) -> tuple[Moment, ...]:
        """Cause the fault; return its actions with their times. Raises StrakesError if it cannot be caused."""

    def watch(self, seen: Seen, stop: threading.Event) -> None:  # noqa: B027 - of most servers nothing is known
        """Report changes of the servers' states to ``seen`` until ``stop`` is set, and once more after that.

        Runs in its own thread.
        """

    def recoveries(self) -> tuple[TargetRecovery, ...]:
        """Return how the servers counted their recovery; asked when the clients have ended."""
        return ()

    def lacking(self) -> str:
        """Return the differences from the state before the drill; empty if the next drill may begin."""
        return ""
