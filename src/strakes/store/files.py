"""Files that are whole or absent.

JSON by atomic replacement, JSON lines by appending where a torn last line does not count.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.files import PlantedFileError, open_kept, read_kept, replace_kept

# No run is so large; a file of holes says that it is.
MOST_BYTES = 4 << 30
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WAY_OUT = "Set STRAKES_STORE to a directory you may write to, outside the measured one."


def store_error(error: OSError, path: Path) -> StrakesError:
    """Return what an operating system error means for somebody who only wanted to keep a run."""
    why = error.strerror or str(error)
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return BadInputError("the store is not a directory", where=str(path), why=why, remedy=_WAY_OUT)
    if error.errno in _FULL:
        remedy = "Free some space there and continue with --resume, or set STRAKES_STORE to a directory elsewhere."
        return EnvironmentLacksError("the store is full", where=str(path), why=why, remedy=remedy)
    return EnvironmentLacksError("the store cannot be written", where=str(path), why=why, remedy=_WAY_OUT)


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
    """Replace ``path`` durably and as a whole. Raises StrakesError that says what to do."""
    try:
        replace_kept(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise store_error(error, path) from error


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
    why = error.strerror or str(error)
    return EnvironmentLacksError("this run belongs to another user", where=str(path), why=why, remedy=remedy)


def _read(path: Path) -> bytes:
    """Read a file.

    Raises EnvironmentLacksError for one that cannot be read, BadInputError for what is no file, FileNotFoundError when
    there is none.
    """
    try:
        return read_kept(path, MOST_BYTES)
    except FileNotFoundError:
        raise
    except OSError as error:
        if isinstance(error, PermissionError) and not isinstance(error, PlantedFileError):
            raise of_another_user(error, path) from error
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
            self._descriptor = open_kept(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        except OSError as error:
            raise store_error(error, path) from error

    def fileno(self) -> int:
        """Return its descriptor."""
        return self._descriptor

    def drop_torn_line(self) -> None:
        """Cut off what a killed writer left half written, so that the next row does not join it."""
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(0)
            os.ftruncate(self._descriptor, whole_length(file.read()))

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
