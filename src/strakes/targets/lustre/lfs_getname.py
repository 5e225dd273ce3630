"""``lfs getname``: the name of a file system and of this mount, which is in the names of all its parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass

from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import checked, not_understood

_NAME = re.compile(r"^([\w-]+)-([0-9a-f]+)(?: .+)?$")


@dataclass(frozen=True)
class ClientName:
    """Such as "labfs", and "ffff8880083a1800" of "labfs-ffff8880083a1800"."""

    file_system: str
    instance: str


def getname(path: str) -> Command[ClientName]:
    """Ask for the name of a mount."""
    return Command(("lfs", "getname", path), read_name)


def read_name(done: Completed) -> ClientName:
    """Read it."""
    lines = checked(done, "the name of the file system is not known").splitlines()
    match = _NAME.match(lines[0]) if len(lines) == 1 else None
    if match is None:
        raise not_understood("lfs getname", lines[0] if lines else "")
    return ClientName(match[1], match[2])
