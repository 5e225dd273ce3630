"""Find level shifts in a short series of autocorrelated runs, such as nightly benchmarks.

PELT proposes shifts in rank-transformed values. The test of a shift uses the runs of the levels before and after it,
with outliers clipped. The test statistic is the largest t statistic of all splits, corrected for the autocorrelation of
the residuals (estimated without bias: Marriott and Pope, Biometrika 41 (1954) 390). P-values come from simulated
first-order autoregressions. The autocorrelation of a short series is uncertain, so the largest p-value over several
autocorrelations counts. The least significant shift is dropped until all shifts are significant (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Minimum number of runs between two shifts. The median of four runs has no interval at 90%.
SHORTEST = 5
# Autocorrelations of the simulated series. Nightly runs on production systems show up to 0.7.
_AUTOCORRELATIONS = (0.0, 0.3, 0.5, 0.65, 0.8)
# Number of simulated series. A power law is fitted to the upper tail at two quantiles, with these tail probabilities.
_SIMULATED, _NEAR, _FAR = 4000, 0.05, 0.005
_BLOCK_VALUES = 1 << 20  # Maximum number of values to test together. Each takes 80 bytes of memory.
# Outliers are clipped at this number of standard deviations, beyond which 0.3% of normal noise lies.
_CLIP = 3.0


@dataclass(frozen=True)
class LevelShift:
    """A change of the median from ``before`` to ``after``. ``index``: the first run on the new level."""

    index: int
    before: float
    after: float
    p_value: float


def level_shifts(values: Sequence[float], error: float = 0.01, shortest: int = SHORTEST) -> tuple[LevelShift, ...]:
    """Return the level shifts of a series in time order. Raises ValueError for an empty series.

    ``error``: probability of a false shift in a series. ``shortest``: minimum number of runs between two shifts.

    >>> found = level_shifts([100.0, 102.0, 99.0, 101.0, 98.0, 103.0] * 2 + [70.0, 72.0, 69.0, 71.0, 68.0, 73.0] * 2)
    >>> [(shift.index, shift.before, shift.after) for shift in found]
    [(12, 100.5, 70.5)]
    """
    import numpy as np

    if not values:
        raise ValueError("a series needs at least one value")
    series = np.asarray(values, dtype=float)
    if len(series) < 2 * shortest:
        return ()
    clipped, proposed = _proposed(series, shortest)
    p_values: dict[int, float] = {}
    while proposed:
        ends = [0, *proposed, len(series)]
        p_values = {
            index: _p_value(clipped[begin:end], shortest)
            for begin, index, end in zip(ends, ends[1:], ends[2:], strict=False)
        }
        weakest = max(proposed, key=lambda index: p_values[index])
        if p_values[weakest] <= error / len(proposed):
            break
        proposed.remove(weakest)
    levels = [float(np.median(level)) for level in np.split(series, proposed)]
    shifts = zip(proposed, pairwise(levels), strict=True)
    return tuple(LevelShift(index, before, after, p_values[index]) for index, (before, after) in shifts)


def detectable_shift(values: Sequence[float], error: float, shortest: int = SHORTEST) -> float:
    """Return the smallest shift that ``level_shifts`` finds with a probability of 80 % in a series of this length.

    Scatter and autocorrelation are estimated from ``values``. The shift is assumed in the middle of the series.

    >>> level = [100.0, 102.0, 99.0, 101.0, 98.0, 103.0, 100.0, 99.0]
    >>> 5 < detectable_shift(level + level, 0.05) < 20
    True
    """
    import numpy as np

    unit = float(_fits(np.asarray(values, dtype=float)[None, :], shortest)[1, 0])
    return unit * _detectable_units(len(values), error, shortest)


def _proposed(series: NDArray[np.float64], shortest: int) -> tuple[NDArray[np.float64], list[int]]:
    import numpy as np
    from scipy.stats import rankdata

    from strakes.stats.change import scale_of, segments

    ranks = rankdata(series)
    # Estimate the noise from differences of successive runs, because a shift affects only one difference.
    scaled = (ranks - ranks.mean()) / (float(scale_of(np.diff(ranks))) / math.sqrt(2))
    proposed = segments(scaled, 2 * math.log(len(series)), shortest)[1:]  # penalty of Schwarz's criterion
    levels = np.concatenate([np.full(len(level), np.median(level)) for level in np.split(series, proposed)])
    # The outer deciles of normal noise are 2.56 standard deviations apart.
    low, high = np.quantile(series - levels, (0.1, 0.9))
    reach = _CLIP * float(high - low) / 2.56
    return np.clip(series, levels - reach, levels + reach), proposed


def _p_value(series: NDArray[np.float64], shortest: int) -> float:
    statistic = float(_fits(series[None, :], shortest)[0, 0])
    return max(_tail(statistic, near, far) for near, far in _quantiles(len(series), shortest))


def _fits(series: NDArray[np.float64], shortest: int) -> NDArray[np.float64]:
    """Return the test statistic and the standard error of the best split of each series, as two rows."""
    import numpy as np

    fits = []
    for block in np.array_split(series, 1 + series.size // _BLOCK_VALUES):
        largest, residuals = _best_split(block, shortest)
        correlation = _autocorrelation(residuals)
        noise = np.sqrt((1 + correlation) / (1 - correlation))
        scatter = np.sqrt((residuals**2).sum(axis=1) / max(1, series.shape[1] - 2))
        fits.append([largest / noise, scatter * noise * 2 / math.sqrt(series.shape[1])])
    return np.concatenate(fits, axis=1)


def _best_split(series: NDArray[np.float64], shortest: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    import numpy as np

    rows, runs = series.shape
    centred = series - series.mean(axis=1, keepdims=True)
    splits = np.arange(shortest, runs - shortest + 1)
    sums = np.cumsum(centred, axis=1)[:, shortest - 1 : runs - shortest]
    between = sums**2 * runs / (splits * (runs - splits))
    within = np.maximum((centred**2).sum(axis=1, keepdims=True) - between, 1e-300)
    statistics = np.sqrt(between / within * (runs - 2))
    best = statistics.argmax(axis=1)
    split, before = splits[best], sums[np.arange(rows), best]
    is_before = np.arange(runs)[None, :] < split[:, None]
    fitted = np.where(is_before, (before / split)[:, None], (-before / (runs - split))[:, None])
    return statistics.max(axis=1), centred - fitted


def _autocorrelation(residuals: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    power = np.maximum((residuals**2).sum(axis=1), 1e-300)
    found = (residuals[:, 1:] * residuals[:, :-1]).sum(axis=1) / power
    return np.asarray(np.clip(found + (1 + 3 * found) / residuals.shape[1], 0.0, 0.95))


@lru_cache(maxsize=256)
def _quantiles(runs: int, shortest: int) -> tuple[tuple[float, float], ...]:
    import numpy as np

    generator = np.random.default_rng(runs)
    quantiles = []
    for correlation in _AUTOCORRELATIONS:
        statistics, _ = _fits(_autoregressions(runs, correlation, _SIMULATED, generator), shortest)
        near, far = np.quantile(statistics, (1 - _NEAR, 1 - _FAR)).tolist()
        quantiles.append((near, far))
    return tuple(quantiles)


def _tail(statistic: float, near: float, far: float) -> float:
    power = math.log(_NEAR / _FAR) / math.log(far / near)
    return min(1.0, float(_FAR * (far / max(statistic, 1e-9)) ** power))


def _threshold(error: float, near: float, far: float) -> float:
    power = math.log(_NEAR / _FAR) / math.log(far / near)
    return float(far * (_FAR / error) ** (1 / power))


def _autoregressions(runs: int, correlation: float, number: int, generator: np.random.Generator) -> NDArray[np.float64]:
    import numpy as np

    series = np.empty((number, runs))
    series[:, 0] = generator.standard_normal(number)
    for run in range(1, runs):
        fresh = generator.standard_normal(number) * math.sqrt(1 - correlation**2)
        series[:, run] = correlation * series[:, run - 1] + fresh
    return series


@lru_cache(maxsize=256)
def _detectable_units(runs: int, error: float, shortest: int) -> float:
    import numpy as np

    generator = np.random.default_rng(runs)
    needed = max(_threshold(error, near, far) for near, far in _quantiles(runs, shortest))
    after = np.arange(runs) >= runs - runs // 2
    sizes = np.geomspace(1.0, 200.0, 60)
    largest = 0.0
    for correlation in _AUTOCORRELATIONS:
        shown, others = (_autoregressions(runs, correlation, _SIMULATED // 4, generator) for _ in range(2))
        statistics, errors = _fits(shown, shortest)
        quiet = statistics < needed
        shifts = errors[quiet][:, None] * after
        for size in sizes[sizes > largest]:
            largest = float(size)
            if (_fits(others[quiet] + size * shifts, shortest)[0] >= needed).mean() >= 0.8:
                break
    return largest
