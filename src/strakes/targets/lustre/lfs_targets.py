"""``lfs osts`` and ``lfs mdts``: which targets the client knows. They say ACTIVE during an outage too."""

from __future__ import annotations

import re
from dataclasses import dataclass

from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import checked, not_understood, target_name

_ROW = re.compile(r"^(\d+): (\S+) ([A-Z]+)$")
_HEADINGS = ("OBDS:", "MDTS:")


@dataclass(frozen=True)
class TargetState:
    """``state`` is ACTIVE or INACTIVE: whether this client may use it, not whether its server answers."""

    name: str
    kind: str
    index: int
    state: str


def osts(path: str = "") -> Command[tuple[TargetState, ...]]:
    """Ask for the data targets."""
    return Command(("lfs", "osts", *([path] if path else [])), read_targets)


def mdts(path: str = "") -> Command[tuple[TargetState, ...]]:
    """Ask for the metadata targets."""
    return Command(("lfs", "mdts", *([path] if path else [])), read_targets)


def read_targets(done: Completed) -> tuple[TargetState, ...]:
    """Return the targets, in order; none where the path is not on Lustre (that is no error to lfs)."""
    lines = checked(done, "the targets are not known").splitlines()
    return tuple(_target(line) for line in lines if line not in _HEADINGS)


def _target(line: str) -> TargetState:
    row = _ROW.match(line)
    if row is None:
        raise not_understood("lfs osts", line)
    name, kind, index = target_name(row[2], "lfs osts")
    if index != int(row[1]):
        raise not_understood("lfs osts", line)
    return TargetState(name, kind, index, row[3])
