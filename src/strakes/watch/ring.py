"""What a watch keeps: a line a minute, merged to ten minutes after two days and to hours after two weeks.

Events are kept for ever.

A line is written at once or not at all; one that a crash has torn is cut off when the file is opened again. Merging
writes a new file beside the old one and then removes that: done twice it gives the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from strakes.errors import EnvironmentLacksError
from strakes.watch.histogram import Histogram
from strakes.watch.values import WatchEvent

DAY_S = 86400.0
# Seconds of a row, and for how long a day of such rows is kept.
TIERS = ((60, 2 * DAY_S), (600, 14 * DAY_S), (3600, float("inf")))
_EVENTS = "events.jsonl"
# A line of a wider file: length and digest of the narrower file that has been merged into it.
_MERGED = "merged"


@dataclass(frozen=True)
class RingRow:
    """What was seen from ``time_s`` on, for ``seconds``."""

    time_s: float
    seconds: float
    figures: Mapping[str, Histogram]


class Ring:
    """A directory. ``lost``: rows and events that could not be written, for instance because the store was full."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lost = 0
        self.why = ""
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            remedy = "Give a directory that can be written, with --store."
            raise EnvironmentLacksError(
                "the watch cannot keep anything", where=str(directory), why=error.strerror or "", remedy=remedy
            ) from error
        for path in directory.glob("*.jsonl"):
            _mend(path)
        for path in directory.glob("*.new"):
            path.unlink(missing_ok=True)

    def add(self, row: RingRow) -> bool:
        """Keep a row of a minute; returns whether that was possible."""
        return self._append(_name(60, row.time_s), _row_line(row))

    def add_event(self, event: WatchEvent) -> bool:
        """Keep an event; returns whether that was possible."""
        return self._append(_EVENTS, json.dumps(asdict(event)))

    def rows(self, since_s: float = 0.0, until_s: float = float("inf")) -> Iterator[RingRow]:
        """Return what was kept, the oldest first."""
        paths = sorted(self.directory.glob("rows-*.jsonl"), key=lambda path: (path.name.split("-", 2)[2], path.name))
        for path in paths:
            for document in _lines(path):
                with suppress(KeyError, TypeError, ValueError, AttributeError):
                    row = _row(document)
                    if since_s <= row.time_s < until_s:
                        yield row

    def kept_until_s(self) -> float | None:
        """Return the end of the last row; None where there is none."""
        newest = max(self.directory.glob("rows-*.jsonl"), key=lambda path: path.stem.rpartition("-")[2], default=None)
        ends = []
        for document in _lines(newest) if newest else ():
            with suppress(KeyError, TypeError, ValueError):
                ends.append(float(document["t"]) + float(document["s"]))
        return max(ends, default=None)

    def events(self, since_s: float = 0.0) -> list[WatchEvent]:
        """Return what was told, each event as it was told last."""
        found: dict[tuple[str, str, float], WatchEvent] = {}
        for document in _lines(self.directory / _EVENTS):
            with suppress(TypeError, KeyError):
                event = WatchEvent(**document)
                found[event.key] = event
        return [event for event in found.values() if event.told_s >= since_s or event.began_s >= since_s]

    def thin(self, now_s: float) -> None:
        """Merge what is old enough. A full store is no reason to lose what is there."""
        for (width, keep_s), (wider, _) in pairwise(TIERS):
            for path in sorted(self.directory.glob(f"rows-{width:04d}-*.jsonl")):
                day_s = float(path.stem.rpartition("-")[2]) * DAY_S
                if now_s - day_s - DAY_S >= keep_s:
                    self._merge(path, wider, day_s)

    def _merge(self, path: Path, width: int, day_s: float) -> None:
        merged: dict[float, tuple[float, dict[str, Histogram]]] = {}
        wider = self.directory / _name(width, day_s)
        before = wider.read_text() if wider.exists() else ""
        content = path.read_bytes()
        # A crash after merging leaves these lines in both; a clock that was set back has written further ones since.
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
        new = wider.with_suffix(".new")
        try:
            with open(new, "w", encoding="utf-8") as file:
                file.write(before + "".join(f"{line}\n" for line in [*lines, mark]))
                file.flush()
                os.fsync(file.fileno())
            new.replace(wider)
            path.unlink()
        except OSError as error:
            self.why = error.strerror or str(error)
            new.unlink(missing_ok=True)

    def _append(self, name: str, line: str) -> bool:
        path = self.directory / name
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            return self._lose(error)
        try:
            size = os.fstat(descriptor).st_size
            content = f"{line}\n".encode()
            try:
                if os.write(descriptor, content) != len(content):
                    raise OSError(28, os.strerror(28))
            except OSError as error:
                os.ftruncate(descriptor, size)
                return self._lose(error)
        finally:
            os.close(descriptor)
        return True

    def _lose(self, error: OSError) -> bool:
        self.lost += 1
        self.why = error.strerror or str(error)
        return False


def _name(width: int, time_s: float) -> str:
    return f"rows-{width:04d}-{int(time_s // DAY_S):06d}.jsonl"


def _row_line(row: RingRow) -> str:
    figures = {name: histogram.to_json() for name, histogram in row.figures.items()}
    return json.dumps({"t": row.time_s, "s": row.seconds, "f": figures}, separators=(",", ":"))


def _row(document: Mapping[str, Any]) -> RingRow:
    figures = {str(name): Histogram.from_json(counts) for name, counts in document["f"].items()}
    return RingRow(float(document["t"]), float(document["s"]), figures)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        for line in file:
            with suppress(ValueError):
                yield json.loads(line)


def _document(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _merged_already(wider: str, content: bytes) -> int:
    """Return how much of ``content``, from its beginning, the wider file has by what is marked in it."""
    for document in map(_document, reversed(wider.encode().splitlines())):
        match document:
            case {"merged": [int(size), str(digest)]} if hashlib.sha256(content[:size]).hexdigest() == digest:
                return size
    return 0


def _mend(path: Path) -> None:
    """Cut off what a crash has left of a line."""
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return
        file.seek(max(0, size - (1 << 20)))
        tail = file.read()
        if not tail.endswith(b"\n"):
            file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)
