"""What every fault is: what will be done, what puts it right, and what the servers say meanwhile."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from strakes.drill.undo import Undo
from strakes.failover.timeline import Moment
from strakes.targets.command import Servers
from strakes.targets.description import TargetRecovery

Seen = Callable[[Moment], None]


@dataclass(frozen=True)
class Ask:
    """What a user said of a fault; only what that fault uses may be set."""

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
    """A fault, made anew for every drill.

    Making it looks at the servers, and raises BadInputError where the fault cannot be done to them. ``text`` says what
    will be done; ``undo`` is None where nothing is left to put right.
    """

    text: str
    undo: Undo | None
    # How long servers that were put right may need until they are what they were.
    back_within_s: ClassVar[float] = 90.0

    def level(self) -> None:  # noqa: B027 - of most servers nothing is known
        """Remove what an earlier drill has left in the servers, so that each of many drills begins alike."""

    @abstractmethod
    def strike(self) -> tuple[Moment, ...]:
        """Do it; what was done when. Raises StrakesError when it could not be done."""

    def watch(self, seen: Seen, stop: threading.Event) -> None:  # noqa: B027 - of most servers nothing is known
        """Report what the servers say to ``seen``, until ``stop`` is set and once more, so that the end is reported.

        It runs beside everything else.
        """

    def recoveries(self) -> tuple[TargetRecovery, ...]:
        """Return how the servers counted their recovery; asked when the clients have ended."""
        return ()

    def lacking(self) -> str:
        """Say what is not yet as it was before the drill; empty when the next one may begin."""
        return ""
