"""Recorded counters: texts of `lctl get_param`, each after a line `### UNIX-TIME`, one file a machine, gzip or not."""

from __future__ import annotations

import gzip
import heapq
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from strakes.errors import BadInputError
from strakes.watch.lustre import read_text
from strakes.watch.reading import CounterReading

MARK = "### "


def is_recording(path: Path) -> bool:
    """Tell whether the file begins as a recording does. Raises BadInputError where it cannot be read."""
    with ExitStack() as stack:
        return next(iter(stack.enter_context(open_text(path))), "").startswith(MARK)


def readings(paths: Sequence[Path]) -> Iterator[CounterReading]:
    """Return the readings of all files in order of time. Raises BadInputError."""
    with ExitStack() as stack:
        files = [stack.enter_context(open_text(path)) for path in paths]
        streams = [_of_file(path, file) for path, file in zip(paths, files, strict=True)]
        yield from heapq.merge(*streams, key=lambda reading: reading.time_s)


def open_text(path: Path) -> IO[str]:
    """Open a text that may be compressed. Raises BadInputError."""
    try:
        with open(path, "rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        opener = gzip.open if compressed else open
        opened = opener(path, "rt", encoding="utf-8", errors="replace", newline="")
    except OSError as error:
        raise BadInputError("the file cannot be read", where=str(path), why=error.strerror or str(error)) from error
    return opened


def _of_file(path: Path, file: IO[str]) -> Iterator[CounterReading]:
    time_s: float | None = None
    lines: list[str] = []
    try:
        for number, line in enumerate(file, 1):
            if not line.startswith(MARK):
                lines.append(line)
                continue
            if time_s is not None:
                yield read_text(path.name, time_s, "".join(lines))
            try:
                time_s, lines = float(line.removeprefix(MARK)), []
            except ValueError:
                raise BadInputError(
                    "not a time", where=f"{path}:{number}", why=repr(line.strip()), remedy="Write ### and a Unix time."
                ) from None
    except (OSError, EOFError) as error:
        raise BadInputError("the file ends early or is damaged", where=str(path), why=str(error)) from error
    if time_s is not None:
        yield read_text(path.name, time_s, "".join(lines))
