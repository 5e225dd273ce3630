"""Workloads: operations that compared programs do in one place with one number of ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from bench.places import Place
from strakes.base.units import KIB, MIB, format_bytes

Kind = Literal["files", "directories", "small", "pool", "data"]

SMALL = "create-write-remove"
POOL = "create-transactions-remove"
POOL_DIRECTORIES, POOL_LEAST_BYTES, POOL_MOST_BYTES, POOL_UNIT_BYTES = 100, 2 * KIB, 6 * KIB, KIB

# The operations of each kind of workload, in the order of execution.
OPERATIONS: dict[Kind, tuple[str, ...]] = {
    "files": ("file-create", "file-stat", "file-open-close", "file-rename", "file-remove"),
    "directories": ("dir-create", "dir-stat", "dir-rename", "dir-remove"),
    "small": (SMALL,),
    "pool": (POOL,),
    "data": ("write", "rewrite", "read"),
}


@dataclass(frozen=True)
class Work:
    """A workload. Each rank works on ``items`` in its own directory, or on ``data_bytes`` in its own file.

    ``file_bytes``: size of a small file. ``repeat_ms``: duration of rewriting, and then of reading.
    """

    kind: Kind
    place: str
    ranks: int
    items: int = 0
    file_bytes: int = 0
    transfer_bytes: int = 0
    data_bytes: int = 0
    direct: bool = False
    depth: int = 1  # above 1: io_uring with this queue depth
    repeat_ms: int = 0

    @property
    def operations(self) -> tuple[str, ...]:
        return OPERATIONS[self.kind]

    @property
    def label(self) -> str:
        """Return the description of the workload in tables, without place and ranks."""
        if self.kind == "small":
            return f"{format_bytes(self.file_bytes)} files"
        if self.kind == "pool":
            return "pool of 2 to 6 KiB files"
        if self.kind == "data":
            queue = f", io_uring depth {self.depth}" if self.depth > 1 else ""
            return f"{format_bytes(self.transfer_bytes)} {'O_DIRECT' if self.direct else 'buffered'}{queue}"
        return "empty files" if self.kind == "files" else "directories"


@dataclass(frozen=True)
class Amounts:
    """Amounts per rank. fio's times err by a few milliseconds, so phases must be much longer."""

    items: int
    transfers: tuple[tuple[int, int], ...]  # (bytes per call, bytes in total)
    repeat_ms: int

    @property
    def largest_bytes(self) -> int:
        return max(total for _, total in self.transfers)


# Short phases allow many blocks, which average out changes of the machine's load.
SHORT = Amounts(items=30_000, transfers=((4 * KIB, 128 * MIB), (MIB, 256 * MIB)), repeat_ms=200)
QUICK = Amounts(items=2_000, transfers=((4 * KIB, 8 * MIB), (MIB, 16 * MIB)), repeat_ms=20)
_DEPTH = 32


def works_of(memory: Place, device: Place | None, amounts: Amounts) -> dict[Work, str]:
    """Return the representative workloads, each with the reason for its choice.

    ``device``: a place where O_DIRECT reaches a device.
    """
    (small_transfer, small_total), (large_transfer, large_total) = amounts.transfers
    files = Work("files", memory.name, 1, items=amounts.items)
    some = Work("small", memory.name, 1, items=amounts.items // 2, file_bytes=4 * KIB)
    data = Work("data", memory.name, 1, transfer_bytes=small_transfer, data_bytes=small_total)
    data = replace(data, repeat_ms=amounts.repeat_ms)
    works = {
        files: "the shortest calls that exist: here the program's own overhead is the largest share of the time",
        replace(files, ranks=2): "the same on two processors at once: whether ranks slow each other down",
        replace(files, kind="directories", items=amounts.items // 2): "calls that change their parent directory most",
        some: "names and data together: three calls for each file, and its removal",
        replace(
            some, kind="pool", file_bytes=0
        ): "files chosen at random from a hundred directories, read and appended to",
        data: "the shortest transfers: the program's overhead for each call",
        replace(data, transfer_bytes=large_transfer, data_bytes=large_total): (
            "the kernel's copying takes most of the time: whether the program itself also has a cost for each byte"
        ),
    }
    if device is not None:
        direct = replace(data, place=device.name, direct=True, data_bytes=small_total // 2)
        works[direct] = "one call at a time that waits for a device"
        works[replace(direct, depth=_DEPTH)] = (
            "many requests at a time: the program's overhead for each when several share a system call"
        )
    return works
