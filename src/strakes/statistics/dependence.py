"""Runs that depend on each other: how much each resembles the one before it, and what that costs an interval.

So many dependent runs tell less than as many independent ones. For an autoregression of order 1 with correlation r the variance of a
mean is (1 + r) / (1 - r) times as large (Bayley and Hammersley, J. R. Statist. Soc. Suppl. 8 (1946) 184); signs of
deviations from the median depend on each other less than the values do, so for a median that is on the safe side.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist

# Shorter series say nothing about it.
FEWEST = 5
# Standard errors beyond which it counts as shown: an error of 5 % only makes intervals wider.
_SHOWN = 1.645
_MOST = 0.95


def pooled_correlation(series: Sequence[Sequence[float]]) -> float:
    """Return how much each value resembles the one before it in its own series; 0 where that is not shown.

    The correlation of neighbours in ranks, weighed by the lengths of the series, with its bias of -(1 + 3 r) / n put right
    (Marriott and Pope, Biometrika 41 (1954) 390).

    >>> pooled_correlation([[1.0, 2.0, 3.0, 4.0, 5.0, 4.5, 3.5, 2.5, 1.5, 0.5]] * 5)
    0.95
    >>> pooled_correlation([[1.0, 2.0, 1.5, 2.5, 1.2, 2.2]])
    0.0
    """
    found = [(len(values), correlation) for values in series if (correlation := _of_neighbours(values)) is not None]
    total = sum(runs for runs, _ in found)
    # Of independent values each has a mean of -1 / n and a variance of about 1 / n.
    score = sum(runs * correlation + 1 for runs, correlation in found)
    if not found or score < _SHOWN * math.sqrt(total):
        return 0.0
    mean, length = score / total, total / len(found)
    return min(_MOST, mean + 3 * mean / length)


def _of_neighbours(values: Sequence[float]) -> float | None:
    if len(values) < FEWEST:
        return None
    ordered = sorted(values)
    ranks = [(bisect_left(ordered, value) + bisect_right(ordered, value) - len(values)) / 2 for value in values]
    power = sum(rank * rank for rank in ranks)
    if power == 0:
        return None
    return sum(early * late for early, late in pairwise(ranks)) / power


def stretched(confidence: float, correlation: float) -> float:
    """Return the confidence that an interval of independent runs needs to hold with ``confidence`` for dependent ones.

    >>> stretched(0.9, 0.0), round(stretched(0.9, 0.5), 4)
    (0.9, 0.9956)
    """
    if correlation <= 0:
        return confidence
    normal = NormalDist()
    beyond = normal.inv_cdf((1 + confidence) / 2) * math.sqrt((1 + correlation) / (1 - correlation))
    return min(2 * normal.cdf(beyond) - 1, 1 - 1e-12)
