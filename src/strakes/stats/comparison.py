"""Simultaneous verdicts on many ratios: the probability that any verdict is wrong is at most 1 - confidence.

The interval of each cell has the confidence at which all intervals hold together (Bonferroni). This takes more runs:
for ten cells at 90 %, each interval needs 99 %, which takes at least eight runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from strakes.base.language import gettext
from strakes.stats.contrast import Verdict, bonferroni, half_width_for, independent_ratio, paired_ratio, verdict
from strakes.stats.interval import Estimate, Interval, median, smallest_runs

# Difference of two whole runs of the same system that is not exceeded in nine of ten pairs: equal runs scatter by 14 %
# (docs/statistics.md). The values within a run do not show this scatter.
ONE_PAIR = 0.4
FEWEST_BATCHES = 8
PARTS = 4

# Returns the ratio of two settings, with an interval of the given confidence.
RatioAt = Callable[[float], Estimate]


@dataclass(frozen=True)
class Judged:
    """One ratio with its verdict. ``needs`` is empty unless the verdict is INCONCLUSIVE."""

    verdict: Verdict
    ratio: Estimate
    needs: str = ""


def judge(ratios: Sequence[RatioAt], confidence: float, margin: float, *, least: float = 0.0) -> list[Judged]:
    """Return verdicts on ratios of "how many times better", which are all correct with probability ``confidence``.

    ``least``: a smaller difference is INCONCLUSIVE. Raises ValueError for a negative margin.

    >>> fast, slow = [20.0, 21.0, 19.0, 20.5, 20.2], [10.0, 10.1, 10.0, 9.9, 10.2]
    >>> [one.verdict.value for one in judge([lambda confidence: independent_ratio(fast, slow, confidence)], 0.9, 0.05)]
    ['FASTER']
    """
    if not ratios:
        return []
    each = bonferroni(confidence, len(ratios))
    return [_judged(ratio_at(each), each, margin, least) for ratio_at in ratios]


def between_runs(a: Sequence[float], b: Sequence[float], *, lower_is_better: bool = False) -> RatioAt:
    """Return the function for how many times better ``b`` is than ``a``: values in time order without common blocks.

    A disturbance of seconds slows several successive values, which makes them dependent. Long series are therefore
    compared by the medians of a few batches (batch means: Law and Kelton, Simulation Modeling). A disturbance longer
    than a run does not show within it, so the variance of a whole run is estimated from the differences between its
    parts.
    """
    first, second = (a, b) if lower_is_better else (b, a)

    def ratio(confidence: float) -> Estimate:
        number = max(FEWEST_BATCHES, smallest_runs(confidence) + 2)
        return _widened(independent_ratio(batches(first, number), batches(second, number), confidence), first, second)

    return ratio


def between_sets(a: Sequence[float], b: Sequence[float], *, lower_is_better: bool = False) -> RatioAt:
    """Return the function for how many times better ``b`` is than ``a``, where each value is the median of a whole run.

    The scatter of the values includes the differences between runs.
    """
    first, second = (a, b) if lower_is_better else (b, a)
    return lambda confidence: independent_ratio(first, second, confidence)


def wander(values: Sequence[float]) -> float:
    """Return the variance of the logarithm of a whole run, estimated by the variance between the medians of its parts.

    It is not divided by the number of parts: on a machine that changes slowly, means over longer times scatter no less
    (measured in docs/statistics.md).

    >>> wander([1.0, 1.0, 1.0, 1.0]), round(wander([1.0, 1.1, 1.0, 1.1]), 4)
    (0.0, 0.003)
    """
    logs = [math.log(value) for value in batches(values, PARTS)]
    mean = sum(logs) / len(logs)
    return sum((column - mean) ** 2 for column in logs) / (len(logs) - 1)


def _widened(estimate: Estimate, first: Sequence[float], second: Sequence[float]) -> Estimate:
    if estimate.interval is None:
        return estimate
    confidence = estimate.interval.confidence
    half = t_quantile(confidence) * math.sqrt(wander(first) + wander(second))
    low, high = estimate.median * math.exp(-half), estimate.median * math.exp(half)
    return replace(
        estimate, interval=Interval(min(low, estimate.interval.low), max(high, estimate.interval.high), confidence)
    )


def t_quantile(confidence: float) -> float:
    """Return Student's two-sided quantile for the 2 (PARTS - 1) degrees of freedom of two wanders.

    >>> round(t_quantile(0.9), 3), round(t_quantile(0.99), 3)
    (1.943, 3.707)
    """
    from scipy.special import stdtrit

    return float(stdtrit(2 * (PARTS - 1), (1 + confidence) / 2))


def batches(values: Sequence[float], number: int) -> list[float]:
    """Return the medians of ``number`` batches in time order, or the values if a batch would have less than two.

    >>> batches([1.0, 2.0, 3.0, 9.0, 8.0, 7.0], 2), batches([1.0, 2.0, 3.0], 2)
    ([2.0, 8.0], [1.0, 2.0, 3.0])
    """
    count = len(values)
    if count < 2 * number:
        return list(values)
    return [median(values[index * count // number : (index + 1) * count // number]) for index in range(number)]


def within_blocks(a: Mapping[int, float], b: Mapping[int, float], *, lower_is_better: bool = False) -> RatioAt:
    """Return the function for how many times better ``b`` is than ``a``, over the blocks that measured both.

    The function raises ValueError without a common block.
    """
    first, second = (a, b) if lower_is_better else (b, a)
    return lambda confidence: paired_ratio(first, second, confidence)


def block_scores(cells: Sequence[tuple[Mapping[int, float], bool]]) -> dict[int, float]:
    """Return a score for each block that measured every cell: the geometric mean of its values.

    ``cells``: values by block, and whether lower is better; such values are inverted. A disturbance of a whole block
    stays in its score.

    >>> block_scores([({1: 2.0, 2: 4.0}, False), ({1: 0.5, 2: 0.25, 3: 1.0}, True)])
    {1: 2.0, 2: 4.0}
    """
    if not cells:
        return {}
    common = sorted(set.intersection(*(set(values) for values, _ in cells)))
    scores = {}
    for block in common:
        good = [
            (1 / values[block] if lower else values[block]) if values[block] > 0 else 0.0 for values, lower in cells
        ]
        if all(value > 0 for value in good):
            scores[block] = math.exp(sum(map(math.log, good)) / len(good))
    return scores


def _judged(ratio: Estimate, confidence: float, margin: float, least: float) -> Judged:
    judgement = verdict(ratio, margin)
    if ratio.interval is None:
        needs = gettext(
            "at least {needed} runs of both (there are {runs})", needed=smallest_runs(confidence), runs=ratio.runs
        )
        return Judged(judgement, ratio, needs)
    low, high = ratio.interval.low, ratio.interval.high
    if judgement in (Verdict.FASTER, Verdict.SLOWER) and low < 1 + least and high > 1 / (1 + least):
        needs = gettext(
            "a difference larger than {share} %, which is how much runs at different times may differ anyway",
            share=f"{100 * least:.3g}",
        )
        return Judged(Verdict.INCONCLUSIVE, ratio, needs)
    if judgement is Verdict.INCONCLUSIVE:
        needs = gettext(
            "narrower intervals: about ±{share} % of both (--precision, --budget)",
            share=f"{100 * half_width_for(margin):.2g}",
        )
        return Judged(judgement, ratio, needs)
    return Judged(judgement, ratio)
