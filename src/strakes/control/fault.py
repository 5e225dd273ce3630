"""The interface of all faults (cause, watch, undo), and the faults that one command causes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.files import closing, open_kept, owner_of
from strakes.base.foreign_text import remember_secrets, shown_command
from strakes.base.processes import words_of
from strakes.control.drill_undo import RunCommand, Undo, remember_password
from strakes.failover.timeline import Moment
from strakes.targets.calls import mount_of
from strakes.targets.command import Runner, Servers, run, run_unmarked, search_path, through
from strakes.targets.description import TargetRecovery

Seen = Callable[[Moment], None]


@dataclass(frozen=True)
class Ask:
    """The user's options for a fault."""

    directory: Path
    fault_command: str = ""
    restore_command: str = ""
    node: str = ""
    resource: str = ""
    via: str = ""
    bmc: str = ""
    bmc_user: str = ""
    bmc_password_file: Path | None = None
    target: str = ""
    servers: Servers | None = None


def looks(stop: threading.Event, every_s: float) -> Iterator[None]:
    """Yield every ``every_s`` seconds until ``stop`` is set, and once after that."""
    over = False
    while not over:
        over = stop.wait(every_s)
        yield


class Fault(ABC):
    """A fault of one drill. The constructor examines the servers, and raises BadInputError for an impossible fault.

    ``text``: description for the user. ``undo``: action that undoes the fault, or None if none is needed.
    """

    text: str
    undo: Undo | None
    _made_of: tuple[tuple[Any, ...], dict[str, Any]]
    # Time limit for the recovery of the servers after the fault is undone, in seconds.
    back_within_s: ClassVar[float] = 90.0

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        self = super().__new__(cls)
        self._made_of = arguments, options
        return self

    def changed(self) -> str:
        """Repeat all checks of the constructor. Return why they fail or lead to other commands, or ""."""
        arguments, options = self._made_of
        try:
            again = type(self)(*arguments, **options)
        except StrakesError as error:
            return error.why or error.what
        other = (again.text, again.undo) != (self.text, self.undo)
        return f"the fault would now be another one: {again.text}" if other else self.lacking()

    def level(self) -> None:  # noqa: B027 - most faults do not need it
        """Prepare the same initial state for each drill of a series, such as an empty journal of the file system."""

    def require_serves(self, directory: Path) -> None:  # noqa: B027 - most faults know no cluster
        """Raise BadInputError if the servers that the fault affects do not serve this directory."""

    @abstractmethod
    def strike(self) -> tuple[Moment, ...]:
        """Cause the fault, and return the actions with their times. Raises StrakesError if that fails."""

    def watch(self, seen: Seen, stop: threading.Event) -> None:  # noqa: B027 - most faults do not watch servers
        """Call ``seen`` for each change of a server's state until ``stop`` is set, or raise StrakesError."""

    def recoveries(self) -> tuple[TargetRecovery, ...]:
        """Return how each server recovered. Called after all clients have ended."""
        return ()

    def lacking(self) -> str:
        """Return a text that describes how the servers differ from their state before the drill, or ""."""
        return ""


class OneCommand(Fault):
    """Fault caused by the command ``_strike``. ``gate``: prefix that prevents the command if the drill is over.

    Then the command ``_status``, if there is one, is repeated until its output contains ``_answer``.
    """

    gate: tuple[str, ...] = ()
    _strike: tuple[str, ...]
    _status: tuple[str, ...] = ()
    _answer: ClassVar[str] = ""
    _run: Runner

    def strike(self) -> tuple[Moment, ...]:
        began = time.time()
        RunCommand((*self.gate, *self._strike), self._status, self._answer).do(self._run)
        done = Moment(time.time(), "drill", "the command has ended")
        return Moment(began, "drill", shown_command(self._strike)), done


class CommandFault(OneCommand):
    """Fault caused by the command of ``--fault-command`` and undone by the command of ``--restore-command``."""

    def __init__(self, ask: Ask) -> None:
        self._run = run_unmarked
        self._strike = _program("--fault-command", ask.fault_command)
        remember_secrets(self._strike)  # before the first message
        undo = _program("--restore-command", ask.restore_command, ask.directory) if ask.restore_command else ()
        self.undo = RunCommand(undo) if undo else None
        self.text = f"run: {shown_command(self._strike)}"


def _program(option: str, text: str, drilled: Path | None = None) -> tuple[str, ...]:
    words = words_of(option, text)
    found, what = shutil.which(words[0], path=search_path()), "the command cannot be started"
    if found is None:  # Do not cause a fault that cannot be undone.
        raise EnvironmentLacksError(what, where=option, why=f"{shlex.quote(words[0])} is not found")
    if drilled and (mount := mount_of(drilled)).remote:
        for word in (found, *words[1:]):
            with suppress(OSError):
                its = mount_of(Path(word))
                if (its.major, its.minor) == (mount.major, mount.minor) and os.path.isfile(word):
                    why = f"{word} is on the file system of DIR, which may not answer then"
                    raise EnvironmentLacksError(what, where=option, why=why)
    return words


_OFF, _ON = "Chassis Power is off", "Chassis Power is on"
_UNCONFIRMED = "the BMC does not confirm that the power is on"
# The cluster may cut the power again after an early undoing. Default of stonith-timeout (Pacemaker Explained).
_FENCING_S = 60.0


class PowerOff(OneCommand):
    """Let the BMC of a server cut its power, and wait until the BMC confirms this. Undoing switches the power on."""

    _answer = _OFF

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        host = re.fullmatch(r"(?a:(?!-)([\w.-]+)|\[([\da-fA-F:.]+)\])(:\d{1,5})?", ask.bmc)
        if not host or ask.bmc_password_file is None:
            remedy = "Name the server to power off: --bmc HOST[:PORT] (or [IPv6]:PORT), --bmc-user and its password."
            raise BadInputError("--bmc and --bmc-password-file are required", where=ask.bmc, remedy=remedy)
        _refuse_open_secret(ask.bmc_password_file)
        if mount_of(ask.bmc_password_file.absolute().parent).remote:
            what, remedy = "the drill may make the password file unreadable", "Copy it to a local disk."
            why = "it is on a remote file system, and its password switches the power on again"
            raise BadInputError(what, where=str(ask.bmc_password_file), why=why, remedy=remedy)
        self._run = run_one
        via = words_of("--via", ask.via) if ask.via else ()
        port = (host[3] or ":623")[1:]
        # Use ipmitool, because fence_ipmilan would show the password on a command line. Use cipher suite 3, because
        # older BMCs lack suite 17, the default.
        file = str(ask.bmc_password_file.absolute())
        tool = ("ipmitool", "-I", "lanplus", "-C", "3", "-H", host[1] or host[2], "-p", port, "-U", ask.bmc_user)
        power = (*tool, "-f", file, "chassis", "power")
        self._status, self._strike, on = (through(via, (*power, word)) for word in ("status", "off", "on"))
        self.undo = RunCommand(on, self._status, _ON, file, _FENCING_S)
        self.text = f"power off through the BMC {ask.bmc} until it confirms: {shown_command(self._strike)}"
        answer = self._run(self._status)
        if answer.status != 0 or _ON not in answer.stdout:
            raise EnvironmentLacksError(_UNCONFIRMED, where=ask.bmc, why=answer.last_line)

    def lacking(self) -> str:
        return "" if _ON in self._run(self._status).stdout else _UNCONFIRMED


def _refuse_open_secret(path: Path) -> None:
    try:
        with closing(open_kept(path, os.O_RDONLY)) as file:
            mode, owner = os.fstat(file).st_mode, owner_of(file)
        remember_password(path)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadInputError("the password file cannot be read", where=str(path), why=why) from error
    if mode & 0o077 or owner != os.geteuid():
        why, remedy = f"{stat.filemode(mode)}, owner: user {owner}", f"Give a file of your own: chmod 600 {path}"
        raise BadInputError("other users can read the password file", where=str(path), why=why, remedy=remedy)
