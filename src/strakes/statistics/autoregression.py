"""Whether a change of level is more than what runs that resemble the run before them do anyway.

The greatest difference between the means before and after, in standard errors of such runs (their correlation is
estimated from what the change leaves, with its bias put right: Marriott and Pope, Biometrika 41 (1954) 390), judged
against simulated autoregressions of order 1. How much runs really resemble each other is not known from a few of them,
so the p-value is the worst of all correlations up to MOST_ALIKE.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from strakes.statistics.interval import median

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CORRELATIONS = (0.0, 0.3, 0.5, 0.65, 0.8)
MOST_ALIKE = max(CORRELATIONS)
SERIES = 4000
# Beyond this p-value too few simulated series are left; the tail is taken to fall as between these two.
_NEAR, _FAR = 0.05, 0.005
# What is said to be seen is seen with this chance; the change that is, is searched for up to so many standard errors.
POWER = 0.8
POWER_SERIES = 2000
MOST_UNITS = 200.0
BISECTIONS = 14


def p_value_of_change(values: Sequence[float], shortest: int, alike: float = MOST_ALIKE, as_sure: float = 1.0) -> float:
    """Return the chance of so great a change of level in a series without any.

    ``shortest``: the fewest runs of a level; values may be logarithms. ``alike``: how much runs may resemble the one
    before them, where other series tell. ``as_sure``: which part of the difference in standard errors counts. Raises
    ValueError for fewer than twice ``shortest``.

    >>> level = [100.0, 102.0, 99.0, 101.0, 98.0, 103.0, 100.0, 99.0]
    >>> p_value_of_change(level + [value - 40 for value in level], 5) < 0.01 < p_value_of_change(level + level, 5)
    True
    """
    import numpy as np

    if len(values) < 2 * shortest:
        raise ValueError(f"a change of level needs at least {2 * shortest} runs")
    statistic = as_sure * float(_statistics(np.asarray(values, dtype=float)[None, :], shortest)[0])
    # The first of those simulated that is no smaller.
    kept = 1 + min(bisect_left(CORRELATIONS, alike), len(CORRELATIONS) - 1)
    return max(_tail(statistic, near, far) for near, far in _quantiles(len(values), shortest)[:kept])


def change_of(values: Sequence[float], shortest: int) -> tuple[int, float]:
    """Return the place of the greatest difference of levels, and the median after it less that before.

    >>> change_of([1.0, 1.1, 0.9, 2.0, 2.1, 1.9], 3)
    (3, 1.0)
    """
    import numpy as np

    _, places, _ = _split(np.asarray(values, dtype=float)[None, :], shortest)
    place = int(places[0])
    return place, median(values[place:]) - median(values[:place])


def seen_change(values: Sequence[float], error: float, shortest: int) -> float:
    """Return the difference of levels in the middle of so many runs like these that is seen in four of five series.

    How much runs scatter and resemble each other is known from these few only, which the simulation allows for.

    >>> level = [100.0, 102.0, 99.0, 101.0, 98.0, 103.0, 100.0, 99.0]
    >>> 5 < seen_change(level + level, 0.05, 5) < 20
    True
    """
    import numpy as np

    unit = float(_units(np.asarray(values, dtype=float)[None, :], shortest)[0])
    return unit * _seen_units(len(values), error, shortest)


def _units(series: NDArray[np.float64], shortest: int) -> NDArray[np.float64]:
    """Return for each row what it shows of the standard error of a difference of levels."""
    import numpy as np

    _, _, rest = _split(series, shortest)
    runs = series.shape[1]
    scatter = np.sqrt((rest**2).sum(axis=1) / max(1, runs - 2))
    correlation = _correlations(rest)
    return np.asarray(scatter * np.sqrt((1 + correlation) / (1 - correlation)) * 2 / math.sqrt(runs))


@lru_cache(maxsize=256)
def _seen_units(runs: int, error: float, shortest: int) -> float:
    """Return the change, in units of what one series shows, that is seen in four of five others of its kind.

    Of the correlations the one at which it takes most.
    """
    import numpy as np

    generator = np.random.default_rng(runs)
    needed = max(_where(error, near, far) for near, far in _quantiles(runs, shortest))
    late = np.arange(runs) >= runs - runs // 2
    greatest = 0.0
    for correlation in CORRELATIONS:
        shown = _series(runs, correlation, POWER_SERIES, generator)
        others = _series(runs, correlation, POWER_SERIES, generator)
        # Only of series without a change is it said what would have been seen.
        quiet = _statistics(shown, shortest) < needed
        units = _units(shown[quiet], shortest)[:, None] * late
        low, high = 0.0, MOST_UNITS
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            power = float((_statistics(others[quiet] + middle * units, shortest) >= needed).mean())
            low, high = (middle, high) if power < POWER else (low, middle)
        greatest = max(greatest, high)
    return greatest


def _series(runs: int, correlation: float, number: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return so many autoregressions, one a row, with a variance of 1."""
    import numpy as np

    series = np.empty((number, runs))
    series[:, 0] = generator.standard_normal(number)
    for run in range(1, runs):
        fresh = generator.standard_normal(number) * math.sqrt(1 - correlation**2)
        series[:, run] = correlation * series[:, run - 1] + fresh
    return series


@lru_cache(maxsize=256)
def _quantiles(runs: int, shortest: int) -> tuple[tuple[float, float], ...]:
    """Return for each correlation what one series in twenty, and one in 200, exceeds without any change."""
    import numpy as np

    generator = np.random.default_rng(runs)
    thresholds = []
    for correlation in CORRELATIONS:
        series = _series(runs, correlation, SERIES, generator)
        near, far = np.quantile(_statistics(series, shortest), (1 - _NEAR, 1 - _FAR)).tolist()
        thresholds.append((near, far))
    return tuple(thresholds)


def _tail(statistic: float, near: float, far: float) -> float:
    """Return the share of series beyond ``statistic``: a power of it, as tails of few runs are."""
    power = math.log(_NEAR / _FAR) / math.log(far / near)
    return min(1.0, float(_FAR * (far / max(statistic, 1e-9)) ** power))


def _where(error: float, near: float, far: float) -> float:
    power = math.log(_NEAR / _FAR) / math.log(far / near)
    return float(far * (_FAR / error) ** (1 / power))


def _statistics(series: NDArray[np.float64], shortest: int) -> NDArray[np.float64]:
    import numpy as np

    greatest, _, rest = _split(series, shortest)
    correlation = _correlations(rest)
    return np.asarray(greatest * np.sqrt((1 - correlation) / (1 + correlation)))


def _split(
    series: NDArray[np.float64], shortest: int
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    """Return for each row the greatest difference, as Student's t, the place of it, and what it leaves."""
    import numpy as np

    rows, runs = series.shape
    centred = series - series.mean(axis=1, keepdims=True)
    splits = np.arange(shortest, runs - shortest + 1)
    sums = np.cumsum(centred, axis=1)[:, shortest - 1 : runs - shortest]
    between = sums**2 * runs / (splits * (runs - splits))
    within = np.maximum((centred**2).sum(axis=1, keepdims=True) - between, 1e-300)
    differences = np.sqrt(between / within * (runs - 2))
    best = differences.argmax(axis=1)
    split, sum_before = splits[best], sums[np.arange(rows), best]
    early = np.arange(runs)[None, :] < split[:, None]
    rest = centred - np.where(early, (sum_before / split)[:, None], (-sum_before / (runs - split))[:, None])
    return differences.max(axis=1), np.asarray(split), rest


def _correlations(rest: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    power = np.maximum((rest**2).sum(axis=1), 1e-300)
    correlation = (rest[:, 1:] * rest[:, :-1]).sum(axis=1) / power
    return np.asarray(np.clip(correlation + (1 + 3 * correlation) / rest.shape[1], 0.0, 0.95))
