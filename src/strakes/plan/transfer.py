"""Moving data as frozen values: by calls of any size, or as dd does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from strakes.plan.backend import Backend
from strakes.plan.left_out import usually
from strakes.plan.stop import AMOUNT, Stop

TransferOperation = Literal["write", "read", "rewrite", "mixed"]
Sharing = Literal["file-per-process", "shared-file", "file-per-writer"]
Access = Literal["segmented", "strided", "random", "whole", "random-whole", "draws", "zipf", "pareto", "hotspot"]
Sync = Literal["none", "close", "fsync"]


@dataclass(frozen=True)
class SizeShare:
    """So many of a hundred calls move so many bytes."""

    bytes: int
    percent: int


@dataclass(frozen=True)
class TransferPhase:
    """Moving data: every rank does segments x block_bytes in calls of transfer_bytes. ``hints`` by name."""

    name: str
    operation: TransferOperation
    layout: Sharing
    access: Access
    transfer_bytes: int
    block_bytes: int
    segments: int = 1
    writers: int = 0
    grouping: Literal["node", "global"] = "node"
    backend: Backend = "posix"
    queue_depth: int = 1
    files: str = "data"
    direct: bool = False
    sync: Sync = "close"
    time_open: bool = True
    pattern: Literal["stamped", "once"] = "stamped"
    compressible_percent: int = 0
    duplicate_percent: int = 0
    verify: bool = False
    preallocate: bool = False
    cache: Literal["as-is", "drop", "drop-system"] = "as-is"
    rank_shift: int = 0
    read_percent: int | None = usually(None)
    read_sizes: tuple[SizeShare, ...] = usually(())
    write_sizes: tuple[SizeShare, ...] = usually(())
    own_directory: bool = usually(False)
    first_ranks: int = usually(0)
    delay_ns: int = usually(0)
    collective: bool = usually(False)
    hints: tuple[tuple[str, str], ...] = usually(())
    chunk_bytes: int = usually(0)
    sqpoll: bool = usually(False)
    iopoll: bool = usually(False)
    stop: Stop = AMOUNT
    kind: Literal["transfer"] = field(default="transfer", init=False)

    def operations(self, ranks: int) -> int:
        """Count the calls of all ranks when nothing stops the phase early."""
        per_rank = self.segments * self.block_bytes // self.transfer_bytes
        return (self.first_ranks or ranks) * per_rank * (ranks if self.access == "whole" else 1)


@dataclass(frozen=True)
class StreamPhase:
    """What dd does: every rank writes or reads a file of its own, ``count`` calls of ``block_bytes``."""

    name: str
    operation: Literal["write", "read"]
    block_bytes: int
    count: int
    backend: Backend = "posix"
    files: str = "stream"
    direct: bool = False
    sync: Sync = "close"
    pattern: Literal["stamped", "once"] = "stamped"
    verify: bool = False
    cache: Literal["as-is", "drop", "drop-system"] = "as-is"
    rank_shift: int = 0
    stop: Stop = AMOUNT
    kind: Literal["stream"] = field(default="stream", init=False)

    def operations(self, ranks: int) -> int:
        """Count the calls of all ranks when nothing stops the phase early."""
        return ranks * self.count


def sizes_from_json(shares: Any) -> tuple[SizeShare, ...]:
    """Read the list ``read_sizes`` or ``write_sizes`` of a validated phase."""
    return tuple(SizeShare(int(share["bytes"]), int(share["percent"])) for share in shares)
