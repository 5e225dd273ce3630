"""``lfs df``: room on each target."""

from __future__ import annotations

import re
from dataclasses import dataclass

from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import not_understood, refusal, target_name

_TOOL = "lfs df"
_ROW = re.compile(r"^(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\d+%\s+(.*?)\[(?:MDT|OST):\d+\]\s*(\S*)\s*$")
_SUMMARY = re.compile(r"^filesystem[_ ]summary:\s+\d+\s+\d+\s+\d+\s+\d+%\s+\S")
# A target that did not answer: its name, or UUID, and the reason.
_MISSING = re.compile(r"^(\S+)\s*: (\S.*)$")
_UNITS = {"1K-blocks": 1024, "Inodes": 1}
# What a target says of itself behind its mount point.
_FLAGS = {"D": "degraded", "R": "read-only", "N": "no new objects", "S": "out of space", "I": "out of inodes"}


@dataclass(frozen=True)
class TargetSpace:
    """Bytes, or inodes, of one target; ``state`` is empty where it has nothing to complain of."""

    name: str
    kind: str
    index: int
    total: int
    used: int
    free: int
    mount_point: str
    state: str


@dataclass(frozen=True)
class Missing:
    """A target that did not say: its name as printed, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class LustreSpace:
    """The room of targets, and those that did not answer."""

    targets: tuple[TargetSpace, ...]
    missing: tuple[Missing, ...]


def df(path: str = "", *, inodes: bool = False, lazy: bool = False) -> Command[LustreSpace]:
    """Room of the file system at ``path``, of all that are mounted without one. Inactive targets are left out.

    ``lazy``: waits for no target that does not answer.
    """
    options = [word for word, given in (("-i", inodes), ("-l", lazy)) if given]
    return Command(("lfs", "df", *options, *([path] if path else [])), read_df)


def read_df(done: Completed) -> LustreSpace:
    """Sizes in bytes, or numbers of inodes; targets that answered even where others did not.

    Raises StrakesError when none did, or the output is cut off.
    """
    targets, missing = [], []
    unit, summaries = 0, 0
    for line in done.stdout.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "UUID":
            if len(words) < 2 or words[1] not in _UNITS:
                raise not_understood(_TOOL, line)
            unit = _UNITS[words[1]]
            summaries -= 1
        elif _SUMMARY.match(line):
            summaries += 1
        elif unit and (row := _ROW.match(line)):
            name, kind, index = target_name(row[1], _TOOL)
            total, used, free = (int(size) * unit for size in row.group(2, 3, 4))
            state = ", ".join(_FLAGS[flag] for flag in row[6] if flag in _FLAGS)
            targets.append(TargetSpace(name, kind, index, total, used, free, row[5], state))
        elif unit and (row := _MISSING.match(line)):
            missing.append(Missing(row[1], row[2]))
        elif done.status == 0:
            raise not_understood(_TOOL, line)
    if not targets and done.status != 0:
        raise refusal(done, "the room on the targets is not known")
    if unit == 0 or (summaries != 0 and done.status == 0):
        raise not_understood(_TOOL, "it ends early")
    return LustreSpace(tuple(targets), tuple(missing))
