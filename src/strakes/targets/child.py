"""Program of a child process that makes one system call for ``calls.py`` and prints the result as a Python literal.

It imports nothing from strakes and only few standard modules, so that it starts quickly.
"""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False  # Importing TYPE_CHECKING from typing would double the start time of the process.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MARKER_NAME = ".strakes-marker"
# Exit status for a call that the kernel refused. Standard error then contains the errno.
REFUSED_STATUS = 3
# Exit status for a working directory that was removed, renamed or replaced.
EXCHANGED_STATUS = 4
# Digits of a checksum: half of SHA-256, because decimal numbers of 40 digits in an output are cut (command.py).
SUM_DIGITS = 32
_ABSENT = (errno.ENODATA, errno.EOPNOTSUPP, errno.EINVAL)
_NO_DIRECT = (errno.EINVAL, errno.EOPNOTSUPP)
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Another user may have made a file: do not block on a named pipe, and do not follow a symbolic link.
READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# From linux/fs.h: struct fsxattr (flags, extent size, extents, project, copy-on-write extent size).
_FS_IOC_FSGETXATTR, _FS_XFLAG_PROJINHERIT, _FSXATTR = 0x801C581F, 0x200, "<5I8x"
# From linux/quota.h: struct if_dqblk, with limits on space in blocks of 1,024 bytes.
_SYS_QUOTACTL_FD, _Q_GETQUOTA, _DQBLK, _DQBLK_BYTES = 443, 0x800007, "=8QI4x", 1024


def _real_directory(path: str) -> tuple[str, int]:
    real = os.path.realpath(path, strict=True)
    # Fail if the directory cannot be entered. If it is a mount point of an automounter, mount it.
    os.stat(f"{real}/.")
    return real, _mount_of(real)


def _lay_out(path: str, name: str, value: str, probe: str, read: str) -> str | None:
    os.setxattr(path, name, os.fsencode(value))
    _make_file(f"{path}/{probe}")
    try:
        return _attribute(f"{path}/{probe}", read)
    finally:
        os.unlink(f"{path}/{probe}")


def _try_writing(path: str, name: str) -> None:
    parent, new = os.path.split(path)
    above = os.open(parent[:1], OPEN_DIRECTORY)
    # Open each directory relative to its open parent, because another user may replace a directory in the path.
    for step in parent.split("/")[1:]:
        above = os.open(step or ".", _STEP, dir_fd=above)
    os.mkdir(new, 0o700, dir_fd=above)
    try:
        directory = os.open(new, OPEN_DIRECTORY, dir_fd=above)
        try:
            descriptor = os.open(name, NEW_FILE, 0o600, dir_fd=directory)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
                os.unlink(name, dir_fd=directory)
        finally:
            os.close(directory)
    finally:
        os.rmdir(new, dir_fd=above)


def _each(act: Callable[[str], None], paths: Iterable[str]) -> None:
    for path in paths:
        act(path)


def _make_file(path: str) -> None:
    os.close(os.open(path, NEW_FILE, 0o600))


def mount_id_of(descriptor: int) -> int:
    """Return the kernel's id of the mount that contains an open file. Raises OSError if /proc does not show it."""
    with open(f"/proc/self/fdinfo/{descriptor}") as lines:
        for line in lines:
            if line.startswith("mnt_id:"):
                return int(line.split()[1])
    raise OSError(errno.ENOSYS, "the kernel does not report the mount of a file; Linux 3.15 or later is required")


def _mount_of(path: str) -> int:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        return mount_id_of(descriptor)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOSYS):
            raise
        return -1
    finally:
        os.close(descriptor)


def _sizes(path: str) -> tuple[tuple[int, ...], list[tuple[object, ...]]]:
    room, quotas = tuple(os.statvfs(path)), list[tuple[object, ...]]()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return room, quotas
    try:
        who = (("user", os.geteuid()), ("group", os.getegid()), ("project", _project_of(descriptor)))
        for kind, (name, number) in enumerate(who):
            # The kernel has no quota for id 0, which is root or, for projects, no project.
            if number and (limits := _quota(descriptor, kind, number)):
                quotas.append((f"{name} {number}", *limits))
        return room, quotas
    finally:
        os.close(descriptor)


def _project_of(directory: int) -> int:
    import fcntl
    import struct

    attributes = bytearray(struct.calcsize(_FSXATTR))
    try:
        fcntl.ioctl(directory, _FS_IOC_FSGETXATTR, attributes)
    except OSError:
        return 0
    flags, _, _, project, _ = struct.unpack(_FSXATTR, attributes)
    return int(project) if flags & _FS_XFLAG_PROJINHERIT else 0


def _quota(directory: int, kind: int, number: int) -> tuple[int, ...]:
    import ctypes
    import struct

    told = ctypes.create_string_buffer(struct.calcsize(_DQBLK))
    command = (_Q_GETQUOTA << 8) | kind
    # quotactl_fd() exists since Linux 5.14. The older quotactl() needs a block device, which network mounts lack.
    if ctypes.CDLL(None).syscall(_SYS_QUOTACTL_FD, directory, command, number, told) != 0:
        return ()
    hard, soft, used, hard_files, soft_files, used_files, *_ = struct.unpack(_DQBLK, told.raw)
    return soft * _DQBLK_BYTES, hard * _DQBLK_BYTES, used, soft_files, hard_files, used_files


def _tree_quotas(*directories: str) -> list[tuple[object, ...]]:
    quotas = list[tuple[object, ...]]()
    for directory in directories:
        most_bytes, most_files, used_bytes, used_files = (
            int(_attribute(directory, f"ceph.{name}") or 0)
            for name in ("quota.max_bytes", "quota.max_files", "dir.rbytes", "dir.rentries")
        )
        if most_bytes or most_files:
            quotas.append((f"directory {directory}", 0, most_bytes, used_bytes, 0, most_files, used_files))
    return quotas


def _attribute(path: str, name: str) -> str | None:
    try:
        return os.fsdecode(os.getxattr(path, name))
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise


def _direct(directory: str, marker: str, name: str, *sizes: str) -> bool:
    opened = os.open(directory, OPEN_DIRECTORY)
    try:
        os.stat(marker, dir_fd=opened)
        return any(_direct_works(opened, name, int(size)) for size in sizes)
    finally:
        os.close(opened)


def _direct_works(directory: int, name: str, size: int) -> bool:
    import mmap
    from contextlib import suppress

    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECT
    try:
        descriptor = os.open(name, flags, 0o600, dir_fd=directory)
        try:
            with mmap.mmap(-1, size) as buffer:  # O_DIRECT needs aligned memory; mmap aligns to pages.
                buffer.write(b"strakes!" * (size // 8))
                return os.pwrite(descriptor, buffer, 0) == size and os.preadv(descriptor, [buffer], 0) == size
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in _NO_DIRECT:
            return False
        raise
    finally:
        # If the file system does not support O_DIRECT, open() may create the file before it fails, so remove it.
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _sums(directory: str, pattern: str, most_bytes: str) -> str:
    import hashlib
    from contextlib import suppress
    from fnmatch import fnmatch

    sums, above = list[str](), os.open(directory, OPEN_DIRECTORY)
    for inner in filter(lambda name: fnmatch(name, pattern), os.listdir(above)):
        try:
            names = os.listdir(opened := os.open(inner, OPEN_DIRECTORY, dir_fd=above))
        except OSError as error:
            sums.append(f"{inner}/{error.errno}")
            continue
        for name in names:
            with suppress(OSError), open(os.open(name, READ_FILE, dir_fd=opened), "rb", 4096) as file:
                # Drop cached pages, so that the data is read from the servers.
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                sums.append(f"{name}/{hashlib.sha256(file.read(int(most_bytes))).hexdigest()[:SUM_DIGITS]}")
        os.close(opened)
    return "/".join(sums)  # Parsing this takes a quarter of the memory of a list.


def _execute(*words: str) -> None:
    import signal

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores SIGPIPE, but the program must not.
    os.execvp(words[0], words)


def _beat(descriptor: str, interval_s: str, marker: str) -> None:
    import json
    import select
    import time

    while not select.select([sys.stdin], [], [], float(interval_s))[0]:
        document = {**json.loads(marker), "heartbeat_unix_s": time.time()}
        try:
            os.pwrite(int(descriptor), json.dumps(document).encode().ljust(len(marker) - 1) + b"\n", 0)
        except OSError:
            continue


CALLS: dict[str, Callable[..., object]] = {
    "getxattr": lambda path, *names: {name: value for name in names if (value := _attribute(path, name)) is not None},
    "setxattr": lambda path, name, value: os.setxattr(path, name, os.fsencode(value)),
    "first": lambda path, name, *more: next((value for one in (path, *more) if (value := _attribute(one, name))), None),
    "layout": _lay_out,
    "sizes": _sizes,
    "trees": _tree_quotas,
    "directory": _real_directory,
    "mount": _mount_of,
    "stat": lambda path: os.stat(path).st_mode,
    "there": os.path.lexists,
    "mkdir": lambda *paths: _each(os.mkdir, paths),
    "rmdir": os.rmdir,
    "empty": lambda path: _each(os.rmdir, (*(entry.path for entry in os.scandir(path)), path)),
    "create": lambda *paths: _each(_make_file, paths),
    "unlink": os.unlink,
    "direct": _direct,
    "try": _try_writing,
    "sums": _sums,
    "beat": _beat,
    "execute": _execute,
}

INSIDE = "--inside="


def inside(path: str, directory: int) -> str:
    """Return the option that makes the child fail if ``path`` no longer leads to the open ``directory``."""
    opened = os.fstat(directory)
    return f"{INSIDE}{opened.st_dev}:{opened.st_ino}:{path}"


def _enter(argument: str, words: list[str]) -> list[str]:
    device, inode, path = argument.removeprefix(INSIDE).split(":", 2)
    try:
        directory = os.open(path, OPEN_DIRECTORY)
        opened = os.fstat(directory)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        sys.exit(EXCHANGED_STATUS)
    if (opened.st_dev, opened.st_ino) != (int(device), int(inode)):
        sys.exit(EXCHANGED_STATUS)
    os.fchdir(directory)
    return [f".{word[len(path) :]}" if f"{word}/".startswith(f"{path}/") else word for word in words]


def main(words: list[str]) -> None:
    """Make the system call that the command line names, and print its result."""
    try:
        if words[0].startswith(INSIDE):
            words = [words[1], *_enter(words[0], words[2:])]
        sys.stdout.write(ascii(CALLS[words[0]](*words[1:])))
    except OSError as refusal:
        sys.stderr.write(str(refusal.errno))
        sys.exit(REFUSED_STATUS)
