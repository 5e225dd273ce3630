"""Test published claims, such as "A is at least twice as fast as B", with the samples of a run.

A claim holds if all its conditions on ratios hold (intersection-union test: Berger, Technometrics 24 (1982) 295). The
module ``grades`` defines the grades. All functions are pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from strakes.stats.contrasts import (
    Contrast,
    Population,
    contrast_of,
    holm,
    interval,
    p_value,
    population_of,
    shrinkage_of,
)
from strakes.stats.grades import INTERVAL_CONFIDENCE, LIKELY_ERROR, Values

# Family-wise error of "sure" verdicts: in the final analysis of a study, and in all interim analyses together.
FINAL_ERROR, LOOK_ERROR = 0.03, 0.01


@dataclass(frozen=True)
class Bound:
    """One condition of a claim: the ratio a / b is from ``low`` to ``high``. Missing bounds are 0 and infinity."""

    a: Values
    b: Values
    low: float
    high: float


@dataclass(frozen=True)
class Ratio:
    """A measured ratio with its 90 % interval. ``blocks``: number of rounds in which both settings were measured."""

    ratio: float
    low: float
    high: float
    blocks: int


@dataclass(frozen=True)
class Judgement:
    """The verdict on a published claim. If the grade is "undecided", ``holds`` is the more probable answer.

    ``part``: index of the condition with the least evidence.
    """

    holds: bool
    grade: Literal["sure", "likely", "undecided"]
    part: int
    ratios: tuple[Ratio, ...]


def judge(claims: Sequence[Sequence[Bound]], error: float = FINAL_ERROR) -> list[Judgement | None]:
    """Return the verdict on each claim, or None if a condition of the claim was measured in too few rounds.

    >>> fast, slow = {n: 1.0 + n % 3 / 50 for n in range(9)}, {n: 0.2 - n % 2 / 50 for n in range(9)}
    >>> [(one.holds, one.grade) for one in judge([[Bound(slow, fast, 0.0, 0.9)], [Bound(slow, fast, 0.9, 1.1)]])]
    [(True, 'sure'), (False, 'sure')]
    """
    if not claims:
        return []
    raw = [[contrast_of(part.a, part.b) for part in parts] for parts in claims]
    shrinkage = shrinkage_of([one for parts in raw for one in parts if one is not None])
    measured = {
        index: [shrinkage.moderate(one) for one in parts if one is not None]
        for index, parts in enumerate(raw)
        if parts and all(one is not None for one in parts)
    }
    population = population_of([one for parts in measured.values() for one in parts])
    judged = {index: _judge(claims[index], contrasts, population) for index, contrasts in measured.items()}
    adjusted = dict(zip(judged, holm([p for _, p in judged.values()]), strict=True))
    return [
        None
        if index not in judged
        else replace(judged[index][0], grade="sure")
        if adjusted[index] <= error
        else judged[index][0]
        for index in range(len(claims))
    ]


def _judge(parts: Sequence[Bound], contrasts: Sequence[Contrast], population: Population) -> tuple[Judgement, float]:
    pairs = list(zip(parts, contrasts, strict=True))
    within = [population.posterior(contrast).within(_log(part.low), _log(part.high)) for part, contrast in pairs]
    weakest = min(range(len(parts)), key=within.__getitem__)
    holds = within[weakest] >= 0.5
    likely = min(within[weakest], 1 - within[weakest]) <= LIKELY_ERROR
    p = max(_p_outside(*pair) for pair in pairs) if holds else len(pairs) * min(_p_inside(*pair) for pair in pairs)
    ratios = tuple(map(_ratio, contrasts))
    return Judgement(holds, "likely" if likely else "undecided", weakest, ratios), min(1.0, 2 * p)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _beyond(contrast: Contrast, bound: float) -> Contrast:
    return replace(contrast, mean=contrast.mean - math.log(bound))


def _p_outside(part: Bound, contrast: Contrast) -> float:
    below = p_value(_beyond(contrast, part.low)) if part.low > 0 else 0.0
    above = p_value(_beyond(contrast, part.high).reversed()) if math.isfinite(part.high) else 0.0
    return max(below, above)


def _p_inside(part: Bound, contrast: Contrast) -> float:
    below = p_value(_beyond(contrast, part.low).reversed()) if part.low > 0 else 1.0
    above = p_value(_beyond(contrast, part.high)) if math.isfinite(part.high) else 1.0
    return min(1.0, 2 * min(below, above))


def _ratio(contrast: Contrast) -> Ratio:
    low, high = interval(contrast, INTERVAL_CONFIDENCE)
    return Ratio(math.exp(contrast.mean), math.exp(low), math.exp(high), contrast.blocks)
