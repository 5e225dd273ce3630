"""Detect level changes in a series at a given rate of false alarms.

A change point is a split that lowers the sum of squares about the segment means by more than a penalty. PELT finds the
best segmentation of a whole series (Killick, Fearnhead and Eckley, J. Am. Stat. Assoc. 107 (2012) 1590). The penalty is
a quantile of the largest reduction of this sum in series without a change. Its Gumbel distribution is fitted to
simulated autoregressions with bootstrapped residuals (Politis and Romano, J. Am. Stat. Assoc. 89 (1994) 1303).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]
Grade = Literal["early", "confirmed"]

# Number of values before the first test. 60 values give the standard deviation of the noise to 15%.
LEARN = 60
# Minimum number of values after a change, for an early warning and for a confirmed change.
SHORTEST: dict[Grade, int] = {"early": 3, "confirmed": 5}
# Each of the last 64 values is tested as a change point. Testing only 32 finds 10% fewer changes (docs/watch.md).
REACH = 64
# Allowed number of false early warnings per false confirmed change. A limit of 8 finds 1% more changes, but lowers the
# precision of early warnings from 79% to 66% (bench/watch).
EARLY_FACTOR = 4.0
# Outliers are clipped at this number of standard deviations. Clipping at 4 finds 6% fewer changes (docs/watch.md).
_CLIP = 3.0
# Simulated series: their number, their length, and the number of warm-up values. Run time is proportional to each.
_PATHS, _HORIZON, _WARM_UP = 200, 128, 30
# Number of past values from which the noise is estimated. With 256, its standard deviation has an error of 7%.
_LONGEST_PAST = 256
# Estimate the noise again if the series has grown by this factor, or by this number of values.
_GROWN, _RENEWED = 1.4, 128
# Drift of a simulated series over 64 values, in standard deviations. Without drift, precision falls from 94% to 87%.
_DRIFT = 0.4
# Segmentation of past values: penalty of a change, in variances times log(length), and minimum segment length.
_PAST_PENALTY, _SHORTEST_PAST = 6.0, 10
# Maximum autocorrelation of the simulated noise. At 0.985, the variance of the noise is twice as large.
_LARGEST_AUTOCORRELATION = 0.97
# Maximum expected number of false alarms in a simulated series. The Gumbel distribution is fitted to 200 series, so it
# does not describe rare events. Series without any alarm are rare (0.03%) if 8 alarms are expected.
_MOST_EXPECTED = 8.0
# Mean of the standard Gumbel distribution (Gumbel 1958). A constant series has an assumed standard deviation of 1e-9.
_EULER, _SMALLEST_SCALE = 0.5772, 1e-9


@dataclass(frozen=True)
class Change:
    """A change of the median from ``before`` to ``after``. ``size`` has a 90 % interval from ``low`` to ``high``.

    ``begin``: index of the first value on the new level. ``seen``: index of the value at which the change was detected.
    """

    begin: int
    seen: int
    before: float
    after: float
    low: float
    high: float
    grade: Grade

    @property
    def size(self) -> float:
        """Difference of the levels, ``after`` - ``before``."""
        return self.after - self.before


def scale_of(values: Numbers) -> Numbers:
    """Return a robust standard deviation of each row of ``values``, from the median absolute deviation."""
    off = np.abs(values - np.median(values, axis=-1, keepdims=True))
    return np.asarray(np.maximum(1.4826 * np.median(off, axis=-1), _SMALLEST_SCALE))


def segments(values: Numbers, penalty: float, shortest: int) -> list[int]:
    """Return the first index of each segment in the segmentation with the least cost (PELT). The first index is 0.

    >>> segments(np.array([0.0, 0.1] * 5 + [5.0, 5.1] * 5), 3.0, 2)
    [0, 10]
    """
    total, squares = np.cumsum(np.pad(values, (1, 0))), np.cumsum(np.pad(values**2, (1, 0)))
    best = np.full(len(values) + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(len(values) + 1, dtype=np.int64)
    candidates: Indices = np.zeros(0, dtype=np.int64)
    for end in range(shortest, len(values) + 1):
        candidates = np.append(candidates, end - shortest)
        costs = squares[end] - squares[candidates] - (total[end] - total[candidates]) ** 2 / (end - candidates)
        costs += best[candidates]
        best[end], last[end] = costs.min() + penalty, candidates[costs.argmin()]
        candidates = candidates[costs <= best[end]]
    begins = [int(last[-1])]
    while begins[-1] > 0:
        begins.append(int(last[begins[-1]]))
    return begins[::-1]


class Noise:
    """Noise of a series: standard deviation, and distribution of the largest apparent level change in pure noise."""

    def __init__(self, past: Numbers, seed: int = 0) -> None:
        self.scale = float(scale_of(past))
        generator = np.random.default_rng(seed)
        self.autocorrelation = _autocorrelation(past)
        paths = _paths(past, self.autocorrelation, generator)
        drift = _DRIFT / math.sqrt(REACH) * self.scale
        paths[:, len(past) :] += drift * np.cumsum(generator.standard_normal((_PATHS, _HORIZON)), axis=1)
        middle = np.median(paths[:, : len(past)], axis=1, keepdims=True)
        scaled = np.clip((paths - middle) / scale_of(paths[:, : len(past)])[:, None], -_CLIP, _CLIP)
        reach = max(SHORTEST["confirmed"] + 1, min(REACH, len(past) // 2))
        sums = np.cumsum(np.pad(scaled, ((0, 0), (1, 0))), axis=1)
        largest = dict.fromkeys(SHORTEST, np.zeros(_PATHS))
        for end in range(len(past) + 1, paths.shape[1] + 1):
            after = np.arange(min(SHORTEST.values()), reach + 1)
            reductions = _reductions(sums[:, end, None], sums[:, end - after], after, end)
            for grade, shortest in SHORTEST.items():
                largest[grade] = np.maximum(largest[grade], reductions[:, after >= shortest].max(axis=1))
        self._laws = {grade: _gumbel(each) for grade, each in largest.items()}

    def difference(self, before: Numbers, after: Numbers) -> tuple[float, float]:
        """Return the 90 % interval of the difference of two medians.

        The variance of a median is pi / 2 times a mean's variance (normal theory), and increases with autocorrelation.
        """
        from scipy.stats import t as student

        inflation = math.pi / 2 * (1 + self.autocorrelation) / (1 - self.autocorrelation)
        scales = [max(self.scale, float(scale_of(part))) for part in (before, after)]
        variance = sum(inflation * scale**2 / len(part) for scale, part in zip(scales, (before, after), strict=True))
        freedom = max(1.0, min(len(before), len(after)) - 1.0)
        reach = float(student.ppf(0.95, freedom)) * math.sqrt(variance)
        middle = float(np.median(after) - np.median(before))
        return middle - reach, middle + reach

    def penalty(self, grade: Grade, alarms_per_value: float) -> float:
        """Return the penalty per change, so that pure noise causes ``alarms_per_value`` alarms per new value."""
        place, scale = self._laws[grade]
        return place - scale * math.log(min(max(alarms_per_value, 1e-300) * _HORIZON, _MOST_EXPECTED))


class Detector:
    """Online detector of level changes. ``alarms_per_value``: allowed number of false alarms per value."""

    def __init__(self, alarms_per_value: float) -> None:
        self.alarms_per_value = alarms_per_value
        self.early: Change | None = None
        self._past: deque[float] = deque(maxlen=_LONGEST_PAST)
        self._segment: deque[float] = deque(maxlen=_LONGEST_PAST + REACH)
        self._count = self._estimated_at = 0
        self._noise: Noise | None = None

    @property
    def level(self) -> float:
        """Return the median of the current segment."""
        return float(np.median(self._segment))

    @property
    def scale(self) -> float:
        """Return a robust standard deviation of the noise, or 0 if there are too few values for an estimate."""
        return self._noise.scale if self._noise else 0.0

    def add(self, value: float) -> Change | None:
        """Add a value. Return a change when it is first suspected ("early") or confirmed, else None."""
        self._count += 1
        self._past.append(value)
        self._segment.append(value)
        if self._count < LEARN:
            return None
        if self._count == LEARN or self._count >= min(self._estimated_at * _GROWN, self._estimated_at + _RENEWED):
            self._noise = Noise(aligned(np.array(self._past)))
            self._estimated_at = self._count
        assert self._noise is not None
        values = np.array(self._segment)
        fewest = min(SHORTEST.values())
        after = np.arange(fewest, min(REACH, len(values) - fewest) + 1)
        if not len(after):
            return None
        scaled = np.clip((values - np.median(values)) / self._noise.scale, -_CLIP, _CLIP)
        sums = np.cumsum(np.pad(scaled, (1, 0)))
        reductions = _reductions(sums[-1], sums[len(values) - after], after, len(values))
        if (change := self._exceeds("confirmed", values, after, reductions)) is not None:
            since = self._count - change.begin
            past = np.array(self._past)
            past[:-since] += change.size
            self._past = deque(past.tolist(), maxlen=_LONGEST_PAST)
            self._segment = deque(list(self._segment)[-since:], maxlen=self._segment.maxlen)
            self.early = None
            return change
        early = self._exceeds("early", values, after, reductions)
        known, self.early = self.early, early
        return early if known is None else None

    def _exceeds(self, grade: Grade, values: Numbers, after: Indices, reductions: Numbers) -> Change | None:
        assert self._noise is not None
        rate = self.alarms_per_value * (EARLY_FACTOR if grade == "early" else 1.0)
        best = int(reductions.argmax())
        if after[best] < SHORTEST[grade] or reductions[best] <= self._noise.penalty(grade, rate):
            return None
        begin = len(values) - int(after[best])
        low, high = self._noise.difference(values[:begin], values[begin:])
        before, level = float(np.median(values[:begin])), float(np.median(values[begin:]))
        if low <= 0 <= high:
            return None
        at = self._count - len(values) + begin
        return Change(at, self._count - 1, before, level, low, high, grade)


def aligned(past: Numbers) -> Numbers:
    """Return the series without its level changes: every segment is shifted to the level of the last segment.

    A series with more than one change per 30 values is returned as it is.
    """
    # The autocorrelation is estimated from differences at lags 1 and 2, which level changes hardly affect (Chakar et
    # al., Bernoulli 23 (2017) 1408).
    near, far = (float(np.median(np.abs(past[lag:] - past[:-lag]))) for lag in (1, 2))
    if len(past) < 2 * _SHORTEST_PAST or near <= _SMALLEST_SCALE:
        return past
    autocorrelation = min(0.9, max(0.0, (far / near) ** 2 - 1))
    white = past[1:] - autocorrelation * past[:-1]
    scale = float(scale_of(np.diff(white))) / math.sqrt(2)
    scaled = np.clip((white - np.median(white)) / scale, -2 * _CLIP, 2 * _CLIP)
    begins = segments(scaled, _PAST_PENALTY * math.log(len(past)), _SHORTEST_PAST)
    begins = [0, *(begin + 1 for begin in begins[1:])]
    if len(begins) > 1 + len(past) // 30:
        return past
    levels = [float(np.median(part)) for part in np.split(past, begins[1:])]
    shifted = past.copy()
    for begin, end, level in zip(begins, [*begins[1:], len(past)], levels, strict=True):
        shifted[begin:end] += levels[-1] - level
    return shifted


def _reductions(total: Numbers, before: Numbers, after: Indices, count: int) -> Numbers:
    means = before / (count - after) - (total - before) / after
    return np.asarray(means**2 * (after * (count - after) / count))


def _gumbel(largest: Numbers) -> tuple[float, float]:
    scale = max(float(largest.std()) * math.sqrt(6) / math.pi, 0.05)
    return float(largest.mean()) - _EULER * scale, scale


def _autocorrelation(values: Numbers) -> float:
    """Return the rank correlation of successive values, corrected for bias (Marriott and Pope 1954)."""
    from scipy.stats import rankdata

    ranks = rankdata(values) - (len(values) + 1) / 2
    if not ranks.any():
        return 0.0
    found = float(ranks[1:] @ ranks[:-1]) / float(ranks @ ranks)
    return min(_LARGEST_AUTOCORRELATION, max(0.0, found + (1 + 3 * found) / len(values)))


def _paths(past: Numbers, autocorrelation: float, generator: np.random.Generator) -> Numbers:
    centred = past - np.median(past)
    residuals = centred[1:] - autocorrelation * centred[:-1]
    residuals = residuals - residuals.mean()
    length = len(past) + _HORIZON + _WARM_UP
    drawn = residuals[_blocks(len(residuals), length, generator)]
    error = math.sqrt((1 - autocorrelation**2) / len(past))
    owed = np.clip(autocorrelation + error * generator.standard_normal(_PATHS), 0.0, _LARGEST_AUTOCORRELATION)
    for column in range(1, length):
        drawn[:, column] += owed * drawn[:, column - 1]
    return np.asarray(drawn[:, _WARM_UP:])


def _blocks(count: int, length: int, generator: np.random.Generator) -> Indices:
    """Return indices for a stationary bootstrap with a mean block length of the cube root of ``count``."""
    begins = generator.random((_PATHS, length)) < count ** (-1 / 3)
    begins[:, 0] = True
    starts = generator.integers(0, count, size=(_PATHS, length))
    positions = np.arange(length)
    last = np.maximum.accumulate(np.where(begins, positions, 0), axis=1)
    return np.asarray((np.take_along_axis(starts, last, axis=1) + positions - last) % count)
