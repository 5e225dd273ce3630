"""Compare several runs of A with several runs of B.

Each run counts as one value, so that intervals include the variation between runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.language import gettext, ngettext
from strakes.model.cell import Cell
from strakes.model.results import Measured, Results
from strakes.runs.run import Run
from strakes.stats.comparison import Judged, RatioAt, between_sets, block_scores, judge, within_blocks
from strakes.stats.contrast import Verdict
from strakes.stats.interval import median
from strakes.survey.analysis_held_back import held_back
from strakes.survey.compare_runs import (
    differences,
    facts_of,
    not_claimed,
    nothing_alike,
    overall_of,
    overloaded,
    results_of,
    verdict_on,
)
from strakes.survey.compare_work import alike
from strakes.survey.comparison import Comparison, Unlike


@dataclass(frozen=True)
class _Row:
    """One measure in all runs of both sides."""

    a: tuple[Measured, ...]
    b: tuple[Measured, ...]

    def medians(self) -> tuple[dict[int, float], dict[int, float]]:
        a, b = (
            {n: cell.estimate.median for n, cell in enumerate(side) if cell.estimate is not None}
            for side in (self.a, self.b)
        )
        return a, b


def compare_several(
    a: Sequence[Run],
    b: Sequence[Run],
    *,
    margin: float,
    confidence: float,
    factors: Sequence[str] = (),
    only: Sequence[str] = (),
) -> Comparison:
    """Compare the runs ``b`` with the runs ``a``.

    If runs of A and B alternate in time, each is compared with its neighbour (paired).

    Raises BadInputError for a run that is given twice, for a mix of imported and own runs, and if no cell can be
    compared.
    """
    every = [*a, *b]
    twice = next((run.id for run in every if sum(other.id == run.id for other in every) > 1), None)
    if twice is not None:
        raise BadInputError("a run is given twice", where=twice, remedy="Give each run once; strakes runs lists them.")
    beside = [cell.imported for run in every for cell in run.cells[:1]]
    if any(beside) and not all(beside):
        remedy = "Compare one run with one other: strakes compare A B."
        raise BadInputError("imported runs and runs of strakes cannot be compared several at a time", remedy=remedy)
    a, b, in_turn = _in_turn(a, b)
    rows, unlike = _rows(a, b, factors, only)
    if not rows:
        raise nothing_alike(a[0], b[0], unlike, only)
    cautions = [
        text for name, side in (("A", a), ("B", b)) for run in side for text in overloaded(f"{name} ({run.id})", run)
    ]
    disturbed = bool(cautions) and not in_turn
    least = 0.0 if in_turn else margin
    if not in_turn:
        cautions.append(
            gettext("The runs were not made in turn (A, B, A, B, ...), so only a difference beyond the margin counts.")
        )
    medians = [row.medians() for row in rows]
    ratios = [_ratio(*sides, in_turn, row.a[0].lower_is_better) for sides, row in zip(medians, rows, strict=True)]
    scores_a, scores_b = (
        block_scores([(sides[n], row.a[0].lower_is_better) for sides, row in zip(medians, rows, strict=True)])
        for n in (0, 1)
    )
    judged = judge(ratios, confidence, margin, least=least)
    (together,) = judge([_ratio(scores_a, scores_b, in_turn, lower_is_better=False)], confidence, margin, least=least)
    judged, together = [_with_needs(judgement, margin) for judgement in judged], _with_needs(together, margin)
    if disturbed:
        judged, together = [not_claimed(judgement) for judgement in judged], not_claimed(together)
    cells = tuple(
        verdict_on(
            row.a[0], judgement, (median(list(own.values())), median(list(other.values()))), (len(own), len(other))
        )
        for row, (own, other), judgement in zip(rows, medians, judged, strict=True)
    )
    return Comparison(
        a=_facts(a),
        b=_facts(b),
        confidence=confidence,
        margin=margin,
        overall=overall_of(together),
        cells=cells,
        unlike=tuple(unlike),
        differs=tuple(differences(a[0], b[0])),
        caution=tuple(cautions),
    )


def _rows(
    a: Sequence[Run], b: Sequence[Run], factors: Sequence[str], only: Sequence[str]
) -> tuple[list[_Row], list[Unlike]]:
    """Return the measures that all runs have, and the measures that are not compared."""
    first, unlike = _by_id(a[0], a[0], ()), []
    sides = [[_by_id(a[0], run, keys) for run in runs] for runs, keys in ((a, ()), (b, factors))]
    rows = []
    for identifier in first:
        if only and not any(fnmatchcase(identifier, pattern) for pattern in only):
            continue
        both = [[measured[identifier] for measured in side if identifier in measured] for side in sides]
        if any(held_back(measured) for side in both for measured in side):
            unlike.append(Unlike(identifier, gettext("limited by --impact or --neighbour in at least one run")))
        elif [len(side) for side in both] == [len(a), len(b)]:
            rows.append(_Row(tuple(both[0]), tuple(both[1])))
        else:
            of_a = ngettext(
                "{measured} of {count} run of A", "{measured} of {count} runs of A", len(a), measured=len(both[0])
            )
            of_b = ngettext(
                "{measured} of {count} run of B", "{measured} of {count} runs of B", len(b), measured=len(both[1])
            )
            unlike.append(Unlike(identifier, gettext("measured in {of_a} and {of_b}", of_a=of_a, of_b=of_b)))
    return rows, unlike


def _by_id(first: Run, run: Run, factors: Sequence[str]) -> dict[str, Measured]:
    """Return the results of a run for the same work as in the first run, by the ids of the first run."""
    pairs, _ = alike(first.cells, run.cells, factors)
    results = results_of(run, [other for _, other in pairs])
    named = results_of(first, [own for own, _ in pairs])
    return {mine.id: theirs for mine, theirs in _measures(pairs, named, results) if theirs.estimate is not None}


def _measures(
    pairs: Sequence[tuple[Cell, Cell]], named: Results, results: Results
) -> Iterator[tuple[Measured, Measured]]:
    for own, other in pairs:
        for measure in own.measures:
            if not measure.is_side:
                yield named.get(own.measure_id(measure.phase)), results.get(other.measure_id(measure.phase))


def _in_turn(a: Sequence[Run], b: Sequence[Run]) -> tuple[Sequence[Run], Sequence[Run], bool]:
    """Return both sides in the order of time, and whether runs came in pairs of one A and one B, in either order."""
    by_time = [sorted(side, key=lambda run: str(run.manifest["created"])) for side in (a, b)]
    ids = {run.id for run in a}
    order = [run.id in ids for run in sorted([*a, *b], key=lambda run: str(run.manifest["created"]))]
    in_turn = len(a) == len(b) and all(order[n] != order[n + 1] for n in range(0, len(order), 2))
    return by_time[0], by_time[1], in_turn


def _ratio(a: Mapping[int, float], b: Mapping[int, float], in_turn: bool, lower_is_better: bool) -> RatioAt:
    if in_turn:
        return within_blocks(a, b, lower_is_better=lower_is_better)
    return between_sets(list(a.values()), list(b.values()), lower_is_better=lower_is_better)


def _with_needs(judgement: Judged, margin: float) -> Judged:
    """Return an inconclusive judgement with the number of runs at which its interval is as wide as the margin.

    The width shrinks with the square root of the number of runs.
    """
    if judgement.verdict is not Verdict.INCONCLUSIVE or judgement.ratio.interval is None:
        return judgement
    wide = math.log(judgement.ratio.interval.high / judgement.ratio.interval.low) / math.log(1 + margin)
    runs = math.ceil(judgement.ratio.runs * max(wide**2, 1.2))
    return replace(judgement, needs=gettext("about {count} runs of A and of B, made in turn", count=runs))


def _facts(runs: Sequence[Run]) -> dict[str, Any]:
    return {**facts_of(runs[0]), "id": ", ".join(run.id for run in runs)}
