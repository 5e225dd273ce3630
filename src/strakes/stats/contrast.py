"""Ratios of two settings with intervals, and the correction for multiple comparisons.

Both kinds of ratio use logarithms, so that a / b is exactly the inverse of b / a. The methods were chosen by simulation
(docs/decisions/0003-ratio-intervals.md): rank-sum and signed-rank intervals are narrower only if both settings have the
same scatter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

from strakes.stats.contrasts import FEWEST_BLOCKS, interval, trimmed
from strakes.stats.interval import Estimate, Interval, interpolated_interval, median


class Verdict(StrEnum):
    """Verdict on a, from a ratio a / b of rates."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    SAME = "SAME"
    INCONCLUSIVE = "INCONCLUSIVE"


def paired_ratio(a: Mapping[int, float], b: Mapping[int, float], confidence: float) -> Estimate:
    """Return the ratio a / b over the common blocks, by block number, with the interval of its trimmed mean.

    A disturbance of a whole block (drift, a neighbour's job) cancels. The estimate has no interval with fewer than
    three common blocks, or with a value that is not positive. Raises ValueError without a common block.

    >>> ratio = paired_ratio({0: 20.0, 1: 22.0, 2: 40.0}, {0: 10.0, 1: 10.0, 2: 20.0, 3: 1.0}, 0.7)
    >>> round(ratio.median, 2), ratio.runs
    (2.06, 3)
    """
    logs = paired_logs(a, b)
    if logs is None or len(logs) < FEWEST_BLOCKS:
        common = a.keys() & b.keys()
        return Estimate(_plain_ratio([a[block] for block in common], [b[block] for block in common]), None, len(common))
    contrast = trimmed(logs)
    low, high = interval(contrast, confidence)
    return Estimate(math.exp(contrast.mean), Interval(math.exp(low), math.exp(high), confidence), len(logs))


def independent_ratio(a: Sequence[float], b: Sequence[float], confidence: float) -> Estimate:
    """Return the ratio of the medians of two sets of runs that share no blocks; ``runs``: size of the smaller set.

    The intervals of both medians are combined as variances add (MOVER: Zou and Donner, Statist. Med. 27 (2008) 1693).
    The estimate has no interval if a set is too small or has a value that is not positive. Raises ValueError for an
    empty set.

    >>> round(independent_ratio([20.0, 21.0, 19.0], [10.0, 10.0, 10.5], 0.7).median, 3)
    2.0
    """
    runs = min(len(a), len(b))
    if min(a, default=0.0) <= 0 or min(b, default=0.0) <= 0:
        return Estimate(_plain_ratio(a, b), None, runs)
    logs_a, logs_b = [math.log(value) for value in a], [math.log(value) for value in b]
    return Estimate(
        math.exp(median(logs_a) - median(logs_b)), _exponential(_difference_interval(logs_a, logs_b, confidence)), runs
    )


def verdict(ratio: Estimate, margin: float, *, larger_is_better: bool = True) -> Verdict:
    """Return the verdict that the interval of a ratio allows.

    SAME: it lies within the equivalence margin, 1 / (1 + margin) to 1 + margin. FASTER or SLOWER: it lies on one side
    of 1 and not within the margin. All else, also without an interval, is INCONCLUSIVE. For a ratio of seconds pass
    ``larger_is_better=False``. Raises ValueError for a negative margin.

    >>> verdict(Estimate(1.2, Interval(1.1, 1.3, 0.9), 8), margin=0.05).value
    'FASTER'
    >>> verdict(Estimate(1.01, Interval(1.001, 1.02, 0.9), 30), margin=0.05).value
    'SAME'
    """
    if margin < 0:
        raise ValueError(f"an equivalence margin is not negative, unlike {margin!r}")
    if ratio.interval is None:
        return Verdict.INCONCLUSIVE
    low, high = ratio.interval.low, ratio.interval.high
    if low >= 1 / (1 + margin) and high <= 1 + margin:
        return Verdict.SAME
    if low > 1:
        return Verdict.FASTER if larger_is_better else Verdict.SLOWER
    if high < 1:
        return Verdict.SLOWER if larger_is_better else Verdict.FASTER
    return Verdict.INCONCLUSIVE


def half_width_for(margin: float) -> float:
    """Return the relative half-width that both settings need for the verdict SAME within ``margin``.

    The half-widths add as variances do, and half of the margin is left for the deviation of the ratio from 1.

    >>> round(half_width_for(0.05), 4)
    0.0177
    """
    return margin / 2 / math.sqrt(2)


def bonferroni(confidence: float, comparisons: int) -> float:
    """Return the confidence of each of ``comparisons`` intervals so that all hold together with ``confidence``.

    >>> round(bonferroni(0.9, 5), 4)
    0.98
    """
    if comparisons < 1:
        raise ValueError("there is at least one comparison")
    return 1 - (1 - confidence) / comparisons


def paired_logs(a: Mapping[int, float], b: Mapping[int, float]) -> list[float] | None:
    """Return the logarithms of a / b over the common blocks, in block order, or None if a value is not positive."""
    common = sorted(a.keys() & b.keys())
    if any(a[block] <= 0 or b[block] <= 0 for block in common):
        return None
    return [math.log(a[block]) - math.log(b[block]) for block in common]


def _difference_interval(a: Sequence[float], b: Sequence[float], confidence: float) -> Interval | None:
    of_a, of_b = interpolated_interval(a, confidence), interpolated_interval(b, confidence)
    if of_a is None or of_b is None:
        return None
    middle_a, middle_b = median(a), median(b)
    difference = middle_a - middle_b
    low = difference - math.hypot(middle_a - of_a.low, of_b.high - middle_b)
    high = difference + math.hypot(of_a.high - middle_a, middle_b - of_b.low)
    return Interval(low, high, confidence)


def _exponential(interval: Interval | None) -> Interval | None:
    return Interval(math.exp(interval.low), math.exp(interval.high), interval.confidence) if interval else None


def _plain_ratio(a: Sequence[float], b: Sequence[float]) -> float:
    below = median(b)
    return median(a) / below if below else math.inf
