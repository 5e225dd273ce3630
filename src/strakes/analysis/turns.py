"""Two levels that take turns, as those of a neighbour who comes and goes: between visits, or within them.

All functions here are pure.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from strakes.statistics.bimodality import TwoGroups, steps_apart, two_groups
from strakes.statistics.change_points import correlation_of
from strakes.statistics.interval import in_order, median

# A change that fell upon the first few runs is one, too.
SHORTEST_LEVEL = 3
# Runs that resemble the one before them this much, after all changes of level are put right, go on changing.
_STILL_ALIKE = 0.3
# Phases of visits one after the other surely depend on each other where they do by so many standard errors, and at most
# so many phases apart: what comes and goes within a visit makes them alike at one distance, and unlike at another.
_SURELY = 3.5
_FARTHEST_PHASE = 4
# Two groups of runs this far apart are two levels, also where neighbours in time are not in the same one.
_FAR_APART = 0.5
# Fewer runs on one side of a change do not tell: its moment is not known to a run or two.
ENOUGH = 5
# Of so many visits one after the other the mean scatters less than each, and is on one level mostly, where levels last.
_WINDOWS = (1, 3, 6)
# The faster of two levels that take turns: of each measure, what a fifth of its runs beat.
_FAST_SHARE = 0.8
# Two levels that take turns come back: a cell that only went from one to the other has two spells.
_SPELLS = 3
# Levels that were met in one stretch of time: nearly all runs within it are slow, and nearly all others fast.
_MOSTLY = 0.9
# A stretch too short for a change of level and one back: visits this far below the middle of their cell, and beyond so
# many standard deviations, which no wandering is.
_DIPPED, _BEYOND = 0.75, 5.0
_OF_A_DISTANCE = 1.4826
# Dips that come back end so often, and hardly any visits are as much faster.
_DIPS = 2
_SCATTER = 0.1
# A change and the one back are alike where what is left of both is less than this part of them.
_COMES_BACK = 0.3
ALL = "all that was measured"


@dataclass(frozen=True)
class Turns:
    """Two levels of ``what`` that take turns: for a ``share`` of the runs it is ``factor`` times as fast as else.

    ``between``: since and until when, where that was one stretch of time; None where it came and went. ``unsure``:
    those of the cells whose runs are too few to tell.
    """

    what: str
    factor: float
    share: float
    cells: tuple[str, ...]
    between: tuple[float, float] | None = None
    unsure: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One value: ``better`` is the logarithm of how much better it was than its measure's median.

    ``phase``: which one of its visit, in the order of time.
    """

    at_s: float
    cell: str
    measure: str
    better: float
    phase: int


@dataclass(frozen=True)
class Visit:
    """A visit, whatever it measured: what slowed it slowed all its phases."""

    at_s: float
    cell: str
    better: float


def turns_of(
    what: str,
    group: Sequence[Run],
    series: Sequence[Visit],
    moments: Sequence[float],
    step: float,
    *,
    shown: bool = False,
) -> list[Turns]:
    """Two groups of runs: far apart, or with neighbours in time mostly in the same one, between changes of level.

    ``series``: visits, or phases of visits. ``step``: of the clock, relative to a run. ``shown``: that runs resemble
    their neighbours is no doubt of it.
    """
    parts: dict[int, list[float]] = {}
    for visit in series:
        parts.setdefault(sum(moment <= visit.at_s for moment in moments), []).append(visit.better)
    middles = {part: median(values) for part, values in parts.items()}
    rest = [visit.better - middles[sum(moment <= visit.at_s for moment in moments)] for visit in series]
    alike = correlation_of(rest)
    fast = fast_levels([(visit.cell, visit.better) for visit in series])
    known = [visit for visit in series if visit.cell in fast]
    below = [(visit.cell, visit.better - fast[visit.cell]) for visit in known]
    of_phases = len({visit.at_s for visit in known}) < len(known)
    if of_phases:
        in_rhythm = _across_visits(known, [off for _, off in below])
        alike = max(alike, _within_visits(known, [off for _, off in below]))
    else:
        in_rhythm = alike >= _STILL_ALIKE
    two_levels = _two_levels([better for _, better in below], alike, shown=shown)
    if two_levels is None:
        return []
    groups, is_slow = two_levels
    # Far apart no median of a kind of work describes both, in whatever order they come.
    apart = what != ALL and not moments and groups.low <= _FAR_APART * groups.high
    if not (apart or in_rhythm):
        return []
    own = [[slow for (cell, _), slow in zip(below, is_slow, strict=True) if cell == name] for name in fast]
    spells = [1 + sum(before != after for before, after in pairwise(flags)) for flags in own if len(set(flags)) > 1]
    if median(spells) < _SPELLS or steps_apart(groups, step):
        return []
    return [
        Turns(
            what,
            groups.low / groups.high,
            sum(is_slow) / len(is_slow),
            tuple(dict.fromkeys(run.measure for run in group)),
            _stretch([visit.at_s for visit in known], is_slow),
        )
    ]


def comes_back(before: float, back: float) -> bool:
    """Whether a change by a factor and the next one end where it began.

    >>> comes_back(0.5, 1.9), comes_back(0.5, 1.2), comes_back(0.5, 0.5)
    (True, False, False)
    """
    first, second = math.log(before), math.log(back)
    return abs(first + second) < _COMES_BACK * min(abs(first), abs(second))


def _stretch(times: Sequence[float], is_slow: Sequence[bool]) -> tuple[float, float] | None:
    """Return since and until when visits were slow, where that was one stretch with enough others on both sides."""
    # Where slow visits outnumber fast ones by most.
    best = since = until = start = total = 0
    for place, slow in enumerate(is_slow):
        if total <= 0:
            start, total = place, 0
        total += 1 if slow else -1
        if total > best:
            best, since, until = total, start, place + 1
    within = sum(is_slow[since:until])
    if min(since, len(is_slow) - until, within) < ENOUGH:
        return None
    mostly_slow = within >= _MOSTLY * (until - since)
    return (times[since], times[until]) if mostly_slow and within >= _MOSTLY * sum(is_slow) else None


def dip_in(what: str, group: Sequence[Run], series: Sequence[Visit]) -> list[Turns]:
    """Return the one stretch of time in which visits were far slower than all others; nothing where there is none."""
    is_slow, factor = far_slower(series)
    between = _stretch([visit.at_s for visit in series], is_slow)
    return [] if between is None else [_slow_for(what, group, factor, is_slow, between)]


def dips_in(what: str, group: Sequence[Run], series: Sequence[Visit], error: float) -> list[Turns]:
    """Return visits far slower than all others as a level that comes and goes, where they surely come together.

    However few they are: two groups show only where each has a tenth of the visits. A change that stays is none, nor is
    one dip before it: they end twice, at least. Where some are as much faster, it is scatter that comes together.
    """
    if len(series) < 2 * ENOUGH:
        return []
    is_slow, factor = far_slower(series)
    is_fast, _ = far_slower([replace(visit, better=-visit.better) for visit in series])
    slow = sum(is_slow)
    if (
        slow < ENOUGH
        or sum(is_fast) > _SCATTER * slow
        or _ends(is_slow) < _DIPS
        or _by_chance(len(is_slow), slow, _stretches(is_slow)) > error
    ):
        return []
    return [_slow_for(what, group, factor, is_slow, None)]


def far_slower(series: Sequence[Visit]) -> tuple[list[bool], float]:
    """Return which visits are far slower than the usual one, and how fast their middle is beside it."""
    middle = median([visit.better for visit in series])
    scatter = _OF_A_DISTANCE * median([abs(visit.better - middle) for visit in series])
    border = middle + min(math.log(_DIPPED), -_BEYOND * scatter)
    slow = [visit.better - middle for visit in series if visit.better < border]
    return [visit.better < border for visit in series], math.exp(median(slow)) if slow else 1.0


def _slow_for(
    what: str, group: Sequence[Run], factor: float, is_slow: Sequence[bool], between: tuple[float, float] | None
) -> Turns:
    cells = tuple(dict.fromkeys(run.measure for run in group))
    return Turns(what, factor, sum(is_slow) / len(is_slow), cells, between)


def _stretches(is_slow: Sequence[bool]) -> int:
    return sum(slow and not before for before, slow in pairwise([False, *is_slow]))


def _ends(is_slow: Sequence[bool]) -> int:
    """Return how often slow visits are followed by enough others that they are over.

    >>> _ends([True, True, *[False] * 5, True, False, True, *[False] * 5, True]), _ends([False] * 9 + [True] * 9)
    (2, 0)
    """
    places = [place for place, slow in enumerate(is_slow) if slow]
    return sum(later - place > ENOUGH for place, later in pairwise([*places, len(is_slow)]))


def _by_chance(visits: int, slow: int, stretches: int) -> float:
    """Return the chance that so many slow visits, in random order, make so few stretches or fewer.

    >>> round(_by_chance(4, 2, 1), 3)
    0.5
    """
    ways = sum(
        math.comb(slow - 1, number - 1) * math.comb(visits - slow + 1, number) for number in range(1, stretches + 1)
    )
    return ways / math.comb(visits, slow)


def groups_of(runs: Sequence[Run], step: float) -> TwoGroups | None:
    """Return two groups of the runs of a kind of work, each held against its measure's faster level; None without.

    ``step``: of the clock, relative to a run.
    """
    below = below_fast(runs)
    groups = two_groups([math.exp(off) for off in below]) if below else None
    return None if groups is None or steps_apart(groups, step) else groups


def was_slow(turns: Turns, runs: Sequence[Run]) -> bool:
    """Whether enough runs of a kind of work were on the slow level; true where they are too few to tell."""
    below = below_fast(runs)
    return not below or sum(off < math.log(turns.factor) / 2 for off in below) >= SHORTEST_LEVEL


def below_fast(runs: Sequence[Run]) -> list[float]:
    """Return how far runs are from the faster level of their measure; none of a measure that was run too seldom."""
    fast = fast_levels([(run.measure, run.better) for run in runs])
    return [run.better - fast[run.measure] for run in runs if run.measure in fast]


def _across_visits(series: Sequence[Visit], values: Sequence[float]) -> bool:
    """Whether phases surely depend on those of the visit before, one to a few phases earlier.

    Phases of one visit resemble each other anyway, since what slows a visit slows them all; so pairs of one visit do
    not count, and those of the same two visits count as one.
    """
    ranks = _centred_ranks(values)
    for distance in range(1, _FARTHEST_PHASE + 1):
        products: dict[tuple[float, float], int] = {}
        for (early, of_early), (late, of_late) in zip(
            zip(series, ranks, strict=True), zip(series[distance:], ranks[distance:], strict=True), strict=False
        ):
            if early.at_s != late.at_s:
                visits = (early.at_s, late.at_s)
                products[visits] = products.get(visits, 0) + of_early * of_late
        scatter = math.sqrt(sum(product**2 for product in products.values()))
        if len(products) >= ENOUGH and abs(sum(products.values())) > _SURELY * scatter:
            return True
    return False


def _within_visits(series: Sequence[Visit], values: Sequence[float]) -> float:
    """Return how much a phase resembles the one before it in the same visit: what slows whole visits makes heaps."""
    ranks = _centred_ranks(values)
    pairs = [
        (early, late)
        for (before, early), (after, late) in pairwise(zip(series, ranks, strict=True))
        if before.at_s == after.at_s
    ]
    power = sum(early * early + late * late for early, late in pairs) / 2
    return max(0.0, sum(early * late for early, late in pairs) / power) if power else 0.0


def _centred_ranks(values: Sequence[float]) -> list[int]:
    ordered = in_order(values)
    return [bisect_left(ordered, value) + bisect_right(ordered, value) - len(values) for value in values]


def _two_levels(values: Sequence[float], alike: float, *, shown: bool) -> tuple[TwoGroups, list[bool]] | None:
    """Return the two groups of visits, and which of these are in the slower one; None without groups.

    Where visits resemble their neighbours the levels last for several, and noise hides them less in means of these.
    """
    for window in _WINDOWS if alike >= _STILL_ALIKE else _WINDOWS[:1]:
        means = [fmean(values[start : start + window]) for start in range(0, len(values), window)]
        correlation = alike if window == 1 else correlation_of(means)
        groups = two_groups([math.exp(mean) for mean in means], 0.0 if shown else correlation) if means else None
        if groups is not None:
            border = (math.log(groups.low) + math.log(groups.high)) / 2
            return groups, [means[place // window] < border for place in range(len(values))]
    return None


def fast_levels(values: Sequence[tuple[str, float]]) -> Mapping[str, float]:
    """Return the faster level of everything that was run often enough to have met it."""
    by_name: dict[str, list[float]] = {}
    for name, better in values:
        by_name.setdefault(name, []).append(better)
    return {
        name: in_order(own)[int(_FAST_SHARE * len(own))]
        for name, own in by_name.items()
        if len(own) >= 2 * SHORTEST_LEVEL
    }
