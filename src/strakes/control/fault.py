"""The interface of faults: cause, undo, and report the servers' states. Faults that are one command."""

from __future__ import annotations

import shlex
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from strakes.base.errors import BadInputError
from strakes.control.drill_undo import RunCommand, Undo
from strakes.failover.timeline import Moment
from strakes.targets.command import Runner, Servers, run
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


class OneCommand(Fault):
    """A fault that is one command, ``_strike``."""

    _strike: tuple[str, ...]
    _run: Runner

    def strike(self) -> tuple[Moment, ...]:
        """Run the command, and return when it began and ended."""
        return struck_by(self._strike, self._run)


class CommandFault(OneCommand):
    """The command of ``--fault-command``, undone by ``--restore-command``."""

    def __init__(self, ask: Ask) -> None:
        self._run = run
        self._strike = words_of("--fault-command", ask.command)
        self.undo = RunCommand(words_of("--restore-command", ask.restore)) if ask.restore else None
        self.text = f"run: {shlex.join(self._strike)}"


def struck_by(words: tuple[str, ...], ask: Runner, look: tuple[str, ...] = (), answer: str = "") -> tuple[Moment, ...]:
    """Run the one command that is the fault. Raises MeasurementError with its own words."""
    began = time.time()
    RunCommand(words, look, answer).do(ask)
    return Moment(began, "drill", shlex.join(words)), Moment(time.time(), "drill", "the command has ended")


def words_of(option: str, text: str) -> tuple[str, ...]:
    """Split a command. Raises BadInputError for quotes that do not match, and for no words at all."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise BadInputError(f"{option} is not a valid command", where=text, why=str(error)) from error
    if not words:
        raise BadInputError(f"{option} is empty")
    return words


def each_of(commands: Iterable[str]) -> str:
    """Return a shell command that runs all commands even if one fails, and fails if any did."""
    return "; ".join(["failed=0", *(f"{{ {command}; }} || failed=1" for command in commands), "exit $failed"])
