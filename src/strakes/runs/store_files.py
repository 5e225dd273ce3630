"""Crash-safe files of the store. JSON files are replaced atomically; JSON lines are appended."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.files import PlantedFileError, buffered, open_kept, read_kept, replace_kept
from strakes.base.finite import MOST_VALUES, parse_json, to_json

# Maximum sizes of files in bytes, far above those of real runs. The largest known document has 0.2 MiB.
_MOST_LINES_BYTES, _MOST_DOCUMENT_BYTES = 256 << 20, 64 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WAY_OUT = "Set STRAKES_STORE to a directory you may write to, outside the measured one."


def store_error(error: OSError, path: Path) -> StrakesError:
    """Return the StrakesError for a failed write to the store."""
    why = error.strerror or str(error)
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return BadInputError("the store is not a directory", where=str(path), why=why, remedy=_WAY_OUT)
    if error.errno in _FULL:
        remedy = "Free some space there, or set STRAKES_STORE to a directory elsewhere."
        return EnvironmentLacksError("the store is full", where=str(path), why=why, remedy=remedy)
    remount = "Remount it read-write: settings can be restored only then. For other commands, set STRAKES_STORE."
    remedy = remount if error.errno == errno.EROFS else _WAY_OUT
    return EnvironmentLacksError("the store cannot be written", where=str(path), why=why, remedy=remedy)


@contextmanager
def store_errors(path: Path, *passed: type[OSError]) -> Iterator[None]:
    """Turn each OSError in a ``with`` block into a StrakesError, except for the kinds ``passed``."""
    try:
        yield
    except passed:
        raise
    except OSError as error:
        raise store_error(error, path) from error


def files_in(directory: Path, ending: str) -> list[Path]:
    """Return the sorted paths with this ending in a directory, which may be missing, without hidden ones.

    Raises StrakesError if it cannot be read, in contrast to Path.glob().
    """
    with suppress(FileNotFoundError), store_errors(directory, FileNotFoundError):
        return sorted(path for path in directory.iterdir() if path.suffix == ending and not path.name.startswith("."))
    return []


def write_json(path: Path, document: Mapping[str, object]) -> None:
    """Replace the JSON document in ``path`` atomically. Raises StrakesError."""
    replace_text(path, to_json(document, indent=1) + "\n")


def json_lines(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as lines of JSON."""
    return "".join(to_json(row, separators=(",", ":")) + "\n" for row in rows)


def replace_text(path: Path, text: str) -> None:
    """Replace ``path`` atomically and durably. Raises StrakesError."""
    with store_errors(path):
        replace_kept(path, text.encode("utf-8", "backslashreplace"))


def read_json(path: Path, most_bytes: int = _MOST_DOCUMENT_BYTES, most_values: int = MOST_VALUES) -> dict[str, Any]:
    """Return the JSON object in ``path``.

    Raises BadInputError if the file does not contain one, FileNotFoundError if the file is missing.
    """
    document = _parse_row(_read(path, most_bytes), most_values)
    if document is None:
        raise _damaged(path, f"it is not a JSON object with at most {most_values:,} values")
    return document


def read_json_lines(path: Path, *, whole: bool = False) -> Iterator[dict[str, Any]]:
    """Yield all rows of ``path``, none if the file is missing. Ignore an incomplete last line, which a crash can leave.

    Raises BadInputError if any other line is not a JSON object. ``whole``: reject an incomplete last line, too.
    """
    try:
        data = _read(path, _MOST_LINES_BYTES)
    except FileNotFoundError:
        return
    for number, line in enumerate(BytesIO(data if whole else data[: whole_length(data)]), start=1):
        row = _parse_row(line)
        if row is None:
            raise _damaged(path, f"line {number} is not a JSON object")
        yield row


def of_another_user(error: PermissionError, path: Path) -> StrakesError:
    """Return the exception for a run that this user may not read."""
    remedy = "Ask its owner for a copy: strakes export RUN -o FILE."
    why = error.strerror or str(error)
    return EnvironmentLacksError("this run belongs to another user", where=str(path), why=why, remedy=remedy)


def _read(path: Path, most_bytes: int) -> bytes:
    try:
        return read_kept(path, most_bytes)
    except FileNotFoundError:
        raise
    except OSError as error:
        if isinstance(error, PermissionError) and not isinstance(error, PlantedFileError):
            raise of_another_user(error, path) from error
        why, remedy = error.strerror or str(error), "Check the file system of the store, or set STRAKES_STORE."
        what = "a file of the store cannot be read"
        raise EnvironmentLacksError(what, where=str(path), why=why, remedy=remedy) from error


def whole_length(data: bytes) -> int:
    """Return the number of bytes up to the end of the last complete row.

    >>> whole_length(b'{"a":1}\\n{"b":')
    8
    """
    end = data.rfind(b"\n") + 1
    # Parse the last line, because a power failure can leave zeros in place of its content.
    last = data[data.rfind(b"\n", 0, max(end - 1, 0)) + 1 : end]
    try:
        json.loads(last or "{}")  # An invalid value in a complete row is damage, which must be reported.
    except (ValueError, RecursionError):
        return end - len(last)
    return end


def _parse_row(line: bytes, most_values: int = MOST_VALUES) -> dict[str, Any] | None:
    try:
        row = parse_json(line, most_values)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _damaged(path: Path, why: str) -> BadInputError:
    remedy = "Restore it from a backup, or remove that run's directory."
    return BadInputError("a file of the store is damaged", where=str(path), why=why, remedy=remedy)


class AppendFile:
    """A file of JSON lines, opened for appending. ``durable``: :meth:`append` calls fsync before it returns."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        self._path = path
        self._durable = durable
        with store_errors(path):
            self._descriptor = open_kept(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._descriptor

    def drop_torn_line(self) -> None:
        """Remove the incomplete last row that a killed writer left, so that the next row begins a new line."""
        with buffered(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            os.ftruncate(self._descriptor, whole_length(file.read()))

    def append(self, *rows: Mapping[str, object]) -> None:
        """Append all rows, or none if the disk or the run is full. Raises StrakesError."""
        data = memoryview(json_lines(rows).encode())
        before = os.fstat(self._descriptor).st_size
        if before + len(data) > _MOST_LINES_BYTES:
            what, why = "the run has no room for more results", f"this file may have {_MOST_LINES_BYTES >> 20} MiB"
            remedy = "Measure with fewer ranks, or in several runs."
            raise EnvironmentLacksError(what, where=str(self._path), why=why, remedy=remedy)
        with store_errors(self._path):
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
                if self._durable:
                    os.fsync(self._descriptor)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, before)
                raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
