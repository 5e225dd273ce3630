"""Recorded output of a real Lustre; ``recordings/INDEX.txt`` describes the recordings and their format."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from strakes.targets.command import Completed

PLACE = Path(__file__).parent / "recordings"

_FILE = re.compile(
    r"\A\$ (?P<command>[^\n]*?)(?P<user> +# as uid 1000 \(non-root\))?\n"
    r"(?P<stdout>.*?)(?:^\[stderr\]\n(?P<stderr>.*?))?^\[exit status (?P<status>\d+)\]\n\Z",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Recording:
    """``command``: the command line as typed. If it has several commands, the status is from the last one."""

    name: str
    command: str
    as_user: bool
    done: Completed

    @property
    def last_command(self) -> str:
        return re.split(r" && |; ", self.command)[-1]


@cache
def recording(name: str) -> Recording:
    match = _FILE.match((PLACE / name).read_text())
    assert match is not None, name
    command = match["command"].removeprefix("/usr/sbin/")  # run() searches there too
    unread = Recording(name, command, match["user"] is not None, Completed((), 0, "", ""))
    done = Completed(_words(unread.last_command), int(match["status"]), match["stdout"], match["stderr"] or "")
    return replace(unread, done=done)


def done(name: str) -> Completed:
    return recording(f"client/{name}.txt").done


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError:  # unbalanced quotes: part of a shell loop
        return (command,)


def names(folder: str) -> tuple[str, ...]:
    return tuple(sorted(f"{folder}/{path.name}" for path in (PLACE / folder).iterdir()))


def bare(name: str, *argv: str) -> Completed:
    return Completed(argv, 0, (PLACE / name).read_text(), "")
