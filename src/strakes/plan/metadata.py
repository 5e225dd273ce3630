"""Work on names as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from strakes.plan.backend import Backend
from strakes.plan.left_out import usually
from strakes.plan.stop import AMOUNT, Stop

MetadataOperation = Literal[
    "dir-create",
    "dir-stat",
    "dir-rename",
    "dir-remove",
    "file-create",
    "file-stat",
    "file-open-close",
    "file-read",
    "file-rename",
    "file-remove",
    "file-chmod",
    "file-link",
    "file-truncate",
    "file-setxattr",
    "file-getxattr",
    "list",
    "list-stat",
    "find",
]


@dataclass(frozen=True)
class MetadataPhase:
    """One operation on ``items`` items per rank."""

    name: str
    operation: MetadataOperation
    directory: Literal["unique", "shared"]
    items: int
    backend: Backend = "posix"
    queue_depth: int = 1
    files: str = "items"
    depth: int = 0
    branch: int = 1
    file_bytes: int = 0
    create_with: Literal["open", "mknod"] = "open"
    paths: Literal["relative", "absolute", "mdtest"] = usually("relative")
    open_mode: Literal["least", "read-write"] = usually("least")
    fsync: bool = usually(False)
    rank_shift: int = 0
    share: Literal["own", "all"] = "own"
    order: Literal["in-order", "random"] = usually("in-order")
    truncate_bytes: int = usually(0)
    xattr_bytes: int = usually(64)
    find_name: str = usually("")
    find_bytes: int | None = usually(None)
    find_all: bool = usually(False)
    delay_ns: int = usually(0)
    stop: Stop = AMOUNT
    kind: Literal["metadata"] = field(default="metadata", init=False)

    def operations(self, ranks: int) -> int:
        """Operations of all ranks when nothing stops the phase early."""
        return ranks * self.items * (ranks if self.share == "all" else 1)
