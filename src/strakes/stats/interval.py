"""Distribution-free confidence intervals for a median.

The median lies between the k-th smallest and the k-th largest of n independent values with probability 1 - 2 P(B < k),
where B is binomial (n, 1/2). Source: Thompson, Ann. Math. Statist. 7 (1936) 122.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

# Reports show the range of the middle 80 % of the values if its ends differ by at least this factor.
FAR_APART = 2.0
# Interpolated intervals miss the median up to 1.2 times as often as the theory says (measured for 4 to 30 values of ten
# distributions). Therefore, use only this share of the allowed error probability.
ERROR_SHARE = 0.85
# Minimum number of values for an interval. With two values, the t quantile at 90% is 6.3 instead of 2.9.
_FEWEST_WITH_INTERVAL = 3


@dataclass(frozen=True)
class Interval:
    """A closed interval and its nominal confidence."""

    low: float
    high: float
    confidence: float

    def contains(self, value: float) -> bool:
        """Return whether ``value`` lies in the interval, including both ends."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Estimate:
    """The median of ``runs`` values. ``interval`` is None if there are too few values for an interval."""

    median: float
    interval: Interval | None
    runs: int


def median(values: Sequence[float]) -> float:
    """Return the median. Raises ValueError for an empty sequence or a value that is not finite.

    >>> median([3.0, 1.0, 2.0]), median([4.0, 1.0, 2.0, 3.0])
    (2.0, 2.5)
    """
    ordered = in_order(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def most_of(values: Sequence[float]) -> tuple[float, float]:
    """Return the range of the values, without the smallest tenth and without the largest tenth.

    Raises ValueError for an empty sequence or a value that is not finite.

    >>> most_of([3.0, 1.0, 2.0]), most_of([float(value) for value in range(20)])
    ((1.0, 3.0), (2.0, 17.0))
    """
    ordered = in_order(values)
    left_out = int(0.1 * len(ordered))
    return ordered[left_out], ordered[-1 - left_out]


def far_apart(values: Sequence[float]) -> bool:
    """Return whether the values scatter so much that reports show their range.

    >>> far_apart([1.0, 1.1, 1.0, 1.9]), far_apart([1.0, 1.1, 1.0, 2.1])
    (False, True)
    """
    low, high = most_of(values)
    return high >= FAR_APART * low


def median_interval(values: Sequence[float], confidence: float) -> Interval | None:
    """Return the narrowest interval for the median with order statistics as ends, or None with too few values.

    Not valid if the values decide when sampling stops. Raises ValueError for a value that is not finite.

    >>> median_interval([5.0, 1.0, 4.0, 2.0, 3.0], 0.9)
    Interval(low=1.0, high=5.0, confidence=0.9)
    >>> median_interval([5.0, 1.0, 4.0, 2.0], 0.9) is None
    True
    """
    ordered = in_order(values)
    rank = symmetric_rank(len(ordered), confidence)
    return Interval(ordered[rank - 1], ordered[len(ordered) - rank], confidence) if rank > 0 else None


def interpolated_interval(values: Sequence[float], confidence: float) -> Interval | None:
    """Return an interval for the median, interpolated between order statistics, or None with too few values.

    Method: Hettmansperger and Sheather, Statist. Probab. Lett. 4 (1986) 75. Its coverage is too low if the values form
    two groups of equal size (docs/statistics.md).

    >>> found = interpolated_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.9)
    >>> found is not None and (round(found.low, 2), round(found.high, 2))
    (1.67, 5.33)
    """
    ordered = in_order(values)
    runs = len(ordered)
    rank = symmetric_rank(runs, confidence)
    if rank == 0 or 2 * (rank + 1) > runs + 1:
        return median_interval(ordered, confidence)
    wide, narrow = coverage(runs, rank), coverage(runs, rank + 1)
    share = max(0.0, wide - 1 + ERROR_SHARE * (1 - confidence)) / (wide - narrow)
    weight = (runs - rank) * share / (rank + (runs - 2 * rank) * share)
    low = ordered[rank - 1] + weight * (ordered[rank] - ordered[rank - 1])
    high = ordered[runs - rank] - weight * (ordered[runs - rank] - ordered[runs - rank - 1])
    return Interval(low, high, confidence)


def figure_interval(values: Sequence[float], confidence: float) -> Interval | None:
    """Return an interval for the median. With too few values, return a t interval of the logarithms.

    Return None with fewer than three values, or if the t interval would need the logarithm of zero or less.

    >>> found = figure_interval([100.0, 110.0, 105.0], 0.9)
    >>> found is not None and (round(found.low), round(found.high))
    (97, 114)
    """
    count = len(values)
    if count >= smallest_runs(confidence):
        return interpolated_interval(values, confidence)
    if count < _FEWEST_WITH_INTERVAL or min(values) <= 0:
        return None
    from scipy.special import stdtrit

    logs = [math.log(value) for value in values]
    mean = sum(logs) / count
    spread = math.sqrt(sum((value - mean) ** 2 for value in logs) / (count - 1) / count)
    half = float(stdtrit(count - 1, (1 + confidence) / 2)) * spread
    return Interval(math.exp(mean - half), math.exp(mean + half), confidence)


@cache
def smallest_runs(confidence: float) -> int:
    """Return the minimum number of values for an order-statistic interval with this confidence.

    >>> smallest_runs(0.9), smallest_runs(0.95), smallest_runs(0.99)
    (5, 6, 8)
    """
    _check_confidence(confidence)
    runs = 1
    while coverage(runs, 1) < confidence:
        runs += 1
    return runs


@lru_cache(maxsize=4096)
def symmetric_rank(runs: int, confidence: float) -> int:
    """Return the largest k whose k-th smallest and k-th largest values enclose the median with this confidence.

    ``runs``: number of values. Return 0 if the confidence is lower even for the smallest and the largest value.

    >>> symmetric_rank(4, 0.9), symmetric_rank(5, 0.9), symmetric_rank(8, 0.9)
    (0, 1, 2)
    """
    _check_confidence(confidence)
    rank = 0
    while 2 * (rank + 1) <= runs + 1 and coverage(runs, rank + 1) >= confidence:
        rank += 1
    return rank


def coverage(runs: int, rank: int) -> float:
    """Return the probability that the rank-th smallest and the rank-th largest of the values enclose the median.

    >>> coverage(5, 1), coverage(2000, 950) > 0.97
    (0.9375, True)
    """
    return _coverages(runs)[rank]


@lru_cache(maxsize=4096)
def _coverages(runs: int) -> tuple[float, ...]:
    every, below, ways = 1 << (runs - 1), 0, 1
    coverages = [1.0]
    for rank in range(1, runs // 2 + 2):
        below += ways
        ways = ways * (runs - rank + 1) // rank
        coverages.append(1.0 - below / every)
    return tuple(coverages)


def in_order(values: Sequence[float]) -> list[float]:
    """Return the sorted values. Raises ValueError for an empty sequence or a value that is not finite."""
    if not values:
        raise ValueError("a median needs at least one value")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a median needs finite values")
    return sorted(values)


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence must be between 0 and 1: {confidence!r}")
