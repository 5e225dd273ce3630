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


FULL = Amounts(
    items=40_000,
    transfers=((4 * KIB, 256 * MIB), (64 * KIB, 512 * MIB), (MIB, 512 * MIB), (8 * MIB, 512 * MIB)),
    repeat_ms=250,
)
QUICK = Amounts(items=20_000, transfers=((4 * KIB, 96 * MIB), (MIB, 192 * MIB)), repeat_ms=100)
# Small O_DIRECT transfers to a device are that much slower than to memory, but for those that wait together.
_DEVICE_SLOWDOWN = 16
_DEPTH = 32


def works_at(place: Place, amounts: Amounts) -> list[Work]:
    """Everything that is measured at one place; O_DIRECT where it goes to a device."""
    works: list[Work] = []
    direct = (False, True) if place.has_device and place.takes_direct() else (False,)
    for ranks in (1, 2):
        works.append(Work("files", place.name, ranks, items=amounts.items))
        works.append(Work("directories", place.name, ranks, items=amounts.items // 2))
        works.append(Work("small", place.name, ranks, items=amounts.items // 2, file_bytes=4 * KIB))
        works.append(Work("pool", place.name, ranks, items=amounts.items // 2))
        for transfer, total in amounts.transfers:
            data = Work(
                "data", place.name, ranks, transfer_bytes=transfer, data_bytes=total, repeat_ms=amounts.repeat_ms
            )
            is_small = transfer == 4 * KIB
            for is_direct in direct:
                some_bytes = total // (_DEVICE_SLOWDOWN if is_direct and is_small else 1)
                works.append(replace(data, data_bytes=some_bytes, direct=is_direct))
            if is_small and True in direct:
                works.append(replace(data, data_bytes=total // 2, direct=True, depth=_DEPTH))
    return works
