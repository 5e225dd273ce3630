"""Actions that undo faults. Each action is stored on disk before the fault, so that another process can perform it."""

from __future__ import annotations

import math
import os
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from strakes.base.errors import MeasurementError, StrakesError
from strakes.base.files import closing, open_kept
from strakes.base.foreign_text import remember_secrets, shell_words, shown_command, without_secrets
from strakes.lab.ceph_lab import start_metadata_server
from strakes.lab.ha_pair import Pair
from strakes.lab.manager import status_in
from strakes.lab.state import directory_of
from strakes.model.record import from_fields
from strakes.targets.command import Runner, run_unmarked

COMMAND_S = 120.0
_MOST_PASSWORD_BYTES = 4096
_PASSWORD_LENGTHS = (None, 16, 20)  # IPMI 1.5 and 2.0 cut passwords to 16 and 20 bytes.
_LOOK_EVERY_S, _MOST_LOOKS = 0.5, 20


def targets_in(mounts: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each Lustre target in /proc/mounts, and the fields of its line. Skips FUSE mounts."""
    for fields in (line.split(" ") for line in mounts.split("\n")):
        for option in fields[3].split(",") if len(fields) > 3 and fields[2:3] in (["lustre"], ["lustre_tgt"]) else ():
            if option.startswith("svname="):
                yield option.removeprefix("svname="), fields


def answer_of(ask: Runner, words: Sequence[str], what: str = "a command failed") -> str:
    """Return the output of a command. Raises MeasurementError with the text ``what`` if it fails."""
    done = ask(words, COMMAND_S)
    if done.status != 0:
        why = done.stderr.strip() or done.stdout.strip() or f"status {done.status}"
        raise MeasurementError(what, where=shlex.join(words), why=why)
    return done.stdout


@cache
def remember_password(path: Path) -> None:
    """Hide the password in a file in all later messages. Raises OSError."""
    with closing(open_kept(path, os.O_RDONLY)) as file:
        line = os.read(file, _MOST_PASSWORD_BYTES).split(b"\n")[0].strip().decode(errors="surrogateescape")
    remember_secrets((), *(line[:length] for length in _PASSWORD_LENGTHS))


class Undo(ABC):
    """Action that undoes a fault. It may be repeated without harm."""

    @property
    @abstractmethod
    def text(self) -> str:
        """Return a description of the action, with its commands."""

    @abstractmethod
    def do(self, ask: Runner = run_unmarked) -> str:
        """Undo the fault. Return a text about steps that were skipped, or "". Raises StrakesError."""

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Undo:
        """Return the action in a record of the journal."""
        return from_fields(_KINDS[record["kind"]], record)

    def to_json(self) -> dict[str, Any]:
        """Return the record of the action for the journal."""
        return {"kind": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class RunCommand(Undo):
    """Run the command ``argv``. Then repeat the command ``look``, if any, until its output contains ``answer``.

    ``secret``: file of the command's password, which no message shows. ``stays_s``: how long the answer must stay.
    """

    argv: tuple[str, ...]
    look: tuple[str, ...] = ()
    answer: str = ""
    secret: str = ""
    stays_s: float = 0.0

    def __post_init__(self) -> None:
        if not self.argv:
            raise ValueError("the command is empty")
        remember_secrets((*self.argv, *self.look))  # before the first message

    @property
    def text(self) -> str:
        stays = f" for {self.stays_s:g} s" if self.stays_s else ""
        waits = f", until {shown_command(self.look)} says {self.answer!r}{stays}" if self.look else ""
        return f"run: {shown_command(self.argv)}{waits}"

    def do(self, ask: Runner = run_unmarked) -> str:
        if self.secret:
            with suppress(OSError):
                remember_password(Path(self.secret))
        failure: StrakesError | None = None
        try:
            answer_of(ask, self.argv)
        except StrakesError as error:
            failure = error
        began_s, since_s = time.monotonic(), math.inf
        while self.look:
            seen, now_s = ask(self.look), time.monotonic()
            if seen.status == 0 and self.answer in seen.stdout:
                # Some BMCs refuse to switch on power that is on.
                failure, since_s = None, min(since_s, now_s)
                if now_s - since_s >= self.stays_s:
                    break
            elif failure or now_s - began_s > COMMAND_S or (seen.status == 0 and since_s < now_s):
                what, why = f"no output with {self.answer!r}", seen.stderr.strip() or seen.stdout.strip()
                raise failure or MeasurementError(what, where=shlex.join(self.look), why=why)
            time.sleep(max(_LOOK_EVERY_S, self.stays_s / _MOST_LOOKS))
        if failure:
            raise failure
        return ""


@dataclass(frozen=True)
class MountTargets(Undo):
    """Mount Lustre targets again, except targets that another server has mounted: a second mount destroys a target.

    ``mounts``: command lines, one for each target in ``names``. ``here``: command line that prints the mounts of the
    target's usual server. ``elsewhere``: the same for each other server.
    """

    names: tuple[str, ...]
    mounts: tuple[str, ...]
    here: str
    elsewhere: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.names) != len(self.mounts) or not all(map(shlex.split, (*self.mounts, self.here, *self.elsewhere))):
            raise ValueError("a target has no command")

    @property
    def text(self) -> str:
        unless = ", unless another server has mounted it" if self.elsewhere else ""
        return without_secrets(f"run: {'; '.join(self.mounts)}{unless}")

    def do(self, ask: Runner = run_unmarked) -> str:
        taken: dict[str, str] = {}
        silent: list[str] = []
        for words in self.elsewhere:
            try:
                taken |= dict.fromkeys(self._mounted(words, ask), words)
            except StrakesError as error:
                silent.append(f"{words}: {error.why or error.what}")
        left = {name: mount for name, mount in zip(self.names, self.mounts, strict=True) if name not in taken}
        if silent and left.keys() - self._mounted(self.here, ask):
            raise MeasurementError(
                f"{', '.join(left)} cannot be mounted again safely",
                where="; ".join(silent),
                why="a server that does not answer may have mounted these targets; a second mount would destroy them",
                remedy="When the server answers again, run: strakes failover undo. If you are sure that the server is "
                f"off, run: {'; '.join(self.mounts)}",
            )
        failures: dict[str, StrakesError] = {}
        for name, mount in left.items():
            try:
                RunCommand(tuple(shell_words(mount))).do(ask)
            except StrakesError as error:
                failures[name] = error
        # A failure of mount(8) is no error if the target is already mounted.
        if failures and (still := failures.keys() - self._mounted(self.here, ask)):
            raise failures[min(still)]
        stays = (f"{name} stays on the server that has mounted it ({taken[name]})" for name in taken)
        return without_secrets("; ".join(stays))

    def _mounted(self, words: str, ask: Runner) -> set[str]:
        mounts = answer_of(ask, shell_words(words), "a server does not report its mounts")
        return {name for name, _ in targets_in(mounts) if name in self.names}


@dataclass(frozen=True)
class RepairLab(Undo):
    """Start or continue the metadata server of a CephFS lab, or restore the cables and the power of a pair.

    ``lab``: its directory, since a name means another one with another XDG_STATE_HOME. In older records: its name.
    """

    lab: str
    server: str = ""

    @property
    def text(self) -> str:
        pair = "connect every cable and switch on every node"
        return f"{f'start or continue mds.{self.server}' if self.server else pair} of the lab {Path(self.lab).name}"

    def do(self, ask: Runner = run_unmarked) -> str:
        lab = status_in(Path(self.lab) if os.path.isabs(self.lab) else directory_of(self.lab))
        if lab is None:
            return f"nothing, because the lab {Path(self.lab).name} does not exist"
        if self.server:
            start_metadata_server(Path(lab.directory), self.server)
        else:
            Pair(lab.facts).restore()
        return ""


_KINDS: Mapping[str, type[Undo]] = {kind.__name__: kind for kind in (RunCommand, MountTargets, RepairLab)}
