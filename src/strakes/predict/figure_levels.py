"""The levels that were measured of one figure, and which of them lie on one curve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from strakes.findings.portrait import Setting
from strakes.predict.scale import MeasuredLevel
from strakes.report.numbers import label_of, level_of

# Levels whose requests for each operation differ by more than this factor did not do the same work.
_SAME_WORK = 1.25
# Contention makes rates fall by less than this factor; a level faster than that was answered from caches.
_TOO_FAST = 20.0


@dataclass(frozen=True)
class FigureLevels:
    """One figure of some runs. ``settings``: those that identify it.

    ``rank_is_client``: its study takes each rank for a client. ``local``: no other node can reach the file system, so
    ranks stand for clients. ``room_for_files``: the most files that the file system can hold, 0 if unknown.
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
        """Return the levels whose operations reached servers as those of the outermost level did."""
        most = self.outermost.log_value + (math.inf if self.is_time else math.log(_TOO_FAST))
        return tuple(level for level in self.levels if level.log_value <= most and _is_same_work(level, self.outermost))

    @property
    def left_out(self) -> tuple[MeasuredLevel, ...]:
        """Return the other levels."""
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
