"""Expected checksums of a drill's files, computed independently of the engine, and the checksums read back."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from strakes.base.errors import MeasurementError
from strakes.model.phases import ProbePhase
from strakes.model.plan import Plan
from strakes.targets.command import Runner, Servers, run

_WORD = 1 << 64
_FILE = re.compile(r"f(\d+)\.(\d+)")
_READ_S = 300.0
_FORGET = """
import os, sys
for path in sys.argv[1:]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
"""
_LOOK_S = 30.0

FileKey = tuple[int, int]


@dataclass(frozen=True)
class Reader:
    """Another client, which reads the files of a drill back: a host that ``servers`` reaches.

    ``directory`` is where it has the directory of the drill.
    """

    host: str
    servers: Servers
    directory: PurePath

    def at(self, name: str) -> Reader:
        """Return the reader for a directory inside."""
        return replace(self, directory=self.directory / name)

    def require(self, ask: Runner = run) -> None:
        """Raise MeasurementError where the reader does not have its directory."""
        looked = self.servers.runner(self.host, ask)(("ls", "-d", str(self.directory)), _LOOK_S)
        if looked.status != 0:
            raise MeasurementError(
                "the reader does not see the files of this directory",
                where=f"{self.directory} on {self.host}",
                why=looked.stderr.strip(),
                remedy="Mount the file system there, or say where it is mounted: --read-in DIR.",
            )


@dataclass(frozen=True)
class FilesRead:
    """The files that were read back: the SHA-256 of each by rank and number, and who read them."""

    sums: dict[FileKey, str]
    by: str


def expected_sums(plan: Plan, phase: ProbePhase, directory: PurePath, identifier: str) -> dict[FileKey, str]:
    """Return the SHA-256 of every file of the phase; ``directory`` is the path as passed to the engine.

    File k of a rank has bytes k x ``file_bytes`` to (k + 1) x ``file_bytes`` of the rank's stream
    (docs/reference/engine.md).
    """
    salt = _fnv(os.fsencode(directory) + b"/" + identifier.encode())
    sums = {}
    for rank in range(plan.ranks):
        state, word = _splitmix(salt)
        state, word = _splitmix(word ^ plan.seed)
        state, base = _splitmix(word ^ rank)
        _, step = _splitmix(state)
        for number in range(phase.operations_per_rank()):
            part = _bytes_of(base, step | 1, number * phase.file_bytes, phase.file_bytes)
            sums[rank, number] = hashlib.sha256(part).hexdigest()
    return sums


def read_back(directory: PurePath, reader: Reader | None, *, wrote: str, ask: Runner = run) -> FilesRead:
    """Read the files of all clients, by a process that can be given up; ``wrote`` is who wrote them.

    Raises MeasurementError when they cannot be read.
    """
    place = directory if reader is None else reader.directory
    files = ("find", str(place), "-mindepth", "2", "-maxdepth", "2", "-path", "*.probe/f*", "-type", "f", "-exec")
    if reader is None:
        by = f"this machine's mount; written by {wrote}"
        # Drop this machine's page cache, so that the files are read from the servers.
        ask((*files, sys.executable, "-I", "-S", "-c", _FORGET, "{}", "+"), _READ_S)
    else:
        by = f"{reader.host}; written by {wrote}"
        ask = reader.servers.runner(reader.host, ask)
    read = ask((*files, "sha256sum", "--", "{}", "+"), _READ_S)
    # sha256sum fails if some files cannot be read; they are then missing in the result.
    if read.status != 0 and not read.stdout and "sha256sum" not in read.stderr:
        raise MeasurementError(
            "the files of the clients cannot be read back", where=f"{place} on {by}", why=read.stderr.strip()
        )
    return FilesRead(_sums(read.stdout.splitlines()), by)


def file_of(name: str) -> FileKey | None:
    """Return rank and number from a probe's file name ``fRANK.NUMBER``, or None for another name.

    >>> file_of("f12.0034"), file_of("data")
    ((12, 34), None)
    """
    match = _FILE.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def _sums(lines: Sequence[str]) -> dict[FileKey, str]:
    sums = {}
    for line in lines:
        # A name with unusual characters is escaped, and its line begins with a backslash.
        digest, _, path = line.removeprefix("\\").partition("  ")
        if (key := file_of(path.rpartition("/")[2])) is not None:
            sums[key] = digest
    return sums


def _fnv(text: bytes) -> int:
    value = 14695981039346656037
    for byte in text:
        value = (value ^ byte) * 1099511628211 % _WORD
    return value


def _splitmix(state: int) -> tuple[int, int]:
    """Return the next state and its word (Vigna 2014)."""
    state = (state + 0x9E3779B97F4A7C15) % _WORD
    mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % _WORD
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % _WORD
    return state, mixed ^ mixed >> 31


def _bytes_of(base: int, step: int, offset: int, size: int) -> bytes:
    """Return the bytes of a stream: word i is base + i x step."""
    first, last = offset // 8, (offset + size + 7) // 8
    words = np.arange(first, last, dtype=np.uint64) * np.uint64(step) + np.uint64(base)
    return words.tobytes()[offset % 8 :][:size]
