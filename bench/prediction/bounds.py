"""What could be reached on the IO500 pairs, had one known more than a submission tells, or chosen a rule in hindsight.

A rule here says that a rate grows with a power of the number of nodes, or of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from statistics import median

from bench.prediction.io500 import MOST_YEARS_APART, Pair, Submission, counts

# Exponents that are tried, and how often what systems and phases add is brought into line with each other.
_EXPONENTS = [step / 100 for step in range(-50, 151)]
_FIXED = [step / 10 for step in range(11)]
_POLISHED = 30
SIZES = ("nodes", "ranks")


@dataclass(frozen=True)
class Growth:
    """One phase of one pair: logarithms of by what factor the rate grew, and the size."""

    pair: int
    institution: str
    phase: str
    rate: float
    size: float

    @property
    def exponent(self) -> float:
        """The power of the size with which it grew."""
        return self.rate / self.size


def growths(pairs: Sequence[Pair], size: str) -> list[Growth]:
    """Return every phase of every pair."""
    rows = []
    for number, pair in enumerate(pairs):
        small, large = pair.small, pair.large
        distance = math.log(large.nodes / small.nodes if size == "nodes" else large.tasks / small.tasks)
        for phase in pair.phases:
            rate = math.log(large.rates[phase] / small.rates[phase])
            rows.append(Growth(number, small.institution, phase, rate, distance))
    return rows


def factor(rows: Sequence[Growth], exponents: Sequence[float]) -> float:
    """Return the median factor of error with these exponents."""
    return math.exp(median(abs(row.rate - exponent * row.size) for row, exponent in zip(rows, exponents, strict=True)))


def one_for_all(rows: Sequence[Growth]) -> float:
    """Return the factor with the one exponent that is best for all in hindsight."""
    return min(factor(rows, [exponent] * len(rows)) for exponent in _EXPONENTS)


def one_for_each(rows: Sequence[Growth], kind: Callable[[Growth], Hashable]) -> float:
    """Return the factor with an exponent for each kind, with the least sum of errors in hindsight."""
    best = {
        name: min(
            _EXPONENTS, key=lambda tried: sum(abs(row.rate - tried * row.size) for row in rows if kind(row) == name)
        )
        for name in {kind(row) for row in rows}
    }
    return factor(rows, [best[kind(row)] for row in rows])


def of_system_and_phase(rows: Sequence[Growth]) -> tuple[float, float]:
    """Return the factor with an exponent that is a sum of a system's and a phase's (median polish, Tukey 1977).

    First with the system's from all of its phases, then from its other phases.
    """
    systems = dict.fromkeys({row.pair for row in rows}, 0.0)
    phases = dict.fromkeys({row.phase for row in rows}, 0.0)
    for _ in range(_POLISHED):
        for pair in systems:
            systems[pair] = median(row.exponent - phases[row.phase] for row in rows if row.pair == pair)
        for phase in phases:
            phases[phase] = median(row.exponent - systems[row.pair] for row in rows if row.phase == phase)

    def by_others(row: Growth) -> float:
        others = [other for other in rows if other.pair == row.pair and other is not row]
        return median([other.exponent - phases[other.phase] for other in others] or [0.0]) + phases[row.phase]

    return (
        factor(rows, [systems[row.pair] + phases[row.phase] for row in rows]),
        factor(rows, [by_others(row) for row in rows]),
    )


def chosen_by_others(pairs: Sequence[Pair]) -> float:
    """Return the factor where the rule for an institution is the one that was best on all others' pairs.

    Rules: fixed exponents from 0 to 1, the median over all phases, over the phase, and half-way between; by nodes and
    by ranks.
    """
    by_size = {size: growths(pairs, size) for size in SIZES}
    errors = []
    for institution in {pair.small.institution for pair in pairs}:
        told = {size: [row for row in rows if row.institution != institution] for size, rows in by_size.items()}
        asked = {size: [row for row in rows if row.institution == institution] for size, rows in by_size.items()}
        tried = [(size, rule) for size in SIZES for rule in _rules(told[size])]
        size, rule = min(tried, key=lambda each: factor(told[each[0]], [each[1](row) for row in told[each[0]]]))
        errors += [abs(row.rate - rule(row) * row.size) for row in asked[size]]
    return math.exp(median(errors))


def _rules(told: Sequence[Growth]) -> Iterator[Callable[[Growth], float]]:
    every = median(row.exponent for row in told)
    own = {phase: median(row.exponent for row in told if row.phase == phase) for phase in {row.phase for row in told}}

    def typical(row: Growth, share: float) -> float:
        return every + share * (own.get(row.phase, every) - every)

    def fixed(_row: Growth, exponent: float) -> float:
        return exponent

    yield from (partial(fixed, exponent=exponent) for exponent in _FIXED)
    yield from (partial(typical, share=share) for share in (0.0, 0.5, 1.0))


def usual_factor(twice: Sequence[Sequence[float]]) -> float:
    """Return the median over systems of what two submissions of one differ by."""
    return median(map(median, twice))


def repeated(submissions: Sequence[Submission]) -> list[list[float]]:
    """Return by system the factors between phases of two submissions with as many nodes and ranks, at least 1.

    Those of one system in years close together; where most phases say the same, one submission is listed twice.
    """
    by_system: dict[tuple[str, str, str], list[float]] = {}
    for one, other in combinations(submissions, 2):
        name = one.institution, one.system, one.file_system
        if name != (other.institution, other.system, other.file_system):
            continue
        alike = (one.nodes, one.tasks) == (other.nodes, other.tasks) and abs(one.year - other.year) <= MOST_YEARS_APART
        both = [phase for phase in one.rates if phase in other.rates and counts(phase, one, other)] if alike else []
        factors = [math.exp(abs(math.log(one.rates[phase] / other.rates[phase]))) for phase in both]
        if 2 * sum(value > 1 for value in factors) > len(factors):
            by_system.setdefault(name, []).extend(factors)
    return list(by_system.values())
