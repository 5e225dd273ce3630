"""What measured levels say against counters and data sheets, and whether anything in them shows an end of growth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal

from strakes.predict.scale import PARTS, MeasuredLevel, Part, Scale

# Counters tell a busy share this well.
BUSY_ERROR = 0.045
# Of a part that was busy for less, no counter tells well enough how much more it can do.
LEAST_BUSY = 0.2
# What a part really carries, by what is stated of it: a fifth less, within a factor of 1.35.
STATED = (-0.2, 0.3)
# No part carries more than this above what is stated of it, as a natural logarithm: more was not stated of this part.
_ABOVE_STATED = 0.1
# Processors that are busy for this share of the time do all that they can.
_FULL = 0.9
# Deviations beyond which a difference is no accident: of many pairs of levels, and of what one pair decides.
_REFUTED, _BENT = 3.0, 2.5
_TARGETS: Sequence[Part] = ("mdts", "osts")
# Even levels that were repeated often are not known better than this.
_LEAST_ERROR = 0.02


@dataclass(frozen=True)
class Sifted:
    """What is left to learn from, and what was left out of it.

    ``counters``: parts of which a level carried clearly more than their counter allows. ``always_busy``: whether the
    clients' processors were busy at every number of clients and nothing else tells of servers. ``limits``: parts that
    carried more than is stated of them.
    """

    levels: tuple[MeasuredLevel, ...]
    stated: Mapping[Part, float]
    counters: tuple[Part, ...] = ()
    always_busy: bool = False
    limits: tuple[Part, ...] = ()


def sift(levels: Sequence[MeasuredLevel], stated: Mapping[Part, float]) -> Sifted:
    """Leave out counters and stated limits that the levels themselves refute.

    Clients that wait in a loop, and programs beside, keep processors busy; of a device that does many things at once
    "busy" says little. What all share may grow dearer with each rank, so that its counter is not refuted. Processors
    that are busy at every number of clients may do the work or wait for servers: where nothing else tells of servers,
    they tell nothing of more clients.
    """
    limits = tuple(
        part for part in PARTS if part in stated and any(_exceeds(level, part, stated[part]) for level in levels)
    )
    kept = {part: capacity for part, capacity in stated.items() if part not in limits}
    told = {part for level in levels for part in level.busy} | set(kept)
    always_busy = (
        told == {"clients"} and len({level.scale.clients for level in levels}) > 1 and all(map(is_client_full, levels))
    )
    counters = tuple(part for part in PARTS if part != "shared" and _is_refuted(part, levels))
    left_out = {*counters, *(("clients",) if always_busy else ())}
    return Sifted(
        tuple(
            replace(level, busy={part: share for part, share in level.busy.items() if part not in left_out})
            for level in levels
        ),
        kept,
        counters,
        always_busy and "clients" not in counters,
        limits,
    )


def is_client_full(level: MeasuredLevel) -> bool:
    """Tell whether the processors of the clients did all that they can."""
    return level.busy.get("clients", 0.0) >= _FULL


def counter_bounds(levels: Sequence[MeasuredLevel], scale: Scale) -> list[tuple[float, float]]:
    """Return what parts can carry at a scale by how busy they were: logarithms with their standard errors.

    A server that was busy for 60 % of the time cannot do twice as much.
    """
    bounds: dict[Part, list[tuple[float, float]]] = {}
    for level in levels:
        for part in level.busy:
            if (bound := _carried(level, part)) is not None:
                log_value, error = bound
                bounds.setdefault(part, []).append((log_value + math.log(scale.units(part)), error**-2))
    return [
        (sum(bound * weight for bound, weight in each) / total, total**-0.5)
        for each in bounds.values()
        if (total := sum(weight for _, weight in each))
    ]


def growth_of(levels: Sequence[MeasuredLevel]) -> Literal["bent", "linear"] | None:
    """Tell whether the rate grew in step with the ranks all along; None where ranks never changed alone.

    It is bent, too, where more targets alone raised it.
    """
    in_step = False
    for small, large in permutations(levels, 2):
        gain, most = large.log_value - small.log_value, math.log(large.scale.ranks / small.scale.ranks)
        error = math.hypot(small.log_error, large.log_error, _LEAST_ERROR)
        if most > 0 and _has_more(small, large) is None:
            in_step = True
            if most - gain > _BENT * error:
                return "bent"
        if not most and _has_more(small, large) and gain > _BENT * error:
            return "bent"
    return "linear" if in_step else None


def _has_more(small: MeasuredLevel, large: MeasuredLevel) -> bool | None:
    """Tell whether the second has more targets; None where neither targets nor files differ."""
    if small.scale.files == large.scale.files and all(
        small.scale.units(part) == large.scale.units(part) for part in _TARGETS
    ):
        return None
    return any(large.scale.units(part) > small.scale.units(part) for part in _TARGETS)


def _is_refuted(part: Part, levels: Sequence[MeasuredLevel]) -> bool:
    for one, other in permutations(levels, 2):
        if (bound := _carried(one, part)) is not None:
            each = other.log_value - math.log(other.scale.units(part))
            if each - bound[0] > _REFUTED * math.hypot(bound[1], other.log_error, _LEAST_ERROR):
                return True
    return False


def _carried(level: MeasuredLevel, part: Part) -> tuple[float, float] | None:
    """Return what a unit carries at most by its counter: a logarithm and its error; None where it does not tell."""
    share = level.busy.get(part, 0.0)
    if share <= LEAST_BUSY:
        return None
    each = level.log_value - math.log(level.scale.units(part) * share)
    return each, math.hypot(level.log_error, BUSY_ERROR / share)


def _exceeds(level: MeasuredLevel, part: Part, capacity: float) -> bool:
    above = level.log_value - math.log(level.scale.units(part) * capacity)
    return above > _ABOVE_STATED + 2 * level.log_error
