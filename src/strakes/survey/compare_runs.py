"""Compare stored runs: two single runs by their rounds, or two sets of runs by the median of each run.

The comparison reads only stored data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import for_shell, shell_line
from strakes.base.language import gettext
from strakes.model.cell import Cell
from strakes.model.results import Measured
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
from strakes.survey.compare_work import ALIKE_TIMES, alike, amount_ratio, in_both
from strakes.survey.comparison import CellVerdict, Comparison, Overall, Unlike

# Warn if the load average per processor before a run exceeded this number. At 2, each process gets 50 %.
_OVERLOAD = 2.0
_SAME_MACHINE = ("host", "kernel", "cpu_model", "cpus", "memory_bytes")
_CHOSEN_AMOUNTS = ("survey", "study", "accept", "reproduce")
_CLIENT = {
    True: "The client itself was {share} faster in B, in work that does not touch the file system.",
    False: "The client itself was {share} slower in B, in work that does not touch the file system.",
}
_LISTED = "Choose another run: strakes runs lists them."
_Runs = Sequence[Run]
_Pairs = Sequence[tuple[Cell, Cell]]
_Row = tuple[list[Measured], list[Measured]]
_Sides = tuple[Mapping[int, float], Mapping[int, float]]


@dataclass(frozen=True)
class Rule:
    """Rule for the verdicts on ratios of B to A.

    ``single``: A and B are single runs, compared by their rounds. ``in_turn``: runs of A and B alternate. ``margin``:
    relative difference up to which rates count as equal. ``client``: speed of the client in B divided by A. ``load``:
    ratio that the machine's load may have caused. ``quiet``: after an overload, the advice to get a sure verdict.
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
        """Return whether a ratio is within the margin."""
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


def compare_runs(a: _Runs, b: _Runs, *, margin: float, confidence: float, factors: Sequence[str] = ()) -> Comparison:
    """Return the comparison of runs B with runs A, over the measurements that did the same work.

    Two single runs are compared by their rounds. Sets of runs are compared by the median of each run, in pairs if A and
    B alternate in time. ``margin``: relative difference up to which rates count as equal. ``factors``: settings that
    may differ. Raises BadInputError for runs that cannot be compared.
    """
    a, b, in_turn = _in_turn(a, b)
    matches, unlike = _matches(a, b, factors)
    rows, missing = _rows(a, b, matches)
    unlike += missing
    if not rows:
        raise _nothing_alike(a[0], b[0], unlike)
    single = len(a) == len(b) == 1
    cautions = [text for name, side in (("A", a), ("B", b)) for run in side for text in _overloaded(name, run)]
    quiet = _to_be_sure(a[0], b[0]) if cautions and not in_turn else ""
    client = _client_ratio(a[0], b[0]) if single else 1.0
    rule = Rule(single, in_turn, margin, confidence, client, _load(a) / _load(b), quiet)
    withheld, unequal, reasons = _withheld(a, b, rows, matches, single=single)
    cautions = [*_made_apart(rule), *cautions, *reasons]
    if not rule.counts_as_equal(client):
        cautions.append(gettext(_CLIENT[client > 1], share=f"{100 * abs(client - 1):.0f} %"))
    values = {name: (_values(row[0], single), _values(row[1], single)) for name, row in rows.items()}
    lower = {name: row[0][0].direction < 0 for name, row in rows.items()}
    judged = rule.verdicts([rule.ratio(*sides, lower_is_better=lower[name]) for name, sides in values.items()])
    verdicts = tuple(
        _verdict(*row, one if name not in withheld else _without_verdict(one, withheld[name]))
        for (name, row), one in zip(rows.items(), judged, strict=True)
    )
    scored = [(values[name], lower[name]) for name in rows if name not in unequal]
    overall = _overall(rule, scored, withheld, unequal)
    differs = tuple(_differences(a[0], b[0]))
    sides = (_described(a), _described(b))
    return Comparison(*sides, confidence, margin, overall, verdicts, tuple(unlike), differs, tuple(cautions))


def _overall(
    rule: Rule, scored: Sequence[tuple[_Sides, bool]], withheld: Mapping[str, str], unequal: set[str]
) -> Overall:
    a, b = (block_scores([(sides[side], lower) for sides, lower in scored]) for side in (0, 1))
    if a and b:
        overall = Overall(*_told(*rule.verdicts([rule.ratio(a, b)])))
    else:
        needs = gettext("a larger --budget, so that all cells are measured in more blocks")
        overall = Overall(Verdict.INCONCLUSIVE, None, None, None, needs)
    if unequal and overall.verdict is Verdict.INCONCLUSIVE and not (scored and rule.quiet):
        overall = replace(overall, needs=withheld[min(unequal)])
    for needs in [needs for name, needs in withheld.items() if name not in unequal][:1]:
        overall = replace(overall, verdict=Verdict.INCONCLUSIVE, low=None, high=None, needs=needs, grade="")
    return overall


def _without_verdict(judged: Judged, needs: str) -> Judged:
    return Judged(Verdict.INCONCLUSIVE, replace(judged.ratio, interval=None), needs)


def _made_apart(rule: Rule) -> list[str]:
    if rule.single:
        text = gettext(
            "A single pair of runs does not show how much runs of the same system differ. So no verdict is SAME, and a "
            "difference counts only if it is larger than {share} % and larger than the changes within each run. Eight "
            "or more runs each of A and B, made in turn, show more: strakes compare A1,A2,... B1,B2,...",
            share=f"{100 * ONE_PAIR:.0f}",
        )
        return [text]
    text = "The runs were not made in turn (A, B, A, B, ...), so only a difference beyond the margin counts."
    return [] if rule.in_turn else [gettext(text)]


def _matches(a: _Runs, b: _Runs, factors: Sequence[str]) -> tuple[list[_Pairs], list[Unlike]]:
    every = [*a, *b]
    twice = next((run.id for run in every if sum(other.id == run.id for other in every) > 1), None)
    if twice is not None:
        raise BadInputError("a run is given twice", where=twice, remedy="Give each run once. See strakes runs.")
    if empty := next((run for run in every if not run.cells), None):
        empty.require_whole()
        why = "the run is still in progress, or was interrupted before its first result"
        raise BadInputError("this run has no results", where=empty.id, why=why, remedy=_LISTED)
    imported = [cell.imported for run in every for cell in run.cells[:1]]
    if any(imported) and not all(imported):
        remedy = "Compare imported runs with each other. strakes report RUN shows the figures of a run."
        raise BadInputError("imported runs and runs of strakes cannot be compared", remedy=remedy)
    any_amount = all(run.manifest["kind"] in _CHOSEN_AMOUNTS for run in every)
    of_a = [alike(a[0].cells, run.cells, (), any_amount=any_amount)[0] for run in a[1:]]
    of_b = [alike(a[0].cells, run.cells, factors, any_amount=any_amount) for run in b]
    pairs, unlike = of_b[0]
    return [[(own, own) for own, _ in pairs], *of_a, *(each for each, _ in of_b)], unlike


def _rows(a: _Runs, b: _Runs, matches: Sequence[_Pairs]) -> tuple[dict[str, _Row], list[Unlike]]:
    found = [_measured(run, pairs) for run, pairs in zip((*a, *b), matches, strict=True)]
    ids = [own.measure_id(one.suffix) for own, _ in matches[0] for one in own.measures if not one.is_side]
    rows: dict[str, _Row] = {}
    lacking = []
    for name in ids:
        sides = found[: len(a)], found[len(a) :]
        row = ([one[name] for one in sides[0] if name in one], [one[name] for one in sides[1] if name in one])
        if (len(row[0]), len(row[1])) == (len(a), len(b)):
            rows[name] = row
            continue
        in_a, in_b = f"{len(row[0])}/{len(a)}", f"{len(row[1])}/{len(b)}"
        text = gettext("measured only in {runs_a} of the runs of A and {runs_b} of B", runs_a=in_a, runs_b=in_b)
        lacking.append(Unlike(name, text))
    return rows, lacking


def _measured(run: Run, pairs: _Pairs) -> dict[str, Measured]:
    keys = {cell.key for _, cell in pairs}
    with told_as_damage(run):
        cells = [cell for cell in run.cells if cell.key in keys]
        results = collect(cells, run.visits, float(run.manifest["options"]["confidence"]), {})
    found = {
        own.measure_id(one.suffix): results.get(cell.measure_id(each.suffix))
        for own, cell in pairs
        for one, each in zip(own.measures, cell.measures, strict=True)
        if not one.is_side
    }
    return {name: measured for name, measured in found.items() if measured.estimate is not None}


def _withheld(
    a: _Runs, b: _Runs, rows: Mapping[str, _Row], matches: Sequence[_Pairs], *, single: bool
) -> tuple[dict[str, str], set[str], list[str]]:
    if single and any(pair[0].imported for pair in matches[0]):
        text = (
            "Imported figures are single points, so there is no verdict on them; a verdict needs runs of strakes "
            "on both sides."
        )
        return dict.fromkeys(rows, ""), set(), [gettext(text)]
    reasons = []
    limited = [name for name, row in rows.items() if any(held_back(cell) for side in row for cell in side)]
    if limited:
        text = "{limited} of {all} figures have no verdict, because --impact or --neighbour limited the load."
        reasons.append(gettext(text, limited=len(limited), all=len(rows)))
    like = _like(a[0], str(b[0].manifest["target"]))
    pairs = [pair for of_run in matches for pair in of_run if not pair[0].imported]
    far = [own for own, other in pairs if amount_ratio(own, other) > ALIKE_TIMES]
    unequal = {own.measure_id(measure.suffix) for own in far for measure in own.measures}.intersection(rows)
    if unequal:
        text = gettext(
            "{unequal} of {all} figures have no verdict, because the amounts of work in A and B differ by more than "
            "a factor of {factor}. To measure with equal amounts: {command}",
            unequal=len(unequal),
            all=len(rows),
            factor=f"{ALIKE_TIMES:g}",
            command=like,
        )
        reasons.append(text)
    freely = gettext("new runs of A and B at a quieter time, or without --impact and --neighbour")
    equally = gettext("equal amounts of work in both runs: {command}", command=like)
    return dict.fromkeys(limited, freely) | dict.fromkeys(unequal, equally), unequal, reasons


def _in_turn(a: _Runs, b: _Runs) -> tuple[_Runs, _Runs, bool]:
    by_time = [sorted(side, key=lambda run: str(run.manifest["created"])) for side in (a, b)]
    ids = {run.id for run in a}
    order = [run.id in ids for run in sorted([*a, *b], key=lambda run: str(run.manifest["created"]))]
    in_turn = len(a) == len(b) > 1 and all(order[n] != order[n + 1] for n in range(0, len(order), 2))
    return by_time[0], by_time[1], in_turn


def _values(side: Sequence[Measured], single: bool) -> Mapping[int, float]:
    return side[0].by_block() if single else dict(enumerate(map(_median, side)))


def _median(cell: Measured) -> float:
    assert cell.estimate is not None
    return cell.estimate.median


def _verdict(a: Sequence[Measured], b: Sequence[Measured], judgement: Judged) -> CellVerdict:
    first, of_a, of_b = a[0], a[0].estimate, b[0].estimate
    median_a, median_b = (median(list(map(_median, side))) for side in (a, b))
    runs_a, runs_b = len(a), len(b)
    if runs_a == runs_b == 1 and of_a and of_b:
        runs_a, runs_b = of_a.runs, of_b.runs
    verdict, ratio, low, high, needs, grade = _told(judgement)
    about = first.id, first.settings, first.unit
    return CellVerdict(*about, verdict, ratio, low, high, median_a, median_b, runs_a, runs_b, needs, grade)


def _told(judgement: Judged) -> tuple[Verdict, float, float | None, float | None, str, str]:
    interval = judgement.ratio.interval
    low, high = (interval.low, interval.high) if interval else (None, None)
    return judgement.verdict, judgement.ratio.median, low, high, judgement.needs, judgement.grade


def _described(side: _Runs) -> dict[str, object]:
    first = side[0]
    keys = ("kind", "name", "created", "status")
    about = {key: first.manifest[key] for key in keys if key in first.manifest}
    return about | {"target": first.directories, "id": ", ".join(run.id for run in side)}


def _to_be_sure(a: Run, b: Run) -> str:
    if a.directories == b.directories:
        return gettext("new runs on a machine without other load")
    study = b.manifest["name"] if b.manifest["kind"] == "study" else "overview"
    words = ["strakes", "study", str(study), str(a.manifest["target"]), "--against", str(b.manifest["target"])]
    return gettext("one run that measures both directories in turn: {command}", command=shell_line(words))


def _client_ratio(a: Run, b: Run) -> float:
    seconds = [[visit.client_s for visit in run.visits if visit.client_s is not None] for run in (a, b)]
    return median(seconds[0]) / median(seconds[1]) if all(seconds) else 1.0


def _load(side: _Runs) -> float:
    facts = [(run.environment.get("load_average"), run.environment.get("cpus")) for run in side]
    return max([1.0, *(float(load[0]) / int(cpus) for load, cpus in facts if load and cpus)])


def _overloaded(side: str, run: Run) -> list[str]:
    load, cpus = run.environment.get("load_average"), run.environment.get("cpus")
    if not load or not cpus or float(load[0]) <= _OVERLOAD * int(cpus):
        return []
    text = "The machine of run {run} was already overloaded before the run: load average {load}, processors: {count}."
    return [gettext(text, run=f"{side} ({run.id})", load=f"{float(load[0]):.1f}", count=cpus)]


def _differences(a: Run, b: Run) -> list[str]:
    around = [(key.replace("_", " "), a.environment.get(key), b.environment.get(key)) for key in _SAME_MACHINE]
    around.append(("engine", *(run.environment.get("engine", {}).get("engine") for run in (a, b))))
    known = [in_both(key, *both) for key, *both in around if None not in both and both[0] != both[1]]
    return known if a.directories == b.directories else [in_both("target", a.directories, b.directories), *known]


def _like(run: Run, directory: str) -> str:
    words = {"survey": ["survey"], "study": ["study", str(run.manifest["name"])]}.get(str(run.manifest["kind"]))
    return shell_line(["strakes", *words, directory, "--like", run.id] if words else ["--like", run.id])


def _again(run: Run) -> str:
    factor = "name the setting that differs: --factor KEY"
    if run.manifest["kind"] == "import":
        return f"Import results of the same work, or {factor}."
    if run.manifest["kind"] in ("survey", "study"):
        return f"Measure the second run with the plans of the first ({_like(run, 'DIR')}), or {factor}."
    command = for_shell(run.manifest["options"]["command"])
    return f"Measure the second run with the command of the first ({command}), or {factor}."


def _nothing_alike(a: Run, b: Run, unlike: Sequence[Unlike]) -> BadInputError:
    reasons = "; ".join(f"{pair.id}: {pair.why}" for pair in unlike[:3]) or "no id of a cell matches"
    more = f"; and {len(unlike) - 3} more" if len(unlike) > 3 else ""
    with told_as_damage(a):
        remedy = _again(a)
    return BadInputError(
        "the runs did not do the same work", where=f"{a.id} and {b.id}", why=reasons + more, remedy=remedy
    )
