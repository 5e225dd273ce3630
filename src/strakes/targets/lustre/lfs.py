"""``lfs`` verbs that list something, and coreutils on a mount: arguments and parsers of the output."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from strakes.targets.calls import Sizes
from strakes.targets.command import Command, Completed
from strakes.targets.lustre.tool import checked, not_understood, refusal, succeeding, target_name
from strakes.targets.quota import Quota, lower
from strakes.units import KIB

# One line of each output.
_NAME = re.compile(r"^([\w-]+)-([0-9a-f]+)(?: .+)?$")
_TARGET = re.compile(r"^(\d+): (\S+) ([A-Z]+)$")
_NID = re.compile(r"^\S+@[a-z0-9]+$")
_VERSION = re.compile(r"^(?:version=|lfs |lctl |lustre: |)(\d+\.\S+)$", re.MULTILINE)
_POOLS = re.compile(r"^Pools from (\S+):$")
_POOL = re.compile(r"^Pool: ")
_CHECKED = re.compile(r"^(\S+?):? active\.$")
_UNREACHED = re.compile(r"^(?:lfs check: )?error: check '([^']+)': (.+?)(?: \(\d+\))?$")
_SPACE = re.compile(r"^(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\d+%\s+.*?\[(?:MDT|OST):\d+\]\s*(\S*)\s*$")
_SPACE_HEADING = re.compile(r"^UUID\s+(1K-blocks|Inodes)\b")
_SPACE_SUMMARY = re.compile(r"^filesystem[_ ]summary:\s+\d+\s+\d+\s+\d+\s+\d+%\s+\S")
_NO_SPACE = re.compile(r"^(\S+)\s*: (\S.*)$")
# A number is in brackets if a server did not answer, and has a star if it exceeds its limit.
_QUOTA = re.compile(r"^\[?(\d+)\]?\*?$")
_SIZES = re.compile(
    r"^Block size: (\d+)\s+Fundamental block size: (\d+)\n"
    r"Blocks: Total: (\d+)\s+Free: \d+\s+Available: (\d+)\n"
    r"Inodes: Total: (\d+)\s+Free: (\d+)$",
    re.MULTILINE,
)
# State flags of a target after its mount point in lfs df.
_FLAGS = {"D": "degraded", "R": "read-only", "N": "no new objects", "S": "out of space", "I": "out of inodes"}


class ClientName(NamedTuple):
    """The name of a file system and the instance name of this mount, which is part of its parameters' names."""

    file_system: str
    instance: str


@dataclass(frozen=True)
class TargetState:
    """A target. ``state``: ACTIVE or INACTIVE, which shows whether this client may use it, not whether it answers."""

    name: str
    kind: str
    index: int
    state: str


class LfsCheck(NamedTuple):
    """Devices ("labfs-OST0000-osc-ffff8880083a1800") that answer, and the others with the reason."""

    active: tuple[str, ...]
    failing: Mapping[str, str]


class TargetSpace(NamedTuple):
    """Bytes or inodes of one target. ``state``: "" for a healthy target."""

    name: str
    total: int
    free: int
    state: str


class LustreSpace(NamedTuple):
    """The sizes of targets, and for targets that failed the reason, by their printed names."""

    targets: tuple[TargetSpace, ...]
    missing: Mapping[str, str]


@dataclass(frozen=True)
class LustreQuota:
    """A user's usage and limits; a limit of 0 means unlimited."""

    used_bytes: int
    soft_bytes: int
    hard_bytes: int
    used_files: int
    soft_files: int
    hard_files: int

    def of(self, user: str) -> Quota:
        """Return the quota in the type common to all file systems."""
        limit_bytes, limit_files = lower(self.soft_bytes, self.hard_bytes), lower(self.soft_files, self.hard_files)
        return Quota(f"user {user}", self.used_bytes, limit_bytes, self.used_files, limit_files)


def getname(path: str) -> Command[ClientName]:
    """Ask for the name of a mount."""

    def read(done: Completed) -> ClientName:
        (row,) = _rows(done, "the name of the file system is not known", _NAME, most=1)
        return ClientName(row[1], row[2])

    return Command(("lfs", "getname", path), read)


def osts(path: str = "") -> Command[tuple[TargetState, ...]]:
    """List the data targets known to the client. They stay ACTIVE during an outage."""
    return Command(("lfs", "osts", *([path] if path else [])), _read_targets)


def mdts(path: str = "") -> Command[tuple[TargetState, ...]]:
    """Ask for the metadata targets that the client knows."""
    return Command(("lfs", "mdts", *([path] if path else [])), _read_targets)


def _read_targets(done: Completed) -> tuple[TargetState, ...]:
    """Return the targets, in order; none where the path is not on Lustre (that is no error to lfs)."""
    targets = []
    for row in _rows(done, "the targets are not known", _TARGET, headings=("OBDS:", "MDTS:")):
        name, kind, index = target_name(row[2], "lfs osts")
        if index != int(row[1]):
            raise not_understood("lfs osts", row[0])
        targets.append(TargetState(name, kind, index, row[3]))
    return tuple(targets)


def list_nids() -> Command[tuple[str, ...]]:
    """Ask for this machine's addresses in Lustre's network."""
    return Command(
        ("lctl", "list_nids"), lambda done: tuple(row[0] for row in _rows(done, "the network is not known", _NID))
    )


def tool_version() -> Command[str]:
    """Ask lfs for its version."""
    return Command(("lfs", "--version"), read_version)


def module_version() -> Command[str]:
    """Ask the kernel modules for theirs."""
    return Command(("lctl", "get_param", "version"), read_version)


def read_version(done: Completed) -> str:
    """Return the version in "version=2.17.57", "lfs 2.17.57" or a line "lustre: 2.10.8"."""
    match = _VERSION.search(checked(done, "the version is not known"))
    if match is None:
        raise not_understood(" ".join(done.argv), done.stdout)
    return match[1]


def pools(file_system: str) -> Command[tuple[str, ...]]:
    """Ask for the names of a file system's pools, without its own."""

    def read(done: Completed) -> tuple[str, ...]:
        heading, lines = _headed(done, "the pools are not known", _POOLS)
        prefix = f"{heading[1]}."
        for line in lines:
            if not line.startswith(prefix) or line == prefix:
                raise not_understood("lfs pool_list", line)
        return tuple(line.removeprefix(prefix) for line in lines)

    return Command(("lfs", "pool_list", file_system), read)


def members(file_system: str, pool: str) -> Command[tuple[str, ...]]:
    """Ask for the names of the targets in a pool."""

    def read(done: Completed) -> tuple[str, ...]:
        _, lines = _headed(done, "the targets of the pool are not known", _POOL)
        return tuple(target_name(line, "lfs pool_list")[0] for line in lines)

    return Command(("lfs", "pool_list", f"{file_system}.{pool}"), read)


def check(kind: Literal["osts", "mds", "servers", "all"], path: str = "") -> Command[LfsCheck]:
    """List the servers that answer. lfs reports the others on standard error and exits with 0."""
    return Command(("lfs", "check", kind, *([path] if path else [])), read_check)


def read_check(done: Completed) -> LfsCheck:
    """Parse the output of ``lfs check``. Raises StrakesError if nothing was checked."""
    active = []
    for line in done.stdout.splitlines():
        if match := _CHECKED.match(line):
            active.append(match[1])
        elif line.strip() and done.status == 0:
            raise not_understood("lfs check", line)
    failing = {match[1]: match[2] for line in done.stderr.splitlines() if (match := _UNREACHED.match(line))}
    if not active and not failing:
        raise refusal(done, "the servers could not be checked")
    return LfsCheck(tuple(active), failing)


def df(path: str = "", *, inodes: bool = False, lazy: bool = False) -> Command[LustreSpace]:
    """Return the command for the space of the file system at ``path``, or of all mounted ones without a path.

    Inactive targets are left out. ``lazy``: do not wait for targets that do not answer.
    """
    options = [word for word, given in (("-i", inodes), ("-l", lazy)) if given]
    return Command(("lfs", "df", *options, *([path] if path else [])), read_df)


def read_df(done: Completed) -> LustreSpace:
    """Return sizes in bytes, or numbers of inodes, of the targets that answered, even if others did not.

    Raises StrakesError if no target answered, or if the output is cut off.
    """
    targets, missing = [], {}
    unit, summaries = 0, 0
    for line in filter(str.strip, done.stdout.splitlines()):
        if heading := _SPACE_HEADING.match(line):
            unit, summaries = KIB if heading[1] == "1K-blocks" else 1, summaries - 1
        elif _SPACE_SUMMARY.match(line):
            summaries += 1
        elif unit and (row := _SPACE.match(line)):
            state = ", ".join(_FLAGS[flag] for flag in row[5] if flag in _FLAGS)
            name = target_name(row[1], "lfs df")[0]
            targets.append(TargetSpace(name, int(row[2]) * unit, int(row[4]) * unit, state))
        elif unit and (row := _NO_SPACE.match(line)):
            missing[row[1]] = row[2]
        elif done.status == 0:
            raise not_understood("lfs df", line)
    if not targets and done.status != 0:
        raise refusal(done, "the room on the targets is not known")
    if unit == 0 or (summaries != 0 and done.status == 0):
        raise not_understood("lfs df", "it ends early")
    return LustreSpace(tuple(targets), missing)


def quota(user: str, path: str) -> Command[LustreQuota]:
    """Ask for a user's limits."""
    return Command(("lfs", "quota", "-u", user, path), read_quota)


def read_quota(done: Completed) -> LustreQuota:
    """Parse ``lfs quota``, which prints a long path on a separate line before the eight values."""
    lines = checked(done, "the quota is not known").splitlines()
    first = next((place for place, line in enumerate(lines, 1) if line.split()[:1] == ["Filesystem"]), len(lines))
    # Kilobytes, soft limit, hard limit and grace time, and the same of files.
    values = " ".join(lines[first : first + 2]).split()[-8:]
    columns = [_QUOTA.match(value) for place, value in enumerate(values) if place not in (3, 7)]
    if len(columns) < 6 or None in columns:
        raise not_understood("lfs quota", " ".join(values))
    used, soft, hard, *files = (int(match[1]) for match in columns if match)
    return LustreQuota(used * KIB, soft * KIB, hard * KIB, *files)


def user_name() -> str:
    """Return the name of the calling user, or the number of a user without a name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def sizes(path: str) -> Command[Sizes]:
    """Return the command for the total sizes of the file system."""

    def read(done: Completed) -> Sizes:
        match = _SIZES.search(checked(done, "the size of the file system is unknown"))
        if match is None:
            raise not_understood("stat -f", done.stdout)
        block, unit, total, free, inodes, free_inodes = map(int, match.groups())
        return Sizes(block, total * unit, free * unit, inodes, free_inodes)

    return Command(("stat", "-f", path), read)


def is_directory(path: str) -> Command[bool]:
    """Return whether the path is a directory. Raises StrakesError if it does not exist."""
    return Command(
        ("stat", "-c", "%F", path), lambda done: checked(done, "the path cannot be examined", path) == "directory\n"
    )


def make_directory(path: str) -> Command[None]:
    """Make a directory."""
    return succeeding(("mkdir", path), "the directory was not made")


def make_file(path: str) -> Command[None]:
    """Make an empty file."""
    return succeeding(("touch", path), "no file can be made with this layout")


def remove_file(path: str) -> Command[None]:
    """Remove a file."""
    return succeeding(("rm", "-f", path), "a file of strakes could not be removed")


def _rows(
    done: Completed, what: str, row: re.Pattern[str], *, headings: Sequence[str] = (), most: int | None = None
) -> list[re.Match[str]]:
    """Match each line of the output. Raises StrakesError for a line that does not match, and for a wrong number."""
    tool = " ".join(done.argv[:2])
    lines = [line for line in checked(done, what).splitlines() if line not in headings]
    matches = [row.match(line) for line in lines]
    for line, match in zip(lines, matches, strict=True):
        if match is None:
            raise not_understood(tool, line)
    if most is not None and len(lines) != most:
        raise not_understood(tool, lines[0] if lines else "")
    return [match for match in matches if match is not None]


def _headed(done: Completed, what: str, heading: re.Pattern[str]) -> tuple[re.Match[str], list[str]]:
    """Return the heading, and the lines below it. Raises StrakesError without the heading."""
    first, *lines = checked(done, what).splitlines() or [""]
    match = heading.match(first)
    if match is None:
        raise not_understood("lfs pool_list", first)
    return match, lines
