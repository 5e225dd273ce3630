"""Graded answers to the questions of a run, such as "which request size is best?". All functions are pure.

``sure``: with a probability of 95 %, all answers of this grade are correct. ``likely``: the answer is wrong with a
probability of at most ``LIKELY_ERROR``. ``alike``: the rates of all settings differ by at most 10 %. ``undecided``: the
answer names the setting with the best measured rate, but does not recommend it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from strakes.stats.contrasts import (
    Contrast,
    Population,
    Posterior,
    contrast_of,
    holm,
    interval,
    p_value,
    population_of,
    shrinkage_of,
)

Grade = Literal["sure", "likely", "alike", "undecided"]
Values = Mapping[int, float]

# Maximum posterior probability that a "likely" answer is wrong. 60 simulated surveys give 24 likely answers. With
# half this maximum they give 18, and with double this maximum 32 (bench/truth).
LIKELY_ERROR = 0.07
# Number of rounds before an interim analysis -> error probability of this analysis. If successive rounds correlate by
# 0.5, the total error probability rises by up to a quarter.
LOOKS = {6: 0.01, 10: 0.01}
FINAL_ERROR = 0.03  # Error probability of the final analysis. All analyses together have 5% (union bound).
# A setting is good enough if the best setting is at most 10% faster. Whole runs differ by 14% (docs/statistics.md).
GOOD_ENOUGH = 1.1
# Upper bounds for the ratio of the rates of "alike" settings. An answer states the smallest bound that holds.
ALIKE_WITHIN = (1.05, 1.1)
# Minimum posterior probability for the grade "alike". In simulated surveys, 1% to 3% of these answers are wrong.
ALIKE_PROBABILITY = 0.97
# Confidence of the intervals for the grade "alike". In simulated surveys, 49% of the questions get an answer, and 0.3%
# of the answers are wrong. With 0.35 instead, 0.8% are wrong. With 0.85, only 41% get an answer (bench/truth).
ALIKE_CONFIDENCE = 0.7
# Confidence of the intervals in reports. Intervals of 95% are 1.2 times as wide (normal theory).
INTERVAL_CONFIDENCE = 0.9
# Probability that the suggested run time suffices for an answer (Cohen, 1988). A power of 90% needs 1.34 times as long.
POWER = 0.8
# Maximum suggested run time, as a multiple of the time of the run.
MOST_TIMES = 20


def times_to_decide(low: float, high: float) -> float:
    """Return how many times longer a measurement must be to decide a comparison with a power of 80 %.

    ``low``, ``high``: 90 % interval of the measured ratio. Differences below 10 % are treated as 10 %.

    >>> round(times_to_decide(0.9, 1.4), 1), times_to_decide(1.5, 1.6)
    (8.2, 1.5)
    """
    half, effect = math.log(high / low) / 2, abs(math.log(low * high)) / 2
    # Intervals narrow with the square root of time. A difference of 1.5 half-widths has a power of 80 % (Cohen, 1988).
    return max(1.5, (1.5 * half / max(effect, math.log(GOOD_ENOUGH))) ** 2)


@dataclass(frozen=True)
class Versus:
    """Comparison of the chosen setting with setting ``level``. ``ratio``: above 1 if the chosen setting is better."""

    level: int
    ratio: float
    low: float
    high: float
    grade: Grade


@dataclass(frozen=True)
class Answer:
    """The graded answer to "which setting is best?". ``chosen``: index of the recommended setting.

    ``versus``: comparison with the worst setting. ``within``: maximum ratio of the rates if the grade is "alike".
    """

    chosen: int
    grade: Grade
    versus: Versus
    others: tuple[Versus, ...]
    within: float | None = None


@dataclass(frozen=True)
class Choice:
    """The question "which setting is best?". ``levels``: for each setting, the measured values by round.

    ``ordered``: settings are sorted by cost, and the answer is the cheapest that is good enough. ``biased``: the
    ratios have a systematic error, so the grade "alike" and ``ordered`` do not apply.
    """

    levels: tuple[Values, ...]
    ordered: bool = False
    biased: bool = False


def grade(choices: Sequence[Choice]) -> list[Answer | None]:
    """Return the graded answer to each question, or None if no two settings have enough common rounds.

    >>> fast, slow = {n: 1.0 + n % 3 / 50 for n in range(9)}, {n: 0.2 - n % 2 / 50 for n in range(9)}
    >>> [(one.chosen, one.grade) for one in grade([Choice((slow, fast))])]
    [(1, 'sure')]
    """
    last = max((block for choice in choices for level in choice.levels for block in level), default=0)
    settled = settled_at(choices, last - 1)
    answers = _graded(choices, FINAL_ERROR, settled)
    return [
        replace(answer, grade="sure", versus=replace(answer.versus, grade="sure"))
        if answer is not None and answer.grade == "likely" and index in settled
        else answer
        for index, answer in enumerate(answers)
    ]


def settled_at(choices: Sequence[Choice], block: int) -> set[int]:
    """Return the indices of the questions with a "sure" answer in an interim analysis up to round ``block``."""
    settled: set[int] = set()
    for look, error in LOOKS.items():
        if look > block:
            break
        seen = [
            replace(choice, levels=tuple({n: v for n, v in level.items() if n <= look} for level in choice.levels))
            for choice in choices
        ]
        answers = _graded(seen, error, settled)
        settled |= {index for index, answer in enumerate(answers) if answer is not None and answer.grade == "sure"}
    return settled


def _graded(choices: Sequence[Choice], error: float, settled: Collection[int]) -> list[Answer | None]:
    if not choices:
        return []
    raw = [_pairs(choice.levels) for choice in choices]
    shrinkage = shrinkage_of([pair for pairs in raw for pair in pairs.values()])
    moderated = [{pair: shrinkage.moderate(contrast) for pair, contrast in pairs.items()} for pairs in raw]
    population = population_of([contrast for pairs in moderated for contrast in pairs.values()])
    questions = {
        index: _Question(choice, pairs, population)
        for index, (choice, pairs) in enumerate(zip(choices, moderated, strict=True))
        if pairs
    }
    tested = [index for index in questions if index not in settled]
    adjusted = dict(zip(tested, holm([questions[index].p_value for index in tested]), strict=True))
    return [
        questions[index].answer(adjusted.get(index, 1.0) <= error) if index in questions else None
        for index in range(len(choices))
    ]


def _pairs(levels: Sequence[Values]) -> dict[tuple[int, int], Contrast]:
    pairs = {}
    for one in range(len(levels)):
        for other in range(one + 1, len(levels)):
            contrast = contrast_of(levels[one], levels[other])
            if contrast is not None:
                pairs[one, other] = contrast
    return pairs


class _Question:
    def __init__(self, choice: Choice, pairs: Mapping[tuple[int, int], Contrast], population: Population) -> None:
        self._pairs = {**pairs, **{(b, a): contrast.reversed() for (a, b), contrast in pairs.items()}}
        self._population = population
        levels = sorted({level for pair in pairs for level in pair})
        scores = {
            level: _mean([self._pairs[pair].mean for pair in self._pairs if pair[0] == level]) for level in levels
        }
        best = max(levels, key=scores.__getitem__)
        enough = [
            level
            for level in levels
            if level == best or ((best, level) in self._pairs and self._loss(best, level) <= 1 - ENOUGH_PROBABILITY)
        ]
        self._biased = choice.biased
        self._chosen = enough[0] if choice.ordered and not choice.biased else best
        self._others = [level for level in levels if (self._chosen, level) in self._pairs]
        self._worst = min(self._others, key=scores.__getitem__)
        # Bonferroni correction for all ordered pairs of settings.
        self.p_value = min(1.0, len(levels) * (len(levels) - 1) * p_value(self._pairs[self._chosen, self._worst]))

    def _loss(self, better: int, level: int) -> float:
        return self._posterior(better, level).within(math.log(GOOD_ENOUGH), math.inf)

    def _posterior(self, one: int, other: int) -> Posterior:
        return self._population.posterior(self._pairs[one, other])

    def answer(self, surely: bool) -> Answer:
        loss = max(self._loss(level, self._chosen) for level in self._others)
        others = tuple(self._versus(level) for level in self._others)
        worst = next(one for one in others if one.level == self._worst)
        within = next((factor for factor in ALIKE_WITHIN if self._alike(factor)), None)
        if within is not None:
            return Answer(self._chosen, "alike", replace(worst, grade="alike"), others, within)
        found: Grade = "undecided"
        if surely and loss <= SURE_LOSS:
            found = "sure"
        elif worst.grade != "undecided" and loss <= LIKELY_LOSS:
            found = "likely"
        return Answer(self._chosen, found, replace(worst, grade=found), others)

    def _versus(self, level: int) -> Versus:
        contrast = self._pairs[self._chosen, level]
        low, high = interval(contrast, INTERVAL_CONFIDENCE)
        likely = self._posterior(self._chosen, level).worse() <= LIKELY_ERROR
        found: Grade = "likely" if likely else "undecided"
        return Versus(level, math.exp(contrast.mean), math.exp(low), math.exp(high), found)

    def _alike(self, factor: float) -> bool:
        bound = math.log(factor)
        for level in self._others:
            low, high = interval(self._pairs[self._chosen, level], ALIKE_CONFIDENCE)
            if self._biased or low < -bound or high > bound:
                return False
            if self._posterior(self._chosen, level).within(-bound, bound) < ALIKE_PROBABILITY:
                return False
        return True


# A cheaper setting is chosen if it is good enough with this probability. Simulated surveys then find 81% of the true
# differences. They find 77% with a probability of 0.8, and 80% with 0.95 (bench/truth).
ENOUGH_PROBABILITY = 0.9
# Maximum probability that another setting is over 10% faster than the chosen setting: for "sure" and "likely" answers.
SURE_LOSS, LIKELY_LOSS = 0.02, 0.1


def _mean(values: Collection[float]) -> float:
    return sum(values) / len(values)
