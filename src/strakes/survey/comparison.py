"""Results of a comparison, and the conditions of ``--fail-on``: the verdicts that count as failure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strakes.base.errors import BadInputError
from strakes.model.portrait import Setting
from strakes.stats.ratios import Verdict

_WORDS = re.compile(r"(inconclusive)|(slower|faster)\s*(?::\s*(\d+(?:\.\d+)?|\.\d+)\s*(%?))?")
_REMEDY = "Write, for example, slower:5% or slower:5%,inconclusive. The words are slower, faster and inconclusive."


@dataclass(frozen=True)
class CellVerdict:
    """Verdict on one cell. ``ratio``: rate in B divided by rate in A, or time in A divided by time in B.

    ``low``, ``high``: interval of the ratio (None: too few runs). All intervals together have the stated confidence.
    ``grade``: certainty of the verdict or, if INCONCLUSIVE, of the statement that one run is faster.
    """

    id: str
    settings: Mapping[str, Setting]
    unit: str
    verdict: Verdict
    ratio: float
    low: float | None
    high: float | None
    median_a: float
    median_b: float
    runs_a: int
    runs_b: int
    needs: str = ""
    grade: str = ""


@dataclass(frozen=True)
class Overall:
    """Verdict on all measurements together, by the geometric mean of their ratios."""

    verdict: Verdict
    ratio: float | None
    low: float | None
    high: float | None
    needs: str = ""
    grade: str = ""


@dataclass(frozen=True)
class Unlike:
    """A measurement that cannot be compared, and the reason."""

    id: str
    why: str


@dataclass(frozen=True)
class Comparison:
    """Comparison of run B with run A.

    ``confidence``: confidence of the ``overall`` interval, and of the intervals of all ``cells`` together. ``differs``:
    differences of machine, versions and file system. ``caution``: reasons to distrust the verdicts.
    """

    a: Mapping[str, Any]
    b: Mapping[str, Any]
    confidence: float
    margin: float
    overall: Overall
    cells: tuple[CellVerdict, ...]
    unlike: tuple[Unlike, ...]
    differs: tuple[str, ...]
    caution: tuple[str, ...]


@dataclass(frozen=True)
class Condition:
    """A verdict that counts as failure. ``at_least``: for SLOWER and FASTER, minimum relative change of the rate."""

    verdict: Verdict
    at_least: float = 0.0

    def is_met(self, verdict: str, ratio: float | None) -> bool:
        """Return whether a verdict with this ratio meets the condition."""
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
