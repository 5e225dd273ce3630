"""The store of a watch: one line per minute, merged to ten minutes after two days and to hours after two weeks.

Events are kept for ever.

A line is written completely or not at all; a torn line is cut off when the file is opened again. Merging writes the new
file, then removes the old one, and is idempotent.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.files import make_directory, open_directory, open_kept, read_kept, remove_kept, replace_kept
from strakes.watch.histogram import Histogram
from strakes.watch.values import WatchEvent

DAY_S = 86400.0
# Seconds of a row, and retention of a day of such rows.
TIERS = ((60, 2 * DAY_S), (600, 14 * DAY_S), (3600, float("inf")))
_EVENTS = "events.jsonl"
_ROWS = "rows-[0-9][0-9][0-9][0-9]-[0-9][0-9][0-9][0-9][0-9][0-9].jsonl"
# A line of a wider file: length and digest of the narrower file that has been merged into it.
_MERGED = "merged"
# A file of a day has 1,440 lines of at most 100 kB.
_MOST_BYTES = 1 << 28
# Largest number of events that wait for a store that cannot be written.
_MOST_LATE = 1000
# The year 9892; datetime ends at 9999.
_MOST_TIME_S = 2.5e11


@dataclass(frozen=True)
class RingRow:
    """Figures of the ``seconds`` from ``time_s`` on."""

    time_s: float
    seconds: float
    figures: Mapping[str, Histogram]


class Ring:
    """A store in a directory. ``lost``: number of rows and events that could not be written.

    ``to_read``: open it read-only. ``damaged``: file -> unreadable lines at the last reading.
    """

    def __init__(self, directory: Path, *, to_read: bool = False) -> None:
        self.directory = directory
        self.lost = 0
        self.failing = False
        self.why = ""
        self.damaged: dict[str, int] = {}
        self._late: deque[str] = deque()
        self._lock = -1
        if to_read:
            return
        remedy = "Give a directory that can be written, with --store."
        if directory.exists() and not directory.is_dir():
            raise BadInputError(
                "the store of a watch is a directory, this is a file", where=str(directory), remedy=remedy
            )
        try:
            make_directory(directory)
            for path in directory.glob("*.jsonl"):
                _mend(path)
            for path in directory.glob(".strakes-*"):
                remove_kept(path)
        except OSError as error:
            raise EnvironmentLacksError(
                "the watch cannot write its store",
                where=error.filename or str(directory),
                why=error.strerror or "",
                remedy=remedy,
            ) from error

    @property
    def identity(self) -> str:
        """Return a permanent identifier of this store, unique across hosts."""
        inode = os.stat(self.directory).st_ino if self.directory.exists() else 0
        return hashlib.sha256(f"{socket.gethostname()} {self.directory.absolute()} {inode}".encode()).hexdigest()[:8]

    def hold(self) -> None:
        """Lock the store for this process. Raises BadInputError if another watch holds the lock."""
        self._lock = open_directory(self.directory)
        # Some file systems have no locks.
        with suppress(OSError):
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                remedy = "Give each watch a store of its own, with --store, or one watch all directories."
                raise BadInputError(
                    "another watch uses this store", where=str(self.directory), remedy=remedy
                ) from error

    def add(self, row: RingRow) -> bool:
        """Write the row of a minute; return whether that succeeded."""
        kept = self._append(_name(60, row.time_s), _row_line(row))
        self.lost += not kept
        return kept and self._write_late()

    def add_event(self, event: WatchEvent) -> bool:
        """Write an event; return whether that succeeded. If not, it is written later."""
        self._late.append(json.dumps(asdict(event)))
        if len(self._late) > _MOST_LATE:
            self._late.popleft()
            self.lost += 1
        return self._write_late()

    def _write_late(self) -> bool:
        while self._late:
            if not self._append(_EVENTS, self._late[0]):
                return False
            self._late.popleft()
        return True

    def rows(self, since_s: float = 0.0, until_s: float = float("inf")) -> Iterator[RingRow]:
        """Yield the rows, oldest first, without damaged lines."""
        paths = sorted(self.directory.glob(_ROWS), key=lambda path: (path.name.split("-", 2)[2], path.name))
        for path in paths:
            damaged = 0
            for line in _lines(path):
                document = _document(line)
                try:
                    row = _row(document)
                except (KeyError, TypeError, ValueError, AttributeError):
                    damaged += not (isinstance(document, dict) and _MERGED in document)
                    continue
                if since_s <= row.time_s < until_s:
                    yield row
            self.damaged[path.name] = damaged

    def kept_until_s(self) -> float | None:
        """Return the end of the last row, or None."""
        newest = max(self.directory.glob(_ROWS), key=lambda path: path.stem.rpartition("-")[2], default=None)
        ends = []
        for line in _lines(newest) if newest else ():
            with suppress(KeyError, TypeError, ValueError):
                document = _document(line)
                ends.append(_time(document["t"]) + _time(document["s"]))
        return max(ends, default=None)

    def events(self, since_s: float = 0.0) -> list[WatchEvent]:
        """Return the last version of each event, without damaged lines."""
        found: dict[tuple[str, str, float, str], WatchEvent] = {}
        damaged = 0
        for line in _lines(self.directory / _EVENTS):
            try:
                event = _event(_document(line))
            except (TypeError, ValueError):
                damaged += 1
            else:
                # The unit separates heavy jobs in operations and in bytes; other events get a unit only at their end.
                found[*event.key, event.unit if event.kind == "heavy" else ""] = event
        self.damaged[_EVENTS] = damaged
        return [event for event in found.values() if event.told_s >= since_s or event.began_s >= since_s]

    def thin(self, now_s: float) -> None:
        """Merge rows that are old enough. If the store is full, the old rows remain."""
        for (width, keep_s), (wider, _) in pairwise(TIERS):
            for path in sorted(self.directory.glob(f"rows-{width:04d}-*.jsonl")):
                day_s = float(path.stem.rpartition("-")[2]) * DAY_S
                if now_s - day_s - DAY_S >= keep_s:
                    self._merge(path, wider, day_s)

    def _merge(self, path: Path, width: int, day_s: float) -> None:
        merged: dict[float, tuple[float, dict[str, Histogram]]] = {}
        wider = self.directory / _name(width, day_s)
        try:
            before = b""
            with suppress(FileNotFoundError):
                before = read_kept(wider, _MOST_BYTES)
            content = read_kept(path, _MOST_BYTES)
        except (OSError, BadInputError) as error:
            self.why = str(error)
            return
        # After a crash both files may have these lines; after a clock step back the old file may have further ones.
        for document in map(_document, content[_merged_already(before, content) :].splitlines()):
            with suppress(KeyError, TypeError, ValueError, AttributeError):
                row = _row(document)
                start = row.time_s - row.time_s % width
                seconds, figures = merged.get(start, (0.0, {}))
                for name, histogram in row.figures.items():
                    figures.setdefault(name, Histogram()).merge(histogram)
                merged[start] = (seconds + row.seconds, figures)
        lines = [_row_line(RingRow(start, seconds, figures)) for start, (seconds, figures) in sorted(merged.items())]
        mark = json.dumps({_MERGED: [len(content), hashlib.sha256(content).hexdigest()]})
        try:
            replace_kept(wider, before + "".join(f"{line}\n" for line in [*lines, mark]).encode())
            remove_kept(path)
        except OSError as error:
            self.why = error.strerror or str(error)

    def _append(self, name: str, line: str) -> bool:
        try:
            descriptor = open_kept(self.directory / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                size = os.fstat(descriptor).st_size
                content = f"{line}\n".encode()
                try:
                    if os.write(descriptor, content) != len(content):
                        raise OSError(28, os.strerror(28))
                except OSError:
                    os.ftruncate(descriptor, size)
                    raise
            finally:
                os.close(descriptor)
        except OSError as error:
            self.failing, self.why = True, error.strerror or str(error)
            return False
        self.failing = False
        return True


def _name(width: int, time_s: float) -> str:
    return f"rows-{width:04d}-{int(time_s // DAY_S):06d}.jsonl"


def _row_line(row: RingRow) -> str:
    figures = {name: histogram.to_json() for name, histogram in row.figures.items()}
    return json.dumps({"t": row.time_s, "s": row.seconds, "f": figures}, separators=(",", ":"))


def _row(document: Any) -> RingRow:
    figures = {str(name): Histogram.from_json(counts) for name, counts in document["f"].items()}
    return RingRow(_time(document["t"]), _time(document["s"]), figures)


def _time(value: Any) -> float:
    number = float(value)
    if not 0 <= number < _MOST_TIME_S:
        raise ValueError("no such time")
    return number


def _event(document: Any) -> WatchEvent:
    event = WatchEvent(**document)
    values: Mapping[str, Any] = vars(event)
    texts = ("kind", "subject", "text", "unit", "cause")
    numbers = ("size", "low", "high", "sure")
    if not all(isinstance(values[name], str) for name in texts) or not isinstance(values["evidence"], dict):
        raise TypeError("not as it was written")
    if not all(values[name] is None or isinstance(values[name], int | float) for name in numbers):
        raise TypeError("not as it was written")
    if not 0 <= float(values["sure"] or 0.0) <= 1:
        raise TypeError("not as it was written")
    for name in ("began_s", "told_s", "ended_s"):
        if values[name] is not None and not (isinstance(values[name], int | float) and _time(values[name]) >= 0):
            raise TypeError("not as it was written")
    return event


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with os.fdopen(open_kept(path, os.O_RDONLY), "rb") as file:
            yield from file
    except FileNotFoundError:
        return
    except OSError as error:
        raise EnvironmentLacksError("the store cannot be read", where=str(path), why=error.strerror or "") from error


def _document(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _merged_already(wider: bytes, content: bytes) -> int:
    """Return the length of the prefix of ``content`` that the wider file contains, by its last mark."""
    for document in map(_document, reversed(wider.splitlines())):
        match document:
            case {"merged": [int(size), str(digest)]} if hashlib.sha256(content[:size]).hexdigest() == digest:
                return size
    return 0


def _mend(path: Path) -> None:
    """Cut off a torn last line."""
    with os.fdopen(open_kept(path, os.O_RDWR), "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return
        file.seek(max(0, size - (1 << 20)))
        tail = file.read()
        if not tail.endswith(b"\n"):
            file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)
