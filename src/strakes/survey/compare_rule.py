"""Judge the ratios between two runs, or between two sets of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from strakes.base.language import gettext
from strakes.stats.ratios import ONE_PAIR, Judged, RatioAt, Verdict, between_runs, between_sets, judge, within_blocks


@dataclass(frozen=True)
class Rule:
    """Rule for the verdicts on ratios of B to A.

    ``single``: A and B are single runs, compared by their rounds. ``in_turn``: runs of A and B alternate. ``margin``:
    relative difference up to which rates count as equal. ``client``: the client's speed in B divided by its speed in A.
    ``load``: ratio of B to A that the load may have caused. ``quiet``: after an overload, how to get a sure verdict.
    """

    single: bool
    in_turn: bool
    margin: float
    confidence: float
    client: float = 1.0
    load: float = 1.0
    quiet: str = ""

    def ratio(self, a: Mapping[int, float], b: Mapping[int, float], *, lower_is_better: bool = False) -> RatioAt:
        """Return a function that estimates the ratio of ``b`` to ``a``. Both contain values by round, or by run."""
        if self.in_turn:
            return within_blocks(a, b, lower_is_better=lower_is_better)
        between = between_runs if self.single else between_sets
        return between(list(a.values()), list(b.values()), lower_is_better=lower_is_better)

    def verdicts(self, ratios: Sequence[RatioAt]) -> list[Judged]:
        """Return a graded verdict on each ratio. All verdicts together are correct with the required confidence."""
        least = max(self.margin, ONE_PAIR) if self.single else 0.0 if self.in_turn else self.margin
        judged = judge(ratios, self.confidence, self.margin, least=least)
        judged = [self._of_one_pair(one) if self.single else self._of_sets(one) for one in judged]
        if self.quiet:
            judged = [self._not_claimed(one) for one in judged]
        return [replace(one, grade=self._grade(one)) for one in judged]

    def counts_as_equal(self, ratio: float) -> bool:
        """Return whether a ratio of B to A is within the margin."""
        return 1 / (1 + self.margin) <= ratio <= 1 + self.margin

    def _of_one_pair(self, judged: Judged) -> Judged:
        if judged.verdict is Verdict.SAME:
            needs = gettext("several runs each of A and B, made in turn: strakes compare A1,A2,... B1,B2,...")
            return replace(judged, verdict=Verdict.INCONCLUSIVE, needs=needs)
        if judged.verdict is Verdict.INCONCLUSIVE or self.counts_as_equal(self.client) or _beyond(judged, self.client):
            return judged
        return replace(judged, verdict=Verdict.INCONCLUSIVE, needs=gettext("runs with an equally fast client"))

    def _of_sets(self, judged: Judged) -> Judged:
        if judged.verdict is not Verdict.INCONCLUSIVE or judged.ratio.interval is None:
            return judged
        wide = math.log(judged.ratio.interval.high / judged.ratio.interval.low) / math.log(1 + self.margin)
        runs = math.ceil(judged.ratio.runs * max(wide**2, 1.2))
        return replace(judged, needs=gettext("about {count} runs each of A and B, made in turn", count=runs))

    def _not_claimed(self, judged: Judged) -> Judged:
        if judged.ratio.interval is None:
            return judged
        explained = min(1.0, self.load) if judged.ratio.median < 1 else max(1.0, self.load)
        likely = judged.verdict in (Verdict.FASTER, Verdict.SLOWER) and _beyond(judged, explained)
        return replace(judged, verdict=Verdict.INCONCLUSIVE, needs=self.quiet, grade="likely" if likely else "")

    def _grade(self, judged: Judged) -> str:
        if judged.verdict is not Verdict.INCONCLUSIVE:
            return "alike" if judged.verdict is Verdict.SAME else "sure"
        return judged.grade or ("" if self.counts_as_equal(judged.ratio.median) else "leaning")


def _beyond(judged: Judged, explained: float) -> bool:
    interval = judged.ratio.interval
    if interval is None:
        return False
    if judged.ratio.median < 1:
        return interval.high / explained < 1 / (1 + ONE_PAIR)
    return interval.low / explained > 1 + ONE_PAIR
