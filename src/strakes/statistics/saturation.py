"""From which setting on more of it no longer pays: the smallest level whose ratio to the best is surely at least 0.95.

Which level is best is known from the data only, and of many levels one looks good by luck. Three things keep the error
of the claim at 1 - confidence, however many levels there are:

- a level is held against *every* other one, so that its ratio to the best passes whichever the best may be (an
  intersection-union test: Berger, Technometrics 24 (1982) 295);
- the first block (of every twelve) only chooses where to begin: at the level that is fastest in it. The other blocks
  are fresh to that choice;
- from there levels are tested downwards, and the first that fails ends it: a sequence fixed beforehand needs no
  correction (Maurer, Hothorn and Lehmacher 1995).

docs/statistics.md has the measured rate of false claims.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from strakes.statistics.contrast import paired_ratio
from strakes.statistics.interval import Estimate, median, smallest_runs

BLOCKS_PER_CHOOSING_BLOCK = 12

SaturationVerdict = Literal["saturated", "suffices", "grows", "inconclusive"]


@dataclass(frozen=True)
class Level:
    """One setting of a factor and its rates by block number."""

    x: float
    values: Mapping[int, float]


@dataclass(frozen=True)
class Saturation:
    """What is shown of the levels of a factor.

    ``saturated``: ``x`` is enough, and the level below is worse (or there is none). ``suffices``: ``x`` is enough;
    whether less is, is not known. ``grows``: the largest level beats every other, so more might be better still.
    ``inconclusive``: not enough evidence for any of these; ``more_runs`` is roughly how many more blocks would decide
    (None: not foreseeable).

    Where it is inconclusive, levels up to ``too_little_x`` may still be shown to be worse than ``better_x``: ``gain``
    is then the ratio of these two. ``ratio`` is then that of the smallest level to the one hardest to match.

    ``best_x`` has the highest median. ``ratio`` is that of ``x`` to ``rival_x``, the level hardest to match, ``gain``
    that of ``x`` to ``below_x``, the level below. Each is an interval with two ends; a claim stands on its lower end
    alone, and there are at most two of them: together they are as sure as one interval.
    """

    x: float | None
    ratio: Estimate | None
    best_x: float
    rival_x: float | None
    verdict: SaturationVerdict
    more_runs: int | None = None
    below_x: float | None = None
    gain: Estimate | None = None
    too_little_x: float | None = None
    better_x: float | None = None


def saturation(
    levels: Sequence[Level],
    confidence: float,
    threshold: float = 0.95,
    correlation: float = 0.0,
    off: float = 0.0,
) -> Saturation:
    """Find the saturation point of rates measured in common blocks.

    What is said is false with probability at most 1 - confidence. ``correlation``: of what is measured in one block
    with what is in the next. ``off``: the share by which each ratio may be off because clocks step.

    Raises ValueError for fewer than two levels, a level twice, or one without values.

    >>> slow, fast = {n: 50.0 + n for n in range(8)}, {n: 100.0 + n for n in range(8)}
    >>> found = saturation([Level(1, slow), Level(2, fast), Level(4, fast)], 0.9)
    >>> found.verdict, found.x, found.below_x
    ('saturated', 2, 1)
    """
    ordered = sorted(levels, key=lambda level: level.x)
    if len(ordered) < 2 or len({level.x for level in ordered}) < len(ordered):
        raise ValueError("saturation needs at least two levels, each once")
    best_x = max(ordered, key=lambda level: median(list(level.values.values()))).x
    common = sorted(set.intersection(*(set(level.values) for level in ordered)))
    choosing = common[: max(1, len(common) // BLOCKS_PER_CHOOSING_BLOCK)]
    missing = smallest_runs(confidence) + len(choosing) - len(common)
    if missing > 0:
        return Saturation(None, None, best_x, None, "inconclusive", missing)
    rival, ratio = _hardest_rival(ordered[-1], ordered, confidence, correlation, off)
    if _lower_bound(ratio) > 1:
        return Saturation(ordered[-1].x, ratio, best_x, rival.x, "grows")
    start = max(range(len(ordered)), key=lambda index: _standing(ordered[index], ordered, choosing))
    fresh = [
        Level(level.x, {block: level.values[block] for block in common if block not in choosing}) for level in ordered
    ]
    passed: tuple[int, Level, Estimate] | None = None
    for index in range(start, -1, -1):
        rival, ratio = _hardest_rival(fresh[index], fresh, confidence, correlation, off)
        if _lower_bound(ratio) < threshold:
            break
        passed = (index, rival, ratio)
    if passed is None:
        too_little, gain = _too_little(fresh, start, confidence, correlation, off)
        more_runs = _runs_to_decide(ratio, threshold)
        rival, ratio = _hardest_rival(fresh[0], fresh, confidence, correlation, off)
        return Saturation(
            None,
            ratio,
            best_x,
            rival.x,
            "inconclusive",
            more_runs,
            gain=gain,
            too_little_x=too_little,
            better_x=ordered[start].x,
        )
    index, rival, ratio = passed
    if index == 0:
        return Saturation(ordered[0].x, ratio, best_x, rival.x, "saturated")
    below = ordered[index - 1]
    gain = paired_ratio(ordered[index].values, below.values, confidence, correlation).beyond(off)
    verdict: SaturationVerdict = "saturated" if _lower_bound(gain) > 1 else "suffices"
    return Saturation(ordered[index].x, ratio, best_x, rival.x, verdict, below_x=below.x, gain=gain)


def _too_little(
    levels: Sequence[Level], start: int, confidence: float, correlation: float, off: float
) -> tuple[float | None, Estimate | None]:
    """Return the largest level below ``start`` that is surely worse, and how much; tested upwards until one fails."""
    shown: tuple[float | None, Estimate | None] = (None, None)
    for level in levels[:start]:
        ratio = paired_ratio(levels[start].values, level.values, confidence, correlation).beyond(off)
        if _lower_bound(ratio) <= 1:
            break
        shown = (level.x, ratio)
    return shown


def _standing(level: Level, levels: Sequence[Level], blocks: Sequence[int]) -> float:
    """Return how near a level comes to the fastest of each block, so that slow and fast blocks count alike."""
    fastest = {block: max(rival.values[block] for rival in levels) for block in blocks}
    return median([level.values[block] / fastest[block] if fastest[block] > 0 else 0.0 for block in blocks])


def _hardest_rival(
    level: Level, levels: Sequence[Level], confidence: float, correlation: float, off: float
) -> tuple[Level, Estimate]:
    ratios = [
        (rival, paired_ratio(level.values, rival.values, confidence, correlation).beyond(off))
        for rival in levels
        if rival is not level
    ]
    return min(ratios, key=lambda pair: (_lower_bound(pair[1]), pair[1].median))


def _lower_bound(ratio: Estimate) -> float:
    return ratio.interval.low if ratio.interval else 0.0


def _runs_to_decide(ratio: Estimate, threshold: float) -> int | None:
    """More blocks until the lower bound, which nears the ratio as the root of the runs grows, reaches the threshold."""
    if ratio.interval is None or ratio.median <= threshold:
        return None
    distance, reach = math.log(ratio.median / threshold), math.log(ratio.median / ratio.interval.low)
    return max(1, math.ceil(ratio.runs * ((reach / distance) ** 2 - 1)))
