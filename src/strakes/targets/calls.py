"""Make system calls in a child process with a time limit, because a call to a file system with a dead server hangs."""

from __future__ import annotations

import ast
import errno
import math
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Literal, Self

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.file_kinds import DIRECTORY, refuse_other_kind
from strakes.base.files import PlantedFileError, closing, refuse_links_of_others
from strakes.base.units import counted, format_bytes
from strakes.targets import child
from strakes.targets.command import DEFAULT_TIMEOUT_S, CommandTimeout, Completed, Runner, run
from strakes.targets.mountinfo import Mount, find_mount, read_mounts
from strakes.targets.removal import enter

# fmt: off
Call = Literal[
    "getxattr", "setxattr", "first", "layout", "sizes", "trees", "directory", "mount", "stat", "there",
    "mkdir", "rmdir", "empty", "create", "unlink", "direct", "try", "sums",
]
# fmt: on
LIMIT_S = 10.0
# The child imports a module instead of running a script, because Python caches the bytecode only of modules.
_IMPORT = "import sys; sys.path.append(sys.argv[1]); import child; child.main(sys.argv[2:])"
CHILD = (sys.executable, "-I", "-S", "-c", _IMPORT, str(Path(child.__file__).parent))
# After a time-out, calls to the same mount fail immediately for this number of seconds.
_SILENT_S = 30.0
_silent: dict[str, float] = {}
# Path -> open directory, and the option with which a child process checks that the path still leads to it.
held_paths: dict[str, tuple[int, str]] = {}
_DOING = {
    "sizes": "querying the free space",
    "trees": "querying the quotas",
    "getxattr": "reading an attribute",
    "first": "reading an attribute",
    "try": "making a file",
    "there": "looking up a name",
    "directory": "looking up the directory",
    "mount": "looking up the directory",
    "layout": "setting a layout",
    "setxattr": "setting an attribute",
    "direct": "direct I/O",
    "sums": "reading files back",
}
# fmt: off
_FAILED = (
    errno.ENOTCONN, errno.ESTALE, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT, errno.ESHUTDOWN, errno.EIO,
    errno.ENOSPC, errno.EDQUOT,
)
# fmt: on


class UnansweredError(MeasurementError):
    """A system call did not return in time. ``names_servers``: whether ``why`` names unavailable servers."""

    names_servers = False

    def naming(self, trouble: Sequence[str]) -> UnansweredError:
        why = " ".join((f"{self.why}.", *trouble)) if trouble else self.why
        error = UnansweredError(self.what, where=self.where, why=why, remedy=self.remedy)
        error.names_servers = bool(trouble)
        return error


class RefusedError(OSError):
    """The kernel refused a system call. ``errno`` and ``filename`` are set as in any OSError."""

    def as_strakes_error(self, what: str, remedy: str = "") -> StrakesError:
        kind: type[StrakesError] = MeasurementError if self.errno in _FAILED else BadInputError
        if self.errno in (errno.EPERM, errno.EACCES):
            kind = EnvironmentLacksError
            remedy = remedy or "Run strakes as root or as the owner, or ask your administrator to allow it."
        return kind(what, where=str(self.filename), why=self.strerror or "", remedy=remedy)


@dataclass(frozen=True)
class Quota:
    """A disk quota. ``whose``: user, group, project or directory with this quota, for example "user 1000".

    ``limit_bytes``, ``limit_files``: the lower of the soft and the hard limit; 0 means unlimited.
    """

    whose: str
    used_bytes: int
    limit_bytes: int
    used_files: int
    limit_files: int

    @classmethod
    def of(cls, whose: str, *values: int) -> Self:
        """Return a quota. ``values``: soft limit, hard limit and usage in bytes, then the same for files."""
        soft_bytes, hard_bytes, used_bytes, soft_files, hard_files, used_files = values
        limit_bytes = min(filter(None, (soft_bytes, hard_bytes)), default=0)
        return cls(whose, used_bytes, limit_bytes, used_files, min(filter(None, (soft_files, hard_files)), default=0))

    @property
    def free_bytes(self) -> int | None:
        return max(0, self.limit_bytes - self.used_bytes) if self.limit_bytes else None

    @property
    def free_files(self) -> int | None:
        return max(0, self.limit_files - self.used_files) if self.limit_files else None

    def __str__(self) -> str:
        parts = []
        if self.free_bytes is not None:
            parts.append(f"{format_bytes(self.free_bytes)} of {format_bytes(self.limit_bytes)}")
        if self.free_files is not None:
            parts.append(f"{self.free_files:,} of {counted(self.limit_files, 'file')}")
        return f"The quota of {self.whose} leaves {' and '.join(parts)}."


@dataclass(frozen=True)
class Sizes:
    """Sizes of a file system from statvfs(3), with quotas. 0: unknown, or a file system that does not count inodes.

    ``full``, ``full_inodes``: used shares (0 to 1) as df(1) computes them, without quotas.
    """

    total_bytes: int
    free_bytes: int
    total_inodes: int
    free_inodes: int
    quotas: tuple[Quota, ...] = ()
    full: float = 0.0
    full_inodes: float = 0.0

    @classmethod
    def of(cls, room: Sequence[int], quotas: Sequence[tuple[str, int, int, int, int, int, int]]) -> Sizes:
        _, unit, blocks, free, available, files, all_free_files, free_files, *_ = room
        # Unknown numbers are -1, which statvfs returns as the largest unsigned number (CephFS: free inodes).
        if not 0 <= free_files < 1 << 63:
            files = all_free_files = free_files = 0
        blocks, available = (number if 0 <= number < 1 << 63 else 0 for number in (blocks, available))
        total_bytes, free_bytes = (min(number * unit, (1 << 63) - 1) for number in (blocks, available))
        full, full_inodes = _used(blocks - free, available), _used(files - all_free_files, free_files)
        sizes = cls(total_bytes, free_bytes, files, free_files, (), full, full_inodes)
        return sizes.within([Quota.of(*limits) for limits in quotas])

    def within(self, quotas: Sequence[Quota]) -> Sizes:
        """Return a copy whose free sizes are at most the unused parts of ``quotas``."""
        limiting = tuple(quota for quota in quotas if quota.limit_bytes or quota.limit_files)
        free_bytes = [self.free_bytes, *(quota.free_bytes for quota in limiting if quota.free_bytes is not None)]
        free_inodes = [self.free_inodes, *(quota.free_files for quota in limiting if quota.free_files is not None)]
        return replace(self, free_bytes=min(free_bytes), free_inodes=min(free_inodes), quotas=(*self.quotas, *limiting))


def _used(used: int, available: int) -> float:
    return used / (used + available) if used > 0 else 0.0


def mount_of(path: Path) -> Mount:
    """Return the mount that contains a path. Raises OSError if the path does not exist."""
    try:
        return _mount_with(call("mount", str(path)), path)
    except UnansweredError:
        return _mount_by_name(str(path))


def _mount_with(number: int, path: Path) -> Mount:
    mounts = read_mounts()
    by_id = {mount.mount_id: mount for mount in mounts}
    # Prefer the mount id, because several mounts may have one mount point. In a chroot, mountinfo may lack the id.
    return by_id[number] if number in by_id else find_mount(mounts, os.path.realpath(path))


def begin(name: Call, path: str, *rest: str, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Start a system call in a child process. If the call fails, the child prints the errno to ``stderr``."""
    return subprocess.Popen(
        (*CHILD, name, path, *rest),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,
    )


def hold(path: str, directory: int) -> None:
    """Register an open directory. File operations below ``path`` fail if ``path`` later leads to another directory."""
    held_paths[path] = directory, child.inside(path, directory)


def open_held(path: Path) -> int:
    """Open a directory at or below a path registered by :func:`hold`. Raises OSError if it does not exist."""
    held = _held_above(str(path))
    if held is None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
    directory = os.dup(held_paths[held][0])
    for name in path.relative_to(held).parts:
        with closing(directory):
            directory = enter(directory, name)
    return directory


def identity(path: Path, *, here: bool) -> dict[str, int]:
    """Return the inode number of a directory registered by :func:`hold`, and with ``here`` also its device number.

    Without ``here``, return {} if inode numbers differ between nodes. Return {} for unregistered directories.
    """
    if str(path) not in held_paths:
        return {}
    device, inode, _ = held_paths[str(path)][1].removeprefix(child.INSIDE).split(":", 2)
    if here:
        return {"inode": int(inode), "device": int(device)}
    return {"inode": int(inode)} if _mount_by_name(str(path)).has_same_inodes else {}


def through_held(run: Runner) -> Runner:
    """Return a runner that starts a command in the registered directory (:func:`hold`) that contains its paths."""

    @wraps(run)
    def run_there(argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        held = next(filter(None, map(_held_above, argv)), None)
        if held is None or tuple(argv[: len(CHILD)]) == CHILD:
            return run(argv, timeout_s)
        try:
            done = run((*CHILD, held_paths[held][1], "execute", *argv), timeout_s)
        except CommandTimeout as error:
            raise CommandTimeout(error.what, where=shlex.join(argv), why=error.why, remedy=error.remedy) from error
        if done.status == child.EXCHANGED_STATUS and not done.stdout and not done.stderr:
            why = f"the directory {held} was renamed or replaced"
            raise MeasurementError("a command was not run", where=shlex.join(argv), why=why)
        if done.status == child.REFUSED_STATUS and done.stderr.isdigit():
            raise EnvironmentLacksError(f"{argv[0]} cannot be started", why=os.strerror(int(done.stderr)))
        return replace(done, argv=tuple(argv))

    return run_there


def _held_above(path: str) -> str | None:
    return next((held for held in held_paths if f"{path}/".startswith(f"{held}/")), None)


def call(name: Call, path: str, *rest: str, ask: Runner = run, limit_s: float = LIMIT_S) -> Any:
    """Make a system call, named as in ``child.CALLS``, in a child process and return its result.

    Raises RefusedError if the kernel refuses the call, UnansweredError after the time limit, and MeasurementError for
    other failures.
    """
    if _silent and time.monotonic() - _silent.get(_mount_by_name(path).mount_point, -math.inf) < _SILENT_S:
        raise _unanswered(name, path, limit_s)
    held = _held_above(path)
    words = (*CHILD, *([held_paths[held][1]] if held else []), name, path, *rest)
    try:
        done = ask(words, limit_s)
    except CommandTimeout as error:
        _silent[_mount_by_name(path).mount_point] = time.monotonic()
        raise _unanswered(name, path, limit_s) from error
    if done.status == child.EXCHANGED_STATUS:
        raise RefusedError(errno.ESTALE, f"the directory {held} was renamed or replaced", path)
    if done.status == child.REFUSED_STATUS and done.stderr.strip().isdigit():
        raise RefusedError(int(done.stderr), os.strerror(int(done.stderr)), path)
    if done.status != 0 or not done.stdout:  # Also if another process waited for the child, and took its status.
        why = done.stderr.strip().rpartition("\n")[2] or f"exit status {done.status}"
        raise MeasurementError(f"the call {name} failed", where=path, why=why)
    return ast.literal_eval(done.stdout)


def _unanswered(name: Call, path: str, limit_s: float) -> UnansweredError:
    why = f"{_DOING.get(name, name)} does not end"
    remedy = "Check whether the file system is frozen, and whether its device or server answers. Then try again."
    if _mount_by_name(path).remote:
        why = f"{_DOING.get(name, name)} waits for a server"
        remedy = "Check whether a server is down or overloaded, then try again."
    return UnansweredError(f"the file system does not answer within {limit_s:g} s", where=path, why=why, remedy=remedy)


def _mount_by_name(path: str) -> Mount:
    return find_mount(read_mounts(), os.path.abspath(path))


_RUN = re.compile(r"\d{8}-\d{6}-")
_LOST = ("the file system there does not answer", "Mount the file system again, then try again.")
DISCONNECTED = dict.fromkeys((errno.ENOTCONN, errno.ESHUTDOWN, errno.ESTALE), _LOST)
_UNUSABLE = {
    errno.ENOENT: ("no such directory", "Create it, or give another directory."),
    errno.ENOTDIR: ("this is not a directory", "Give a directory on the file system to measure."),
    errno.ELOOP: ("the symbolic links of this path lead in a circle", "Give the path of the directory itself."),
    errno.EACCES: (
        "you have no permission to enter this directory",
        "Give a directory that you can write to, or run strakes as another user.",
    ),
    **DISCONNECTED,
}


def find_directory(path: Path) -> tuple[Path, Mount]:
    """Return a directory's path without symbolic links, and its mount.

    Raises BadInputError if the directory cannot be entered or, for root, if the path contains a link of another user.
    Raises MeasurementError if the file system does not answer.
    """
    try:
        real, number = call("directory", str(path))
        refuse_links_of_others(path, Path(real))
        return Path(real), _mount_with(number, Path(real))
    except PlantedFileError as error:
        what, remedy = "another user or server chooses where this path leads", f"Give the path without links: {real}"
        raise BadInputError(what, where=str(path), why=str(error.strerror), remedy=remedy) from error
    except OSError as error:
        what, remedy = _UNUSABLE.get(error.errno or 0, ("this directory cannot be used", "Give another directory."))
        if error.errno == errno.ENOTDIR:
            refuse_other_kind(path, "directory", DIRECTORY.name)
        if error.errno == errno.ENOENT and _RUN.match(str(path)):
            what, remedy = "this is the id of a run, not a directory", f"To see the run: strakes report {path}"
        elif error.errno == errno.ENOENT and not call("there", _mount_by_name(str(path)).mount_point):
            what, remedy = _LOST  # The root of ceph-fuse does not exist for an evicted client.
        raise BadInputError(what, where=str(path), why=os.strerror(error.errno or 0), remedy=remedy) from error
