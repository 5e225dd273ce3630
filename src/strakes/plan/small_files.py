"""Floods of small files as frozen values: pools that are filled, worked on and emptied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from strakes.plan.backend import Backend
from strakes.plan.stop import AMOUNT, Stop

FlowCall = Literal["create", "open", "write", "append", "read", "stat", "fsync", "close", "delete"]
SmallFilesMode = Literal["accumulate", "transactions", "remove", "flow"]


@dataclass(frozen=True)
class FlowOperation:
    """One step of a flow. ``bytes`` 0: the whole file; ``unit_bytes`` 0: the unit of the phase."""

    op: FlowCall
    bytes: int = 0
    unit_bytes: int = 0


@dataclass(frozen=True)
class SmallFilesPhase:
    """Work of every rank on a pool of its own, after Postmark (Katcher 1997).

    >>> SmallFilesPhase("fill", "accumulate", 2048, 6144, files_per_rank=10).operations(ranks=2)
    20
    """

    name: str
    mode: SmallFilesMode
    size_low_bytes: int
    size_high_bytes: int
    backend: Backend = "posix"
    files: str = "pool"
    files_per_rank: int = 0
    subdirectories: int = 0
    read_unit_bytes: int = 4096
    write_unit_bytes: int = 4096
    transactions: int = 0
    read_percent: int = 50
    create_percent: int = 50
    first_item: int = 0
    verify: bool = False
    flow: tuple[FlowOperation, ...] = ()
    stop: Stop = AMOUNT
    kind: Literal["small-files"] = field(default="small-files", init=False)

    @property
    def operation(self) -> SmallFilesMode:
        """What samples call it."""
        return self.mode

    def operations(self, ranks: int) -> int:
        """Count the operations of all ranks when nothing stops the phase early; 0 where the pool decides."""
        if self.mode == "accumulate":
            return ranks * self.files_per_rank
        return ranks * self.transactions * len(self.flow) if self.mode == "flow" else 0

    def most_files_added(self) -> int:
        """Of one rank; transactions may add less: they at most double the pool."""
        if self.mode == "flow":
            created = self._count("create")
            return created + self.transactions * max(0, created - self._count("delete"))
        return self.files_per_rank + self.transactions

    def most_bytes_added(self) -> int:
        """Of one rank; every file is taken to be as large as it may become."""
        appended = sum(step.bytes or self.size_high_bytes for step in self.flow if step.op == "append")
        written = max((step.bytes for step in self.flow if step.op == "write"), default=0)
        return self.most_files_added() * max(self.size_high_bytes, written) + self.transactions * appended

    def _count(self, op: FlowCall) -> int:
        return sum(step.op == op for step in self.flow)


def flow_from_json(steps: Any) -> tuple[FlowOperation, ...]:
    """Read the list ``flow`` of a validated phase."""
    return tuple(_step_from_json(step) for step in steps)


def _step_from_json(step: Mapping[str, Any]) -> FlowOperation:
    return FlowOperation(step["op"], int(step.get("bytes", 0)), int(step.get("unit_bytes", 0)))
