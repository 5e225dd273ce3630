"""A file that all ranks need, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from strakes.plan.backend import Backend


@dataclass(frozen=True)
class StagePhase:
    """Every rank gets the whole of a shared file.

    ``readers_per_node`` ranks of a node read it (0: all), the others take it from them.
    """

    name: str
    transfer_bytes: int
    backend: Backend = "posix"
    files: str = "data"
    readers_per_node: int = 0
    broadcast: bool = False
    cache: Literal["as-is", "drop", "drop-system"] = "as-is"
    verify: bool = False
    kind: Literal["stage"] = field(default="stage", init=False)

    @property
    def operation(self) -> Literal["read"]:
        """What samples call it."""
        return "read"

    def operations(self, ranks: int) -> int:
        """0: how many calls there are depends on the size of the file and on the nodes."""
        return 0
