"""How a fault is undone: known, and on disk, before the fault is done, so that another process can do it too."""

from __future__ import annotations

import os
import re
import shlex
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from strakes.base.errors import MeasurementError, StrakesError
from strakes.base.processes import process_start
from strakes.targets.command import Runner, run

COMMAND_S = 120.0
_LOOK_EVERY_S = 0.5
# The exit status of a remote shell that did not reach its host.
_NOT_REACHED = 255


class NotReachedError(MeasurementError):
    """A server did not answer, so that the undoing is worth another try."""


class Undo(ABC):
    """The undoing of one fault, idempotent. ``text`` quotes its commands."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def text(self) -> str:
        """Return what will be done, in words."""

    @abstractmethod
    def do(self, ask: Runner = run) -> str:
        """Undo the fault; return which part was not needed and why, empty if all was.

        Raises StrakesError when the fault could not be undone.
        """


@dataclass(frozen=True)
class RunCommand(Undo):
    """Runs a command, then, if given, repeats ``look`` until its output contains ``answer``."""

    kind: ClassVar[str] = "command"
    argv: tuple[str, ...]
    look: tuple[str, ...] = ()
    answer: str = ""

    @property
    def text(self) -> str:
        """Return the command, and the answer that is waited for."""
        waits = f", until {shlex.join(self.look)} says {self.answer!r}" if self.look else ""
        return f"run: {shlex.join(self.argv)}{waits}"

    def do(self, ask: Runner = run) -> str:
        """Run the command, and wait for its effect. Raises MeasurementError when it fails, or has no effect."""
        run_command(self.argv, self.look, self.answer, ask)
        return ""


@dataclass(frozen=True)
class MountTargets(Undo):
    """Mounts Lustre targets again unless another server has mounted them: mounted twice, a target is destroyed.

    ``mounts``: a command line for each of ``names``; ``here`` and ``elsewhere``: command lines that show what their own
    server and others have mounted. While another server does not answer, nobody knows whether it has them.
    """

    kind: ClassVar[str] = "mount-targets"
    names: tuple[str, ...]
    mounts: tuple[str, ...]
    here: str = ""
    elsewhere: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the command and its condition."""
        unless = ", unless another server has mounted it" if self.elsewhere else ""
        return f"run: {'; '.join(self.mounts)}{unless}"

    def do(self, ask: Runner = run) -> str:
        """Mount the targets that no other server has mounted.

        Tries all targets, then raises MeasurementError for the first failure. Raises NotReachedError if another server
        does not answer and a target is not mounted here.
        """
        taken: dict[str, str] = {}
        silent: list[str] = []
        for words in self.elsewhere:
            try:
                taken |= dict.fromkeys(self._mounted(words, ask), words)
            except StrakesError as error:
                silent.append(f"{words}: {error.why or error.what}")
        left = [name for name in self.names if name not in taken]
        if silent and set(left) - self._mounted(self.here, ask):
            raise NotReachedError(
                f"{', '.join(left)} cannot be mounted again safely",
                where="; ".join(silent),
                why="a server that does not answer may have them mounted, and two servers at one target destroy it",
                remedy="When it answers: strakes failover undo. If you are sure that it is off, run: "
                f"{'; '.join(self.mounts)}",
            )
        failure: StrakesError | None = None
        for name, mount in zip(self.names, self.mounts, strict=True):
            if name in taken:
                continue
            try:
                run_command(tuple(shlex.split(mount)), (), "", ask)
            except StrakesError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return "; ".join(f"{name} was left where another server has mounted it ({taken[name]})" for name in taken)

    def _mounted(self, words: str, ask: Runner) -> set[str]:
        """Return which of the targets are mounted where ``words`` looks. Raises StrakesError where nobody answers."""
        if not words:
            return set()
        seen = ask(shlex.split(words), COMMAND_S)
        if seen.status != 0:
            why = seen.stderr.strip() or f"status {seen.status}"
            raise NotReachedError("a server does not report its mounts", where=words, why=why)
        return {name for name in self.names if re.search(rf"\bsvname={re.escape(name)}[, ]", seen.stdout)}


@dataclass(frozen=True)
class Continue(Undo):
    """Sends SIGCONT to a stopped process; its start time ``started`` detects a reused process id."""

    kind: ClassVar[str] = "continue"
    name: str
    pid: int
    started: int

    @property
    def text(self) -> str:
        """Return the signal and the process that gets it."""
        return f"kill -CONT {self.name} (process {self.pid})"

    def do(self, ask: Runner = run) -> str:
        """Let the process go on, if it is still the one that was stopped."""
        if process_start(self.pid) == self.started:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGCONT)
        return ""


@dataclass(frozen=True)
class FreeRoom(Undo):
    """Truncates an unnamed file that process ``pid`` holds open as ``descriptor``; it disappears with the process.

    The start time ``started`` detects a reused process id.
    """

    kind: ClassVar[str] = "free-room"
    pid: int
    started: int
    descriptor: int

    @classmethod
    def of_this_process(cls, descriptor: int) -> Self:
        """Return the undoing for a file of this process."""
        return cls(os.getpid(), process_start(os.getpid()) or 0, descriptor)

    @property
    def path(self) -> str:
        """Return what leads to the file, and to no other."""
        return f"/proc/{self.pid}/fd/{self.descriptor}"

    @property
    def text(self) -> str:
        """Describe the file."""
        return f"run: truncate --size 0 {self.path} (an unnamed file, gone when process {self.pid} ends)"

    def do(self, ask: Runner = run) -> str:
        """Empty the file, unless it is gone. Raises MeasurementError where it cannot be emptied."""
        if process_start(self.pid) == self.started:
            run_command(("truncate", "--no-create", "--size", "0", self.path), (), "", ask)
        return ""


@dataclass(frozen=True)
class StartMetadataServer(Undo):
    """The start of a metadata server of a CephFS lab, unless it runs."""

    kind: ClassVar[str] = "lab-mds"
    lab: str
    name: str

    @property
    def text(self) -> str:
        """Name the metadata server to start, and its lab."""
        return f"start mds.{self.name} of the lab in {self.lab}"

    def do(self, ask: Runner = run) -> str:
        """Start the metadata server again."""
        from strakes.lab.ceph_lab import start_metadata_server

        start_metadata_server(Path(self.lab), self.name)
        return ""


@dataclass(frozen=True)
class RestorePair(Undo):
    """The cables and the power of the pair of a lab, restored."""

    kind: ClassVar[str] = "lab-pair"
    lab: str

    @property
    def text(self) -> str:
        """Name the lab and its part to restore."""
        return f"connect every cable and switch on every node of the lab {self.lab}"

    def do(self, ask: Runner = run) -> str:
        """Restore cables and power of the lab, if it still exists."""
        from strakes.lab.ha_pair import Pair
        from strakes.lab.manager import status

        lab = status(self.lab)
        if lab is not None:
            Pair(lab.facts).restore()
        return ""


_KINDS: Mapping[str, type[Undo]] = {
    kind.kind: kind for kind in (RunCommand, MountTargets, Continue, FreeRoom, StartMetadataServer, RestorePair)
}


def run_command(argv: tuple[str, ...], look: tuple[str, ...], answer: str, ask: Runner) -> None:
    """Run a command, and wait until ``look`` gives the answer.

    Raises MeasurementError with the command's output if it fails or the answer does not come, NotReachedError if its
    remote shell does not reach the host.
    """
    done = ask(argv, COMMAND_S)
    if done.status != 0:
        kind = NotReachedError if done.status == _NOT_REACHED else MeasurementError
        raise kind(
            "a command failed",
            where=shlex.join(argv),
            why=done.stderr.strip() or done.stdout.strip() or f"status {done.status}",
        )
    deadline = time.monotonic() + COMMAND_S
    while look:
        seen = ask(look)
        if seen.status == 0 and answer in seen.stdout:
            return
        if time.monotonic() > deadline:
            why = seen.stderr.strip() or seen.stdout.strip()
            raise MeasurementError(f"no answer {answer!r} within {COMMAND_S:g} s", where=shlex.join(look), why=why)
        time.sleep(_LOOK_EVERY_S)


def to_record(undo: Undo) -> dict[str, Any]:
    """Return the undoing as the journal keeps it.

    >>> undo = RunCommand(("true",))
    >>> from_record(to_record(undo)) == undo
    True
    """
    return {"kind": undo.kind, **asdict(undo)}  # type: ignore[call-overload]


def from_record(record: Mapping[str, Any]) -> Undo:
    """Read what the journal keeps. Raises KeyError or TypeError for anything else."""
    values = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items() if name != "kind"
    }
    return _KINDS[record["kind"]](**values)
