"""Conditions of ``--fail-on``: the verdicts of a comparison that count as failure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from strakes.base.errors import BadInputError
from strakes.stats.ratios import Verdict
from strakes.survey.comparison import Comparison

_WORDS = re.compile(r"(inconclusive)|(slower|faster)\s*(?::\s*(\d*\.?\d+)\s*(%?))?")
_REMEDY = "Write, for example, slower:5% or slower:5%,inconclusive. The words are slower, faster and inconclusive."


@dataclass(frozen=True)
class Condition:
    """A verdict that counts as failure. ``at_least``: for SLOWER and FASTER, minimum relative change of the rate."""

    verdict: Verdict
    at_least: float = 0.0

    def is_met(self, verdict: str, ratio: float | None) -> bool:
        """Return whether a verdict on a measurement meets the condition. ``ratio``: rate in B divided by rate in A."""
        if verdict != self.verdict:
            return False
        if verdict == Verdict.INCONCLUSIVE:
            return True
        return ratio is not None and (
            ratio <= 1 - self.at_least if verdict == Verdict.SLOWER else ratio >= 1 + self.at_least
        )


def parse_fail_on(text: str) -> tuple[Condition, ...]:
    """Return the conditions of a comma-separated list. Raises BadInputError.

    >>> [(one.verdict.value, one.at_least) for one in parse_fail_on("slower:5%,inconclusive")]
    [('SLOWER', 0.05), ('INCONCLUSIVE', 0.0)]
    """
    return tuple(_condition(word.strip()) for word in text.lower().split(","))


def failures(comparison: Comparison, conditions: Sequence[Condition]) -> tuple[str, ...]:
    """Return a text for each verdict that meets a condition."""
    met = []
    for condition in conditions:
        overall = comparison.overall
        if condition.is_met(overall.verdict, overall.ratio):
            met.append(f"overall is {overall.verdict}")
        met += [f"{one.id} is {one.verdict}" for one in comparison.cells if condition.is_met(one.verdict, one.ratio)]
    return tuple(met)


def _condition(word: str) -> Condition:
    found = _WORDS.fullmatch(word)
    if found is None:
        raise BadInputError(f"not a valid condition: {word!r}", remedy=_REMEDY)
    if found[1]:
        return Condition(Verdict.INCONCLUSIVE)
    share = float(found[3] or 0) / (100 if found[4] else 1)
    if share >= 1:
        raise BadInputError(f"expected a share below 100%, not {word!r}", remedy=_REMEDY)
    return Condition(Verdict(found[2].upper()), share)
