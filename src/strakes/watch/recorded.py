"""Read recorded counters: for each machine a text or gzip file of `### UNIX-TIME` lines and `lctl get_param` output."""

from __future__ import annotations

import gzip
import heapq
import io
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from strakes.base.errors import BadInputError
from strakes.base.files import open_regular
from strakes.base.units import format_bytes
from strakes.watch.clocks import set_back
from strakes.watch.lustre import read_text
from strakes.watch.reading import DISKS, CounterReading
from strakes.watch.values import WatchEvent

_COUNTERS = ("work", "jobs", "clients", "serving", "waits", "full", "locks")
_MOST_READING_BYTES = 256 << 20  # Maximum memory for a reading. Job statistics of a large machine take a few MB.
# Maximum number of readings that are older than the previous reading. Each boundary between joined files can cause one.
# Half the number would refuse a year of hourly files with 8,759 boundaries.
_MOST_LATE = 10_000
_LINE_BYTES = 64  # Memory for a line of text, in addition to its characters.
# Maximum memory for the texts of events: 20,000 events of usual length. In addition to texts, an event takes 600 bytes.
_MOST_EVENTS_BYTES, _EVENT_BYTES = 32 << 20, 600
MOST_LINE = 1 << 20  # Maximum number of characters in a line. Lines of job statistics have a few hundred.
MARK = "### "
_FURTHEST_S = 1e11  # Largest accepted Unix time in seconds. datetime can format every smaller time.


@dataclass
class Contents:
    """Summary of recordings: the time span, and the kinds of counters."""

    first_s: float = math.inf
    last_s: float = -math.inf
    _seen: set[str] = field(default_factory=set)
    _not_understood: str = ""

    @property
    def span(self) -> str:
        """Return the time span as text."""
        if self.first_s > self.last_s:
            return "empty"
        first, last = (datetime.fromtimestamp(at_s, UTC) for at_s in (self.first_s, self.last_s))
        return f"{first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC"

    def add(self, reading: CounterReading) -> CounterReading:
        """Add the time and the kinds of counters of a reading. Return the reading."""
        self.first_s, self.last_s = min(self.first_s, reading.time_s), max(self.last_s, reading.time_s)
        self._seen |= {kind for kind in _COUNTERS if getattr(reading, kind)}
        if reading.has_service_times or reading.work.keys() == {DISKS}:
            self._seen.add("times")
        self._not_understood = self._not_understood or next(iter(reading.missing), "")
        return reading

    def lacking(self) -> tuple[str, ...]:
        """Return a message for each kind of event that the data cannot show. Raises BadInputError without counters."""
        if not self._seen:
            why = self._not_understood.partition("; ")[0][:200] or "no counters of targets, jobs or clients"
            remedy = "Record outputs of lctl get_param, each after a line with ### and the Unix time."
            raise BadInputError("the recording has no readable counters", why=why, remedy=remedy)
        seen = self._seen
        lines = {
            "slow targets: the recording has no counters of servers": "work" in seen,
            "slow targets: the counters of servers have no service times": "work" not in seen or "times" in seen,
            "who causes the load: the recording has no job_stats": "jobs" in seen,
            "outages: the recording has no serving targets and no waits of clients": seen & {"serving", "waits"},
            f"lines that are not understood, such as: {self._not_understood[:200]}": not self._not_understood,
        }
        return tuple(line for line, there in lines.items() if not there)


def last_versions(events: Iterable[WatchEvent]) -> tuple[list[WatchEvent], str]:
    """Return the last version of each event, and why later events are left out, or ""."""
    found, size = dict[tuple[str, str, float], WatchEvent](), 0
    for event in events:
        size += _EVENT_BYTES + len(event.subject) + len(event.text)
        if size > _MOST_EVENTS_BYTES:
            return [*found.values()], f"the first {len(found)} take {format_bytes(_MOST_EVENTS_BYTES)}"
        found[event.key] = event
    return [*found.values()], ""


def is_recording(path: Path) -> bool:
    """Return whether the file begins like a recording. Raises BadInputError if the file cannot be read."""
    with open_lines(path) as lines:
        return next(lines, "").startswith(MARK)


def readings(paths: Sequence[Path], ahead_s: Mapping[str, float] | None = None) -> Iterator[CounterReading]:
    """Yield the readings of all files in order of time. Raises BadInputError if a file cannot be read.

    ``ahead_s``: clock offset of each source in seconds, which is subtracted from the source's times.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(open_lines(path)) for path in paths]
        streams = [_of_file(path, lines) for path, lines in zip(paths, files, strict=True)]
        if ahead_s:
            streams = [(set_back(each, ahead_s.get(each.source, 0.0)) for each in stream) for stream in streams]
        yield from heapq.merge(*streams, key=lambda reading: reading.time_s)


@contextmanager
def open_lines(path: Path) -> Iterator[Iterator[str]]:
    """Open a text file, which may be gzipped, and yield an iterator over its lines.

    Raises BadInputError if the file cannot be read, for example because a line is too long.
    """
    try:
        with open_regular(path) as file:
            compressed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            plain = gzip.GzipFile(fileobj=file) if compressed else file
            begin = plain.read(2)
            plain.seek(0)
            # Spreadsheets begin UTF-8 and UTF-16 files with a byte order mark.
            encoding = "utf-16" if begin in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
            with io.TextIOWrapper(cast("BinaryIO", plain), encoding=encoding, errors="replace", newline="") as text:
                yield _lines_of(path, text)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BadInputError("the file does not exist", where=str(path)) from error
    except (OSError, EOFError, zlib.error) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise BadInputError("the file cannot be read to the end", where=str(path), why=why) from error


def _lines_of(path: Path, text: TextIO) -> Iterator[str]:
    while line := text.readline(MOST_LINE + 1):
        if len(line) > MOST_LINE:
            raise BadInputError("a line is too long", where=str(path), why=f"more than {MOST_LINE} characters")
        yield line


def _of_file(path: Path, text: Iterator[str]) -> Iterator[CounterReading]:
    time_s: float | None = None
    lines: list[str] = []
    size = late = 0
    for number, line in enumerate(text, 1):
        where = f"{path}:{number}"
        if not line.startswith(MARK):
            lines.append(line)
            size += len(line) + _LINE_BYTES
            if size > _MOST_READING_BYTES:
                raise BadInputError("not a recording", where=where, why="too much data between two ### lines")
            continue
        now_s = _time(line, where)
        if time_s is not None:
            yield read_text(path.name, time_s, "".join(lines))
            late += now_s <= time_s
            if late > _MOST_LATE:
                raise BadInputError("not a recording", where=where, why=f"{late} readings are not in order of time")
        time_s, lines, size = now_s, [], 0
    if time_s is not None:
        yield read_text(path.name, time_s, "".join(lines))


def _time(line: str, where: str) -> float:
    with suppress(ValueError):
        time_s = unix_seconds(float(line.removeprefix(MARK)))
        if 0 <= time_s < _FURTHEST_S:
            return time_s
    raise BadInputError("not a time", where=where, why=repr(line.strip()[:80]), remedy="Write ### and a Unix time.")


def unix_seconds(number: float) -> float:
    """Convert a Unix time to seconds. Guess its unit (s, ms, us or ns) from its size: 1e11 s is the year 5138."""
    size = abs(number)
    return number / (1.0 if size < 1e11 else 1e3 if size < 1e14 else 1e6 if size < 1e17 else 1e9)
