"""Compare two stored runs. Pure: reads the runs, accesses no target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import for_shell
from strakes.base.language import gettext, ngettext
from strakes.model.cell import Cell
from strakes.model.results import Measured, Results
from strakes.runs.records import Visit
from strakes.runs.run import Run, told_as_damage
from strakes.stats.comparison import ONE_PAIR, Judged, between_runs, block_scores, judge
from strakes.stats.contrast import Verdict
from strakes.survey.analysis_collect import collect
from strakes.survey.analysis_held_back import held_back
from strakes.survey.compare_client import by_the_client, caution_on, client_ratio
from strakes.survey.compare_imported import beside_imported
from strakes.survey.compare_work import alike, amount_ratio, in_both
from strakes.survey.comparison import CellVerdict, Comparison, Overall, Unlike

# Load average per processor before a run. An earlier run of strakes leaves a lower one.
_OVERLOAD = 2.0
# Amounts of work may differ by this factor: the rates then differ by far less than the margin of a comparison.
_LIKE_AMOUNTS = 2.0
_SAME_MACHINE = ("host", "kernel", "cpu_model", "cpus", "memory_bytes")


def compare_runs(
    a: Run, b: Run, *, margin: float, confidence: float, factors: Sequence[str] = (), only: Sequence[str] = ()
) -> Comparison:
    """Compare B with A, over the cells that did the same work.

    ``margin``: share up to which rates count as equal. ``factors``: settings that may differ. ``only``: patterns of
    cell ids; fewer comparisons need fewer runs. Raises BadInputError if no cell can be compared, with the reasons.
    """
    if a.id == b.id:
        raise BadInputError(
            "A and B are the same run", where=a.id, remedy="Give the ids of two runs; strakes runs lists them."
        )
    beside = [cell.imported for run in (a, b) for cell in run.cells[:1]]
    pairs, unlike = (
        beside_imported(a.cells, b.cells)
        if any(beside) and not all(beside)
        else alike(a.cells, b.cells, factors, any_amount=_chose_amounts(a) and _chose_amounts(b))
    )
    # Several pairs may belong to one cell.
    results_a, results_b = (
        results_of(run, list({pair[side].key: cells[pair[side].key] for pair in pairs}.values()))
        for side, (run, cells) in enumerate((run, {cell.key: cell for cell in run.cells}) for run in (a, b))
    )
    more_work = {
        results_a.get(first.measure_id(measure.phase)).id
        for first, other in pairs
        if not first.imported and not other.imported and amount_ratio(first, other) > _LIKE_AMOUNTS
        for measure in first.measures
    }
    common = [
        (results_a.get(first.measure_id(measure.phase)), results_b.get(other.measure_id(measure.phase)))
        for first, other in pairs
        for measure in first.measures
        if not measure.is_side
    ]
    wanted = [pair for pair in common if not only or any(fnmatchcase(pair[0].id, pattern) for pattern in only)]
    for own, other in wanted:
        missing = own.estimate is None, other.estimate is None
        if any(missing):
            unlike.append(Unlike(own.id, gettext(_MISSING[missing])))
    measured = [(first, other) for first, other in wanted if first.estimate is not None and other.estimate is not None]
    if not measured:
        raise nothing_alike(a, b, unlike, only)
    cautions: list[str] = []
    if _cleared(a.visits, b.visits):
        cautions.append(
            gettext(
                "The two runs were made at different times. One pair does not show how much runs of the same system "
                "differ. So nothing is called SAME, and a difference counts only if it exceeds {share} % and the "
                "differences between the parts of each run. Eight or more runs of each, made in turn, show more: "
                "strakes compare A1,A2,... B1,B2,....",
                share=f"{100 * ONE_PAIR:.0f}",
            )
        )
    busy = overloaded("A", a) + overloaded("B", b)
    cautions += busy
    disturbed = bool(busy)
    ratios = [
        between_runs(_values(first), _values(other), lower_is_better=first.lower_is_better) for first, other in measured
    ]
    client = client_ratio(a.visits, b.visits)
    if not 1 / (1 + margin) <= client <= 1 + margin:
        cautions.append(caution_on(client))
    judged = [
        by_the_client(_of_one_pair(judgement), client, margin)
        for judgement in judge(ratios, confidence, margin, least=max(margin, ONE_PAIR))
    ]
    judged = [not_claimed(judgement) if disturbed else judgement for judgement in judged]
    imported = any(cell.estimate is not None and cell.estimate.imported for pair in measured for cell in pair)
    if imported:
        judged = [_withheld(judgement, "") for judgement in judged]
        cautions.append(
            gettext(
                "Imported figures are single points, so there is no verdict on them; a verdict needs runs of strakes "
                "on both sides."
            )
        )
    held = [bool(held_back(first) or held_back(other)) for first, other in measured]
    if any(held):
        judged = [
            _withheld(judgement, gettext(_FREELY)) if limited else judgement
            for judgement, limited in zip(judged, held, strict=True)
        ]
        cautions.append(
            gettext(
                "{limited} of {all} figures were limited by --impact or --neighbour, so there is no verdict on them.",
                limited=sum(held),
                all=len(held),
            )
        )
    unequal = [first.id in more_work for first, _ in measured]
    if any(unequal):
        needs = gettext("equal amounts of work in both runs (--like {run})", run=a.id)
        judged = [
            _withheld(judgement, needs) if differs else judgement
            for judgement, differs in zip(judged, unequal, strict=True)
        ]
        cautions.append(
            gettext(
                "{unequal} of {all} figures were measured with amounts of work that differ more than {factor} times, "
                "so there is no verdict on them. To measure with equal amounts: --like {run}",
                unequal=sum(unequal),
                all=len(unequal),
                factor=f"{_LIKE_AMOUNTS:g}",
                run=a.id,
            )
        )
    same_work = [pair for pair, differs in zip(measured, unequal, strict=True) if not differs]
    overall = _overall(same_work, confidence, margin, client, disturbed=disturbed)
    if any(held) or imported:
        needs = "" if imported else gettext(_FREELY)
        overall = replace(overall, verdict=Verdict.INCONCLUSIVE, low=None, high=None, needs=needs)
    return Comparison(
        a=facts_of(a),
        b=facts_of(b),
        confidence=confidence,
        margin=margin,
        overall=overall,
        cells=tuple(_cell(first, other, judgement) for (first, other), judgement in zip(measured, judged, strict=True)),
        unlike=tuple(unlike),
        differs=tuple(differences(a, b)),
        caution=tuple(cautions),
    )


def _chose_amounts(run: Run) -> bool:
    """Return whether a pilot chose the amounts of work, so that another run of the command may have other amounts."""
    return run.manifest["kind"] in ("survey", "study", "accept", "reproduce")


def results_of(run: Run, cells: Sequence[Cell]) -> Results:
    """Collect the cells of a run, without facts of its file system. Raises BadInputError for a damaged run."""
    with told_as_damage(run):
        return collect(cells, run.visits, float(run.manifest["options"]["confidence"]), {})


def _values(cell: Measured) -> list[float]:
    return list(cell.by_block().values())


def _overall(
    pairs: Sequence[tuple[Measured, Measured]], confidence: float, margin: float, client: float, *, disturbed: bool
) -> Overall:
    a, b = (block_scores([(pair[side].by_block(), pair[side].lower_is_better) for pair in pairs]) for side in (0, 1))
    if not a or not b:
        needs = gettext("a larger --budget, so that blocks measure every cell")
        return Overall(Verdict.INCONCLUSIVE, None, None, None, needs)
    ratios = [between_runs(list(a.values()), list(b.values()))]
    (judgement,) = judge(ratios, confidence, margin, least=max(margin, ONE_PAIR))
    judgement = by_the_client(_of_one_pair(judgement), client, margin)
    return overall_of(not_claimed(judgement) if disturbed else judgement)


def _cell(cell: Measured, other: Measured, judgement: Judged) -> CellVerdict:
    assert cell.estimate is not None and other.estimate is not None
    medians, runs = (cell.estimate.median, other.estimate.median), (cell.estimate.runs, other.estimate.runs)
    return verdict_on(cell, judgement, medians, runs)


def verdict_on(cell: Measured, judgement: Judged, medians: tuple[float, float], runs: tuple[int, int]) -> CellVerdict:
    """Return the judgement of a cell, with the medians and numbers of runs of A and B."""
    return CellVerdict(cell.id, cell.settings, cell.unit, *_told(judgement), *medians, *runs, judgement.needs)


def overall_of(judgement: Judged) -> Overall:
    """Return the judgement of all cells together."""
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


# By whether A and B lack the figure.
_MISSING = {
    (True, False): "not measured in A",
    (False, True): "not measured in B",
    (True, True): "not measured in A and B",
}
_FREELY = "both measured without --impact and --neighbour, or at a quieter time"


def _withheld(judgement: Judged, needs: str) -> Judged:
    return Judged(Verdict.INCONCLUSIVE, replace(judgement.ratio, interval=None), needs)


def not_claimed(judgement: Judged) -> Judged:
    """Make the verdict on disturbed runs inconclusive; more such runs would not help."""
    if judgement.ratio.interval is None:
        return judgement
    needs = gettext(
        "runs on a quiet machine, or both targets interleaved in one run: strakes study NAME DIR --against DIR2"
    )
    return Judged(Verdict.INCONCLUSIVE, judgement.ratio, needs)


def overloaded(name: str, run: Run) -> list[str]:
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


def facts_of(run: Run) -> dict[str, Any]:
    """Return the facts about a run that the comparison shows."""
    keys = ("id", "kind", "name", "created", "status")
    return {**{key: run.manifest[key] for key in keys if key in run.manifest}, "target": run.directories}


def differences(a: Run, b: Run) -> list[str]:
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


def nothing_alike(a: Run, b: Run, unlike: Sequence[Unlike], only: Sequence[str]) -> BadInputError:
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
