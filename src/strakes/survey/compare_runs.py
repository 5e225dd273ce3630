"""Compare stored runs: one with one by the values within them, several with several by their medians.

Pure: reads the runs, accesses no target.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import PurePath

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import for_shell
from strakes.base.language import gettext, ngettext
from strakes.model.cell import Cell
from strakes.model.results import Measured
from strakes.runs.records import Visit
from strakes.runs.run import Run, told_as_damage
from strakes.stats.interval import median
from strakes.stats.ratios import (
    ONE_PAIR,
    Judged,
    RatioAt,
    Verdict,
    between_runs,
    between_sets,
    block_scores,
    judge,
    within_blocks,
)
from strakes.survey.analysis_collect import collect
from strakes.survey.analysis_held_back import held_back
from strakes.survey.compare_work import alike, amount_ratio, beside_imported, in_both
from strakes.survey.comparison import CellVerdict, Comparison, Overall, Unlike

# Load average per processor before a run. An earlier run of strakes leaves a lower one.
_OVERLOAD = 2.0
# Amounts of work may differ by this factor: the rates then differ by far less than the margin of a comparison.
_LIKE_AMOUNTS = 2.0
_SAME_MACHINE = ("host", "kernel", "cpu_model", "cpus", "memory_bytes")
# Kinds of runs whose amounts of work a pilot chose, so that another run of the command may have other amounts.
_CHOSEN_AMOUNTS = ("survey", "study", "accept", "reproduce")
# By whether A and B lack the figure.
_MISSING = {
    (True, False): "not measured in A",
    (False, True): "not measured in B",
    (True, True): "not measured in A and B",
}
_FREELY = "both measured without --impact and --neighbour, or at a quieter time"
_EQUALLY_FAST = {
    True: "runs while the client is equally fast: in work that does not touch the file system it was {share} faster "
    "in B",
    False: "runs while the client is equally fast: in work that does not touch the file system it was {share} slower "
    "in B",
}
_CLIENT = {
    True: "The client itself was {share} faster in B, in work that does not touch the file system.",
    False: "The client itself was {share} slower in B, in work that does not touch the file system.",
}
# One measure in all runs of A and of B.
_Row = tuple[Sequence[Measured], Sequence[Measured]]


def compare_runs(
    a: Sequence[Run],
    b: Sequence[Run],
    *,
    margin: float,
    confidence: float,
    factors: Sequence[str] = (),
    only: Sequence[str] = (),
) -> Comparison:
    """Compare the runs B with the runs A, over the cells that did the same work.

    ``margin``: share up to which rates count as equal. ``factors``: settings that may differ. ``only``: patterns of
    cell ids; fewer comparisons need fewer runs. Raises BadInputError for a run that is given twice, for several runs of
    which some are imported, and, with the reasons, if no cell can be compared.
    """
    every = [*a, *b]
    twice = next((run.id for run in every if sum(other.id == run.id for other in every) > 1), None)
    if twice is not None:
        raise BadInputError("a run is given twice", where=twice, remedy="Give each run once; strakes runs lists them.")
    imported = [cell.imported for run in every for cell in run.cells[:1]]
    if len(every) == 2:
        return _one_with_one(a[0], b[0], margin, confidence, factors, only, beside=any(imported) and not all(imported))
    if any(imported) and not all(imported):
        remedy = "Compare one run with one other: strakes compare A B."
        raise BadInputError("imported runs and runs of strakes cannot be compared several at a time", remedy=remedy)
    return _several(a, b, margin, confidence, factors, only)


def _one_with_one(
    a: Run, b: Run, margin: float, confidence: float, factors: Sequence[str], only: Sequence[str], *, beside: bool
) -> Comparison:
    any_amount = all(run.manifest["kind"] in _CHOSEN_AMOUNTS for run in (a, b))
    pairs, unlike = (
        beside_imported(a.cells, b.cells) if beside else alike(a.cells, b.cells, factors, any_amount=any_amount)
    )
    rows: list[tuple[Measured, Measured]] = []
    unequal: set[str] = set()
    for own, other, cells in _measured(a, b, pairs):
        missing = own.estimate is None, other.estimate is None
        if _wanted(own.id, only) and any(missing):
            unlike.append(Unlike(own.id, gettext(_MISSING[missing])))
        elif _wanted(own.id, only):
            rows.append((own, other))
            if not any(cell.imported for cell in cells) and amount_ratio(*cells) > _LIKE_AMOUNTS:
                unequal.add(own.id)
    if not rows:
        raise _nothing_alike(a, b, unlike, only)
    busy = [*_overloaded("A", a), *_overloaded("B", b)]
    client = _client_ratio(a.visits, b.visits)

    def decided(ratios: Sequence[RatioAt]) -> list[Judged]:
        judged = judge(ratios, confidence, margin, least=max(margin, ONE_PAIR))
        judged = [_by_the_client(_of_one_pair(one), client, margin) for one in judged]
        return [_not_claimed(one) for one in judged] if busy else judged

    limits, amounts = _limits(rows), _unequal(rows, unequal, a)
    withheld = {**limits.needs, **amounts.needs}
    judged = [
        _withheld(one, withheld[own.id]) if own.id in withheld else one
        for (own, _), one in zip(
            rows,
            decided([between_runs(*map(_values, row), lower_is_better=row[0].lower_is_better) for row in rows]),
            strict=True,
        )
    ]
    same_work = [row for row in rows if row[0].id not in unequal]
    scores = [block_scores([(row[side].by_block(), row[side].lower_is_better) for row in same_work]) for side in (0, 1)]
    if all(scores):
        overall = _overall(*decided([between_runs(*(list(each.values()) for each in scores))]))
    else:
        needs = gettext("a larger --budget, so that blocks measure every cell")
        overall = Overall(Verdict.INCONCLUSIVE, None, None, None, needs)
    for needs in list(limits.needs.values())[:1]:
        overall = replace(overall, verdict=Verdict.INCONCLUSIVE, low=None, high=None, needs=needs)
    cautions = [*busy, *limits.cautions, *amounts.cautions]
    if _cleared(a.visits, b.visits):
        text = gettext(
            "The two runs were made at different times. One pair does not show how much runs of the same system "
            "differ. So nothing is called SAME, and a difference counts only if it exceeds {share} % and the "
            "differences between the parts of each run. Eight or more runs of each, made in turn, show more: "
            "strakes compare A1,A2,... B1,B2,....",
            share=f"{100 * ONE_PAIR:.0f}",
        )
        cautions.insert(0, text)
    if not 1 / (1 + margin) <= client <= 1 + margin:
        cautions.append(gettext(_CLIENT[client > 1], share=_share_of(client)))
    verdicts = [_verdict([own], [other], one) for (own, other), one in zip(rows, judged, strict=True)]
    return _comparison([a], [b], confidence, margin, overall, verdicts, unlike, cautions)


@dataclass(frozen=True)
class _Reserve:
    """Figures without a verdict: what each needs for one, and a caution on all of them."""

    needs: Mapping[str, str]
    cautions: Sequence[str] = ()


def _limits(rows: Sequence[tuple[Measured, Measured]]) -> _Reserve:
    """Return the figures of other tools, or else those that --impact or --neighbour limited."""
    if any(cell.estimate is not None and cell.estimate.imported for row in rows for cell in row):
        text = gettext(
            "Imported figures are single points, so there is no verdict on them; a verdict needs runs of strakes "
            "on both sides."
        )
        return _Reserve({own.id: "" for own, _ in rows}, [text])
    limited = [own.id for own, other in rows if held_back(own) or held_back(other)]
    text = gettext(
        "{limited} of {all} figures were limited by --impact or --neighbour, so there is no verdict on them.",
        limited=len(limited),
        all=len(rows),
    )
    return _Reserve(dict.fromkeys(limited, gettext(_FREELY)), [text] if limited else [])


def _unequal(rows: Sequence[tuple[Measured, Measured]], unequal: Collection[str], a: Run) -> _Reserve:
    """Return the figures with unequal amounts of work."""
    if not unequal:
        return _Reserve({})
    text = gettext(
        "{unequal} of {all} figures were measured with amounts of work that differ more than {factor} times, "
        "so there is no verdict on them. To measure with equal amounts: --like {run}",
        unequal=len(unequal),
        all=len(rows),
        factor=f"{_LIKE_AMOUNTS:g}",
        run=a.id,
    )
    needs = gettext("equal amounts of work in both runs (--like {run})", run=a.id)
    return _Reserve(dict.fromkeys(unequal, needs), [text])


def _several(
    a: Sequence[Run], b: Sequence[Run], margin: float, confidence: float, factors: Sequence[str], only: Sequence[str]
) -> Comparison:
    """Compare sets of runs. Each run counts as one value, so that intervals include the variation between runs.

    If runs of A and B alternate in time, each is compared with its neighbour (paired).
    """
    a, b, in_turn = _in_turn(a, b)
    rows, unlike = _rows(a, b, factors, only)
    if not rows:
        raise _nothing_alike(a[0], b[0], unlike, only)
    cautions = [
        text for name, side in (("A", a), ("B", b)) for run in side for text in _overloaded(f"{name} ({run.id})", run)
    ]
    disturbed = bool(cautions) and not in_turn
    if not in_turn:
        cautions.append(
            gettext("The runs were not made in turn (A, B, A, B, ...), so only a difference beyond the margin counts.")
        )
    medians = [[dict(enumerate(map(_median, side))) for side in row] for row in rows]

    def ratio(sides: Sequence[Mapping[int, float]], lower: bool) -> RatioAt:
        if in_turn:
            return within_blocks(*sides, lower_is_better=lower)
        return between_sets(*(list(side.values()) for side in sides), lower_is_better=lower)

    def decided(ratios: Sequence[RatioAt]) -> list[Judged]:
        judged = judge(ratios, confidence, margin, least=0.0 if in_turn else margin)
        judged = [_with_needs(one, margin) for one in judged]
        return [_not_claimed(one) for one in judged] if disturbed else judged

    lower = [row[0][0].lower_is_better for row in rows]
    judged = decided([ratio(sides, one) for sides, one in zip(medians, lower, strict=True)])
    scores = [block_scores([(sides[side], one) for sides, one in zip(medians, lower, strict=True)]) for side in (0, 1)]
    overall = _overall(*decided([ratio(scores, False)]))
    verdicts = [_verdict(*row, one) for row, one in zip(rows, judged, strict=True)]
    return _comparison(a, b, confidence, margin, overall, verdicts, unlike, cautions)


def _comparison(
    a: Sequence[Run],
    b: Sequence[Run],
    confidence: float,
    margin: float,
    overall: Overall,
    verdicts: Sequence[CellVerdict],
    unlike: Sequence[Unlike],
    cautions: Sequence[str],
) -> Comparison:
    keys = ("id", "kind", "name", "created", "status")
    of_a, of_b = (
        {key: side[0].manifest[key] for key in keys if key in side[0].manifest}
        | {"target": side[0].directories, "id": ", ".join(run.id for run in side)}
        for side in (a, b)
    )
    differs = tuple(_differences(a[0], b[0]))
    return Comparison(of_a, of_b, confidence, margin, overall, tuple(verdicts), tuple(unlike), differs, tuple(cautions))


def _wanted(identifier: str, only: Sequence[str]) -> bool:
    return not only or any(fnmatchcase(identifier, pattern) for pattern in only)


def _measured(a: Run, b: Run, pairs: Sequence[tuple[Cell, Cell]]) -> list[tuple[Measured, Measured, tuple[Cell, Cell]]]:
    """Return the rates and times of pairs of cells, in both runs. Raises BadInputError for a damaged run."""
    results = []
    for side, run in enumerate((a, b)):
        with told_as_damage(run):
            # Several pairs may belong to one cell.
            keys = {pair[side].key for pair in pairs}
            cells = [cell for cell in run.cells if cell.key in keys]
            results.append(collect(cells, run.visits, float(run.manifest["options"]["confidence"]), {}))
    return [
        (results[0].get(own.measure_id(one.suffix)), results[1].get(other.measure_id(each.suffix)), (own, other))
        for own, other in pairs
        for one, each in zip(own.measures, other.measures, strict=True)
        if not one.is_side
    ]


def _rows(
    a: Sequence[Run], b: Sequence[Run], factors: Sequence[str], only: Sequence[str]
) -> tuple[list[_Row], list[Unlike]]:
    """Return the measures that all runs have, and the measures that are not compared."""
    sides: list[list[dict[str, Measured]]] = []
    for runs, keys in ((a, ()), (b, factors)):
        pairs = [(run, alike(a[0].cells, run.cells, keys)[0]) for run in runs]
        sides.append(
            [
                {own.id: other for own, other, _ in _measured(a[0], run, of_run) if other.estimate is not None}
                for run, of_run in pairs
            ]
        )
    rows: list[_Row] = []
    unlike = []
    for identifier in sides[0][0]:
        if not _wanted(identifier, only):
            continue
        both = tuple([measured[identifier] for measured in side if identifier in measured] for side in sides)
        if any(held_back(measured) for side in both for measured in side):
            unlike.append(Unlike(identifier, gettext("limited by --impact or --neighbour in at least one run")))
        elif [len(side) for side in both] == [len(a), len(b)]:
            rows.append((both[0], both[1]))
        else:
            one, several = "{measured} of {count} run of A", "{measured} of {count} runs of A"
            of_a = ngettext(one, several, len(a), measured=len(both[0]))
            one, several = "{measured} of {count} run of B", "{measured} of {count} runs of B"
            of_b = ngettext(one, several, len(b), measured=len(both[1]))
            unlike.append(Unlike(identifier, gettext("measured in {of_a} and {of_b}", of_a=of_a, of_b=of_b)))
    return rows, unlike


def _in_turn(a: Sequence[Run], b: Sequence[Run]) -> tuple[Sequence[Run], Sequence[Run], bool]:
    """Return both sides in the order of time, and whether runs came in pairs of one A and one B, in either order."""
    by_time = [sorted(side, key=lambda run: str(run.manifest["created"])) for side in (a, b)]
    ids = {run.id for run in a}
    order = [run.id in ids for run in sorted([*a, *b], key=lambda run: str(run.manifest["created"]))]
    in_turn = len(a) == len(b) and all(order[n] != order[n + 1] for n in range(0, len(order), 2))
    return by_time[0], by_time[1], in_turn


def _values(cell: Measured) -> list[float]:
    return list(cell.by_block().values())


def _median(cell: Measured) -> float:
    assert cell.estimate is not None
    return cell.estimate.median


def _verdict(a: Sequence[Measured], b: Sequence[Measured], judgement: Judged) -> CellVerdict:
    """Return the judgement of a measure, with medians and numbers of runs of A and B."""
    first, estimate_a, estimate_b = a[0], a[0].estimate, b[0].estimate
    median_a, median_b = (median(list(map(_median, side))) for side in (a, b))
    runs_a, runs_b = len(a), len(b)
    if runs_a == runs_b == 1 and estimate_a and estimate_b:
        runs_a, runs_b = estimate_a.runs, estimate_b.runs
    told = _told(judgement)
    return CellVerdict(first.id, first.settings, first.unit, *told, median_a, median_b, runs_a, runs_b, judgement.needs)


def _overall(judgement: Judged) -> Overall:
    return Overall(*_told(judgement), judgement.needs)


def _told(judgement: Judged) -> tuple[Verdict, float, float | None, float | None]:
    interval = judgement.ratio.interval
    low, high = (interval.low, interval.high) if interval else (None, None)
    return judgement.verdict, judgement.ratio.median, low, high


def _of_one_pair(judgement: Judged) -> Judged:
    """Turn SAME into INCONCLUSIVE: two runs may be equally fast by chance although their targets differ."""
    if judgement.verdict is not Verdict.SAME:
        return judgement
    needs = gettext("several runs of each, made in turn: strakes compare A1,A2,... B1,B2,...")
    return Judged(Verdict.INCONCLUSIVE, judgement.ratio, needs)


def _withheld(judgement: Judged, needs: str) -> Judged:
    return Judged(Verdict.INCONCLUSIVE, replace(judgement.ratio, interval=None), needs)


def _not_claimed(judgement: Judged) -> Judged:
    """Make the verdict on disturbed runs inconclusive; more such runs would not help."""
    if judgement.ratio.interval is None:
        return judgement
    needs = gettext(
        "runs on a quiet machine, or both targets interleaved in one run: strakes study NAME DIR --against DIR2"
    )
    return Judged(Verdict.INCONCLUSIVE, judgement.ratio, needs)


def _with_needs(judgement: Judged, margin: float) -> Judged:
    """Return an inconclusive judgement with the number of runs at which its interval is as wide as the margin.

    The width shrinks with the square root of the number of runs.
    """
    if judgement.verdict is not Verdict.INCONCLUSIVE or judgement.ratio.interval is None:
        return judgement
    wide = math.log(judgement.ratio.interval.high / judgement.ratio.interval.low) / math.log(1 + margin)
    runs = math.ceil(judgement.ratio.runs * max(wide**2, 1.2))
    return replace(judgement, needs=gettext("about {count} runs of A and of B, made in turn", count=runs))


def _client_ratio(a: Sequence[Visit], b: Sequence[Visit]) -> float:
    """Return how many times faster the client itself was in the visits ``b`` than in ``a``, or 1 if not measured."""
    seconds = [[visit.client_s for visit in visits if visit.client_s is not None] for visits in (a, b)]
    return median(seconds[0]) / median(seconds[1]) if all(seconds) else 1.0


def _by_the_client(judgement: Judged, ratio: float, least: float) -> Judged:
    """Return the verdict, made inconclusive if a change of the client's speed may explain it.

    ``ratio``: how many times faster the client was in B. A change up to ``least`` is ignored.
    """
    interval = judgement.ratio.interval
    if judgement.verdict is Verdict.INCONCLUSIVE or interval is None or 1 / (1 + least) <= ratio <= 1 + least:
        return judgement
    beyond = interval.low / ratio > 1 + ONE_PAIR, interval.high / ratio < 1 / (1 + ONE_PAIR)
    if beyond[judgement.ratio.median < 1]:
        return judgement
    needs = gettext(_EQUALLY_FAST[ratio > 1], share=_share_of(ratio))
    return replace(judgement, verdict=Verdict.INCONCLUSIVE, needs=needs)


def _share_of(ratio: float) -> str:
    return f"{100 * abs(ratio - 1):.0f} %"


def _overloaded(name: str, run: Run) -> list[str]:
    """Return a warning if the load before the run was higher than an earlier run of strakes leaves behind.

    Other users' load lowers the figures of a run, and differs between runs.
    """
    load, cpus = run.environment.get("load_average"), run.environment.get("cpus")
    if not load or not cpus or float(load[0]) <= _OVERLOAD * int(cpus):
        return []
    return [
        ngettext(
            "The machine of run {run} was already overloaded before the run: a load average of {load} on {count} CPU.",
            "The machine of run {run} was already overloaded before the run: a load average of {load} on {count} CPUs.",
            int(cpus),
            run=name,
            load=f"{float(load[0]):.1f}",
        )
    ]


def _cleared(a: Sequence[Visit], b: Sequence[Visit]) -> bool:
    """Return whether one run ended before the other began; True if times are unknown."""
    spans = [[visit.started_unix_s for visit in visits if visit.started_unix_s is not None] for visits in (a, b)]
    return not all(spans) or max(spans[0]) < min(spans[1]) or max(spans[1]) < min(spans[0])


def _differences(a: Run, b: Run) -> list[str]:
    """Return differences of target, machine and engine, which may explain a difference of the figures."""
    lines = []
    places = [_places(run) for run in (a, b)]
    if all(places) and not set(places[0]) & set(places[1]):
        lines.append(in_both("target", a.directories, b.directories))
    around = [(key.replace("_", " "), a.environment.get(key), b.environment.get(key)) for key in _SAME_MACHINE]
    around.append(("engine", *(run.environment.get("engine", {}).get("engine") for run in (a, b))))
    # Other tools print little about the machine. A fact that only one run has is not a difference.
    known = [(key, of_a, of_b) for key, of_a, of_b in around if of_a is not None and of_b is not None]
    return lines + [in_both(key, of_a, of_b) for key, of_a, of_b in known if of_a != of_b]


def _places(run: Run) -> list[str]:
    """Return the directories that a run may have measured. Other tools name a file or directory that they create."""
    if run.manifest["kind"] != "import":
        return [run.directories]
    target = PurePath(run.manifest["target"])
    return [str(target), str(target.parent)] if target.is_absolute() else []


def _again(run: Run) -> str:
    """Return advice on how to repeat the work of a run."""
    options, (kind, name) = run.manifest["options"], (run.manifest["kind"], run.manifest["name"])
    if kind == "import":
        command = options["imported"].get("again", "")
        if command:
            return f"Measure the imported work with all its options: {command}"
        return (
            f"strakes run cannot do this work of {name} by itself. Describe it as a plan whose phases have the names "
            "of its figures (examples/): strakes run PLAN.toml DIR"
        )
    if kind in ("survey", "study"):
        like = f"strakes {'survey' if kind == 'survey' else f'study {name}'} DIR --like {run.id}"
        return f"Measure the second with the plans of the first ({like}), or name what you compare (--factor KEY)."
    command = for_shell(options["command"])
    return f"Measure the second with the command of the first, or name what you compare (--factor KEY): {command}"


def _nothing_alike(a: Run, b: Run, unlike: Sequence[Unlike], only: Sequence[str]) -> BadInputError:
    """Return the error for two runs without comparable cells, with the differences."""
    reasons = "; ".join(f"{pair.id}: {pair.why}" for pair in unlike[:3]) or "no cell has such an id"
    more = f"; and {len(unlike) - 3} more" if len(unlike) > 3 else ""
    if only and not unlike:
        remedy = "PATTERN must match a cell id; strakes report --json lists the ids."
    else:
        imported = [run for run in (a, b) if run.manifest["kind"] == "import"]
        with told_as_damage(run := [*imported, a][0]):
            remedy = _again(run)
    return BadInputError(
        "the runs did not do the same work", where=f"{a.id} and {b.id}", why=reasons + more, remedy=remedy
    )
