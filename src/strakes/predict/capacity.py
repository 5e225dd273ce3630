"""What parts of the system can carry at most, by counters of how busy they were and by data sheets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from strakes.predict.kriging import krige, walk
from strakes.predict.population import Population
from strakes.predict.scale import PARTS, MeasuredLevel, Part, Scale

# Standard error of a busy share, by CephFS metadata servers with limited processors (bench/prediction/cephfs.json).
_BUSY_ERROR = 0.045
# Below this share a counter bounds a part only at five times its load, with an error of more than a fifth.
_LEAST_BUSY = 0.2
# Logarithm of delivered by stated capacity, and its standard deviation: systems deliver a fifth less than stated.
_STATED = (-0.2, 0.3)
# Standard errors beyond which two measurements contradict each other: of many pairs one in a hundred does by chance.
_CONTRADICTION = 3.0


@dataclass(frozen=True)
class Bound:
    """Logarithm of the most that a part can carry at a scale, with its standard error."""

    part: Part
    log_value: float
    log_error: float


@dataclass(frozen=True)
class Evidence:
    """Levels and stated limits that agree; ``counters`` and ``limits``: parts whose ones were refuted and left out."""

    levels: tuple[MeasuredLevel, ...]
    stated: Mapping[Part, float]
    counters: tuple[Part, ...]
    limits: tuple[Part, ...]

    @property
    def parts(self) -> frozenset[Part]:
        """Return the parts that a counter or a stated limit describes."""
        return frozenset({part for level in self.levels for part in level.busy} | set(self.stated))

    def bounds(self, scale: Scale, population: Population) -> list[Bound]:
        """Return the bounds of all parts at a scale."""
        bounds = []
        for part in PARTS:
            carried = [(level.scale, *each) for level in self.levels if (each := _carried(level, part)) is not None]
            if carried:
                scales, values, errors = zip(*carried, strict=True)
                units = np.log([each.units(part) for each in (*scales, scale)])
                noise = np.append(np.array(errors) ** 2 + population.scatter[0] ** 2, 0.0)
                covariance = population.targets[1] ** 2 * walk(units) + np.diag(noise)
                mean, deviation, _ = krige(np.array(values) - units[:-1], covariance)
                bounds.append(Bound(part, mean + units[-1], deviation))
            elif part in self.stated:
                most = max(level.log_value - math.log(level.scale.units(part)) for level in self.levels)
                stated = math.log(self.stated[part]) + _STATED[0]
                bounds.append(Bound(part, max(stated, most) + math.log(scale.units(part)), _STATED[1]))
        return bounds


def evidence_of(levels: Sequence[MeasuredLevel], stated: Mapping[Part, float]) -> Evidence:
    """Leave out counters and stated limits that the measurements refute."""
    limits = tuple(part for part in stated if any(_exceeds(level, part, stated[part]) for level in levels))
    counters = tuple(part for part in PARTS if _is_refuted(part, levels))
    kept = tuple(
        replace(level, busy={part: share for part, share in level.busy.items() if part not in counters})
        for level in levels
    )
    return Evidence(kept, {part: value for part, value in stated.items() if part not in limits}, counters, limits)


def _carried(level: MeasuredLevel, part: Part) -> tuple[float, float] | None:
    """Return what a part carries when busy all the time: a logarithm and its standard error."""
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
