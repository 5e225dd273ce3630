"""Files that we make in directories of others: written whole, and never through what somebody else has put there."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40  # as the kernel


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file at once or not at all; it keeps its mode. Raises OSError.

    Links of this user and of root are followed; a link or a pipe of anybody else is replaced.
    """
    path = _behind_links(path)
    if path.exists() and not path.is_file() and not _is_planted(path):  # /dev/stderr, a named pipe
        path.write_bytes(content)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _replace(path.name, content, None, directory)
    finally:
        os.close(directory)


def write_below(top: Path, name: str, content: bytes, mode: int) -> None:
    """Replace a file below a directory at once; directories are made as needed. Raises OSError.

    No link below ``top`` is followed, whoever made it.
    """
    *parents, last = PurePosixPath(name).parts
    try:
        if _is_planted(top):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        here = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for parent in parents:
                with suppress(FileExistsError):
                    os.mkdir(parent, dir_fd=here)
                below = os.open(parent, _DIRECTORY, dir_fd=here)
                os.close(here)
                here = below
            _replace(last, content, mode, here)
        finally:
            os.close(here)
    except OSError as error:
        error.filename = str(top / name)
        raise


def _behind_links(path: Path) -> Path:
    for _ in range(_MOST_LINKS):
        # What a link to an open file of a process says is no path.
        if not path.is_symlink() or _is_planted(path) or (path.exists() and not path.is_file()):
            break
        path = path.parent / os.readlink(path)
    return path


def _is_planted(path: Path) -> bool:
    """Whether somebody else, who is not root, made a link or a pipe that we were to write through."""
    status = path.lstat()
    special = stat.S_ISLNK(status.st_mode) or stat.S_ISFIFO(status.st_mode)
    return special and status.st_uid not in (0, os.geteuid())


def _replace(name: str, content: bytes, mode: int | None, directory: int) -> None:
    fresh = f".strakes-{secrets.token_hex(8)}"
    descriptor = os.open(fresh, _FRESH, 0o600, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            # By its descriptor: the owner of the directory may have put a link to its name.
            os.fchmod(descriptor, _mode_of(name, directory) if mode is None else mode)
        os.replace(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=directory)
        raise


def _mode_of(name: str, directory: int) -> int:
    """Return that of our file of this name, else that of a new file."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        status = None
    if status is not None and stat.S_ISREG(status.st_mode) and status.st_uid in (0, os.geteuid()):
        return status.st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
