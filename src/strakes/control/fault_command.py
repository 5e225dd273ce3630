"""Commands of the user's, for any system."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Sequence

from strakes.base.errors import BadInputError
from strakes.control.drill_undo import RunCommand, run_command
from strakes.control.fault import Ask, Fault
from strakes.failover.timeline import Moment
from strakes.targets.command import Runner, quoted_for, run


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
    run_command(words, look, answer, ask)
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


def through(via: str, argv: Sequence[str]) -> tuple[str, ...]:
    """Put the words of ``--via`` before a command, which every remote shell among them finds quoted.

    >>> through("ssh root@mds-a", ["sh", "-c", "date; uptime"])
    ('ssh', 'root@mds-a', 'sh', '-c', "'date; uptime'")
    >>> through("", ["date"])
    ('date',)
    """
    words = words_of("--via", via) if via else ()
    return (*words, *quoted_for(words, argv))
