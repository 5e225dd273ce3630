"""What something that happens again and again does to a neighbour's 99th percentile, found within one run.

The neighbour's operations that were due close to one of the moments (exposed) are compared with all others. Where the
moments do not depend on the state of the file system, this is an experiment many times a second, and whatever drifts
slowly hits both alike. The effect is the 99th percentile of all operations over that of those that are not exposed,
which is what it would be had nothing happened. What lasts longer than the exposure (caches) is not seen.

Operations are told apart by when they were due, never by what they overlap: long ones overlap more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strakes.statistics.interval import Estimate, Interval

SHARE, CONFIDENCE = 0.99, 0.9
# Blocks are drawn at random to find the interval. One is as long as a plan of the probe: within it the probe may be in
# step with something else that happens each second.
_BLOCK_S = 60.0
_FEWEST_BLOCKS = 10
_RESAMPLES = 500
_SEED = 1


@dataclass(frozen=True)
class Operations:
    """A neighbour's operations: when each was due, and how long after that it ended."""

    due_s: NDArray[np.float64]
    late_s: NDArray[np.float64]

    def of(self, mask: NDArray[np.bool_]) -> Operations:
        """Return some of them."""
        return Operations(self.due_s[mask], self.late_s[mask])


def exposed(due_s: NDArray[np.float64], moments_s: ArrayLike, before_s: float, after_s: float) -> NDArray[np.bool_]:
    """Tell which were due at most ``before_s`` before, or ``after_s`` after, any of the moments.

    >>> exposed(np.array([0.0, 1.0, 2.5, 9.0]), [2.0, 5.0], before_s=1.0, after_s=0.5).tolist()
    [False, True, True, False]
    """
    sorted_s = np.append(np.sort(np.asarray(moments_s, float)), np.inf)
    following_s = sorted_s[np.searchsorted(sorted_s, due_s - after_s)]
    return following_s <= due_s + before_s


def effect(operations: Operations, is_exposed: NDArray[np.bool_]) -> Estimate:
    """Return the ratio of 99th percentiles, of all operations over those not exposed; ``runs``: of how many blocks.

    No interval from fewer than ten blocks.
    """
    order = np.argsort(operations.late_s)
    late_s, spared = operations.late_s[order], ~is_exposed[order]
    blocks = ((operations.due_s[order] - operations.due_s.min()) / _BLOCK_S).astype(int)
    count = int(blocks.max()) + 1

    def ratio(weights: NDArray[np.int64]) -> float:
        counted = weights[blocks]
        return _percentile(late_s, counted) / _percentile(late_s, counted * spared)

    found = ratio(np.ones(count, int))
    if count < _FEWEST_BLOCKS:
        return Estimate(found, None, count)
    generator = np.random.default_rng(_SEED)
    drawn = [ratio(weights) for weights in generator.multinomial(count, [1 / count] * count, _RESAMPLES)]
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(found, Interval(float(low), float(high), CONFIDENCE), count)


def _percentile(ascending: NDArray[np.float64], weights: NDArray[np.int64]) -> float:
    reached = np.cumsum(weights)
    return float(ascending[np.searchsorted(reached, SHARE * reached[-1])])
