"""Estimate the capacities of clients, links and storage targets from counters of busy time and from data sheets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from strakes.predict.levels import PARTS, MeasuredLevel, Part, Scale

# Standard error of the measured utilization (0 to 1) of a metadata server (bench/prediction/cephfs.json).
_BUSY_ERROR = 0.045
# Minimum utilization (0 to 1) for an estimate of the capacity. Below it, the error exceeds 20 %.
_LEAST_BUSY = 0.2
# Mean and standard deviation, over hardware components, of log(delivered rate / rate in the data sheet).
_STATED = (-0.2, 0.3)
# Two values contradict each other if they differ by this number of standard errors. By chance, 0.1 % of pairs do.
_CONTRADICTION = 3.0


@dataclass(frozen=True)
class Evidence:
    """Measurements, and the limits from data sheets that agree with them.

    ``counters``, ``limits``: components whose counter or stated limit is ignored, because a measurement contradicts it.
    """

    levels: tuple[MeasuredLevel, ...]
    stated: Mapping[Part, float]
    counters: tuple[Part, ...]
    limits: tuple[Part, ...]

    @property
    def parts(self) -> frozenset[Part]:
        """Return the components that have a counter or a stated limit."""
        return frozenset({part for level in self.levels for part in level.busy} | set(self.stated))

    def carried(self, part: Part) -> list[tuple[Scale, float, float]]:
        """Return (system size, logarithm of capacity, standard error) for each measured utilization of a component."""
        return [(level.scale, *each) for level in self.levels if (each := _carried(level, part)) is not None]

    def promised(self, part: Part) -> tuple[float, float] | None:
        """Return the log capacity expected from a stated limit, and the standard error of the log. None: no limit."""
        if part not in self.stated:
            return None
        most = max(level.log_value - math.log(level.scale.units(part)) for level in self.levels)
        return max(math.log(self.stated[part]) + _STATED[0], most), _STATED[1]


def evidence_of(levels: Sequence[MeasuredLevel], stated: Mapping[Part, float]) -> Evidence:
    """Return the measurements and stated limits, without the counters and limits that contradict a measurement."""
    limits = tuple(part for part in stated if any(_exceeds(level, part, stated[part]) for level in levels))
    counters = tuple(part for part in PARTS if _is_refuted(part, levels))
    kept = tuple(
        replace(level, busy={part: share for part, share in level.busy.items() if part not in counters})
        for level in levels
    )
    return Evidence(kept, {part: value for part, value in stated.items() if part not in limits}, counters, limits)


def _carried(level: MeasuredLevel, part: Part) -> tuple[float, float] | None:
    share = level.busy.get(part, 0.0)
    if share <= _LEAST_BUSY:
        return None
    return level.log_value - math.log(share), math.hypot(level.log_error, _BUSY_ERROR / share)


def _is_refuted(part: Part, levels: Sequence[MeasuredLevel]) -> bool:
    for one, other in permutations(levels, 2):
        if (carried := _carried(one, part)) is not None:
            more = math.log(other.scale.units(part) / one.scale.units(part))
            if other.log_value - carried[0] - more > _CONTRADICTION * math.hypot(carried[1], other.log_error):
                return True
    return False


def _exceeds(level: MeasuredLevel, part: Part, capacity: float) -> bool:
    return level.log_value - math.log(level.scale.units(part) * capacity) > 0.1 + 2 * level.log_error
