"""Whether the runs fall into two groups, so that the median describes neither.

Hartigan's dip: how far the empirical distribution is from the nearest one with a single mode; Hartigan and Hartigan,
Ann. Statist. 13 (1985) 70, computed as in P. M. Hartigan, Appl. Statist. 34 (1985) 320. It is judged against the
uniform distribution, of all with one mode the one that is hardest to tell from two groups, so that other shapes with
one mode raise fewer false alarms than the error stated.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from strakes.statistics.interval import in_order, median

# Below 12 runs two groups and a gap by chance look alike; docs/statistics.md has the power by number of runs.
MINIMUM_RUNS = 12
# A group is no smaller than this part of the runs: fewer are outliers.
_LEAST_SHARE = 10
# Groups closer than this do no harm to a recommendation.
MINIMUM_DISTANCE = 0.1

WIDEST_STEP = math.log(2)
# A clock that steps makes groups of runs that are one step apart.
STEPS_APART = 1.5

# The dip times the root of the runs that 1 % of uniform samples exceed: simulated, 40,000 samples of 500 values to
# 400,000 of 12.
CRITICAL = {12: 0.5137, 15: 0.5263, 20: 0.5397, 30: 0.5556, 60: 0.5788, 120: 0.5952, 500: 0.614}
# By how much that becomes more where each of 14 to 200 uniform values resembles the one before by so much (simulated,
# 150 to 800 samples): hardly at all, since two heaps side by side matter, and not where the middle of all values lies.
_OF_DEPENDENT = {0.0: 1.0, 0.5: 1.02, 0.8: 1.2, 0.95: 1.7}
# By how much what 0.1 % of uniform samples exceed is more (simulated, 12 to 60 values: 1.14 to 1.17).
_RARELY = 1.15


@dataclass(frozen=True)
class TwoGroups:
    """Two groups of runs: the median of each and the share of runs in the lower one."""

    low: float
    high: float
    low_share: float
    runs: int


def two_groups(values: Sequence[float], correlation: float = 0.0, *, rarely: bool = False) -> TwoGroups | None:
    """Return two groups where the dip shows them (error 1 %) and their medians differ by 10 % of the lower one.

    ``correlation``: of each run with the one before, which makes heaps. ``rarely``: by an error of 0.1 %, for those who
    look at dozens of figures. None otherwise; that is no proof of a single group: with few runs most pairs of groups go
    unseen.

    >>> two_groups([100.0 + n for n in range(8)] + [200.0 + n for n in range(8)])
    TwoGroups(low=103.5, high=203.5, low_share=0.5, runs=16)
    """
    ordered = in_order(values)
    runs = len(ordered)
    if (
        runs < MINIMUM_RUNS
        or ordered[0] <= 0
        or dip(_spread([math.log(value) for value in ordered])) * math.sqrt(runs)
        <= critical_value(runs) * _of_dependent(correlation) * (_RARELY if rarely else 1.0)
    ):
        return None
    split = _parted([math.log(value) for value in ordered])
    low, high = median(ordered[:split]), median(ordered[split:])
    return TwoGroups(low, high, split / runs, runs) if high >= low * (1 + MINIMUM_DISTANCE) else None


def _parted(ordered: Sequence[float]) -> int:
    """Return how many runs are in the lower group, where the dip has shown that there are two.

    The means of the groups are as far apart as they can be for their sizes (Otsu, IEEE Trans. Syst. Man Cybern. 9
    (1979) 62), and each has at least a tenth of the runs.
    """
    runs, tenth = len(ordered), max(1, len(ordered) // _LEAST_SHARE)
    sums = [0.0, *accumulate(ordered)]

    def apart(count: int) -> float:
        difference = (sums[runs] - sums[count]) / (runs - count) - sums[count] / count
        return count * (runs - count) * difference * difference

    return max(range(tenth, runs - tenth + 1), key=apart)


def steps_apart(groups: TwoGroups, step: float) -> bool:
    """Return whether a clock may have made groups of rates: ``step`` is what one of its steps is of a run's time.

    The times are held against the longer ones: 10 and 20 ms are one step of 10 ms apart.

    >>> groups = TwoGroups(50.0, 100.0, 0.5, 20)
    >>> steps_apart(groups, 0.5), steps_apart(groups, 0.1), steps_apart(groups, 0.0)
    (True, False, False)
    """
    return 1 - groups.low / groups.high <= STEPS_APART * step


def _spread(ordered: Sequence[float]) -> list[float]:
    """Return the values with ties spread over what one step of the clock, or of the amount of work, hides.

    They are logarithms. Values that tie came in steps: heaps of them are no groups. A step is as wide as the way to the
    values beside it, but no wider than one of two of the smallest steps.

    >>> _spread([1.0, 1.5, 1.5, 2.0]), _spread([1.0, 2.0, 4.0])
    ([1.0, 1.375, 1.625, 2.0], [1.0, 2.0, 4.0])
    """
    steps = sorted(set(ordered))
    if len(steps) == len(ordered) or len(steps) == 1:
        return list(ordered)
    spread = []
    for place, value in enumerate(steps):
        below = value - steps[place - 1] if place else steps[1] - steps[0]
        above = steps[place + 1] - value if place + 1 < len(steps) else steps[-1] - steps[-2]
        count = bisect_right(ordered, value) - bisect_left(ordered, value)
        width = min(below, above, WIDEST_STEP)
        spread += [value + width * ((number + 0.5) / count - 0.5) for number in range(count)]
    return spread


def _of_dependent(correlation: float) -> float:
    tabulated = sorted(_OF_DEPENDENT)
    after = next((known for known in tabulated[1:] if correlation <= known), tabulated[-1])
    before = tabulated[tabulated.index(after) - 1]
    share = min(1.0, max(0.0, (correlation - before) / (after - before)))
    return _OF_DEPENDENT[before] + share * (_OF_DEPENDENT[after] - _OF_DEPENDENT[before])


def critical_value(runs: int) -> float:
    """Return the dip times the root of the runs that is exceeded with an error of 1 %.

    Between the runs tabulated, linear in 1 / runs.
    """
    tabulated = sorted(CRITICAL)
    if runs >= tabulated[-1]:
        return CRITICAL[tabulated[-1]]
    before, after = next((before, after) for before, after in pairwise(tabulated) if runs <= after)
    share = (1 / before - 1 / max(runs, before)) / (1 / before - 1 / after)
    return CRITICAL[before] + share * (CRITICAL[after] - CRITICAL[before])


def dip(values: Sequence[float]) -> float:
    """Return the dip: 1/4 for two heaps, and never below 1 / (2 n), that of evenly spread values.

    Raises ValueError for no values or one that is not finite.

    >>> dip([1.0, 2.0, 3.0, 4.0]), dip([1.0, 1.01, 1.02, 1.03, 1.04, 2.0, 2.01, 2.02, 2.03, 2.04]) > 0.2
    (0.125, True)
    """
    x = in_order(values)
    runs = len(x)
    if x[0] == x[-1]:
        return 1 / (2 * runs)
    to_left = _supports(x)
    to_right = [runs - 1 - index for index in reversed(_supports([-value for value in reversed(x)]))]
    low, high, largest = 0, runs - 1, 1.0
    while True:
        convex, concave = _chain(to_left, high, low)[::-1], _chain(to_right, low, high)
        distance, left, right = _widest(x, convex, concave)
        if distance < largest:
            break
        for start, end in pairwise(convex):
            if end <= left:
                largest = max(largest, _beyond_chord(x, start, end, above=True))
        for start, end in pairwise(concave):
            if start >= right:
                largest = max(largest, _beyond_chord(x, start, end, above=False))
        if (left, right) == (low, high):
            break
        low, high = left, right
    return largest / (2 * runs)


def _supports(x: Sequence[float]) -> list[int]:
    """For each point the vertex before it on the greatest convex curve below the points (x, rank) up to it."""
    before = [0] * len(x)
    for end in range(1, len(x)):
        start = end - 1
        while start > 0 and (x[end] - x[start]) * (start - before[start]) >= (x[start] - x[before[start]]) * (
            end - start
        ):
            start = before[start]
        before[end] = start
    return before


def _chain(following: Sequence[int], start: int, end: int) -> list[int]:
    chain = [start]
    while chain[-1] != end:
        chain.append(following[chain[-1]])
    return chain


def _widest(x: Sequence[float], convex: Sequence[int], concave: Sequence[int]) -> tuple[float, int, int]:
    """Return where the concave curve is farthest above the convex one, in ranks, and the modal interval there.

    A vertex of each.
    """
    if len(convex) == len(concave) == 2:
        return 1.0, convex[0], concave[-1]
    widest, left, right = 0.0, convex[0], concave[-1]
    for vertex in convex[1:-1]:
        end = next(place for place in range(1, len(concave)) if concave[place] >= vertex)
        start_at, end_at = concave[end - 1], concave[end]
        distance = start_at + (x[vertex] - x[start_at]) * (end_at - start_at) / (x[end_at] - x[start_at]) - vertex + 1
        if distance >= widest:
            widest, left, right = distance, vertex, end_at
    for vertex in concave[1:-1]:
        end = next(place for place in range(1, len(convex)) if convex[place] >= vertex)
        start_at, end_at = convex[end - 1], convex[end]
        distance = vertex - start_at - (x[vertex] - x[start_at]) * (end_at - start_at) / (x[end_at] - x[start_at]) + 1
        if distance >= widest:
            widest, left, right = distance, start_at, vertex
    return widest, left, right


def _beyond_chord(x: Sequence[float], start: int, end: int, *, above: bool) -> float:
    """Return how far the steps between two vertices reach beyond the straight line between them, in ranks."""
    if end - start <= 1 or x[end] == x[start]:
        return 1.0
    slope = (end - start) / (x[end] - x[start])
    sign = 1 if above else -1
    return max(1 + sign * ((index - start) - (x[index] - x[start]) * slope) for index in range(start, end + 1))
