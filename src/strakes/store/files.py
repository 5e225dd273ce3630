"""Files that are whole or absent.

JSON by atomic replacement, JSON lines by appending where a torn last line does not count.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.regular_file import read_at_most

# No run is so large; a file of holes says that it is.
MOST_BYTES = 4 << 30
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WAY_OUT = "Set STRAKES_STORE to a directory you may write to, outside the measured one."


def store_error(error: OSError, path: Path) -> StrakesError:
    """Return what an operating system error means for somebody who only wanted to keep a run."""
    why = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return BadInputError("the store is not a directory", where=str(path), why=why, remedy=_WAY_OUT)
    if error.errno in _FULL:
        remedy = "Free some space there and continue with --resume, or set STRAKES_STORE to a directory elsewhere."
        return EnvironmentLacksError("the store is full", where=str(path), why=why, remedy=remedy)
    return EnvironmentLacksError("the store cannot be written", where=str(path), why=why, remedy=_WAY_OUT)


# What strakes makes in its store.
_ROOMS = ("runs", "jobs", "knobs", "drills", "watch", "forecasts")
_CATALOGUE = "catalogue.sqlite"
_OTHERS = 0o077


def make_private(root: Path, *names: str) -> Path:
    """Make a directory below the store, and the store, for their user only. Raises OSError."""
    root.parent.mkdir(parents=True, exist_ok=True)
    path = root
    for name in ("", *names):
        path = path / name
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def tighten(root: Path) -> None:
    """Take from a store of this user what others may do with it: command lines may say what is nobody else's business.

    Only what strakes keeps there: a user may have named a directory that has other things, too.
    """
    with suppress(OSError):
        names = os.listdir(root)
        for name in names:
            mode = os.lstat(root / name).st_mode
            if name in _ROOMS and stat.S_ISDIR(mode) and mode & _OTHERS:
                for place, _, files, descriptor in os.fwalk(root / name, topdown=False):
                    for file in files:
                        if not os.path.islink(f"{place}/{file}"):
                            _close_to_others(file, descriptor)
                    os.fchmod(descriptor, 0o700)
        if _CATALOGUE in names:
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                _close_to_others(_CATALOGUE, descriptor)
            finally:
                os.close(descriptor)
        if names and set(names) <= {*_ROOMS, _CATALOGUE} and os.stat(root).st_uid == os.geteuid():
            os.chmod(root, 0o700)


def _close_to_others(name: str, directory: int) -> None:
    with suppress(OSError):
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        try:
            state = os.fstat(descriptor)
            if state.st_uid == os.geteuid() and stat.S_ISREG(state.st_mode) and state.st_mode & _OTHERS:
                os.fchmod(descriptor, state.st_mode & 0o700)
        finally:
            os.close(descriptor)


def write_json(path: Path, document: Mapping[str, object]) -> None:
    """Replace ``path`` as a whole: after a crash it is the old document or the new one."""
    replace_text(path, json.dumps(document, indent=1) + "\n")


def write_json_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Replace ``path`` as a whole by one line for each row."""
    replace_text(path, "".join(json_line(row) for row in rows))


def json_line(row: Mapping[str, object]) -> str:
    """One row as one line: JSON has no raw line break inside."""
    return json.dumps(row, separators=(",", ":")) + "\n"


def replace_text(path: Path, text: str) -> None:
    """Write beside ``path``, make it durable, then rename over it. Raises StrakesError that says what to do."""
    # Always the same name: what a killed writer left is overwritten, and a run has one writer.
    fresh = path.with_name(f".{path.name}.new")
    try:
        # Command lines may say what is nobody else's business.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(fresh, flags, 0o600), "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise store_error(error, path) from error


def sync_directory(path: Path) -> None:
    """Make names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(path: Path) -> dict[str, Any]:
    """Return the document in ``path``.

    Raises BadInputError when it is none, FileNotFoundError when there is no such file.
    """
    return json_document(_read(path), path)


def json_document(data: bytes, path: Path) -> dict[str, Any]:
    """Return the document that was read from ``path``. Raises BadInputError when it is none."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(document, dict):
        raise _damaged(path, "it does not contain a JSON object")
    return document


def read_json_lines(path: Path, *, whole: bool = False) -> list[dict[str, Any]]:
    """All whole rows of ``path``; none when there is no such file. A torn last line is a crash and does not count.

    Raises BadInputError for any other line that is no row; where it is to be ``whole``, for that one, too.
    """
    try:
        data = _read(path)
    except FileNotFoundError:
        return []
    rows: list[dict[str, Any]] = []
    for number, line in enumerate((data if whole else data[: whole_length(data)]).splitlines(), start=1):
        row = _parse_row(line)
        if row is None:
            raise _damaged(path, f"line {number} is not a JSON object")
        rows.append(row)
    return rows


def of_another_user(error: PermissionError, path: Path) -> StrakesError:
    """Return what it means that runs cannot be read."""
    remedy = "Ask its owner for a copy: strakes export RUN -o FILE."
    why = os.strerror(error.errno or 0)
    return EnvironmentLacksError("this run belongs to another user", where=str(path), why=why, remedy=remedy)


def _read(path: Path) -> bytes:
    """Read a file.

    Raises EnvironmentLacksError for one that cannot be read, BadInputError for what is no file, FileNotFoundError when
    there is none.
    """
    try:
        return read_at_most(path, MOST_BYTES)
    except FileNotFoundError:
        raise
    except PermissionError as error:
        raise of_another_user(error, path) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise EnvironmentLacksError("a file of the store cannot be read", where=str(path), why=why) from error


def whole_length(data: bytes) -> int:
    """How many bytes of JSON lines are whole rows.

    >>> whole_length(b'{"a":1}\\n{"b":')
    8
    """
    end = data.rfind(b"\n") + 1
    # After a power cut the last line can have its length but not its bytes.
    last = data[data.rfind(b"\n", 0, max(end - 1, 0)) + 1 : end]
    return end if not last or _parse_row(last) is not None else end - len(last)


def _parse_row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _damaged(path: Path, why: str) -> BadInputError:
    remedy = "Restore it from a backup, or remove that run's directory."
    return BadInputError("a file of the store is damaged", where=str(path), why=why, remedy=remedy)


class AppendFile:
    """A file of JSON lines that grows; what :meth:`append` returned from is on the disk when ``durable``."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        self._path = path
        self._durable = durable
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise store_error(error, path) from error

    def fileno(self) -> int:
        """Return its descriptor."""
        return self._descriptor

    def drop_torn_line(self) -> None:
        """Cut off what a killed writer left half written, so that the next row does not join it."""
        os.ftruncate(self._descriptor, whole_length(self._path.read_bytes()))

    def append(self, *rows: Mapping[str, object]) -> None:
        """Add rows. When there is no room for all of them, none stays. Raises StrakesError."""
        data = memoryview("".join(map(json_line, rows)).encode())
        before = os.fstat(self._descriptor).st_size
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            if self._durable:
                os.fsync(self._descriptor)
        except BaseException as error:
            # Also an interrupt in the middle: the next row must not join half of this one.
            with suppress(OSError):
                os.ftruncate(self._descriptor, before)
            if isinstance(error, OSError):
                raise store_error(error, self._path) from error
            raise

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)
