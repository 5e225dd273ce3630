"""Whether a kind of work, or a figure, shows by its own runs what many runs together showed.

All functions here are pure.

A change of level that all runs show may be that of a part of them. So a kind of work is named only where its own runs
tell, at its own error, however few they are: the tests are exact for few runs.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from statistics import NormalDist, fmean

from strakes.analysis.turns import ENOUGH, SHORTEST_LEVEL, Run, Visit, far_slower, fast_levels
from strakes.statistics.bimodality import MINIMUM_RUNS, two_groups
from strakes.statistics.change_points import correlation_of
from strakes.statistics.dependence import pooled_correlation
from strakes.statistics.interval import median

# Of more pairs of an early and a late run than this the rank sum is normal for all that matters.
_EXACT_PAIRS = 400
# Visits as much faster than the usual are scatter, not dips.
_SCATTER = 0.1
# Of other work, so many runs on each side of a visit tell on which level it was.
_BESIDE = 3


def p_value_beside(series: Sequence[Visit], after: Sequence[bool], *, slower: bool) -> float:
    """Return how likely runs after a change would be so much slower, or faster, by chance alone.

    Of each cell, visits before and after in ranks (Mann and Whitney, Ann. Math. Statist. 18 (1947) 50), cells together
    (Van Elteren, Bull. Int. Statist. Inst. 37 (1960) 351); visits that resemble the one before tell less.

    >>> visits = [Visit(float(place), "a", -float(place >= 4)) for place in range(8)]
    >>> round(p_value_beside(visits, [visit.better < 0 for visit in visits], slower=True), 4)
    0.0143
    """
    sides = _sides(series, after)
    sign = -1 if slower else 1
    beaten = sum(
        (sign * late > sign * early) + (late == early) / 2
        for earlier, later in sides
        for early in earlier
        for late in later
    )
    return _as_dependent(_at_least(beaten, sides), _alike(series, after))


def may_show(series: Sequence[Visit], after: Sequence[bool], error: float) -> bool:
    """Tell whether there are enough runs on both sides for any change to show."""
    sides = _sides(series, after)
    least = math.prod(1 / math.comb(len(early) + len(late), len(early)) for early, late in sides)
    return _as_dependent(least, _alike(series, after)) <= error


def shows_two_levels(series: Sequence[Visit]) -> bool:
    """Tell whether runs of a kind of work fall into two groups, or a few of them are far slower and none faster."""
    fast = fast_levels([(visit.cell, visit.better) for visit in series])
    below = [visit.better - fast[visit.cell] for visit in series if visit.cell in fast]
    if not below:
        return False
    if two_groups([math.exp(off) for off in below]) is not None:
        return True
    slow, _ = far_slower(series)
    quick, _ = far_slower([Visit(visit.at_s, visit.cell, -visit.better) for visit in series])
    return sum(slow) >= SHORTEST_LEVEL and sum(quick) <= _SCATTER * sum(slow)


def may_show_two_levels(series: Sequence[Visit], share: float) -> bool:
    """Tell whether there are enough runs for two levels to show, of which the slow one has that share."""
    return len(series) >= MINIMUM_RUNS and share * len(series) >= ENOUGH


def slow_beside(series: Sequence[Visit], others: Sequence[Run], border: float) -> list[bool | None]:
    """Tell of each visit whether other work next to it, before and after, was on the slower side of a border.

    None where there is no other work. ``others``: how far below its faster level each run was.
    """
    times = [run.at_s for run in others]
    found: list[bool | None] = []
    for visit in series:
        since, until = bisect_left(times, visit.at_s), bisect_right(times, visit.at_s)
        near = [run.better for run in others[max(0, since - _BESIDE) : until + _BESIDE]]
        found.append(fmean(near) < border if near else None)
    return found


def _sides(series: Sequence[Visit], after: Sequence[bool]) -> list[tuple[list[float], list[float]]]:
    sides: dict[str, tuple[list[float], list[float]]] = {}
    for visit, late in zip(series, after, strict=True):
        sides.setdefault(visit.cell, ([], []))[late].append(visit.better)
    return [(early, late) for early, late in sides.values() if early and late]


def _alike(series: Sequence[Visit], after: Sequence[bool]) -> float:
    """Return how much visits resemble the one before, or the one of their cell before, beside the change."""
    # A cell's middle lies on the level that it was run on more often: so each side of each cell has its own.
    parts: dict[tuple[str, bool], list[float]] = {}
    for visit, late in zip(series, after, strict=True):
        parts.setdefault((visit.cell, late), []).append(visit.better)
    middles = {part: median(values) for part, values in parts.items()}
    rest = [visit.better - middles[visit.cell, late] for visit, late in zip(series, after, strict=True)]
    cells: dict[str, list[float]] = {}
    for visit, off in zip(series, rest, strict=True):
        cells.setdefault(visit.cell, []).append(off)
    return max(correlation_of(rest), pooled_correlation(list(cells.values())))


def _at_least(beaten: float, sides: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """Return the chance of so many pairs or more whose later run is the better one."""
    import numpy as np

    pairs = sum(len(early) * len(late) for early, late in sides)
    if not pairs:
        return 1.0
    if pairs > _EXACT_PAIRS:
        variance = sum(len(early) * len(late) * (len(early) + len(late) + 1) for early, late in sides) / 12
        return NormalDist().cdf(-(beaten - pairs / 2 - 0.5) / math.sqrt(variance))
    chances = np.ones(1)
    for early, late in sides:
        chances = np.convolve(chances, _chances(len(early), len(late)))
    return min(1.0, float(chances[math.ceil(beaten) :].sum()))


def _chances(early: int, late: int) -> list[float]:
    """Return the chance of each number of pairs in which the later run is the better one.

    >>> _chances(1, 2)
    [0.3333333333333333, 0.3333333333333333, 0.3333333333333333]
    """
    # Of the number of runs beaten by each later run in turn: ways[n][s] of sum s, where all are at most n.
    ways = [1] + [0] * (early * late)
    for number in range(1, late + 1):
        # Times (1 - x^(early + number)) / (1 - x^number).
        for place in range(early * late, early + number - 1, -1):
            ways[place] -= ways[place - early - number]
        for place in range(number, early * late + 1):
            ways[place] += ways[place - number]
    whole = math.comb(early + late, late)
    return [way / whole for way in ways]


def _as_dependent(p_value: float, correlation: float) -> float:
    """Return the p-value of runs that resemble the one before: so many tell less than independent ones."""
    if not 0 < p_value < 1 or correlation == 0:
        return p_value
    scale = math.sqrt((1 - correlation) / (1 + correlation))
    return NormalDist().cdf(scale * NormalDist().inv_cdf(p_value))
