"""Several phases at once as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from strakes.plan.metadata import MetadataPhase
from strakes.plan.probe import ProbePhase
from strakes.plan.small_files import SmallFilesPhase
from strakes.plan.stop import AMOUNT, Stop
from strakes.plan.transfer import StreamPhase, TransferPhase

PartPhase = TransferPhase | MetadataPhase | StreamPhase | SmallFilesPhase | ProbePhase


@dataclass(frozen=True)
class Part:
    """What ``ranks`` ranks do: those after the ranks of the parts before."""

    ranks: int
    phase: PartPhase

    def operations(self, ranks: int) -> int:
        """Of this part, in a team of ``ranks``, when nothing stops it early."""
        return self.phase.operations(ranks) * self.ranks // ranks


@dataclass(frozen=True)
class MixedPhase:
    """Every part is a phase by ranks of its own; they begin together.

    >>> from strakes.plan import MetadataPhase, StreamPhase
    >>> dump, make = StreamPhase("dump", "write", 4096, 8), MetadataPhase("make", "file-create", "unique", 10)
    >>> MixedPhase("both", (Part(3, dump), Part(1, make))).operations(ranks=4)
    34
    """

    name: str
    parts: tuple[Part, ...]
    stop: Stop = AMOUNT
    kind: Literal["mixed"] = field(default="mixed", init=False)

    @property
    def operation(self) -> Literal["mixed"]:
        """What samples call it."""
        return "mixed"

    def operations(self, ranks: int) -> int:
        """Of all parts when nothing stops them early."""
        return sum(part.operations(ranks) for part in self.parts)
