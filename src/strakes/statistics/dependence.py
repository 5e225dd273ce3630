"""Runs that depend on each other: how much each resembles the one before it, and what that costs an interval.

So many dependent runs tell less than as many independent ones. For an autoregression of order 1 with correlation r the
variance of a mean is (1 + r) / (1 - r) times as large (Bayley and Hammersley, J. R. Statist. Soc. Suppl. 8 (1946) 184);
signs of deviations from the median depend on each other less than the values do, so for a median that is on the safe
side.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import NormalDist

from strakes.statistics.interval import Interval, coverage, interpolated_interval, median, smallest_runs

# Shorter series say nothing about it.
FEWEST = 6
# Standard errors beyond which it counts as shown: an error of 5 % only makes intervals wider.
_SHOWN = 1.645
# The standard error of a median, in those of a mean.
_OF_MEDIANS = math.sqrt(math.pi / 2)
_MOST = 0.95
# Of some fifty values the range covers the median all but certainly; a normal quantile needs what is below 1.
_MOST_CONFIDENCE = 1 - 1e-12
# Of a single series of fewer values nothing is known, and they are taken to depend on each other so much.
FEWEST_OF_ONE = 8
UNKNOWN = 0.9


def pooled_correlation(series: Sequence[Sequence[float]]) -> float:
    """Return how much each value resembles the one before it in its own series; 0 where that is not shown.

    The correlation of neighbours in ranks, with its bias of -(1 + 4 r) / n put right (Kendall, Biometrika 41 (1954)
    403). The median over the series: a change of level in some of them is none of all.

    >>> pooled_correlation([[1.0, 2.0, 3.0, 4.0, 5.0, 4.5, 3.5, 2.5, 1.5, 0.5]] * 5)
    0.95
    >>> pooled_correlation([[1.0, 2.0, 1.5, 2.5, 1.2, 2.2]])
    0.0
    """
    known = [(len(values), correlation) for values in series if (correlation := _of_neighbours(values)) is not None]
    if not known:
        return 0.0
    # Of independent values each has a mean of -1 / n and a variance of about 1 / n.
    scores = [(runs * correlation + 1) / math.sqrt(runs) for runs, correlation in known]
    if median(scores) < _SHOWN * (_OF_MEDIANS if len(scores) > 2 else 1.0) / math.sqrt(len(scores)):
        return 0.0
    return min(_MOST, max(0.0, median([(runs * correlation + 1) / (runs - 4) for runs, correlation in known])))


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


def allowed_correlation(values: Sequence[float]) -> float:
    """Return how much values of a single series may resemble the one before, on the side of too much.

    Of one short series it is known badly, and one too small makes differences of what only wanders: 1.2 standard errors
    are added, which keeps autoregressions of up to 0.8 near their stated error, and of fewer than eight values nothing
    is known.

    >>> allowed_correlation([1.0, 2.0, 1.5]), round(allowed_correlation([1.0, 2.0] * 20), 2)
    (0.9, 0.0)
    """
    runs = len(values)
    if runs < FEWEST_OF_ONE:
        return UNKNOWN
    correlation = _of_neighbours(values)
    if correlation is None:
        return 0.0
    return min(_MOST, max(0.0, (runs * correlation + 1) / (runs - 4) + 1.2 / math.sqrt(runs - 3)))


def dependent_interval(values: Sequence[float], confidence: float, correlation: float) -> Interval | None:
    """Return an interval for the median of values that resemble the one before them so much.

    As much wider as their standard error is larger: one of a higher confidence, or where so few values have none, the
    range of the values with what is lacking added. None where even independent values would have none.

    >>> values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    >>> intervals = [dependent_interval(values, 0.9, correlation) for correlation in (0.0, 0.8)]
    >>> [round(interval.high - interval.low, 2) for interval in intervals]
    [3.66, 11.46]
    """
    if correlation <= 0 or len(values) < smallest_runs(confidence):
        return interpolated_interval(values, confidence)
    normal = NormalDist()
    wanted = normal.inv_cdf((1 + confidence) / 2) * math.sqrt((1 + correlation) / (1 - correlation))
    most = min(coverage(len(values), 1), _MOST_CONFIDENCE)
    reached = normal.inv_cdf((1 + most) / 2)
    if wanted <= reached:
        interval = interpolated_interval(values, min(2 * normal.cdf(wanted) - 1, most))
        return interval and replace(interval, confidence=confidence)
    middle, longer = median(values), wanted / reached
    return Interval(middle - longer * (middle - min(values)), middle + longer * (max(values) - middle), confidence)
