"""``--fail-on``: the outcomes of a comparison that count as failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strakes.base.errors import BadInputError
from strakes.stats.ratios import Verdict
from strakes.survey.comparison import Comparison

_REMEDY = (
    "Write, for example, slower:5% or slower:5%,inconclusive. The words are slower, faster, inconclusive and unlike."
)


@dataclass(frozen=True)
class Condition:
    """A verdict that counts as failure. SLOWER and FASTER count if the rate changed by at least this share.

    Without a ``verdict``, it is "unlike": a cell that could not be compared.
    """

    verdict: Verdict | None
    at_least: float = 0.0


def parse_fail_on(text: str) -> tuple[Condition, ...]:
    """Return the conditions of a comma-separated list. Raises BadInputError.

    >>> [(one.verdict.value, one.at_least) for one in parse_fail_on("slower:5%,inconclusive")]
    [('SLOWER', 0.05), ('INCONCLUSIVE', 0.0)]
    """
    return tuple(_condition(word.strip()) for word in text.split(","))


def failures(comparison: Comparison, conditions: Sequence[Condition]) -> tuple[str, ...]:
    """Return a text for each outcome that meets a condition."""
    met = []
    for condition in conditions:
        if condition.verdict is None:
            met += [f"{pair.id} cannot be compared: {pair.why}" for pair in comparison.unlike]
            continue
        overall = comparison.overall
        if _meets(condition, overall.verdict, overall.ratio):
            met.append(f"overall is {overall.verdict}")
        met += [
            f"{cell.id} is {cell.verdict}" for cell in comparison.cells if _meets(condition, cell.verdict, cell.ratio)
        ]
    return tuple(met)


def _meets(condition: Condition, verdict: Verdict, ratio: float | None) -> bool:
    if verdict is not condition.verdict:
        return False
    if verdict is Verdict.SLOWER:
        return ratio is not None and ratio <= 1 - condition.at_least
    if verdict is Verdict.FASTER:
        return ratio is not None and ratio >= 1 + condition.at_least
    return True


def _condition(word: str) -> Condition:
    name, colon, share = word.partition(":")
    name = name.strip().lower()
    if name == "unlike" and not colon:
        return Condition(None)
    if name == "inconclusive" and not colon:
        return Condition(Verdict.INCONCLUSIVE)
    if name not in ("slower", "faster"):
        raise BadInputError(f"not a valid condition: {word!r}", remedy=_REMEDY)
    return Condition(Verdict(name.upper()), _share(share, word) if colon else 0.0)


def _share(text: str, word: str) -> float:
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if rest or not 0 <= share < 1:
        raise BadInputError(f"not a share: {word!r}", remedy=_REMEDY)
    return share
