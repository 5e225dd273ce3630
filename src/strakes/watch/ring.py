"""Store of a watch: one file per day with a line per minute, and one file of events.

Daily files are kept for 400 days, and events for ever. An incomplete last line is removed when a watch locks the store.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.files import buffered, open_directory, open_kept, remove_kept
from strakes.base.finite import parse_json
from strakes.base.units import format_bytes
from strakes.model.record import from_record
from strakes.model.service_level import Minute
from strakes.runs.store_files import AppendFile, files_in
from strakes.watch.histogram import Histogram
from strakes.watch.values import WatchEvent

T = TypeVar("T")
DAY_S = 86400.0
_KEPT_DAYS = 400
_EVENTS, _LOCK = "events.jsonl", "lock"
_ROWS = "rows-[0-9][0-9][0-9][0-9][0-9][0-9].jsonl"
_MOST_LATE = 1000  # Maximum number of events queued while the store cannot be written. Memory grows in proportion.
_MOST_LINE_BYTES = 1 << 20
_MOST_EVENTS_BYTES = 16 << 20  # Maximum size of events to read: about 40,000 events. A page shows 500.


@dataclass(frozen=True)
class RingRow(Minute):
    """Latencies in an interval, as the store keeps them."""

    figures: Mapping[str, Histogram]


class Ring:
    """Store of a watch in a directory. ``to_read``: open the store read-only.

    ``lost``: number of rows and events that could not be written. ``late``: events that wait to be written.
    ``damaged``: number of unreadable lines by file.
    """

    def __init__(self, directory: Path, *, to_read: bool = False) -> None:
        self.directory = directory
        self.lost = 0
        self.failing = False
        self.why = ""
        self.damaged: dict[str, int] = {}
        self.late: deque[Mapping[str, object]] = deque()
        self._lock = -1
        if to_read:
            return
        try:
            # Without ``guarded``, another user could replace the directory, and root would write to the replacement.
            os.close(open_directory(directory, make=0o700, guarded=os.geteuid() == 0))
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> EnvironmentLacksError:
        where, why = error.filename or str(self.directory), error.strerror or ""
        what, remedy = "strakes watch cannot write to the store", "Give another directory of your own with --store."
        return EnvironmentLacksError(what, where=where, why=why, remedy=remedy)

    @property
    def identity(self) -> str:
        """Return a permanent identifier of this store, unique across hosts."""
        inode = os.stat(self.directory).st_ino if self.directory.exists() else 0
        return hashlib.sha256(f"{socket.gethostname()} {self.directory.absolute()} {inode}".encode()).hexdigest()[:8]

    def hold(self) -> None:
        """Lock the store for this process, and repair its files.

        Raises BadInputError if another watch holds the lock, or if the directory contains files but no store.
        """
        try:
            names = os.listdir(self.directory)
            if names and _LOCK not in names and self.kept_until_s() is None:
                what, why = "this directory is not the store of a watch", f"it has files, but no rows and no {_LOCK}"
                remedy = "Give an empty or new directory with --store."
                raise BadInputError(what, where=str(self.directory), why=why, remedy=remedy)
            self._take_lock()
            for path in (*self._days(), *self.directory.glob(_EVENTS)):
                _mend(path)
        except OSError as error:
            raise self._unwritable(error) from error

    def _take_lock(self) -> None:
        # Any user can lock a directory, so lock a file that only its owner can open. Ignore file systems without locks.
        with suppress(OSError):
            self._lock = open_kept(self.directory / _LOCK, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                remedy = "Give each watch its own store with --store, or give all directories to one watch."
                what = "another watch uses this store"
                raise BadInputError(what, where=str(self.directory), remedy=remedy) from error

    def add(self, row: RingRow) -> bool:
        """Write the row of a minute, and the queued events. Return whether all were written."""
        figures = {name: histogram.to_json() for name, histogram in row.figures.items()}
        line = {"t": row.time_s, "s": row.seconds, "f": figures}
        kept = self._append(f"rows-{int(row.time_s // DAY_S):06d}.jsonl", line)
        self.lost += not kept
        return kept and self._write_late()

    def add_event(self, event: WatchEvent) -> bool:
        """Write an event, or queue it if that fails. Return whether it was written."""
        self.late.append(asdict(event))
        if len(self.late) > _MOST_LATE:
            self.late.popleft()
            self.lost += 1
        return self._write_late()

    def rows(self, since_s: float = 0.0, until_s: float = float("inf")) -> Iterator[RingRow]:
        """Yield the rows with ``since_s`` <= time < ``until_s``, oldest first; skip damaged lines."""
        for path in self._days():
            if since_s - DAY_S < _day(path) * DAY_S < until_s:
                yield from (row for row in self._read(path, _row) if since_s <= row.time_s < until_s)

    def kept_until_s(self) -> float | None:
        """Return the Unix time at which the last row ends, or None without rows."""
        rows = self.rows(_day(days[-1]) * DAY_S) if (days := self._days()) else ()
        return max((row.time_s + row.seconds for row in rows), default=None)

    def events(self, since_s: float = 0.0) -> list[WatchEvent]:
        """Return the last version of each event since ``since_s``, from the last 16 MiB. Skip damaged lines."""
        found = {event.key: event for event in self._read(self.directory / _EVENTS, _event, _MOST_EVENTS_BYTES)}
        return [event for event in found.values() if event.told_s >= since_s or event.began_s >= since_s]

    def thin(self, now_s: float) -> None:
        """Remove the oldest daily file if it is over 400 days old. Remove only one, because the clock may be wrong."""
        with suppress(OSError, StrakesError):
            oldest = min(self._days(), key=_day, default=None)
            if oldest is not None and _day(oldest) < now_s // DAY_S - _KEPT_DAYS:
                remove_kept(oldest)

    def _days(self) -> list[Path]:
        return [path for path in files_in(self.directory, ".jsonl") if path.match(_ROWS)]

    def _read(self, path: Path, parse: Callable[[bytes], T], most_bytes: int = 1 << 40) -> Iterator[T]:
        damaged = 0
        for line in _lines(path, most_bytes):
            try:
                value = parse(line)
            except (KeyError, TypeError, ValueError):
                damaged += 1
            else:
                yield value
        self.damaged[path.name] = damaged

    def _write_late(self) -> bool:
        while self.late:
            event = self.late.popleft()  # An event that cannot be JSON is lost, so that it does not block the others.
            if not self._append(_EVENTS, event):
                self.late.appendleft(event)
                return False
        return True

    def _append(self, name: str, line: Mapping[str, object]) -> bool:
        try:
            with closing(AppendFile(self.directory / name, durable=False)) as file:
                file.append(line)
        except (StrakesError, OSError) as error:
            self.failing, self.why = True, error.why if isinstance(error, StrakesError) else error.strerror or ""
            return False
        self.failing = False
        return True


def _day(path: Path) -> int:
    return int(path.stem.removeprefix("rows-"))


def _row(line: bytes) -> RingRow:
    document: Any = parse_json(line)
    return from_record(RingRow, {"time_s": document["t"], "seconds": document["s"], "figures": document["f"]})


def _event(line: bytes) -> WatchEvent:
    return from_record(WatchEvent, parse_json(line))


def _lines(path: Path, most_bytes: int) -> Iterator[bytes]:
    try:
        with buffered(open_kept(path, os.O_RDONLY), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most_bytes))
            if size > most_bytes:
                file.readline()
            while line := file.readline(_MOST_LINE_BYTES + 1):
                if len(line) > _MOST_LINE_BYTES:
                    why = f"a line is longer than {format_bytes(_MOST_LINE_BYTES)}"
                    raise BadInputError("a file of the store is damaged", where=str(path), why=why)
                yield line
    except FileNotFoundError:
        return
    except OSError as error:
        raise EnvironmentLacksError("the store cannot be read", where=str(path), why=error.strerror or "") from error


def _mend(path: Path) -> None:
    with buffered(open_kept(path, os.O_RDWR), "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return
        file.seek(max(0, size - (1 << 20)))
        tail = file.read()
        if not tail.endswith(b"\n"):
            file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)
