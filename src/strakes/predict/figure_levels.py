"""What was measured of one figure at every scale, and which of it are points of one curve.

Processes that only forecast import this and not what reads runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strakes.predict.scale import MeasuredLevel

if TYPE_CHECKING:
    from strakes.findings.portrait import Setting

# Levels whose requests to servers for an operation differ by more than this factor did not do the same work.
_SAME_WORK = 1.25
# More ranks make a rate fall, but not by this factor: clients answered the faster level from memory.
_TOO_FAST = 20.0


@dataclass(frozen=True)
class FigureLevels:
    """One figure of some runs, at every scale that they measured it with. ``settings``: what tells it apart.

    ``rank_is_client``: its study takes every rank for a client, though they share a node. ``local``: no other
    node can reach its file system, so that ranks of this one stand for clients. ``room_for_files``: how many there
    can be, 0 where nothing tells.
    """

    study: str
    operation: str
    unit: str
    settings: Mapping[str, Setting]
    levels: tuple[MeasuredLevel, ...]
    rank_is_client: bool = False
    local: bool = False
    room_for_files: int = 0

    @property
    def comparable(self) -> tuple[MeasuredLevel, ...]:
        """Return the levels whose operations reached servers as those of the outermost one did.

        What caches of clients answered is no point of the curve of what servers carry, nor the other way round.
        """
        most = self.outermost.log_value + (math.inf if self.is_time else math.log(_TOO_FAST))
        return tuple(level for level in self.levels if level.log_value <= most and _is_same_work(level, self.outermost))

    @property
    def left_out(self) -> tuple[MeasuredLevel, ...]:
        """Return the levels that are no points of the curve."""
        return tuple(level for level in self.levels if level not in self.comparable)

    @property
    def outermost(self) -> MeasuredLevel:
        """Return the level with most ranks."""
        return max(self.levels, key=lambda level: (level.scale.ranks, level.scale.mdts, level.scale.files))

    @property
    def is_time(self) -> bool:
        """Whether it is a time."""
        return self.unit == "s"

    @property
    def name(self) -> str:
        """Return the study, the operation and the settings that tell it apart, numbers with what they are of."""
        from strakes.report.numbers import label_of, level_of

        settings = [
            value if isinstance(value, str) else f"{label_of(key)} {level_of(key, value)}"
            for key, value in self.settings.items()
            if key != "operation" and value not in ("", None)
        ]
        return ", ".join([self.operation.replace("-", " "), *settings]) + f" ({self.study})"


def _is_same_work(level: MeasuredLevel, other: MeasuredLevel) -> bool:
    if level.from_cache != other.from_cache:
        return False
    if level.requests is None or other.requests is None:
        return True
    least, most = sorted((level.requests, other.requests))
    return most <= _SAME_WORK * least
