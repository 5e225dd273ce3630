"""Compare two settings that were measured in the same rounds (blocks): ratio, interval, posterior and p-value.

A comparison consists of one log ratio per round, so drift and the load of other users cancel. The estimate is a trimmed
mean with the standard error of Yuen (Biometrika 61 (1974) 165). The variances of all comparisons of a run are shrunk
towards each other (moderated t: Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3). Holm's method corrects p-values for
multiple tests (Scand. J. Statist. 6 (1979) 65). Posteriors have a scale mixture of normals as prior (adaptive
shrinkage: Stephens, Biostatistics 18 (2017) 275). All functions are pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Minimum number of values for trimming. With this minimum, simulated surveys find 325 of 400 true differences. With
# double the minimum, they find 327, and with a minimum of 4 they find 322 (bench/truth).
TRIM_FROM = 7
# Share of values that is trimmed at each end. Without trimming, outliers in 10% of the values cost a third of the
# power. A share of 0.2 costs a tenth of the power if the noise is normal (bench/truth).
TRIM_SHARE = 0.1
# Minimum number of values for an estimate. With two values, the t quantile at 90% is 6.3 instead of 2.9.
FEWEST_BLOCKS = 3
# The prior of a log ratio is a mixture of normal distributions with these standard deviations. The smallest (2%)
# describes differences that do not matter. The largest describes the highest measured ratio, 1,700.
SCALES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
# Prior weight of each normal distribution in ``SCALES``, as a number of comparisons. The weights are fitted to surveys
# of five file systems. Halving or doubling all weights changes the grade (such as "sure") of 2% of the answers.
PRIOR_COUNTS = (4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5)


@dataclass(frozen=True)
class Contrast:
    """The mean log ratio of the values of two settings over ``blocks`` rounds.

    ``variance``: variance of the log ratio between rounds. ``freedom``: degrees of freedom of the variance.
    """

    blocks: int
    mean: float
    variance: float
    freedom: float

    @property
    def error(self) -> float:
        """Return the standard error of the mean."""
        return math.sqrt(self.variance / self.blocks)

    def reversed(self) -> Contrast:
        """Return the same comparison with the two settings exchanged."""
        return Contrast(self.blocks, -self.mean, self.variance, self.freedom)


def contrast_of(a: Mapping[int, float], b: Mapping[int, float]) -> Contrast | None:
    """Return the comparison of two settings from their log values by round, or None with too few common rounds.

    >>> contrast = contrast_of({1: 2.0, 2: 2.1, 3: 1.9}, {1: 1.0, 2: 1.0, 3: 1.0})
    >>> round(contrast.mean, 3), contrast.freedom
    (1.0, 2)
    """
    common = a.keys() & b.keys()
    return trimmed([a[block] - b[block] for block in common]) if len(common) >= FEWEST_BLOCKS else None


def trimmed(values: Sequence[float]) -> Contrast:
    """Return the trimmed mean, with Yuen's standard error from the winsorized variance.

    >>> trimmed([1.0] * 9 + [100.0]).mean
    1.0
    """
    ordered = sorted(values)
    count = len(ordered)
    cut = max(1, round(TRIM_SHARE * count)) if count >= TRIM_FROM else 0
    kept = ordered[cut : count - cut]
    mean = sum(kept) / len(kept)
    winsorized = [kept[0]] * cut + kept + [kept[-1]] * cut
    centre = sum(winsorized) / count
    squares = sum((value - centre) ** 2 for value in winsorized)
    return Contrast(count, mean, count * squares / (len(kept) * (len(kept) - 1)), len(kept) - 1)


@dataclass(frozen=True)
class Shrinkage:
    """Prior variance of the comparisons of a run. ``freedom``: its degrees of freedom, which may be infinite."""

    variance: float
    freedom: float

    def moderate(self, contrast: Contrast) -> Contrast:
        """Return the comparison with its variance shrunk towards the prior variance."""
        if not math.isfinite(self.freedom):
            return Contrast(contrast.blocks, contrast.mean, self.variance, 1e6)
        freedom = self.freedom + contrast.freedom
        variance = (self.freedom * self.variance + contrast.freedom * contrast.variance) / freedom
        return Contrast(contrast.blocks, contrast.mean, variance, freedom)


# Minimum variance of log rates. Clocks and counters resolve about 0.2%.
_SMALLEST_VARIANCE = 0.002**2
# Minimum number of variances for estimating their spread. With four, the spread has a standard error of 82%.
_FEWEST_CONTRASTS = 4


def shrinkage_of(contrasts: Sequence[Contrast]) -> Shrinkage:
    """Fit the prior variance to the variances of all comparisons (scaled F distribution: Smyth 2004, section 6.2)."""
    if len(contrasts) < _FEWEST_CONTRASTS:
        return Shrinkage(_SMALLEST_VARIANCE, 0.0)
    import numpy as np
    from scipy.special import digamma, polygamma

    freedom = np.array([contrast.freedom for contrast in contrasts]) / 2
    variances = np.array([max(contrast.variance, _SMALLEST_VARIANCE) for contrast in contrasts])
    logs = np.log(variances) - digamma(freedom) + np.log(freedom)
    spread = float(np.var(logs, ddof=1) - np.mean(polygamma(1, freedom)))
    if spread <= 0:
        return Shrinkage(float(np.exp(logs.mean())), math.inf)
    half = _trigamma_inverse(spread)
    return Shrinkage(float(np.exp(logs.mean() + digamma(half) - np.log(half))), 2 * half)


def _trigamma_inverse(value: float) -> float:
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = polygamma(1, x)
        step = trigamma * (1 - trigamma / value) / polygamma(2, x)
        x += step
        if abs(step / x) < 1e-8:
            break
    return float(x)


def interval(contrast: Contrast, confidence: float) -> tuple[float, float]:
    """Return the two-sided t interval of the log ratio."""
    from scipy.special import stdtrit

    half = float(stdtrit(contrast.freedom, (1 + confidence) / 2)) * contrast.error
    return contrast.mean - half, contrast.mean + half


def p_value(contrast: Contrast) -> float:
    """Return the one-sided p-value of the hypothesis that the first setting is not better than the second one."""
    from scipy.special import stdtr

    if contrast.error <= 0:
        return 0.0 if contrast.mean > 0 else 1.0
    return float(stdtr(contrast.freedom, -contrast.mean / contrast.error))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted, most = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        most = max(most, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = most
    return adjusted


@dataclass(frozen=True)
class Population:
    """Distribution of true log ratios in a run: weights of normal distributions with standard deviations ``SCALES``."""

    weights: tuple[float, ...]

    @cached_property
    def _grid(self) -> tuple[Array, Array]:
        import numpy as np

        grid = np.sinh(np.linspace(-np.arcsinh(2000.0), np.arcsinh(2000.0), 701)) / 100
        widths = np.gradient(grid)
        masses = np.array([np.exp(-((grid / scale) ** 2) / 2) * widths for scale in SCALES])
        return grid, masses / masses.sum(axis=1, keepdims=True)

    def posterior(self, contrast: Contrast) -> Posterior:
        """Return the posterior distribution of the true log ratio of one comparison."""
        import numpy as np

        grid, masses = self._grid
        joint = masses * np.array(self.weights)[:, None] * _likelihood(contrast, grid)[None, :]
        return Posterior(grid, joint / joint.sum())


def _likelihood(contrast: Contrast, grid: Array) -> Array:
    import numpy as np

    z = (contrast.mean - grid) / max(contrast.error, 1e-6)
    likelihood: Array = np.exp(-(contrast.freedom + 1) / 2 * np.log1p(z**2 / contrast.freedom))
    return likelihood


@dataclass(frozen=True)
class Posterior:
    """Joint posterior: rows for the standard deviations ``SCALES``, columns for the true log ratios ``grid``."""

    grid: Array
    joint: Array

    def worse(self) -> float:
        """Return the local false-discovery rate of the statement that the first setting is better."""
        return float(1 - self.joint[1:, self.grid > 0].sum())

    def within(self, low: float, high: float) -> float:
        """Return the probability that the true log ratio lies between two bounds."""
        return float(self.joint[:, (self.grid >= low) & (self.grid <= high)].sum())


def population_of(contrasts: Sequence[Contrast], steps: int = 30) -> Population:
    """Return the distribution of true log ratios, fitted to all comparisons of a run (expectation maximisation)."""
    import numpy as np

    counts = np.array(PRIOR_COUNTS)
    weights = counts / counts.sum()
    flat = Population(tuple(weights))
    if not contrasts:
        return flat
    grid, masses = flat._grid
    evidence = np.array([masses @ _likelihood(contrast, grid) for contrast in contrasts])
    for _ in range(steps):
        shares = evidence * weights
        shares /= shares.sum(axis=1, keepdims=True)
        weights = (shares.sum(axis=0) + counts) / (len(contrasts) + counts.sum())
    return Population(tuple(float(weight) for weight in weights))
