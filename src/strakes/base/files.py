"""Open and replace files safely, even if another user plants links, pipes or devices.

Paths are resolved from ``/`` with a descriptor for each directory (as systemd's CHASE_SAFE). Symbolic links are
followed only if this user or root owns them. Root follows them only in directories where nobody else can write. A file
in the store ("kept" file) must be a regular file. On a FUSE mount of another user, all files are treated as files of
that user.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from strakes.base.errors import BadInputError, EnvironmentLacksError

_PIECE_BYTES = 1 << 20
# O_PATH opens a directory without read permission. O_DIRECTORY triggers automounts.
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_LINK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_MODE = 0o1300  # Temporary mode that identifies a new directory, because no other program uses this mode.
# Type of FUSE file systems (statfs(2)), and maximum number of symbolic links in a path (path_resolution(7)).
_FUSE, _MOST_LINKS = 0x65735546, 40
_RENAME_NOREPLACE = 1  # renameat2(2)
# Open directories and their paths. Files below them are opened by descriptor, because the paths may change.
_pinned: list[tuple[Path, int]] = []


class PlantedFileError(PermissionError):
    """A file, directory or link that another user may have planted."""

    def __init__(self, why: str, path: Path | str) -> None:
        super().__init__(errno.EACCES, why, str(path))


def default_root() -> Path:
    """Return the directory of the store: $STRAKES_STORE, $XDG_DATA_HOME/strakes or ~/.local/share/strakes."""
    chosen, data_home = os.environ.get("STRAKES_STORE"), os.environ.get("XDG_DATA_HOME", "")
    if not chosen and os.path.isabs(data_home):  # The XDG specification ignores relative paths.
        return Path(data_home) / "strakes"
    return in_home(chosen or "~/.local/share/strakes", "Set STRAKES_STORE to a directory.").absolute()


def in_home(path: str, remedy: str) -> Path:
    """Return a path in which ~ is replaced. Raises EnvironmentLacksError if the home directory is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise EnvironmentLacksError(
            "the home directory is unknown", where=path, why=str(error), remedy=remedy
        ) from error


def buffered(descriptor: int, mode: str) -> BinaryIO:
    """Return a file object whose buffer does not have the size that a server reports (st_blksize), up to 4 GiB."""
    return cast("BinaryIO", os.fdopen(descriptor, mode, io.DEFAULT_BUFFER_SIZE))


@contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """Close the descriptor at the end of a ``with`` block, and ignore errors of close(2)."""
    try:
        yield descriptor
    finally:
        with suppress(OSError):
            os.close(descriptor)


def owner_of(descriptor: int) -> int:
    """Return the id of the user who controls an open file: its owner, or on FUSE mounts the mounting user.

    A FUSE server can invent owners. They count only for mounts of this user or root. Return -1 after an unmount.
    """
    import ctypes

    status = os.fstat(descriptor)
    device = b"%d:%d" % (os.major(status.st_dev), os.minor(status.st_dev))
    about = (ctypes.c_long * 32)()  # buffer for struct statfs, which begins with f_type (statfs(2))

    # A FUSE server may refuse fstatfs(), so a failure means FUSE. FUSE on a block device needs root (fusermount3(1)).
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
    """Return a descriptor of a directory. ``make``: create missing directories with this mode, if it is not 0.

    Raises PlantedFileError for a symbolic link of another user and, with ``guarded``, for a directory in which another
    user can replace files. Raises OSError for other failures.
    """
    with _directory(path, make=make, guarded=guarded) as directory:
        return os.open(".", _DIRECTORY, dir_fd=directory)


def refuse_links_of_others(path: Path, real: Path) -> None:
    """If this user is root, raise PlantedFileError for another user's link in ``path``. ``real``: resolved path."""
    if os.geteuid() == 0:
        with _directory(path) as directory:
            if not os.path.samestat(os.fstat(directory), os.stat(real)):
                raise PlantedFileError("its inode number changed, or another directory took its place", path)


def make_new_directory(path: Path) -> int:
    """Create a directory with mode 0700, and return its descriptor. Raises OSError, also if the directory exists."""
    with _directory(path.parent) as parent:
        os.mkdir(path.name, _NEW_MODE, dir_fd=parent)
        _sync(parent)
        with closing(os.open(path.name, _STEP, dir_fd=parent)) as made:
            # Check mode and owner, because the owner of the parent directory can replace the new directory.
            if os.fstat(made).st_mode & 0o1777 == _NEW_MODE and owner_of(made) in (0, os.geteuid()):
                os.chmod(f"/proc/self/fd/{made}", 0o700)
            else:  # Some file systems store no modes. There, check that no other user can replace the directory.
                try:
                    _require_guarded(parent, (0, os.geteuid()))
                except PlantedFileError as error:
                    raise PlantedFileError("another directory has taken the place of the new one", path) from error
            return os.open(".", _DIRECTORY, dir_fd=made)


@contextmanager
def pinned(path: Path, opened: int | None = None) -> Iterator[int]:
    """Yield a descriptor of ``path``. Later accesses below ``path`` use this descriptor, even if the path changes."""
    with closing(open_directory(path) if opened is None else os.dup(opened)) as directory:
        _pinned.append((path, directory))
        try:
            yield directory
        finally:
            _pinned.remove((path, directory))


@contextmanager
def _directory(path: Path, *, make: int = 0, guarded: bool = False) -> Iterator[int]:
    if known := [directory for name, directory in _pinned if name == path]:
        yield known[-1]
        return
    # In a user namespace, the machine's root has another user id, and owns "/".
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
            step, is_link = _step(part, directory, make=make)
            if is_link:
                target = _target(step, () if _moved_by_others(directory) else trusted, part)
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
    free = status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
    if free or owner_of(directory) not in trusted:
        place = os.readlink(f"/proc/self/fd/{directory}")
        raise PlantedFileError(f"other users can replace files in {place}", place)


def _moved_by_others(directory: int) -> bool:
    """Return whether root must not trust links in a directory, because other users can write to it."""
    mode = os.fstat(directory).st_mode
    return os.geteuid() == 0 and (mode & _OTHERS_WRITE != 0 or owner_of(directory) not in (0, os.stat("/").st_uid))


def _step(part: str, directory: int, *, make: int) -> tuple[int, bool]:
    try:
        return os.open(part, _STEP, dir_fd=directory), False
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            os.mkdir(part, make, dir_fd=directory)
        return os.open(part, _STEP, dir_fd=directory), False
    except NotADirectoryError:
        return os.open(part, _LINK, dir_fd=directory), True


def _target(link: int, trusted: Collection[int], part: str) -> str:
    with closing(link):
        if not stat.S_ISLNK(os.fstat(link).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        owner = owner_of(link)
        if owner not in trusted:
            whose = f"another user (uid {owner})" if owner else "root, in a directory where others can write"
            raise PlantedFileError(f"{part} is a symbolic link of {whose}", part)
        return os.readlink("", dir_fd=link)


def _sync(directory: int) -> None:
    with closing(os.open(".", _DIRECTORY, dir_fd=directory)) as descriptor:
        os.fsync(descriptor)


def open_kept(path: Path, flags: int, mode: int = 0o600) -> int:
    """Return a descriptor of a file in the store. ``flags``: as for open(2). ``mode``: permissions of a new file.

    Raises PlantedFileError for a symbolic link, pipe or device. For writing, also raises it for a file of another user
    or with several hard links. Raises OSError for other failures.
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
    """Overwrite a file in the store, but not atomically. Raises the errors of :func:`open_kept`."""
    with buffered(open_kept(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.truncate(0)
        os.fchmod(file.fileno(), mode)
        file.write(content.encode() if isinstance(content, str) else content)


def write_kernel_file(path: Path, text: str) -> None:
    """Write to an existing file in /proc or /sys. Raises the errors of :func:`open_kept`."""
    with closing(open_kept(path, os.O_WRONLY)) as descriptor:
        os.write(descriptor, os.fsencode(text))


def replace_kept(path: Path, content: bytes) -> None:
    """Replace a file in the store atomically. Raises OSError."""
    with _directory(path.parent) as directory:
        _replace(path.name, content, 0o600, directory)
        _sync(directory)


def create_kept(path: Path, content: bytes) -> None:
    """Create a file in the store atomically. Raises FileExistsError if the name exists, or another OSError."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    with _directory(path.parent) as directory, _fresh(content, 0o600, directory) as fresh:
        # A kill between link() and unlink() would leave a second name, which open_own() refuses.
        if library.renameat2(directory, os.fsencode(fresh), directory, os.fsencode(path.name), _RENAME_NOREPLACE):
            if (number := ctypes.get_errno()) not in (errno.EINVAL, errno.ENOSYS):  # such as NFS
                raise OSError(number, os.strerror(number), str(path))
            os.link(fresh, path.name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        _sync(directory)


def move_kept(path: Path, target: Path) -> None:
    """Rename a file in the store, and sync the directory. Raises OSError."""
    with _directory(path.parent) as source, _directory(target.parent) as directory:
        os.rename(path.name, target.name, src_dir_fd=source, dst_dir_fd=directory)
        _sync(source)
        _sync(directory)


def remove_kept(path: Path) -> None:
    """Remove a file in the store, if it exists. Raises OSError."""
    with suppress(FileNotFoundError), _directory(path.parent) as directory:
        os.unlink(path.name, dir_fd=directory)


def read_kept(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file in the store.

    Raises BadInputError for a file that is too large, and the errors of :func:`open_kept`.
    """
    with buffered(open_kept(path, os.O_RDONLY), "rb") as file:
        return read_whole(file, path, most_bytes)


@contextmanager
def own_directory(path: Path) -> Iterator[int]:
    """Open a directory that only this user can change. Missing directories are created with mode 0700.

    Raises BadInputError if other users can replace files in it, and OSError.
    """
    with ExitStack() as stack:
        try:
            directory = stack.enter_context(_own_directory(path, make=0o700))
        except PlantedFileError as error:
            store = "/var/lib/strakes" if os.geteuid() == 0 else "~/.local/share/strakes"
            what, why = "other users can replace the store", str(error.strerror)
            remedy = f"Set STRAKES_STORE to a directory of your own: STRAKES_STORE={store}"
            raise BadInputError(what, where=str(path), why=why, remedy=remedy) from error
        yield directory


@contextmanager
def _own_directory(path: Path, *, make: int = 0) -> Iterator[int]:
    """Open a directory. Raises PlantedFileError if other users can replace files in it.

    For root, also raises it if another user owns a parent, because that user can replace the directory.
    """
    with _directory(path, make=make, guarded=os.geteuid() == 0) as directory:
        others_write = os.fstat(directory).st_mode & _OTHERS_WRITE
        if others_write or owner_of(directory) != os.geteuid():
            raise PlantedFileError(f"other users can replace files in {path}", path)
        yield directory


def open_own(path: Path, what: str, remedy: str) -> BinaryIO:
    """Open a file that only this user can write. ``what``: name of the file in messages.

    Raises BadInputError for a file with several hard links, of another user, or in a directory that other users can
    write. Raises OSError for other failures.
    """
    try:
        with _own_directory(path.parent) as directory:
            file = buffered(_open_at(path, os.O_RDONLY, 0, directory), "rb")
        state, owner = os.fstat(file.fileno()), owner_of(file.fileno())
        if owner != os.geteuid() or state.st_nlink > 1 or state.st_mode & _OTHERS_WRITE:
            file.close()
            why = "it is a link" if state.st_nlink > 1 else f"user {owner} owns it, or others can write it"
            raise PlantedFileError(why, path)
    except PlantedFileError as error:
        why = str(error.strerror)
        raise BadInputError(f"{what} belongs to another user", where=str(path), why=why, remedy=remedy) from error
    return file


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises BadInputError for other files, OSError if it cannot be opened."""
    return _regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), path)


def _regular(descriptor: int, path: Path) -> BinaryIO:
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadInputError("this is not a regular file", where=str(path), remedy="Copy the content to a file.")
    except BaseException:
        os.close(descriptor)
        raise
    return buffered(descriptor, "rb")


def read_whole(file: BinaryIO, path: Path, most_bytes: int) -> bytes:
    """Return the content of an open file. Raises OSError, or BadInputError for more than ``most_bytes``."""
    content = bytearray()
    # Files in /proc have a size of 0, so read them to their end. A read that would block returns None.
    size = os.fstat(file.fileno()).st_size
    while size <= most_bytes and len(content) <= most_bytes:
        piece = file.read(size - len(content) if size else _PIECE_BYTES)
        if piece is None:
            raise BadInputError("the file never ends", where=str(path), remedy="Copy the content to a file.")
        if not piece:
            return bytes(content)
        content += piece
    raise BadInputError("the file is too large", where=str(path), why=f"the file is larger than {most_bytes >> 20} MiB")


def read_regular(path: Path, most_bytes: int, what: str = "the file cannot be read", remedy: str = "") -> bytes:
    """Return the content of a regular file.

    Raises BadInputError if the file is not regular, is too large, or cannot be read. ``what``, ``remedy``: texts of the
    error if it cannot be read.
    """
    try:
        with open_regular(path) as file:
            return read_whole(file, path, most_bytes)
    except OSError as error:
        raise BadInputError(what, where=str(path), why=error.strerror or str(error), remedy=remedy) from error


def read_below(root: Path, name: str, most_bytes: int) -> bytes:
    """Return the content of a file below ``root``. Symbolic links cannot lead out of ``root``.

    Raises BadInputError if the file is not regular, is too large, or cannot be read.
    """
    path = root / name
    try:
        with _regular(_open_below(root, name), path) as file:
            return read_whole(file, path, most_bytes)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadInputError("a file cannot be read", where=str(path), why=why) from error


def _open_below(root: Path, name: str) -> int:
    # For "..", return to the directory that was opened before. The real parent may have changed (openat2(2)).
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
    """Return the path without symbolic links. If they cannot be resolved, return the absolute path."""
    try:
        return Path(os.path.realpath(path))
    except OSError:
        return path.absolute()


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file atomically and keep its mode. Raises OSError.

    Symbolic links are followed if they belong to this user or root. Links and pipes of other users are replaced.
    """
    for _ in range(_MOST_LINKS):
        with _directory(path.parent) as directory:
            target = _write_or_target(path.name, content, directory)
        if target is None:
            return
        path = path.parent / target
    with _directory(path.parent) as directory:
        _replace(path.name, content, None, directory)


def write_below(top: Path, name: str, content: bytes, mode: int) -> None:
    """Replace a file below a directory atomically. Missing directories are created. Raises OSError.

    Symbolic links below ``top`` are never followed.
    """
    *parents, last = PurePosixPath(name).parts
    with (
        _directory(top) as directory,
        closing(_walk(os.dup(directory), parents, (), make=0o777, name=top / name)) as below,
    ):
        _replace(last, content, mode, below)


def _write_or_target(name: str, content: bytes, directory: int) -> str | None:
    """Write a file. If the name is a trusted symbolic link, return the path in the link instead."""
    try:
        found = os.open(name, _LINK, dir_fd=directory)
    except FileNotFoundError:
        _replace(name, content, None, directory)
        return None
    with closing(found):
        status = os.fstat(found)
        link, ours = stat.S_ISLNK(status.st_mode), owner_of(found) in (0, os.geteuid())
        ours = ours and not (link and _moved_by_others(directory))
        of_kernel = link and status.st_dev == os.stat("/proc/self").st_dev
        if link and ours and not of_kernel:
            return os.readlink("", dir_fd=found)
        if stat.S_ISREG(status.st_mode) or (not ours and (link or stat.S_ISFIFO(status.st_mode))):
            _replace(name, content, None, directory)
            return None
        # Open a link in /proc by its name, because the file that it leads to may have no path.
        way = (name, directory) if of_kernel else (f"/proc/self/fd/{found}", None)
        # O_NONBLOCK: a pipe without a reader is an error (ENXIO), not an endless wait.
        flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        with buffered(os.open(way[0], flags, dir_fd=way[1]), "wb") as file:
            os.set_blocking(file.fileno(), True)
            file.write(content)
        return None


def _replace(name: str, content: bytes, mode: int | None, directory: int) -> None:
    mode = _mode_of(name, directory) if mode is None else mode
    with _fresh(content, mode, directory) as fresh:
        os.replace(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)


@contextmanager
def _fresh(content: bytes, mode: int, directory: int) -> Iterator[str]:
    name, nameless = f".strakes-{os.urandom(8).hex()}", True
    try:
        # O_TMPFILE: if the process is killed, no incomplete file remains.
        descriptor = os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600, dir_fd=directory)
    except OSError:  # NFS and Lustre do not support O_TMPFILE.
        descriptor, nameless = os.open(name, _FRESH, 0o600, dir_fd=directory), False
    try:
        with buffered(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
            if nameless:
                os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=directory)
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _mode_of(name: str, directory: int) -> int:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        status = None
    mask = os.umask(0o077)
    os.umask(mask)
    # Do not keep the mode of a file with several hard links, because another user may have made this link.
    ours = status and stat.S_ISREG(status.st_mode) and status.st_uid in (0, os.geteuid()) and status.st_nlink == 1
    return status.st_mode & 0o777 if status and ours else 0o666 & ~mask
