"""What something that happens again and again does to a neighbour's 99th percentile, found within one run.

The neighbour's operations that were due close to one of the moments (exposed) are compared with all others. Where the
moments do not depend on the state of the file system, this is an experiment many times a second, and whatever drifts
slowly hits both alike. The effect is the 99th percentile of all operations over that of those that are not exposed,
which is what it would be had nothing happened. What lasts longer than the exposure (caches) is not seen.

Operations are told apart by when they were due, never by what they overlap: long ones overlap more. So times in which
the neighbour could not begin them when they were due tell nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student_t

from strakes.statistics.interval import Estimate, Interval

SHARE, CONFIDENCE = 0.99, 0.9
_USUAL = 0.9
# As long as a plan of the probe: within it the probe may be in step with something else that happens each second.
_MINUTE_S = 60.0
_FEWEST = 10
# Of ten seconds that count, at most this share of operations (a fifth of those beyond the 99th percentile) began later
# after they were due than that.
_IN_TIME_S, _MOST_DELAYED, _DELAYED_S = 10.0, 0.002, 0.05


@dataclass(frozen=True)
class Operations:
    """A neighbour's operations: when each was due, how long after that it began and how long after that it ended."""

    due_s: NDArray[np.float64]
    waited_s: NDArray[np.float64]
    late_s: NDArray[np.float64]

    def of(self, mask: NDArray[np.bool_]) -> Operations:
        """Return some of them."""
        return Operations(self.due_s[mask], self.waited_s[mask], self.late_s[mask])


def exposed(due_s: NDArray[np.float64], moments_s: ArrayLike, before_s: float, after_s: float) -> NDArray[np.bool_]:
    """Tell which were due at most ``before_s`` before, or ``after_s`` after, any of the moments.

    >>> exposed(np.array([0.0, 1.0, 2.5, 9.0]), [2.0, 5.0], before_s=1.0, after_s=0.5).tolist()
    [False, True, True, False]
    """
    sorted_s = np.append(np.sort(np.asarray(moments_s, float)), np.inf)
    following_s = sorted_s[np.searchsorted(sorted_s, due_s - after_s)]
    return following_s <= due_s + before_s


def in_time(due_s: NDArray[np.float64], operations: Operations) -> NDArray[np.bool_]:
    """Tell which times are of ten seconds in which the neighbour began its operations when they were due."""
    tens, number = np.unique(operations.due_s // _IN_TIME_S, return_inverse=True)
    delayed = np.bincount(number, operations.waited_s > _DELAYED_S) / np.bincount(number)
    return np.isin(due_s // _IN_TIME_S, tens[delayed <= _MOST_DELAYED])


def effect(operations: Operations, is_exposed: NDArray[np.bool_]) -> Estimate:
    """Return the ratio of 99th percentiles, of all operations over those not exposed; ``runs``: of so many minutes.

    Latencies are multiples of the 90th percentile of their minute, so that slow minutes count as others do. (With the
    99th, an effect that differs from minute to minute is found a fifth too small; simulated.) The interval is that of
    the jackknife by minutes (Shao and Wu, Ann. Statist. 17 (1989) 1176); none from fewer than ten.
    """
    numbers, number = np.unique(operations.due_s // _MINUTE_S, return_inverse=True)
    late = np.array(operations.late_s)
    for each in range(len(numbers)):
        late[number == each] /= np.quantile(late[number == each], _USUAL)

    def log_ratio(kept: NDArray[np.bool_]) -> float:
        return math.log(np.quantile(late[kept], SHARE) / np.quantile(late[kept & ~is_exposed], SHARE))

    found, count = log_ratio(np.ones(len(late), bool)), len(numbers)
    if count < _FEWEST:
        return Estimate(math.exp(found), None, count)
    without = [log_ratio(number != each) for each in range(count)]
    error = float(np.std(without)) * (count - 1) ** 0.5
    half = float(student_t.ppf((1 + CONFIDENCE) / 2, count - 1)) * error
    return Estimate(math.exp(found), Interval(math.exp(found - half), math.exp(found + half), CONFIDENCE), count)
