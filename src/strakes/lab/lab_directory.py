"""The directory of each lab, found by the lab's name, and a lock for the command that works in it."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.base.files import write_kept

# In directories that strakes made to hold labs, so that it may remove them with the last one.
ROOT_MARKER = ".made-by-strakes-lab"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
# The longest name of a Unix socket is 107 bytes; this is what the systems append to the directory.
_LONGEST_SOCKET_NAME_BYTES = len("/run/client.admin.4194304.asok")
_SOCKET_PATH_BYTES = 107
# Time in which a command that only looks (is_being_worked_in) releases the lock.
_PATIENCE_S = 0.5
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
ELSEWHERE = "Give another directory: XDG_STATE_HOME=DIR"


def labs_root() -> Path:
    """``$XDG_STATE_HOME/strakes/lab``, else ``/var/lib/strakes-lab`` for root, ``~/.local/state/strakes/lab``."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return Path(state, "strakes", "lab")
    return Path("/var/lib/strakes-lab") if os.geteuid() == 0 else Path.home() / ".local/state/strakes/lab"


def directory_of(name: str) -> Path:
    """Return where the lab ``name`` is, or will be. Raises BadInputError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise BadInputError(
            f"not a valid name for a lab: {name!r}",
            remedy="Use lower-case letters, digits and hyphens, beginning with a letter.",
        )
    return labs_root() / name


def all_directories() -> tuple[Path, ...]:
    """Return the directory of every lab that exists, by name."""
    root = labs_root()
    try:
        return tuple(root / name for name in sorted(filter(_NAME.fullmatch, os.listdir(root))))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise BadInputError("the labs cannot be listed", where=str(root), why=error.strerror or "") from error


def refuse_long_path(directory: Path) -> None:
    """Raise BadInputError if names of Unix sockets in the lab's directory would be too long for the kernel."""
    room = _SOCKET_PATH_BYTES - _LONGEST_SOCKET_NAME_BYTES
    if len(os.fsencode(directory)) > room:
        raise BadInputError(
            "the name of the lab's directory is too long",
            where=str(directory),
            why=f"Unix sockets in it allow {room} bytes",
            remedy=ELSEWHERE,
        )


@contextmanager
def working_in(lab: Path, *, make: bool) -> Iterator[bool]:
    """Lock the lab's directory against other commands; yield False if it does not exist. ``make``: create it.

    Raises BadInputError if another command works in it, or if it cannot be ours.
    """
    if make:
        _make(lab)
    try:
        directory = os.open(lab, _OPEN)
    except FileNotFoundError:
        yield False
        return
    except OSError as error:
        raise BadInputError("this is not the directory of a lab", where=str(lab), why=error.strerror or "") from error
    try:
        if os.fstat(directory).st_uid != os.geteuid():
            raise BadInputError("this directory belongs to another user", where=str(lab), remedy=ELSEWHERE)
        if not _lock(directory):
            holder = _holder(os.fstat(directory).st_ino)
            raise BadInputError(
                f"another command is starting or removing {lab.name}",
                where=str(lab),
                why=f"process {holder} is using it" if holder else "",
                remedy="Wait until it ends, or stop it.",
            )
        if not (lab.exists() and os.path.samestat(lab.lstat(), os.fstat(directory))):
            raise removed_meanwhile(lab)
        yield True
    finally:
        os.close(directory)


def removed_meanwhile(lab: Path) -> BadInputError:
    """Return the error for a lab that another command has removed while this one was starting it."""
    return BadInputError(
        f"another command has just removed {lab.name}", where=str(lab), remedy="Run the command again."
    )


def is_being_worked_in(lab: Path) -> bool:
    """Return whether a command is starting or removing the lab."""
    try:
        directory = os.open(lab, _OPEN)
    except OSError:
        return False
    try:
        fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(directory)
    return False


def remove_root() -> None:
    """Remove the directory of labs, and those above it, if strakes made them and they are empty."""
    root = labs_root()
    with suppress(OSError):
        while os.listdir(root) == [ROOT_MARKER]:
            (root / ROOT_MARKER).unlink()
            root.rmdir()
            root = root.parent


def _make(lab: Path) -> None:
    try:
        _make_root(lab.parent)
        with suppress(FileExistsError):
            lab.mkdir(mode=0o755)
    except OSError as error:
        raise BadInputError(
            "the lab's directory cannot be made", where=str(lab), why=error.strerror or "", remedy=ELSEWHERE
        ) from error


def _make_root(root: Path) -> None:
    if root.is_dir():
        return
    _make_root(root.parent)
    with suppress(FileExistsError):
        root.mkdir(mode=0o755)
    write_kept(root / ROOT_MARKER, "", mode=0o644)


def _lock(directory: int) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def _holder(inode: int) -> int | None:
    """Return the process that holds the lock, from /proc/locks."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if fields[1] == "FLOCK" and fields[3] == "WRITE" and int(fields[5].rpartition(":")[2]) == inode:
                return int(fields[4])
    return None
