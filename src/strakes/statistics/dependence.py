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

from strakes.statistics.interval import median

# Shorter series say nothing about it.
FEWEST = 6
# Standard errors beyond which it counts as shown: an error of 5 % only makes intervals wider.
_SHOWN = 1.645
# The standard error of a median, in those of a mean.
_OF_MEDIANS = math.sqrt(math.pi / 2)
_MOST = 0.95


def pooled_correlation(series: Sequence[Sequence[float]]) -> float:
    """Return how much each value resembles the one before it in its own series; 0 where that is not shown.

    The correlation of neighbours in ranks, with its bias of -(1 + 4 r) / n put right (Kendall, Biometrika 41 (1954)
    403). The median over the series: a change of level in some of them is none of all.

    >>> pooled_correlation([[1.0, 2.0, 3.0, 4.0, 5.0, 4.5, 3.5, 2.5, 1.5, 0.5]] * 5)
    0.95
    >>> pooled_correlation([[1.0, 2.0, 1.5, 2.5, 1.2, 2.2]])
    0.0
    """
    found = [(len(values), correlation) for values in series if (correlation := _of_neighbours(values)) is not None]
    if not found:
        return 0.0
    # Of independent values each has a mean of -1 / n and a variance of about 1 / n.
    scores = [(runs * correlation + 1) / math.sqrt(runs) for runs, correlation in found]
    if median(scores) < _SHOWN * (_OF_MEDIANS if len(scores) > 2 else 1.0) / math.sqrt(len(scores)):
        return 0.0
    return min(_MOST, max(0.0, median([(runs * correlation + 1) / (runs - 4) for runs, correlation in found])))


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
