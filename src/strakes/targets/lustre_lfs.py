"""Commands of ``lfs`` and ``lctl`` that list targets, pools, space and quotas, and parsers of their output."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from strakes.base.units import KIB
from strakes.targets.answers import not_understood
from strakes.targets.calls import Quota
from strakes.targets.command import Command, Completed
from strakes.targets.lustre_tool import checked, refusal, target_name

_NAME = re.compile(r"^([\w-]+)-([0-9a-f]+)(?: .+)?$")
_TARGET = re.compile(r"^(\d+): (\S+) ([A-Z]+)$")
_NID = re.compile(r"^\S+@[a-z0-9]+$")
_VERSION = re.compile(r"^(?:version=|lfs |lctl |)(\d+\.\S+)$", re.MULTILINE)
_SPACE = re.compile(r"^(\S+)\s+(\d{1,20})\s+(\d{1,20})\s+(\d{1,20})\s+\d+%\s.*?\[(?:MDT|OST):\d+\]\s*+(\w*)\s*$")
_SPACE_HEADING = re.compile(r"^UUID\s+(1K-blocks|Inodes)\b")
_SPACE_SUMMARY = re.compile(r"^filesystem[_ ]summary:\s+\d+\s+\d+\s+\d+\s+\d+%\s+\S")
_NO_SPACE = re.compile(r"^(\S+)\s*: (\S.*)$")
# A number of 64 bits in ``lfs quota``. In brackets if a server did not answer; an asterisk: the limit is exceeded.
_QUOTA = re.compile(r"^\[?(\d{1,20})\]?\*?$")
# Flag at the end of a line of ``lfs df`` -> its meaning.
_FLAGS = {"D": "degraded", "R": "read-only", "N": "no new objects", "S": "out of space", "I": "out of inodes"}


class ClientName(NamedTuple):
    """The name of a Lustre file system, and the id of a mount (``instance``). Names of parameters contain both."""

    file_system: str
    instance: str


@dataclass(frozen=True)
class TargetState:
    """A target in ``lfs osts``. ``state``: INACTIVE if an administrator disabled it for this client, else ACTIVE."""

    name: str
    kind: str
    index: int
    state: str


class TargetSpace(NamedTuple):
    """Total and free bytes (or inodes) of one target. ``state``: "" for a healthy target."""

    name: str
    total: int
    free: int
    state: str


class LustreSpace(NamedTuple):
    """The space of targets. ``missing``: reason for each target that did not answer."""

    targets: tuple[TargetSpace, ...]
    missing: Mapping[str, str]


def getname(path: str) -> Command[ClientName]:
    """Return the command that prints the name of a mount's file system and the id of the mount."""

    def read(done: Completed) -> ClientName:
        rows = _rows(done, "the name of the file system is not known", _NAME)
        if len(rows) != 1:
            raise not_understood("lfs getname", done.stdout)
        return ClientName(*rows[0].groups())

    return Command(("lfs", "getname", path), read)


def target_list(verb: str, path: str = "") -> Command[tuple[TargetState, ...]]:
    """Return the command that lists targets. ``verb``: osts or mdts. Dead targets also have the state ACTIVE."""

    def read(done: Completed) -> tuple[TargetState, ...]:
        # If the path is not on Lustre, lfs prints an empty list and reports no error.
        rows = _rows(done, "the targets are not known", _TARGET, ("OBDS:", "MDTS:"))
        return tuple(TargetState(*target_name(row[2], "lfs osts"), row[3]) for row in rows)

    return Command(("lfs", verb, *([path] if path else [])), read)


LIST_NIDS: Command[tuple[str, ...]] = Command(
    ("lctl", "list_nids"), lambda done: tuple(row[0] for row in _rows(done, "this node's addresses are unknown", _NID))
)


def read_version(done: Completed) -> str:
    """Parse the version of Lustre in "version=2.17.57" or "lfs 2.17.57"."""
    match = _VERSION.search(checked(done, "the version is not known"))
    if match is None:
        raise not_understood(" ".join(done.argv), done.stdout)
    return match[1]


VERSION = Command(("lctl", "get_param", "version"), read_version)


def pool_list(file_system: str, pool: str = "") -> Command[tuple[str, ...]]:
    """Return the command that lists the pools of a file system or, with ``pool``, the targets in this pool."""

    def read(done: Completed) -> tuple[str, ...]:
        first, *lines = checked(done, "the pools are not known").splitlines() or [""]
        if not first.startswith("Pool: " if pool else "Pools from "):
            raise not_understood("lfs pool_list", first)
        if pool:
            return tuple(target_name(line, "lfs pool_list")[0] for line in lines)
        return tuple(line.partition(".")[2] for line in lines)

    return Command(("lfs", "pool_list", f"{file_system}.{pool}" if pool else file_system), read)


def df(path: str = "", *, inodes: bool = False) -> Command[LustreSpace]:
    """Return the command that prints the space of active targets at ``path``, or of all mounted file systems."""
    return Command(("lfs", "df", *(["-i"] if inodes else []), *([path] if path else [])), read_df)


def read_df(done: Completed) -> LustreSpace:
    """Parse the space (bytes or inodes) of targets. Raises StrakesError if no target answers or output is truncated."""
    found, missing = [], {}
    unit, summaries = 0, 0
    for line in filter(str.strip, done.stdout.splitlines()):
        if heading := _SPACE_HEADING.match(line):
            unit, summaries = KIB if heading[1] == "1K-blocks" else 1, summaries - 1
        elif _SPACE_SUMMARY.match(line):
            summaries += 1
        elif unit and (row := _SPACE.match(line)):
            state = ", ".join(_FLAGS[flag] for flag in row[5] if flag in _FLAGS)
            name = target_name(row[1], "lfs df")[0]
            found.append(TargetSpace(name, int(row[2]) * unit, int(row[4]) * unit, state))
        elif unit and (row := _NO_SPACE.match(line)):
            missing[row[1]] = row[2]
        elif done.status == 0:
            raise not_understood("lfs df", line)
    if not found and done.status != 0:
        raise refusal(done, "the free space of the targets is not known")
    if unit == 0 or (summaries != 0 and done.status == 0):
        raise not_understood("lfs df", "it ends early")
    return LustreSpace(tuple(found), missing)


def quota(user: str, path: str) -> Command[Quota]:
    """Return the command that prints a user's quota."""

    def read(done: Completed) -> Quota:
        lines = checked(done, "the quota is not known").splitlines()
        first = next((place for place, line in enumerate(lines, 1) if line.split()[:1] == ["Filesystem"]), len(lines))
        # Columns: used, soft limit, hard limit, grace time, for space (KiB), then for files. A long path fills a line.
        values = " ".join(lines[first : first + 2]).split()[-8:]
        numbers = [int(match[1]) if (match := _QUOTA.match(value)) else -1 for value in values]
        if len(numbers) < 8 or min(*numbers[:3], *numbers[4:7]) < 0:
            raise not_understood("lfs quota", " ".join(values))
        used, soft, hard, _, used_files, soft_files, hard_files, _ = numbers
        return Quota.of(f"user {user}", soft * KIB, hard * KIB, used * KIB, soft_files, hard_files, used_files)

    return Command(("lfs", "quota", "-u", user, path), read)


def _rows(done: Completed, what: str, row: re.Pattern[str], headings: Sequence[str] = ()) -> list[re.Match[str]]:
    matches = []
    for line in checked(done, what).splitlines():
        match = row.match(line)
        if match is not None:
            matches.append(match)
        elif line not in headings:
            raise not_understood(" ".join(done.argv[:2]), line)
    return matches
