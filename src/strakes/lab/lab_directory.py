"""The directory of each lab, found by the lab's name, and a lock for the command that works in it."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.base.files import write_kept

# In directories that strakes made to hold labs, so that it may remove them with the last one.
ROOT_MARKER = ".made-by-strakes-lab"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
# The longest name of a Unix socket is 107 bytes; this is what the systems append to the directory.
_LONGEST_SOCKET_NAME_BYTES = len("/run/client.admin.4194304.asok")
_SOCKET_PATH_BYTES = 107
_PATIENCE_S = 0.5
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class LabDirectory:
    """The directory of a lab, and the link to it in the default root where it is elsewhere (``--at``)."""

    name: str
    directory: Path
    link: Path | None = None


def default_root() -> Path:
    """``$XDG_STATE_HOME/strakes/lab``, else ``/var/lib/strakes-lab`` for root, ``~/.local/state/strakes/lab``."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return Path(state, "strakes", "lab")
    return Path("/var/lib/strakes-lab") if os.geteuid() == 0 else Path.home() / ".local/state/strakes/lab"


def place_of(name: str, at: Path | None = None) -> LabDirectory:
    """Where the lab ``name`` is, or will be. Raises BadInputError for a name that cannot be one."""
    if not _NAME.fullmatch(name):
        raise BadInputError(
            f"not a valid name for a lab: {name!r}",
            remedy="Use lower-case letters, digits and hyphens, beginning with a letter.",
        )
    usual = default_root() / name
    pointed = _pointed(usual)
    if at is None:
        return LabDirectory(name, pointed, usual) if pointed else LabDirectory(name, usual)
    elsewhere = Path(os.path.abspath(at)) / name
    return LabDirectory(name, elsewhere) if elsewhere == usual else LabDirectory(name, elsewhere, usual)


def all_places(at: Path | None = None) -> tuple[LabDirectory, ...]:
    """Every lab that is there, by name."""
    root = default_root() if at is None else Path(os.path.abspath(at))
    try:
        names = sorted(entry.name for entry in os.scandir(root) if _NAME.fullmatch(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise BadInputError("the labs cannot be listed", where=str(root), why=error.strerror or "") from error
    return tuple(place_of(name, at) for name in names)


def refuse_other_lab(place: LabDirectory) -> None:
    """Raise BadInputError when a lab of this name is in another directory."""
    if place.link is None:
        return
    pointed = _pointed(place.link)
    other = pointed or place.link
    if other != place.directory and os.path.lexists(other):
        raise BadInputError(
            f"a lab called {place.name} exists in another directory",
            where=str(other),
            remedy=f"Give the new lab another --name, or remove the other: strakes lab down {place.name}",
        )


def refuse_long_path(directory: Path) -> None:
    """Raise BadInputError where Unix sockets in the lab's directory would have names that the kernel does not take."""
    room = _SOCKET_PATH_BYTES - _LONGEST_SOCKET_NAME_BYTES
    if len(os.fsencode(directory)) > room:
        raise BadInputError(
            "the name of the lab's directory is too long",
            where=str(directory),
            why=f"Unix sockets in it allow {room} bytes",
            remedy="Give a shorter directory with --at DIR.",
        )


@contextmanager
def working_in(place: LabDirectory, *, make: bool) -> Iterator[bool]:
    """Hold the lab's directory against other commands; with ``make`` it is there. Gives False when it is not.

    Raises BadInputError when another command works in it, and when it cannot be ours.
    """
    if make:
        _make(place)
    try:
        directory = os.open(place.directory, _OPEN)
    except FileNotFoundError:
        yield False
        return
    except OSError as error:
        raise BadInputError(
            "this is not the directory of a lab", where=str(place.directory), why=error.strerror or ""
        ) from error
    try:
        if os.fstat(directory).st_uid != os.geteuid():
            raise BadInputError(
                "this directory belongs to another user",
                where=str(place.directory),
                remedy="Give another directory with --at DIR.",
            )
        if not _hold(directory):
            raise _busy(place, directory)
        if not _still_there(place, directory):
            raise BadInputError(
                f"another command has just removed {place.name}",
                where=str(place.directory),
                remedy="Run the command again.",
            )
        yield True
    finally:
        os.close(directory)


def is_being_worked_in(place: LabDirectory) -> bool:
    """Whether some command starts or removes the lab at this moment."""
    try:
        directory = os.open(place.directory, _OPEN)
    except OSError:
        return False
    try:
        fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(directory)
    return False


def forget(place: LabDirectory) -> None:
    """After the lab's directory has gone: its link goes, and the roots that strakes made and nobody uses."""
    if place.link is not None and _pointed(place.link) == place.directory:
        place.link.unlink()
    for root in {place.directory.parent, default_root()}:
        _remove_root(root)


def _pointed(link: Path) -> Path | None:
    try:
        return Path(os.readlink(link))
    except OSError:
        return None


def _make(place: LabDirectory) -> None:
    """Make the link first: a directory that nothing leads to would never be found again."""
    refuse_other_lab(place)
    try:
        _make_root(place.directory.parent)
        if place.link is not None and _pointed(place.link) is None:
            _make_root(place.link.parent)
            place.link.symlink_to(place.directory)
        with suppress(FileExistsError):
            place.directory.mkdir(mode=0o755)
    except OSError as error:
        remedy = "Give a directory that you can write to with --at DIR."
        raise BadInputError(
            "the lab's directory cannot be made", where=str(place.directory), why=error.strerror or "", remedy=remedy
        ) from error


def _make_root(root: Path) -> None:
    if root.is_dir():
        return
    _make_root(root.parent)
    with suppress(FileExistsError):
        root.mkdir(mode=0o755)
    write_kept(root / ROOT_MARKER, "", mode=0o644)


def _remove_root(root: Path) -> None:
    with suppress(OSError):
        while os.listdir(root) == [ROOT_MARKER]:
            (root / ROOT_MARKER).unlink()
            root.rmdir()
            root = root.parent


def _hold(directory: int) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Somebody who only looks (is_being_worked_in) is gone in a moment.
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def _still_there(place: LabDirectory, directory: int) -> bool:
    try:
        return os.path.samestat(os.stat(place.directory, follow_symlinks=False), os.fstat(directory))
    except FileNotFoundError:
        return False


def _busy(place: LabDirectory, directory: int) -> BadInputError:
    holder = _holder(os.fstat(directory).st_ino)
    return BadInputError(
        f"another command is starting or removing {place.name}",
        where=str(place.directory),
        why=f"process {holder} is using it" if holder else "",
        remedy="Wait until it ends, or stop it.",
    )


def _holder(inode: int) -> int | None:
    """Return the process that holds the lock, from /proc/locks."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if fields[1] == "FLOCK" and fields[3] == "WRITE" and int(fields[5].rpartition(":")[2]) == inode:
                return int(fields[4])
    return None
