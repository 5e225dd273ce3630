"""What is measured: pieces of work that every contender does in its own way, at one place with one number of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.places import Place
from strakes.units import KIB, MIB, format_bytes

Kind = Literal["files", "directories", "small", "pool", "data"]

SMALL = "create-write-remove"
POOL = "create-transactions-remove"

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
    """One piece of work: ``items`` per rank in a directory of the rank's own, or ``data_bytes`` per rank in a file of its own.

    ``file_bytes``: what each small file holds. Data are written once; rewritten and read over and over for ``repeat_ms``.
    """

    kind: Kind
    place: str
    ranks: int
    items: int = 0
    file_bytes: int = 0
    transfer_bytes: int = 0
    data_bytes: int = 0
    direct: bool = False
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
            return f"{format_bytes(self.transfer_bytes)} {'O_DIRECT' if self.direct else 'buffered'}"
        return "empty files" if self.kind == "files" else "directories"


@dataclass(frozen=True)
class Amounts:
    """How much of each, per rank: phases long beside the few milliseconds that fio's time is off by."""

    items: int
    small_bytes: int  # in small transfers
    large_bytes: int
    repeat_ms: int


FULL = Amounts(items=40_000, small_bytes=256 * MIB, large_bytes=512 * MIB, repeat_ms=250)
QUICK = Amounts(items=20_000, small_bytes=96 * MIB, large_bytes=192 * MIB, repeat_ms=100)
# Small O_DIRECT transfers to a device are that much slower than to memory.
_DEVICE_SLOWDOWN = 16


def works_at(place: Place, amounts: Amounts) -> list[Work]:
    """Everything that is measured at one place; O_DIRECT where it takes it."""
    works: list[Work] = []
    direct = (False, True) if place.takes_direct() else (False,)
    for ranks in (1, 2):
        works.append(Work("files", place.name, ranks, items=amounts.items))
        works.append(Work("directories", place.name, ranks, items=amounts.items // 2))
        works.append(Work("small", place.name, ranks, items=amounts.items // 2, file_bytes=4 * KIB))
        works.append(Work("pool", place.name, ranks, items=amounts.items // 2))
        for is_direct in direct:
            small_bytes = amounts.small_bytes // (_DEVICE_SLOWDOWN if is_direct and place.has_device else 1)
            for transfer, total in ((4 * KIB, small_bytes), (MIB, amounts.large_bytes)):
                works.append(_data(place, ranks, transfer, total, amounts.repeat_ms, direct=is_direct))
    return works


def _data(place: Place, ranks: int, transfer: int, total: int, repeat_ms: int, *, direct: bool) -> Work:
    return Work("data", place.name, ranks, transfer_bytes=transfer, data_bytes=total, repeat_ms=repeat_ms, direct=direct)
