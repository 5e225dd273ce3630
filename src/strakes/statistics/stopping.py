"""When a cell has been measured often enough, with an interval that stays valid however that was decided.

Looking after every run and stopping at the first narrow interval picks the runs that happen to agree: the usual
interval then covers far less than it says (docs/decisions/0002-sequential-stopping.md). So the interval is read off a
confidence sequence: ranks so wide apart that the chance that *any* of the intervals at 5, 6, 7, ... runs misses the
median is at most 1 - confidence. It holds for every distribution and every reason to stop, a spent budget or an
impatient user included.

While runs are added, the number of them below the true median is a simple random walk; the interval misses when the
walk leaves the ranks. The chance of leaving is summed exactly, and spent over the runs as alpha spending does: Lan and
DeMets, Biometrika 70 (1983) 659.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from strakes.statistics.interval import Estimate, estimate_in_order, in_order, smallest_runs

# 4 runs cover the median with 87.5 %, 5 with 93.75 %: below 5 there is no interval at the default confidence of 90 %.
MINIMUM_RUNS = 5

Reason = Literal["interval-reached", "max-runs", "continue"]


@dataclass(frozen=True)
class Judgement:
    """Whether to stop measuring, why, and what is known by now."""

    stop: bool
    reason: Reason
    estimate: Estimate


@dataclass(frozen=True)
class StoppingRule:
    """Stop at the first interval that is narrow enough, or at ``max_runs``.

    >>> rule = StoppingRule(confidence=0.9, relative_half_width=0.1)
    >>> rule.judge([100.0, 101.0, 99.0, 103.0]).reason
    'continue'
    >>> judgement = rule.judge([100.0, 101.0, 99.0, 103.0, 98.0])
    >>> judgement.reason, judgement.estimate.median, judgement.estimate.interval
    ('interval-reached', 100.0, Interval(low=98.0, high=103.0, confidence=0.9))
    """

    confidence: float = 0.9
    relative_half_width: float = 0.1
    max_runs: int = 60

    def judge(self, values: Sequence[float]) -> Judgement:
        """Return what to do after these runs. Raises ValueError for no values or one that is not finite."""
        now = self.estimate(values)
        if now.relative_half_width <= self.relative_half_width:
            return Judgement(True, "interval-reached", now)
        if now.runs >= self.max_runs:
            return Judgement(True, "max-runs", now)
        return Judgement(False, "continue", now)

    def estimate(self, values: Sequence[float]) -> Estimate:
        """Return the estimate after any number of runs, whatever stopped them."""
        ordered = in_order(values)
        return estimate_in_order(ordered, sequential_rank(len(ordered), self.confidence), self.confidence)

    @property
    def smallest_runs(self) -> int:
        """Runs before which there is no interval."""
        return first_look(self.confidence)


def sequential_rank(runs: int, confidence: float) -> int:
    """Return the k of the pair of k-th smallest and k-th largest value that is the interval after ``runs`` runs.

    0 while there is none.

    >>> [sequential_rank(runs, 0.9) for runs in (4, 5, 9, 10, 20, 60)]
    [0, 1, 1, 2, 5, 18]
    """
    horizon = 64
    while horizon < runs:
        horizon *= 2
    return _ranks(confidence, horizon)[runs]


def first_look(confidence: float) -> int:
    """Return the runs of the first interval of the sequence.

    >>> first_look(0.8), first_look(0.9), first_look(0.99)
    (5, 5, 8)
    """
    return max(MINIMUM_RUNS, smallest_runs(confidence))


def runs_for(estimate: Estimate, relative_half_width: float) -> int | None:
    """Return roughly how many runs in all bring the interval down to that half-width; None without an interval.

    It shrinks with the root of the runs.

    >>> runs_for(StoppingRule().estimate([80.0, 90.0, 100.0, 110.0, 120.0]), 0.1)
    20
    """
    now = estimate.relative_half_width
    if estimate.interval is None or estimate.median <= 0:
        return None
    return max(estimate.runs, math.ceil(estimate.runs * (now / relative_half_width) ** 2 - 1e-9))


@cache
def _ranks(confidence: float, horizon: int) -> tuple[int, ...]:
    """Return the ranks for 0 .. horizon runs: each is raised as soon as the error spent so far allows it."""
    first = first_look(confidence)
    error = 1.0 - confidence
    # The first look cannot spend less than 2 (1/2)^n; half of what is left then is gone at twice the runs, two thirds
    # at three times, ...
    first_error = 2.0 ** (1 - first)
    inside = [1.0]
    spent = 0.0
    ranks = [0]
    for runs in range(1, horizon + 1):
        inside = [(left + right) / 2 for left, right in zip([0.0, *inside], [*inside, 0.0], strict=True)]
        rank = ranks[-1]
        allowed = first_error + (error - first_error) * (1 - first / runs) if runs >= first else 0.0
        while 2 * (rank + 1) <= runs + 1:
            leaves = sum(inside[rank : rank + 1]) + sum(inside[runs - rank : runs - rank + 1])
            if spent + leaves > allowed + 1e-12:
                break
            spent += leaves
            inside[rank] = inside[runs - rank] = 0.0
            rank += 1
        ranks.append(rank)
    return tuple(ranks)
