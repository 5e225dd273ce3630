"""Operations on a fixed schedule as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from strakes.plan.backend import Backend

_READ_PIECES = 256  # as the engine


@dataclass(frozen=True)
class ProbePhase:
    """One operation of every rank at each moment of a schedule, whatever became of those before it.

    >>> ProbePhase("watch", "file-create", rate_per_s=10, seconds=2.5).operations(ranks=2)
    50
    """

    name: str
    operation: Literal["file-create", "file-cycle", "file-stat", "file-read", "file-fsync", "write-fsync"]
    rate_per_s: float
    seconds: float
    backend: Backend = "posix"
    files: str = "probe"
    file_bytes: int = 0
    log: bool = False
    kind: Literal["probe"] = field(default="probe", init=False)

    def operations(self, ranks: int) -> int:
        """Of all ranks, acknowledged or not."""
        return ranks * self.operations_per_rank()

    def operations_per_rank(self) -> int:
        """Return how many operations one rank is to do."""
        return max(1, int(self.rate_per_s * self.seconds))

    def bytes_added(self) -> int:
        """Of one rank."""
        most = {"file-cycle": 1, "file-read": _READ_PIECES}.get(self.operation, self.operations_per_rank())
        return most * self.file_bytes

    def inodes_added(self) -> int:
        """Of one rank, its directory included."""
        return 1 + {
            "file-create": self.operations_per_rank(),
            "file-fsync": self.operations_per_rank(),
            "file-stat": 100,
        }.get(self.operation, 1)
