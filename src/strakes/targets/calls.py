"""System calls on a file system whose servers may be dead.

In a child with a limit of time, for a thread that waits cannot be ended.
"""

from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from strakes.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.targets import child
from strakes.targets.command import CommandTimeout, Runner, run
from strakes.targets.mountinfo import Mount, find_mount, mount_id_of, read_mounts
from strakes.targets.quota import Quota, read_quotas

LIMIT_S = 10.0
_CHILD = (sys.executable, "-I", "-S", str(Path(child.__file__)))
# Seconds until a mount that did not answer is tried again; otherwise each of many calls would wait for the time-out.
_SILENT_S = 30.0
_silent: dict[str, float] = {}
# Directories that this process made, with what says which ones they are: their names may come to mean others.
_held: dict[str, str] = {}
# Descriptions of calls for messages; other calls are named.
_DOING = {
    "sizes": "the question how full it is",
    "trees": "the question for its quotas",
    "getxattr": "reading an attribute",
    "first": "reading an attribute",
    "try": "making a file",
    "there": "looking up a name",
    "realpath": "looking up the directory",
    "mount": "looking up the directory",
    "layout": "setting a layout",
    "setxattr": "setting an attribute",
    "direct": "direct I/O",
}
_NOT_ALLOWED = (errno.EPERM, errno.EACCES)
_FAILED = (
    *(errno.ENOTCONN, errno.ESTALE, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT, errno.ESHUTDOWN),
    *(errno.EIO, errno.ENOSPC, errno.EDQUOT),
)


class UnansweredError(MeasurementError):
    """A call did not come back in time."""

    def naming(self, trouble: Sequence[str]) -> UnansweredError:
        """Return the same, with what the file system says of its servers."""
        return UnansweredError(self.what, where=self.where, why="; ".join((self.why, *trouble)), remedy=self.remedy)


class RefusedError(OSError):
    """The system refused a call; ``errno`` and ``filename`` as ever."""

    def as_strakes_error(self, what: str, remedy: str = "") -> StrakesError:
        """Return the same as one of the failures that exit statuses know."""
        kind: type[StrakesError] = BadInputError
        if self.errno in _NOT_ALLOWED:
            kind, remedy = (
                EnvironmentLacksError,
                remedy or "Run strakes as root or as the owner, or ask your administrator to allow it.",
            )
        elif self.errno in _FAILED:
            kind = MeasurementError
        return kind(what, where=str(self.filename), why=self.strerror or "", remedy=remedy)


@dataclass(frozen=True)
class Sizes:
    """Sizes from statvfs(3), limited by quotas; inodes are 0 if the file system does not count them.

    ``full`` and ``full_inodes``: used shares of the space for ordinary users, as in df(1), without quotas.
    """

    block_bytes: int
    total_bytes: int
    free_bytes: int
    total_inodes: int
    free_inodes: int
    quotas: tuple[Quota, ...] = ()
    full: float = 0.0
    full_inodes: float = 0.0

    def within(self, quotas: Sequence[Quota]) -> Sizes:
        """Return the sizes limited by the quotas; omit quotas without a limit."""
        limiting = tuple(quota for quota in quotas if quota.limit_bytes or quota.limit_files)
        return replace(
            self,
            free_bytes=min(
                [self.free_bytes, *(quota.free_bytes for quota in limiting if quota.free_bytes is not None)]
            ),
            free_inodes=min(
                [self.free_inodes, *(quota.free_files for quota in limiting if quota.free_files is not None)]
            ),
            quotas=(*self.quotas, *limiting),
        )


def get_attributes(path: str, names: Sequence[str], ask: Runner = run) -> dict[str, str]:
    """Return the values of those extended attributes that exist."""
    pairs = (line.partition("=") for line in _call(ask, "getxattr", path, *names).splitlines())
    return {name: os.fsdecode(bytes.fromhex(value)) for name, _, value in pairs}


def first_attribute(paths: Sequence[str], name: str, ask: Runner = run) -> str | None:
    """Return the attribute of the first of the paths that has it."""
    told = _call(ask, "first", paths[0], name, *paths[1:])
    return os.fsdecode(bytes.fromhex(told.strip().partition("=")[2])) if told else None


def lay_out(directory: str, name: str, value: str, probe: str, read: str, ask: Runner = run) -> str | None:
    """Set an attribute of a directory, and return what its files get.

    That is attribute ``read`` of an empty file that is made there for it, and removed again.
    """
    told = _call(ask, "layout", directory, name, value, probe, read)
    return os.fsdecode(bytes.fromhex(told.strip().partition("=")[2])) if told else None


def set_attribute(path: str, name: str, value: str, ask: Runner = run) -> None:
    """Set an extended attribute. Raises RefusedError, or UnansweredError at the time-out."""
    _call(ask, "setxattr", path, name, value)


def sizes_of(path: str, ask: Runner = run) -> Sizes:
    """Return the room of the file system.

    >>> sizes_of("/proc").total_bytes
    0
    """
    told, *lines = _call(ask, "sizes", path).splitlines()
    block, unit, blocks, free, available, files, all_free_files, free_files, *_ = map(int, told.split())
    # CephFS counts no inodes and says -1, which C reads as the largest number there is.
    counted = 0 <= free_files < 1 << 63
    room = Sizes(
        block,
        blocks * unit,
        available * unit,
        files if counted else 0,
        free_files if counted else 0,
        full=_used(blocks - free, available),
        full_inodes=_used(files - all_free_files, free_files) if counted else 0.0,
    )
    return room.within(read_quotas(lines))


def _used(used: int, available: int) -> float:
    """Return the used share of the usable space, excluding blocks reserved for root.

    >>> _used(90, 5), _used(0, 0)
    (0.9473684210526315, 0.0)
    """
    return used / (used + available) if used > 0 else 0.0


def tree_quotas(directories: Sequence[str], ask: Runner = run) -> tuple[Quota, ...]:
    """Return the CephFS quotas of the directories."""
    return read_quotas(_call(ask, "trees", directories[0], *directories[1:]).splitlines())


def mode_of(path: str, ask: Runner = run) -> int:
    """Kind and permissions."""
    return int(_call(ask, "stat", path))


def real_directory(path: str, ask: Runner = run) -> str:
    """Return the directory without links; one that may not be entered is refused."""
    return _call(ask, "realpath", path)


def mount_number(path: str, ask: Runner = run) -> int:
    """Return the kernel's number of the mount that a path is on."""
    return int(_call(ask, "mount", path))


def mount_of(path: Path) -> Mount:
    """Return the mount that contains ``path``, with links resolved.

    Raises OSError if the path does not exist, MeasurementError if its file system does not answer.
    """
    number = mount_number(str(path))
    mounts = read_mounts()
    by_id = {mount.mount_id: mount for mount in mounts}
    # A name can lie about mounts that hide each other, the kernel's number cannot; it is missing only for mounts
    # outside this root.
    return by_id[number] if number in by_id else find_mount(mounts, os.path.realpath(path))


def is_there(path: str) -> bool:
    """Whether there is anything of the name."""
    return _call(run, "there", path) == "True"


def make_directories(paths: Sequence[str]) -> None:
    """In this order."""
    _call(run, "mkdir", *paths)


def make_files(paths: Sequence[str]) -> None:
    """Empty ones that were not there."""
    _call(run, "create", *paths)


def remove_directories(path: str) -> None:
    """Remove the directory and those in it, all empty."""
    _call(run, "empty", path)


def make_directory(path: str, ask: Runner = run) -> None:
    """Make a directory. Raises RefusedError, or UnansweredError at the time-out."""
    _call(ask, "mkdir", path)


def remove_directory(path: str, ask: Runner = run) -> None:
    """Remove an empty directory. Raises RefusedError, or UnansweredError at the time-out."""
    _call(ask, "rmdir", path)


def make_file(path: str, ask: Runner = run) -> None:
    """Make an empty file unless the file exists."""
    _call(ask, "create", path)


def remove_file(path: str, ask: Runner = run) -> None:
    """Remove a file. Raises RefusedError, or UnansweredError at the time-out."""
    _call(ask, "unlink", path)


def try_writing(directory: str, name: str, ask: Runner = run) -> None:
    """Make the directory, a file of that name in it, and remove both again.

    A target that cannot do that does not answer.
    """
    _call(ask, "try", directory, name)


def begin_writing(directory: str, name: str) -> subprocess.Popen[bytes]:
    """Start :func:`try_writing` in a child without waiting for it; the child prints the error number to stderr."""
    return subprocess.Popen(
        (*_CHILD, "try", directory, name),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def begin_look(path: str) -> subprocess.Popen[bytes]:
    """Start a child that looks at a path and ends when the file system has answered."""
    return subprocess.Popen(
        (*_CHILD, "stat", path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def direct_works(directory: str, name: str, sizes: Sequence[int], ask: Runner = run) -> bool:
    """Whether O_DIRECT really works for one of the sizes, tried with a file of that name."""
    return _call(ask, "direct", directory, name, *map(str, sizes)) == "True"


def open_directory(path: str) -> int:
    """Open a directory, past no link in its place. Raises OSError, and ESTALE where one that is held is another now."""
    real = real_directory(path)
    directory = os.open(real, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if _held.get(path, child.inside(path, directory)) != child.inside(path, directory):
        os.close(directory)
        raise RefusedError(errno.ESTALE, os.strerror(errno.ESTALE), path)
    return directory


def mount_of_open(descriptor: int) -> Mount:
    """Return the mount of an open file, whatever its name means by now. Raises OSError where it is out of sight."""
    number = mount_id_of(descriptor)
    for mount in read_mounts():
        if mount.mount_id == number:
            return mount
    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))


def hold(path: str, directory: int) -> None:
    """Let calls below ``path`` go to that open directory only, until :func:`let_go`.

    Its parent may belong to somebody else.
    """
    _held[path] = child.inside(path, directory)


def is_held(path: str) -> bool:
    """Return whether this process works in that directory."""
    return path in _held


def let_go(path: str) -> None:
    """Forget a directory that was held."""
    _held.pop(path, None)


def _call(ask: Runner, call: str, path: str, *rest: str) -> str:
    """Return the child's output. Raises RefusedError, or UnansweredError at the time-out."""
    if _silent and time.monotonic() - _silent.get(_mount_point(path), -math.inf) < _SILENT_S:
        raise _unanswered(call, path)
    inside = next((which for held, which in _held.items() if f"{path}/".startswith(f"{held}/")), "")
    words = (*_CHILD, *filter(None, [inside]), call, path, *rest)
    try:
        done = ask(words, LIMIT_S)
    except CommandTimeout as error:
        _silent[_mount_point(path)] = time.monotonic()
        raise _unanswered(call, path) from error
    except EnvironmentLacksError:
        # An interpreter that whoever we are now may not start: we run in it, so the call is made here.
        try:
            return child.main(call, path, list(rest))
        except OSError as error:
            raise RefusedError(error.errno or 0, os.strerror(error.errno or 0), path) from error
    if done.status == child.REFUSED and done.stderr.strip().isdigit():
        number = int(done.stderr)
        raise RefusedError(number, os.strerror(number), path)
    if done.status != 0:
        raise MeasurementError(
            f"{call} could not be made", where=path, why=done.stderr.strip() or f"exit status {done.status}"
        )
    return done.stdout


def _unanswered(call: str, path: str) -> UnansweredError:
    doing = _DOING.get(call, call)
    if find_mount(read_mounts(), os.path.abspath(path)).remote:
        why = f"{doing} waits for a server"
        remedy = "A server may be down or overloaded. Check the servers, then try again."
    else:
        why = f"{doing} does not end"
        remedy = "It may be frozen, or its device or server may not answer. Check that, then try again."
    what = f"the file system does not answer within {LIMIT_S:g} s"
    return UnansweredError(what, where=path, why=why, remedy=remedy)


def _mount_point(path: str) -> str:
    """By name alone, which asks no server."""
    return find_mount(read_mounts(), os.path.abspath(path)).mount_point
