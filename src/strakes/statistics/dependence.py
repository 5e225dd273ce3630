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
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

from strakes.statistics.interval import Interval, coverage, interpolated_interval, median, smallest_runs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Shorter series say nothing about it.
FEWEST = 6
_FEWEST_OF_MANY = 5
# Of independent series, so many are called dependent (more of an even number of them): their intervals become wider.
_CALLED = 0.03
# Of dependent ones, so many are taken to depend on each other less than they do.
_UNDERRATED = 0.05
# Autoregressions that series are held against, and how many of each.
_CORRELATIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_SERIES = 2000
# Longer series are held against those of this length, which scatter more: that is the safe side.
_LONGEST = 200
_MOST = 0.95
# Of some fifty values the range covers the median all but certainly; a normal quantile needs what is below 1.
_MOST_CONFIDENCE = 1 - 1e-12
# Errors at which it is known how far the median of an autoregression may be off; others lie on straight lines between.
_ERRORS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_SERIES_OF_TAILS = 20_000
# Of a single series of fewer values nothing is known, and they are taken to depend on each other so much.
FEWEST_OF_ONE = 8
UNKNOWN = 0.9


def pooled_correlation(series: Sequence[Sequence[float]], underrated: float = _UNDERRATED) -> float:
    """Return how much each value may resemble the one before it in its own series; 0 where it is not shown to.

    The correlation of neighbours in ranks, held against that of simulated autoregressions of the same length: of few
    values it is far too small, the more so the larger it is in truth, and how far it scatters no formula tells. The
    median over the series counts: a change of level in some of them is none of all. What is returned is a bound that
    is too small with a chance of ``underrated``, since intervals and ratios that are too narrow say what is not so.

    >>> pooled_correlation([[1.0, 2.0, 3.0, 4.0, 5.0, 4.5, 3.5, 2.5, 1.5, 0.5]] * 5)
    0.95
    >>> pooled_correlation([[1.0, 2.0, 1.5, 2.5, 1.2, 2.2]])
    0.0
    """
    known = [(len(values), correlation) for values in series if (correlation := _of_neighbours(values)) is not None]
    if not known:
        return 0.0
    low, high = _share_below(_CALLED, len(known)), _share_below(underrated, len(known))
    if median([_held_against(runs, correlation, 1 - low) for runs, correlation in known]) <= 0:
        return 0.0
    return min(_MOST, max(0.0, median([_held_against(runs, correlation, high) for runs, correlation in known])))


def more_than_chance(called: int, series: int, error: float) -> bool:
    """Whether so many of the series are surely more than are called dependent without being it.

    >>> more_than_chance(2, 19, 0.01), more_than_chance(4, 19, 0.01)
    (False, True)
    """
    chance = sum(
        math.comb(series, number) * _CALLED**number * (1 - _CALLED) ** (series - number)
        for number in range(called, series + 1)
    )
    return chance <= error


def greatest_correlation(series: Sequence[Sequence[float]], error: float = 0.1) -> float:
    """Return how much each value may resemble the one before it at most, also where nothing shows that it does.

    Too small with a chance of ``error``. For a few series of a dozen values, which mostly show nothing where there is
    much.

    >>> greatest_correlation([[1.0, 2.0, 1.5, 2.5, 1.2, 2.2]])
    0.3
    """
    shown = [(len(values), _of_neighbours(values, _FEWEST_OF_MANY)) for values in series]
    known = [(runs, correlation) for runs, correlation in shown if correlation is not None]
    if not known:
        return UNKNOWN
    share = _share_below(error, len(known))
    return min(_MOST, max(0.0, median([_held_against(runs, correlation, share) for runs, correlation in known])))


@lru_cache(maxsize=256)
def _share_below(error: float, series: int) -> float:
    """Return the quantile of one series that the median of so many falls below with a chance of ``error``."""
    needed = series // 2 + 1
    below, above = 0.0, 0.5
    for _ in range(40):
        share = (below + above) / 2
        chance = sum(
            math.comb(series, number) * share**number * (1 - share) ** (series - number)
            for number in range(needed, series + 1)
        )
        below, above = (share, above) if chance < error else (below, share)
    return below


def _held_against(runs: int, correlation: float, share: float) -> float:
    """Return which autoregression shows less than ``correlation`` in that share of its series of so many values.

    Beyond those simulated, on a straight line.
    """
    shown = _quantiles(min(runs, _LONGEST), share)
    place = min(max(bisect_left(shown, correlation), 1), len(_CORRELATIONS) - 1)
    early, late = shown[place - 1], shown[place]
    step = _CORRELATIONS[place] - _CORRELATIONS[place - 1]
    return _CORRELATIONS[place - 1] + step * (correlation - early) / max(late - early, 1e-9)


@lru_cache(maxsize=1024)
def _quantiles(runs: int, share: float) -> tuple[float, ...]:
    import numpy as np

    return tuple(np.quantile(_shown_by(runs), share, axis=1).tolist())


@lru_cache(maxsize=256)
def _shown_by(runs: int) -> NDArray[np.float64]:
    """Return for each autoregression what its series show: the correlation of neighbours in ranks."""
    import numpy as np

    fresh = np.random.default_rng(runs).standard_normal((_SERIES, runs))
    rows = []
    for correlation in _CORRELATIONS:
        ranks = _autoregressions(fresh, correlation).argsort(axis=1).argsort(axis=1) - (runs - 1) / 2
        rows.append((ranks[:, 1:] * ranks[:, :-1]).sum(axis=1) / (ranks**2).sum(axis=1))
    return np.array(rows)


def _of_neighbours(values: Sequence[float], fewest: int = FEWEST) -> float | None:
    if len(values) < fewest:
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


def mixed_correlation(shared: float, own: float, part: float, runs: int) -> float:
    """Return the correlation that costs intervals as much as that of two sources of scatter together.

    ``part``: of the variance, what has the correlation ``shared``; the rest has ``own``. Variances of means add: of so
    many ``runs`` that of an autoregression is never more than ``runs`` times that of independent ones.

    >>> round(mixed_correlation(0.95, 0.0, 0.1, 20), 2), round(mixed_correlation(0.5, 0.5, 0.3, 1000), 2)
    (0.41, 0.5)
    """
    times = part * _times_as_large(shared, runs) + (1 - part) * _times_as_large(own, runs)
    return (times - 1) / (times + 1)


def _times_as_large(correlation: float, runs: int) -> float:
    """Return how much larger the variance of a mean is for so many runs of an autoregression."""
    return 1 + 2 * sum((1 - lag / runs) * correlation**lag for lag in range(1, runs))


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
    range of the values with what is lacking added, at least as much as simulated autoregressions need: values that
    resemble each other also scatter less among themselves than they are off. None where even independent values would
    have none.

    >>> values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    >>> intervals = [dependent_interval(values, 0.9, correlation) for correlation in (0.0, 0.8)]
    >>> [round(interval.high - interval.low, 1) for interval in intervals]
    [3.7, 12.1]
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
    middle, longer = median(values), max(wanted / reached, _ranges_off(len(values), confidence, correlation))
    return Interval(middle - longer * (middle - min(values)), middle + longer * (max(values) - middle), confidence)


def _ranges_off(runs: int, confidence: float, correlation: float) -> float:
    """Return how far the median of an autoregression is off, beside how far its farthest value on that side is."""
    place = min(max(bisect_left(_CORRELATIONS, correlation), 1), len(_CORRELATIONS) - 1)
    low, high = _CORRELATIONS[place - 1 : place + 1]
    error = min(max(1 - confidence, _ERRORS[-1]), _ERRORS[0])
    late = min(max(sum(error < known for known in _ERRORS), 1), len(_ERRORS) - 1)
    share = math.log(_ERRORS[late - 1] / error) / math.log(_ERRORS[late - 1] / _ERRORS[late])
    below, above = (
        early * (1 - share) + last * share
        for early, last in (_tails_off(min(runs, _LONGEST), each)[late - 1 : late + 1] for each in (low, high))
    )
    return below + (above - below) * (correlation - low) / (high - low)


@lru_cache(maxsize=1024)
def _tails_off(runs: int, correlation: float) -> tuple[float, ...]:
    import numpy as np

    series = _autoregressions(np.random.default_rng(runs).standard_normal((_SERIES_OF_TAILS, runs)), correlation)
    middle = np.median(series, axis=1)
    sides = np.where(middle > 0, middle - series.min(axis=1), series.max(axis=1) - middle)
    return tuple(np.quantile(np.abs(middle) / sides, 1 - np.array(_ERRORS)).tolist())


def _autoregressions(fresh: NDArray[np.float64], correlation: float) -> NDArray[np.float64]:
    """Return a series of variance 1 for each row of independent values."""
    series = fresh.copy()
    for run in range(1, fresh.shape[1]):
        series[:, run] = correlation * series[:, run - 1] + math.sqrt(1 - correlation**2) * fresh[:, run]
    return series
