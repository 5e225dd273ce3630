"""When a phase ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StopRule = Literal["amount", "stonewall", "seconds", "wear-out"]


@dataclass(frozen=True)
class Stop:
    """When a phase ends: its amount, a number of seconds, or both (stonewall, wear-out)."""

    rule: StopRule = "amount"
    seconds: float | None = None

    def to_json(self) -> dict[str, object]:
        """Return the form of a plan's JSON."""
        return {"rule": self.rule} if self.seconds is None else {"rule": self.rule, "seconds": self.seconds}


AMOUNT = Stop()
