"""What is measured: pieces of work that every contender does in its own way, at one place with one number of ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from bench.places import Place
from strakes.units import KIB, MIB, format_bytes

Kind = Literal["files", "directories", "small", "pool", "data"]

SMALL = "create-write-remove"
POOL = "create-transactions-remove"
POOL_DIRECTORIES, POOL_LEAST_BYTES, POOL_MOST_BYTES, POOL_UNIT_BYTES = 100, 2 * KIB, 6 * KIB, KIB

# The operations of each kind, in the order in which they are done.
OPERATIONS: dict[Kind, tuple[str, ...]] = {
    "files": ("file-create", "file-stat", "file-open-close", "file-rename", "file-remove"),
    "directories": ("dir-create", "dir-stat", "dir-rename", "dir-remove"),
    "small": (SMALL,),
    "pool": (POOL,),
    "data": ("write", "rewrite", "read"),
}


@dataclass(frozen=True)
class Work:
    """One piece of work: ``items`` per rank in a directory of the rank's own, or ``data_bytes`` per rank in a file of
    its own.

    ``file_bytes``: what each small file holds. Data are written once; rewritten and read over and over for
    ``repeat_ms``.
    """

    kind: Kind
    place: str
    ranks: int
    items: int = 0
    file_bytes: int = 0
    transfer_bytes: int = 0
    data_bytes: int = 0
    direct: bool = False
    depth: int = 1  # more: io_uring with so many requests at a time
    repeat_ms: int = 0

    @property
    def operations(self) -> tuple[str, ...]:
        return OPERATIONS[self.kind]

    @property
    def label(self) -> str:
        """What the rows of this work share, apart from place and ranks."""
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
    """How much of each, per rank: phases long beside the few milliseconds that fio's time is off by."""

    items: int
    transfers: tuple[tuple[int, int], ...]  # bytes of a call, and of all of them
    repeat_ms: int

    @property
    def largest_bytes(self) -> int:
        return max(total for _, total in self.transfers)


# Short, so that there are many blocks: a pair's noise is mostly what the machine did between its two halves.
SHORT = Amounts(items=30_000, transfers=((4 * KIB, 128 * MIB), (MIB, 256 * MIB)), repeat_ms=200)
QUICK = Amounts(items=2_000, transfers=((4 * KIB, 8 * MIB), (MIB, 16 * MIB)), repeat_ms=20)
_DEPTH = 32


def works_of(memory: Place, device: Place | None, amounts: Amounts) -> dict[Work, str]:
    """Return the few works that stand for all others, each with the reason.

    ``device``: a place where O_DIRECT goes to a device.
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
