"""How large a difference chance alone makes, in a series whose values resemble their neighbours.

Paths are drawn from the series' own past: what a value does not owe to the one before it is drawn in blocks (stationary
bootstrap, Politis and Romano, J. Am. Stat. Assoc. 89 (1994) 1303, with blocks as long as its autocorrelation asks for,
Politis and White, Econometric Reviews 23 (2004) 53), and the resemblance is put back, with the bias of its estimate put
right (post-blackening, Davison and Hinkley, Bootstrap Methods (1997) 8.2.3;
Marriott and Pope, Biometrika 41 (1954) 390).
On each path the level is judged as it is on the series, within a baseline that is as long as the real one. So neither a
distribution nor independence is assumed, and the error of the baseline itself counts.
Levels of real figures also wander by themselves, and no past is long enough to show how far: each path does so, too. It
makes small changes that show in many values harder to tell, and hardly touches large ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from strakes.watch.values import Numbers

# Lengths of the windows that are looked at, in values: a large change shows in few, a small one in many. Each costs the
# others some power; with two or three values chance does most.
WINDOWS = (4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64)
LONGEST = WINDOWS[-1]
_PATHS = 400
_HORIZON = 2 * LONGEST
# Of horizons, no more may have an alarm.
_MOST_SHARE = 0.5
# So many spreads a level wanders (random walk) in as many values as the longest window has.
WANDER = 0.4
# Shares of equals wander less: what moves all of them is no part of their shares.
WANDER_OF_EQUALS = 0.1
# So many of the longest windows tell how much neighbours resemble each other.
_LONG = 3
_WARM_UP = 30
# A series that resembles itself more is a random walk: it has no level.
_MOST_OWED = 0.97
_NORMAL = NormalDist()
# What is further off than that many spreads weighs no more.
_FAR = 4.0
LEAST_SPREAD = 1e-9
_TABLE = np.array([_NORMAL.inv_cdf((index + 0.5) / 1024) for index in range(1024)])


@dataclass(frozen=True)
class Calibration:
    """What chance does to sums of scores: a row for each way of scoring, a column for each window.

    ``places`` and ``scales``: of the Gumbel laws of the largest sums over a horizon, in ``spreads``.
    ``place`` and ``scale``: of the law of the largest of all, once they are on one scale. ``length``: so many values
    say as much as an independent one.
    """

    spreads: Numbers
    places: Numbers
    scales: Numbers
    place: float
    scale: float
    values_a_month: float
    length: float

    def standings(self, sums: Numbers) -> Numbers:
        """Return how far sums over the first windows stand out, all on one scale."""
        reach = slice(sums.shape[-1])
        far = np.abs(sums) / self.spreads[:, reach]
        return np.asarray((far - self.places[:, reach]) / self.scales[:, reach])

    def standing_of_few(self, sums: Numbers, window: int, values: float) -> float:
        """Return how far sums over one window stand out within a level that so few ``values`` tell."""
        place = WINDOWS.index(window)
        far = sums / self.spreads[:, place] / math.sqrt(1 + window / values)
        return float(((far - self.places[:, place]) / self.scales[:, place]).max())

    def threshold(self, alarms_a_month: float) -> float:
        """Return what is passed by chance so often."""
        return self.place - self.scale * math.log(-math.log1p(-self._share(alarms_a_month)))

    def quiet(self, standing: float) -> float:
        """Return the chance that a month without a change stays below ``standing``."""
        horizons = self.values_a_month / _HORIZON
        return math.exp(-horizons * math.exp(-(standing - self.place) / self.scale))

    def _share(self, alarms_a_month: float) -> float:
        """Of horizons that may have an alarm."""
        return min(_MOST_SHARE, -math.expm1(-alarms_a_month * _HORIZON / max(self.values_a_month, 1e-9)))


def calibrate(
    past: Numbers, values_a_month: float, begins: Sequence[int] = (0,), wander: float = WANDER, seed: int = 0
) -> Calibration:
    """Return what chance does to a series whose past, without a change, is ``past``.

    ``begins``: where its regimes begin, whose levels have been made that of the last one.
    """
    generator = np.random.default_rng(seed)
    paths = noise_paths(past, begins, generator)
    before, later = paths[:, : len(past)], paths[:, len(past) :]
    some = window_sums(scores(before[::4], later[::4])[0])[:, LONGEST:, -_LONG:]
    length = max(1.0, float(np.mean(some.var(axis=(0, 1)) / WINDOWS[-_LONG:])))
    step = wander / math.sqrt(LONGEST) * spreads_of(past)
    later = later + step * np.cumsum(generator.standard_normal(later.shape), axis=1)
    sums = window_sums(scores(before, later))
    # A short past with little resemblance by chance may not make a window seem calmer than independent values are.
    spreads = np.maximum(sums[:, :, LONGEST:].std(axis=(1, 2)), np.sqrt(WINDOWS) * 0.95)
    # Large changes stand out in spreads and small ones in ranks, so each has the law of its own largest sums.
    largest = np.abs(sums).max(axis=2) / spreads[:, None]
    places, scales = _gumbel(largest, 1)
    place, scale = _gumbel(((largest - places[:, None]) / scales[:, None]).max(axis=(0, 2)), 0)
    return Calibration(spreads, places, scales, float(place), float(scale), values_a_month, length)


def most_alarms(values_a_month: float) -> float:
    """Return how many alarms a month a threshold may be asked for; more are not given."""
    return -math.log1p(-_MOST_SHARE) * values_a_month / _HORIZON


def noise_paths(past: Numbers, begins: Sequence[int], generator: np.random.Generator) -> Numbers:
    """Return what chance could have made of the past and of the values that follow, a path a row."""
    paths = _paths(past, len(past) + _HORIZON, len(begins), generator)
    # How badly a short regime tells its level is part of what chance does.
    for begin, end in pairwise((*begins, len(past)) if len(begins) > 1 else ()):
        level = np.median(paths[:, begins[-1] : len(past)], axis=1)
        paths[:, begin:end] += (level - np.median(paths[:, begin:end], axis=1))[:, None]
    return paths


def _gumbel(largest: Numbers, axis: int) -> tuple[Numbers, Numbers]:
    """Return place and scale of the law of largest values, by moments."""
    scales = np.maximum(largest.std(axis=axis) * math.sqrt(6) / math.pi, 0.05)
    return np.asarray(largest.mean(axis=axis) - 0.5772 * scales), np.asarray(scales)


def _paths(past: Numbers, length: int, regimes: int, generator: np.random.Generator) -> Numbers:
    centred = past - np.median(past)
    owed = _resemblance(centred, regimes)
    rest = centred[1:] - owed * centred[:-1]
    rest = rest - rest.mean()
    # How much a value owes is an estimate; each path has one that could be true.
    spread = math.sqrt((1 - owed**2) / len(past))
    owes = np.clip(owed + spread * generator.standard_normal(_PATHS), 0.0, _MOST_OWED)
    # The first values are forgotten.
    drawn = rest[_indices(len(rest), length + _WARM_UP, block_length(rest), generator)]
    paths: Numbers = np.empty(drawn.shape)
    value = np.zeros(len(drawn))
    for column in range(drawn.shape[1]):
        value = owes * value + drawn[:, column]
        paths[:, column] = value
    return np.asarray(paths[:, _WARM_UP:])


def _resemblance(centred: Numbers, regimes: int) -> float:
    """Return the correlation of neighbours in ranks, unbiased; 0 where it is negative. Each level costs as much."""
    ranks = centred.argsort(kind="stable").argsort(kind="stable") - (len(centred) - 1) / 2
    found = float(ranks[1:] @ ranks[:-1]) / float(ranks @ ranks)
    return min(_MOST_OWED, max(0.0, found + regimes * (1 + 3 * found) / len(centred)))


def scores(past: Numbers, values: Numbers) -> Numbers:
    """Return the values scored within their past, row by row, in two ways.

    By the normal scores of their ranks, so that no value weighs more than the past allows, and by how many spreads they
    are off, at most four.
    """
    rows, count = len(past), past.shape[1]
    # Whole numbers that keep the order, far enough apart for all rows to be searched as one.
    _, order = np.unique(np.hstack([past, values]), return_inverse=True)
    keys = order.reshape(rows, -1) + np.arange(rows)[:, None] * order.size
    ordered, later = np.sort(keys[:, :count], axis=1).ravel(), keys[:, count:].ravel()
    places = (np.searchsorted(ordered, later, "left") + np.searchsorted(ordered, later, "right")) / 2
    places = places.reshape(rows, -1) - np.arange(rows)[:, None] * count
    ranked = _TABLE[((places + 0.5) / (count + 1) * len(_TABLE)).astype(int)]
    middle = np.median(past, axis=1, keepdims=True)
    spread = spreads_of(past)[:, None]
    off, usual = (np.clip((each - middle) / spread, -_FAR, _FAR) for each in (values, past))
    return np.stack([ranked, off - usual.mean(axis=1, keepdims=True)])


def spreads_of(values: Numbers) -> Numbers:
    """Return the spread of each row: of normal values, their standard deviation."""
    off = np.abs(values - np.median(values, axis=-1, keepdims=True))
    return np.maximum(1.4826 * np.median(off, axis=-1), LEAST_SPREAD)


def window_sums(of: Numbers) -> Numbers:
    """Return for each value and window the sum of scores that ends there, row by row; 0 where there are fewer."""
    total = np.pad(np.cumsum(of, axis=-1), [(0, 0)] * (of.ndim - 1) + [(1, 0)])
    sums = np.zeros((*of.shape, len(WINDOWS)))
    for column, window in enumerate(WINDOWS):
        if of.shape[-1] >= window:
            sums[..., window - 1 :, column] = total[..., window:] - total[..., :-window]
    return sums


def block_length(values: Numbers) -> float:
    """Return the mean length of blocks that keeps the series' autocorrelation; at least the cube root of its length."""
    count = len(values)
    least: float = count ** (1 / 3)
    centred = values - values.mean()
    power = float(centred @ centred)
    if power == 0:
        return least
    lags = min(count // 3, 2 * math.ceil(math.sqrt(count)))
    correlations = np.array([float(centred[lag:] @ centred[: count - lag]) / power for lag in range(lags + 1)])
    bound = 2 * math.sqrt(math.log10(count) / count)
    quiet = max(5, math.ceil(math.sqrt(math.log10(count))))
    last = next((lag for lag in range(lags) if np.all(np.abs(correlations[lag + 1 : lag + 1 + quiet]) < bound)), lags)
    wide = np.arange(1, min(2 * max(last, 1), lags) + 1)
    taper = np.minimum(1.0, 2 * (1 - wide / (2 * max(last, 1)))).clip(0)
    slope = 2 * float(np.sum(taper * wide * correlations[wide]))
    spectrum = 1 + 2 * float(np.sum(taper * correlations[wide]))
    if slope <= 0 or spectrum <= 0:
        return least
    best: float = (2 * slope**2 / (2 * spectrum**2)) ** (1 / 3) * count ** (1 / 3)
    return float(min(max(best, least), count / 4))


def resampled_medians(values: Numbers, seed: int = 0) -> Numbers:
    """Return medians of bootstrapped paths, for intervals."""
    generator = np.random.default_rng(seed)
    length = block_length(values) if len(values) > 5 else 1.0
    return np.asarray(np.median(values[_indices(len(values), len(values), length, generator)], axis=1))


def _indices(
    count: int, length: int, block: float, generator: np.random.Generator
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return a path a row: blocks of geometric length from random places, around the end."""
    begins = generator.random((_PATHS, length)) < 1 / block
    begins[:, 0] = True
    starts = generator.integers(0, count, size=(_PATHS, length))
    positions = np.arange(length)
    last = np.maximum.accumulate(np.where(begins, positions, 0), axis=1)
    return np.asarray((np.take_along_axis(starts, last, axis=1) + positions - last) % count)
