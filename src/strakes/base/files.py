"""Open and replace files safely, even if another user plants links, pipes or devices.

Every path is resolved from ``/`` with a descriptor for each directory (as systemd's CHASE_SAFE). Links of this user and
of root are followed; a link of another user raises PlantedFileError. Files in stores ("kept" files) must be regular,
and are never opened through a symbolic link. On a FUSE mount of another user, all files count as files of that user.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from strakes.base.errors import BadInputError, EnvironmentLacksError

_PIECE_BYTES = 1 << 20
# O_PATH works without read permission for the directories of a path; O_DIRECTORY triggers automounts.
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FUSE = 0x65735546  # Type of FUSE file systems in statfs(2).
_MOST_LINKS = 40  # Maximum number of links in a path, as in the kernel (path_resolution(7)).


class PlantedFileError(PermissionError):
    """A file, directory or link that another user may have planted."""

    def __init__(self, why: str, path: Path | str) -> None:
        super().__init__(errno.EACCES, why, str(path))


def default_root() -> Path:
    """Return the directory of the store: $STRAKES_STORE, else $XDG_DATA_HOME/strakes, else ~/.local/share/strakes."""
    if chosen := os.environ.get("STRAKES_STORE"):
        return Path(chosen).expanduser().absolute()
    data_home = os.environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(data_home):  # The XDG specification says to ignore relative paths.
        return Path(data_home) / "strakes"
    try:
        return Path.home() / ".local" / "share" / "strakes"
    except RuntimeError as error:
        remedy = "Set STRAKES_STORE to a directory."
        raise EnvironmentLacksError("the directory of the store is unknown", why=str(error), remedy=remedy) from error


@contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """Close the descriptor at the end of a ``with`` block. Ignore errors of close(), which report failed servers."""
    try:
        yield descriptor
    finally:
        with suppress(OSError):
            os.close(descriptor)


def owner_of(descriptor: int) -> int:
    """Return the id of the user who controls an open file: its owner or, on FUSE mounts of other users, the mounter.

    A FUSE server can invent owners, so only servers of this user and root are trusted. Return -1 after an unmount.
    """
    import ctypes

    status = os.fstat(descriptor)
    device = b"%d:%d" % (os.major(status.st_dev), os.minor(status.st_dev))
    about = (ctypes.c_long * 32)()  # larger than a struct statfs, whose first member is the type (statfs(2))
    # Only root can mount FUSE file systems with a device (fusermount3(1)). A FUSE server can refuse fstatfs().
    known = ctypes.CDLL(None).fstatfs(descriptor, about) == 0 if device.startswith(b"0:") else True
    if known and about[0] != _FUSE:
        return status.st_uid
    mounter = -1
    with suppress(FileNotFoundError), open("/proc/self/mountinfo", "rb") as mounts:
        of_device = (fields for line in mounts if (fields := line.split(b" "))[2] == device)
        if found := re.search(rb",user_id=(\d+)", next(of_device, [b""])[-1]):
            mounter = int(found[1])
    return status.st_uid if mounter in (0, os.geteuid()) else mounter


def open_directory(path: Path, *, make: int = 0, guarded: bool = False) -> int:
    """Return a descriptor of a directory. ``make``: mode of missing directories to create; 0: create none.

    Raises PlantedFileError if the path contains a link of another user. With ``guarded``, also raises it if another
    user owns a directory of the path or can replace its files. Raises OSError if the directory cannot be opened.
    """
    with _directory(path, make=make, guarded=guarded) as directory:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)


def make_directory(path: Path) -> None:
    """Create a directory and its missing parents with mode 0700. Raises OSError."""
    with _directory(path, make=0o700):
        pass


def make_new_directory(path: Path) -> None:
    """Create a directory with mode 0700. Raises FileExistsError if the name exists, else OSError."""
    with _directory(path.parent) as parent:
        os.mkdir(path.name, 0o700, dir_fd=parent)
        _sync(parent)


@contextmanager
def _directory(path: Path, *, make: int = 0, guarded: bool = False) -> Iterator[int]:
    """Yield an O_PATH descriptor of a directory, for calls with ``dir_fd``. See :func:`open_directory`."""
    # In a user namespace, the machine's root user has another number: the owner of "/".
    trusted = {0, os.geteuid(), os.stat("/").st_uid}
    start, parts = ("/", path.parts[1:]) if path.is_absolute() else (".", path.parts)
    with closing(_walk(os.open(start, _STEP), parts, trusted, make=make, name=path, guarded=guarded)) as directory:
        yield directory


def _walk(
    directory: int, parts: Sequence[str], trusted: Collection[int], *, make: int, name: Path, guarded: bool = False
) -> int:
    left = list(reversed(parts))
    links = 0
    try:
        while left:
            if guarded:
                _require_guarded(directory, trusted)
            part = left.pop()
            step = _step(part, directory, make=make)
            if stat.S_ISLNK(os.fstat(step).st_mode):
                target = _target(step, trusted, part)
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                left += reversed(PurePosixPath(target).parts)
                if not target.startswith("/"):
                    continue
                left.pop()
                step = os.open("/", _STEP)
            os.close(directory)
            directory = step
        if guarded:
            _require_guarded(directory, trusted)
    except OSError as error:
        os.close(directory)
        error.filename = str(name)
        raise
    return directory


def _require_guarded(directory: int, trusted: Collection[int]) -> None:
    status = os.fstat(directory)
    free = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    if free or owner_of(directory) not in trusted:
        place = os.readlink(f"/proc/self/fd/{directory}")
        raise PlantedFileError(f"other users can replace files in {place}", place)


def _step(part: str, directory: int, *, make: int) -> int:
    try:
        return os.open(part, _STEP, dir_fd=directory)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            os.mkdir(part, make, dir_fd=directory)
        return os.open(part, _STEP, dir_fd=directory)
    except NotADirectoryError:
        link = os.open(part, _LINK, dir_fd=directory)
        if stat.S_ISLNK(os.fstat(link).st_mode):
            return link
        os.close(link)
        raise


def _target(link: int, trusted: Collection[int], part: str) -> str:
    """Return the target of an open link, and close the link. Raises PlantedFileError if the owner is not trusted."""
    with closing(link):
        owner = owner_of(link)
        if owner not in trusted:
            raise PlantedFileError(f"{part} is a symbolic link of another user (uid {owner})", part)
        return os.readlink("", dir_fd=link)


def _sync(directory: int) -> None:
    with closing(os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)) as descriptor:
        os.fsync(descriptor)


def open_kept(path: Path, flags: int, mode: int = 0o600) -> int:
    """Return a descriptor of a file in a store. ``flags``: as for open(2). ``mode``: permissions of a new file.

    Raises PlantedFileError if the file is a symbolic link, pipe or device or, when opened for writing, has several hard
    links or belongs to another user. Raises OSError if the file cannot be opened.
    """
    with _directory(path.parent) as directory:
        return _open_at(path, flags, mode, directory)


def _open_at(path: Path, flags: int, mode: int, directory: int) -> int:
    try:
        descriptor = os.open(path.name, flags | _FILE, mode, dir_fd=directory)
    except OSError as error:
        error.filename = str(path)
        if error.errno == errno.ELOOP:
            raise PlantedFileError("the file is a symbolic link", path) from error
        if error.errno == errno.ENXIO:
            raise PlantedFileError("not a regular file", path) from error
        raise
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise PlantedFileError("not a regular file", path)
        writes = flags & os.O_ACCMODE != os.O_RDONLY and not flags & os.O_EXCL
        if writes and (owner := owner_of(descriptor)) not in (0, os.geteuid()):
            raise PlantedFileError(f"the file belongs to another user (uid {owner})", path)
        if writes and state.st_nlink > 1:
            raise PlantedFileError("the file has a second name (a hard link)", path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_kept(path: Path, content: bytes | str, *, mode: int = 0o600) -> None:
    """Overwrite a file in place. Readers may see a part of the content. Raises the errors of :func:`open_kept`."""
    with os.fdopen(open_kept(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.truncate(0)
        os.fchmod(file.fileno(), mode)
        file.write(content.encode() if isinstance(content, str) else content)


def write_kernel_file(path: Path, text: str) -> None:
    """Write to a file in /proc or /sys, without creating or truncating it. Raises the errors of :func:`open_kept`."""
    with closing(open_kept(path, os.O_WRONLY)) as descriptor:
        os.write(descriptor, os.fsencode(text))


def replace_kept(path: Path, content: bytes) -> None:
    """Replace a file atomically: after a crash, it has the old or the new content. Raises OSError."""
    with _directory(path.parent) as directory:
        _replace(path.name, content, 0o600, directory)
        _sync(directory)


def create_kept(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Create a file with its content atomically. Raises FileExistsError if the name exists, else OSError."""
    with _directory(path.parent) as directory, _fresh(content, mode, directory) as fresh:
        os.link(fresh, path.name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        _sync(directory)


def move_kept(path: Path, target: Path) -> None:
    """Rename a file; the new name survives a crash. Raises OSError."""
    with _directory(path.parent) as source, _directory(target.parent) as directory:
        os.rename(path.name, target.name, src_dir_fd=source, dst_dir_fd=directory)
        _sync(source)
        _sync(directory)


def remove_kept(path: Path) -> None:
    """Remove a file if it exists. Raises OSError for other failures."""
    with suppress(FileNotFoundError), _directory(path.parent) as directory:
        os.unlink(path.name, dir_fd=directory)


def read_kept(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file in a store. Raises BadInputError if too large, and errors of :func:`open_kept`."""
    with os.fdopen(open_kept(path, os.O_RDONLY), "rb") as file:
        return read_whole(file, path, most_bytes)


def open_own(path: Path, what: str, remedy: str) -> BinaryIO:
    """Open a file that only this user controls, because strakes acts on its content with this user's rights.

    Raises BadInputError if the file or its directory belongs to another user or is writable for others, or if the file
    has several hard links. ``what``: the file's name in the message. Raises OSError if it cannot be opened.
    """
    user = os.geteuid()
    with _directory(path.parent) as directory:
        try:
            descriptor = _open_at(path, os.O_RDONLY, 0, directory)
        except PlantedFileError as error:
            raise _others(what, path, str(error.strerror), remedy) from error
        try:
            state, above = os.fstat(descriptor), os.fstat(directory)
            others = [owner for owner in map(owner_of, (descriptor, directory)) if owner != user]
            if others or state.st_nlink > 1:
                raise _others(what, path, f"user {others[0]}" if others else "it is a link", remedy)
            if (state.st_mode | above.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
                raise _others(what, path, "other users can write the file or its directory", remedy)
        except BaseException:
            os.close(descriptor)
            raise
    return os.fdopen(descriptor, "rb")


def _others(what: str, path: Path, why: str, remedy: str) -> BadInputError:
    return BadInputError(f"{what} belongs to another user", where=str(path), why=why, remedy=remedy)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Do not block if the path is a pipe.

    Raises BadInputError for a pipe, device or directory, OSError if the path cannot be opened.
    """
    return _regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), path)


def _regular(descriptor: int, path: Path) -> BinaryIO:
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadInputError("this is not a regular file", where=str(path), remedy="Copy the content to a file.")
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def read_whole(file: BinaryIO, path: Path, most_bytes: int) -> bytes:
    """Return the content of an open file. Raises BadInputError if it is too large or would block, OSError."""
    content = bytearray()
    # Files in /proc have a size of 0. Data that are appended during the read are ignored.
    size = os.fstat(file.fileno()).st_size
    while size <= most_bytes and len(content) <= most_bytes:
        piece = file.read(size - len(content) if size else _PIECE_BYTES)
        if piece is None:
            # The read would block, as for some files in /proc.
            raise BadInputError("the file never ends", where=str(path), remedy="Copy the content to a file.")
        if not piece:
            return bytes(content)
        content += piece
    raise BadInputError("the file is too large", where=str(path), why=f"the file is larger than {most_bytes >> 20} MiB")


def read_regular(path: Path, most_bytes: int, what: str = "the file cannot be read", remedy: str = "") -> bytes:
    """Return the content of a regular file.

    Raises BadInputError if the file is not regular, is larger than ``most_bytes``, or cannot be read. ``what``,
    ``remedy``: texts of the error if it cannot be read.
    """
    try:
        with open_regular(path) as file:
            return read_whole(file, path, most_bytes)
    except OSError as error:
        raise BadInputError(what, where=str(path), why=error.strerror or str(error), remedy=remedy) from error


def read_below(root: Path, name: str, most_bytes: int) -> bytes:
    """Return the content of a file below ``root``. Links cannot lead outside (as with RESOLVE_IN_ROOT in openat2(2)).

    Raises BadInputError if the file is not regular, is larger than ``most_bytes``, or cannot be read.
    """
    path = root / name
    try:
        with _regular(_open_below(root, name), path) as file:
            return read_whole(file, path, most_bytes)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadInputError("a file cannot be read", where=str(path), why=why) from error


def _open_below(root: Path, name: str) -> int:
    # Descriptors of the directories from ``root`` to the current one. ".." is never opened but pops the last
    # descriptor, because the owner could move the current directory outside of ``root``.
    way = [os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
    left = list(reversed(PurePosixPath(name).parts))
    links = 0
    try:
        while left:
            part = left.pop()
            if part == "..":
                if len(way) > 1:
                    os.close(way.pop())
                continue
            step = os.open(part, _LINK, dir_fd=way[-1])
            if stat.S_ISLNK(os.fstat(step).st_mode):
                target = _target(step, (owner_of(step),), part)
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                left += reversed(PurePosixPath(target).parts)
                if target.startswith("/"):
                    left[-1:] = [".."] * len(way)
            elif not left:
                os.close(step)
                return os.open(part, os.O_RDONLY | _FILE, dir_fd=way[-1])
            else:
                way.append(step)
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    finally:
        for directory in way:
            os.close(directory)


def real_path(path: Path) -> Path:
    """Return the path without symbolic links, or the absolute path if it changes during the look-up."""
    try:
        return Path(os.path.realpath(path))
    except OSError:
        return path.absolute()


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file atomically and keep its mode. Raises OSError.

    Links of this user and of root are followed; a link or a pipe of another user is replaced.
    """
    for _ in range(_MOST_LINKS):
        with _directory(path.parent) as directory:
            target = _write_or_target(path.name, content, directory)
        if target is None:
            return
        path = path.parent / target
    with _directory(path.parent) as directory:  # The links form a loop, so replace the last link.
        _replace(path.name, content, None, directory)


def write_below(top: Path, name: str, content: bytes, mode: int) -> None:
    """Replace a file below a directory atomically, and create missing directories. Raises OSError.

    Links below ``top`` are never followed, even if they belong to root.
    """
    *parents, last = PurePosixPath(name).parts
    with (
        _directory(top) as directory,
        closing(_walk(os.dup(directory), parents, (), make=0o777, name=top / name)) as below,
    ):
        _replace(last, content, mode, below)


def _write_or_target(name: str, content: bytes, directory: int) -> str | None:
    """Write a file, or return the target if the name is a link that can be trusted.

    The name is looked up once, because the owner of the directory could replace the file between two look-ups.
    """
    try:
        found = os.open(name, _LINK, dir_fd=directory)
    except FileNotFoundError:
        _replace(name, content, None, directory)
        return None
    with closing(found):
        status = os.fstat(found)
        link, ours = stat.S_ISLNK(status.st_mode), owner_of(found) in (0, os.geteuid())
        of_kernel = link and status.st_dev == os.stat("/proc/self").st_dev
        if link and ours and not of_kernel:
            return os.readlink("", dir_fd=found)
        if stat.S_ISREG(status.st_mode) or (not ours and (link or stat.S_ISFIFO(status.st_mode))):
            _replace(name, content, None, directory)
            return None
        # A link /proc/PID/fd/N must be opened by its name, because the file behind it may have no path.
        way = (name, directory) if of_kernel else (f"/proc/self/fd/{found}", None)
        # With O_NONBLOCK, a pipe without a reader is an error (ENXIO) instead of an endless wait.
        flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        with os.fdopen(os.open(way[0], flags, dir_fd=way[1]), "wb") as file:
            os.set_blocking(file.fileno(), True)
            file.write(content)
        return None


def _replace(name: str, content: bytes, mode: int | None, directory: int) -> None:
    mode = _mode_of(name, directory) if mode is None else mode
    with _fresh(content, mode, directory) as fresh:
        os.replace(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)


@contextmanager
def _fresh(content: bytes, mode: int, directory: int) -> Iterator[str]:
    name = f".strakes-{os.urandom(8).hex()}"
    descriptor = os.open(name, _FRESH, 0o600, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            # Use the descriptor, because the owner of the directory could have replaced the name by a link.
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _mode_of(name: str, directory: int) -> int:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        status = None
    if status is not None and stat.S_ISREG(status.st_mode) and status.st_uid in (0, os.geteuid()):
        return status.st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
