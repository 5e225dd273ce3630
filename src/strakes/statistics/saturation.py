"""From which setting on more of it no longer pays: the smallest level whose ratio to the best is surely at least 0.95.

Which level is best is known from the data only, and of many levels one looks good by luck. Three things keep the error of the claim at
1 - confidence, however many levels there are:

- a level is held against *every* other one, so that its ratio to the best passes whichever the best may be (an intersection-union test:
  Berger, Technometrics 24 (1982) 295);
- the first block (of every six) only chooses where to begin: at the level that is fastest in it. The other blocks are fresh to that choice;
- from there levels are tested downwards, and the first that fails ends it: a sequence fixed beforehand needs no correction
  (Maurer, Hothorn and Lehmacher 1995).

docs/statistics.md has the measured rate of false claims.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from strakes.statistics.contrast import paired_ratio
from strakes.statistics.interval import Estimate, median, smallest_runs

BLOCKS_PER_CHOOSING_BLOCK = 6

SaturationVerdict = Literal["saturated", "best-at-the-edge", "inconclusive"]


@dataclass(frozen=True)
class Level:
    """One setting of a factor and its rates by block number."""

    x: float
    values: Mapping[int, float]


@dataclass(frozen=True)
class Saturation:
    """The smallest level that is surely good enough, if any.

    ``saturated``: ``x`` is enough. ``best-at-the-edge``: only the largest level measured is, so more might be better still.
    ``inconclusive``: not enough evidence; ``more_runs`` is roughly how many more blocks would decide (None: not foreseeable).

    ``best_x`` has the highest median. ``ratio`` is that of ``x`` to ``rival_x``, the level hardest to match. Its low end is the bound that
    was tested, with the error 1 - confidence for that end alone; as an interval with two ends it has twice the error, and says so.
    """

    x: float | None
    ratio: Estimate | None
    best_x: float
    rival_x: float | None
    verdict: SaturationVerdict
    more_runs: int | None = None


def saturation(levels: Sequence[Level], confidence: float, threshold: float = 0.95) -> Saturation:
    """Find the saturation point of rates measured in common blocks; it is a false claim with probability at most 1 - confidence.

    Raises ValueError for fewer than two levels, a level twice, or one without values.

    >>> slow, fast = {n: 50.0 + n for n in range(8)}, {n: 100.0 + n for n in range(8)}
    >>> found = saturation([Level(1, slow), Level(2, fast), Level(4, fast)], 0.9)
    >>> found.verdict, found.x
    ('saturated', 2)
    """
    ordered = sorted(levels, key=lambda level: level.x)
    if len(ordered) < 2 or len({level.x for level in ordered}) < len(ordered):
        raise ValueError("saturation needs at least two levels, each once")
    best_x = max(ordered, key=lambda level: median(list(level.values.values()))).x
    one_end = 1 - 2 * (1 - confidence)
    common = sorted(set.intersection(*(set(level.values) for level in ordered)))
    choosing = common[: max(1, len(common) // BLOCKS_PER_CHOOSING_BLOCK)]
    needed = smallest_runs(one_end) + len(choosing)
    if len(common) < needed:
        return Saturation(None, None, best_x, None, "inconclusive", smallest_runs(one_end) + 1 - len(common))
    start = max(range(len(ordered)), key=lambda index: _standing(ordered[index], ordered, choosing))
    fresh = [Level(level.x, {block: rate for block, rate in level.values.items() if block not in choosing}) for level in ordered]
    passed: tuple[int, Level, Estimate] | None = None
    for index in range(start, -1, -1):
        rival, ratio = _hardest_rival(fresh[index], fresh, one_end)
        if _lower_bound(ratio) < threshold:
            break
        passed = (index, rival, ratio)
    if passed is None:
        return Saturation(None, None, best_x, None, "inconclusive", _runs_to_decide(ratio, threshold))
    index, rival, ratio = passed
    verdict: SaturationVerdict = "saturated" if index < len(ordered) - 1 else "best-at-the-edge"
    return Saturation(ordered[index].x, ratio, best_x, rival.x, verdict)


def _standing(level: Level, levels: Sequence[Level], blocks: Sequence[int]) -> float:
    """How near a level comes to the fastest of each block, so that slow and fast blocks count alike."""
    fastest = {block: max(rival.values[block] for rival in levels) for block in blocks}
    return median([level.values[block] / fastest[block] if fastest[block] > 0 else 0.0 for block in blocks])


def _hardest_rival(level: Level, levels: Sequence[Level], confidence: float) -> tuple[Level, Estimate]:
    ratios = [(rival, paired_ratio(level.values, rival.values, confidence)) for rival in levels if rival is not level]
    return min(ratios, key=lambda pair: (_lower_bound(pair[1]), pair[1].median))


def _lower_bound(ratio: Estimate) -> float:
    return ratio.interval.low if ratio.interval else 0.0


def _runs_to_decide(ratio: Estimate, threshold: float) -> int | None:
    """More blocks until the lower bound, which nears the ratio as the root of the runs grows, reaches the threshold."""
    if ratio.interval is None or ratio.median <= threshold:
        return None
    distance, reach = math.log(ratio.median / threshold), math.log(ratio.median / ratio.interval.low)
    return max(1, math.ceil(ratio.runs * ((reach / distance) ** 2 - 1)))
