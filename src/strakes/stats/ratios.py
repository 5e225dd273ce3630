"""Ratios of the values of two settings with intervals, and simultaneous verdicts on many ratios.

Ratios are computed from logarithms, so a / b is exactly the inverse of b / a. The methods were chosen by simulation
(docs/decisions/0003-ratio-intervals.md). Ten verdicts are all correct with a probability of 90 % if each interval has a
confidence of 99 % (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, variance

from strakes.base.language import gettext
from strakes.stats.contrasts import FEWEST_BLOCKS, interval, trimmed
from strakes.stats.interval import Estimate, Interval, interpolated_interval, median, smallest_runs

# Two single runs get a verdict only if their rates differ by at least this share. In 90% of the pairs of runs on an
# unchanged system, the rates differ by less (docs/statistics.md).
ONE_PAIR = 0.4
# Minimum number of batches. The medians of fewer batches have no interval at a confidence of 99%.
_FEWEST_BATCHES = 8
# Number of time slices of a run. In simulated runs with a drifting level, two slices make intervals 1.2 to 1.3 times as
# wide. Eight slices change their width by at most 6%.
_PARTS = 4

# Function: confidence -> ratio of the rates of two settings, with an interval of this confidence.
RatioAt = Callable[[float], Estimate]


class Verdict(StrEnum):
    """The verdict on setting a in comparison with setting b. FASTER: a has the higher rate."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    SAME = "SAME"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class Judged:
    """A ratio with its verdict and grade. ``needs``: the data that are missing for a conclusive verdict."""

    verdict: Verdict
    ratio: Estimate
    needs: str = ""
    grade: str = ""


def paired_ratio(a: Mapping[int, float], b: Mapping[int, float], confidence: float) -> Estimate:
    """Return the ratio a / b of the values of two settings: a trimmed mean over common rounds, with its interval.

    ``a``, ``b``: values by round. A disturbance that affects a whole round cancels. The interval is None with fewer
    than three common rounds, or with a value of zero or less. Raises ValueError without a common round.

    >>> ratio = paired_ratio({0: 20.0, 1: 22.0, 2: 40.0}, {0: 10.0, 1: 10.0, 2: 20.0, 3: 1.0}, 0.7)
    >>> round(ratio.median, 2), ratio.runs
    (2.06, 3)
    """
    pairs = [(a[block], b[block]) for block in sorted(a.keys() & b.keys())]
    if len(pairs) < FEWEST_BLOCKS or min(map(min, pairs)) <= 0:
        return Estimate(_plain_ratio([of_a for of_a, _ in pairs], [of_b for _, of_b in pairs]), None, len(pairs))
    contrast = trimmed([math.log(of_a) - math.log(of_b) for of_a, of_b in pairs])
    low, high = interval(contrast, confidence)
    return Estimate(math.exp(contrast.mean), Interval(math.exp(low), math.exp(high), confidence), len(pairs))


def independent_ratio(a: Sequence[float], b: Sequence[float], confidence: float) -> Estimate:
    """Return the ratio of the medians of two sets of independent values.

    The MOVER method combines the intervals of both medians (Zou and Donner, Statist. Med. 27 (2008) 1693). The interval
    is None if a set is too small or has a value that is not positive. Raises ValueError for an empty set.

    >>> round(independent_ratio([20.0, 21.0, 19.0], [10.0, 10.0, 10.5], 0.7).median, 3)
    2.0
    """
    runs = min(len(a), len(b))
    if min(a, default=0.0) <= 0 or min(b, default=0.0) <= 0:
        return Estimate(_plain_ratio(a, b), None, runs)
    logs = [[math.log(value) for value in values] for values in (a, b)]
    middle_a, middle_b = map(median, logs)
    of_a, of_b = (interpolated_interval(each, confidence) for each in logs)
    difference, found = middle_a - middle_b, None
    if of_a is not None and of_b is not None:
        low = difference - math.hypot(middle_a - of_a.low, of_b.high - middle_b)
        high = difference + math.hypot(of_a.high - middle_a, middle_b - of_b.low)
        found = Interval(math.exp(low), math.exp(high), confidence)
    return Estimate(math.exp(difference), found, runs)


def _plain_ratio(a: Sequence[float], b: Sequence[float]) -> float:
    below = median(b)
    return median(a) / below if below else math.inf


def verdict(ratio: Estimate, margin: float) -> Verdict:
    """Return the verdict on a ratio. Raises ValueError for a negative margin.

    SAME: the interval lies between 1 / (1 + margin) and 1 + margin. FASTER or SLOWER: the interval lies on one side of
    1. INCONCLUSIVE: other intervals, or no interval.

    >>> verdict(Estimate(1.2, Interval(1.1, 1.3, 0.9), 8), margin=0.05).value
    'FASTER'
    >>> verdict(Estimate(1.01, Interval(1.001, 1.02, 0.9), 30), margin=0.05).value
    'SAME'
    """
    if margin < 0:
        raise ValueError(f"the equivalence margin must not be negative: {margin!r}")
    if ratio.interval is None:
        return Verdict.INCONCLUSIVE
    low, high = ratio.interval.low, ratio.interval.high
    if low >= 1 / (1 + margin) and high <= 1 + margin:
        return Verdict.SAME
    return Verdict.FASTER if low > 1 else Verdict.SLOWER if high < 1 else Verdict.INCONCLUSIVE


def half_width_for(margin: float) -> float:
    """Return the relative half-width that the intervals of both settings need for the verdict SAME.

    Half-widths add in quadrature. Half of the margin is reserved for the deviation of the ratio from 1.

    >>> round(half_width_for(0.05), 4)
    0.0177
    """
    return margin / 2 / math.sqrt(2)


def bonferroni(confidence: float, comparisons: int) -> float:
    """Return the confidence of a single interval so that all intervals together have the confidence ``confidence``.

    >>> round(bonferroni(0.9, 5), 4)
    0.98
    """
    if comparisons < 1:
        raise ValueError("the number of comparisons must be at least 1")
    return 1 - (1 - confidence) / comparisons


def judge(ratios: Sequence[RatioAt], confidence: float, margin: float, *, least: float = 0.0) -> list[Judged]:
    """Return a verdict on each ratio. All are correct with the probability ``confidence``. Above 1 means FASTER.

    ``least``: minimum relative difference from 1 for FASTER or SLOWER. Raises ValueError for a negative margin.

    >>> fast, slow = [20.0, 21.0, 19.0, 20.5, 20.2], [10.0, 10.1, 10.0, 9.9, 10.2]
    >>> [one.verdict.value for one in judge([lambda confidence: independent_ratio(fast, slow, confidence)], 0.9, 0.05)]
    ['FASTER']
    """
    each = bonferroni(confidence, max(1, len(ratios)))
    return [_judged(ratio_at(each), each, margin, least) for ratio_at in ratios]


def _judged(ratio: Estimate, confidence: float, margin: float, least: float) -> Judged:
    judgement = verdict(ratio, margin)
    if ratio.interval is None:
        message = "at least {needed} runs of A and of B"
        return Judged(judgement, ratio, gettext(message, needed=smallest_runs(confidence)))
    decided = judgement in (Verdict.FASTER, Verdict.SLOWER)
    if decided and ratio.interval.low < 1 + least and ratio.interval.high > 1 / (1 + least):
        needs = gettext(
            "a difference of more than {share} %, because runs at different times may differ by that much",
            share=f"{100 * least:.3g}",
        )
        return Judged(Verdict.INCONCLUSIVE, ratio, needs)
    if judgement is Verdict.INCONCLUSIVE:
        message = "narrower intervals of A and of B: about ±{share} % (--precision, --budget)"
        return Judged(judgement, ratio, gettext(message, share=f"{100 * half_width_for(margin):.2g}"))
    return Judged(judgement, ratio)


def between_runs(a: Sequence[float], b: Sequence[float], *, lower_is_better: bool = False) -> RatioAt:
    """Return a function that estimates the ratio of run ``b`` to run ``a`` from their values in time order.

    Successive values of a run are correlated, so the medians of batches are compared (batch means: Law and Kelton,
    Simulation Modeling). The variance between runs is estimated as the variance of the medians of time slices. It is
    not divided by the number of slices, because long runs differ as much as short ones (docs/statistics.md).
    """
    first, second = (a, b) if lower_is_better else (b, a)

    def ratio(confidence: float) -> Estimate:
        from scipy.special import stdtrit

        number = max(_FEWEST_BATCHES, smallest_runs(confidence) + 2)
        found = independent_ratio(batches(first, number), batches(second, number), confidence)
        if found.interval is None:
            return found
        wander = sum(variance(map(math.log, batches(values, _PARTS))) for values in (first, second))
        half = float(stdtrit(2 * (_PARTS - 1), (1 + confidence) / 2)) * math.sqrt(wander)
        low, high = found.median * math.exp(-half), found.median * math.exp(half)
        widened = Interval(min(low, found.interval.low), max(high, found.interval.high), confidence)
        return replace(found, interval=widened)

    return ratio


def batches(values: Sequence[float], number: int) -> list[float]:
    """Return the medians of ``number`` successive batches, or all values if a batch would have fewer than two.

    >>> batches([1.0, 2.0, 3.0, 9.0, 8.0, 7.0], 2), batches([1.0, 2.0, 3.0], 2)
    ([2.0, 8.0], [1.0, 2.0, 3.0])
    """
    count = len(values)
    if count < 2 * number:
        return list(values)
    return [median(values[index * count // number : (index + 1) * count // number]) for index in range(number)]


def between_sets(a: Sequence[float], b: Sequence[float], *, lower_is_better: bool = False) -> RatioAt:
    """Return a function that estimates the ratio of ``b`` to ``a``. ``a``, ``b``: a median for each run."""
    first, second = (a, b) if lower_is_better else (b, a)
    return lambda confidence: independent_ratio(first, second, confidence)


def within_blocks(a: Mapping[int, float], b: Mapping[int, float], *, lower_is_better: bool = False) -> RatioAt:
    """Return a function that estimates the ratio of ``b`` to ``a`` from their values in the same rounds."""
    first, second = (a, b) if lower_is_better else (b, a)
    return lambda confidence: paired_ratio(first, second, confidence)


def block_scores(cells: Sequence[tuple[Mapping[int, float], bool]]) -> dict[int, float]:
    """Return round -> geometric mean of all measurements, for rounds in which every measurement has a value.

    ``cells``: for each measurement, values by round, and whether lower values are better (these values are inverted).

    >>> block_scores([({1: 2.0, 2: 4.0}, False), ({1: 0.5, 2: 0.25, 3: 1.0}, True)])
    {1: 2.0, 2: 4.0}
    """
    common = sorted(set.intersection(*(set(values) for values, _ in cells))) if cells else []
    return {
        block: math.exp(
            fmean(-math.log(values[block]) if lower else math.log(values[block]) for values, lower in cells)
        )
        for block in common
        if all(values[block] > 0 for values, _ in cells)
    }
