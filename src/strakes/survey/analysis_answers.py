"""Answer the questions of a run with grades, and judge the claims. All functions are pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from strakes.base.language import gettext
from strakes.model.answers import Answer, Claim, Comparison, Mean, Option, Question
from strakes.model.portrait import Finding, IntervalOf
from strakes.model.results import Measured, Results
from strakes.model.sample import Sample
from strakes.stats import grades
from strakes.stats.claims import Bound, Judgement, judge
from strakes.stats.grades import INTERVAL_CONFIDENCE, Choice, Versus
from strakes.studies.compose import from_own_cache, mean_log_values
from strakes.studies.registry import study_named
from strakes.studies.study import Study
from strakes.survey.analysis_held_back import held_back

# If other programs use at least this share of the processor time, warn, and correct the answers.
BUSY_CPU_SHARE = 0.25

# A rate belongs to a burst if it exceeds this multiple of the rate with four times the work. The largest multiple
# on systems without burst credits was 1.7 (reads on CephFS). On two systems with credits, it was 4 to 9.7.
_BURST_TIMES = 2.0
_CACHED = "from this client's cache"
_CREATING = ("file-create", "dir-create", "accumulate", "transactions")
_MORE_BLOCKS = "more blocks: give a larger --budget"


def questions_of(studies: Sequence[Study], results: Results) -> list[Question]:
    """Return the questions of all studies that ``results`` can answer."""
    return [question for study in studies for question in study.questions(results.of_study(study.name))]


def _values(option: Option, results: Results) -> dict[int, float]:
    return _mean(option.measures, option.mean, results)


def _mean(measures: Sequence[str], mean: Mean, results: Results) -> dict[int, float]:
    cells = [results.get(measure) for measure in measures]
    # Return no values under a load limit: the rates show the limit, not the file system.
    if any(map(held_back, cells)):
        return {}
    return mean_log_values([_on_idle_processors(cell, results.facts) for cell in cells], mean)


def claims_of(studies: Sequence[Study], results: Results) -> list[Claim]:
    """Return the claims of all studies that ``results`` can confirm or refute."""
    return [claim for study in studies for claim in study.claims(results.of_study(study.name))]


def bounds_of(claims: Sequence[Claim], results: Results) -> list[list[Bound]]:
    """Return the conditions of each claim as bounds on ratios of measured values."""
    return [
        [
            Bound(_mean(part.a, part.mean, results), _mean(part.b, part.mean, results), part.low, part.high)
            for part in claim.parts
        ]
        for claim in claims
    ]


_VERDICTS: Mapping[bool, tuple[Literal["holds", "does-not"], str, str]] = {
    True: ("holds", "holds here", "not decided; leaning to yes"),
    False: ("does-not", "does not hold here", "not decided; leaning to no"),
}


def judged(claims: Sequence[Claim], results: Results) -> list[Finding]:
    """Return a graded verdict on each published claim: inconclusive if there are fewer than three paired values."""
    claims = [claim for claim in claims if not _is_of_slowed_creates(claim.measures, results)]
    found = judge(bounds_of(claims, results))
    return [_finding(claim, judgement, results) for claim, judgement in zip(claims, found, strict=True)]


def _finding(claim: Claim, judgement: Judgement | None, results: Results) -> Finding:
    cells = claim.measures
    if judgement is None:
        text = gettext("{statement}: not decided; too few blocks contain both settings.", statement=claim.statement)
        needs = gettext(_MORE_BLOCKS)
        return Finding(claim.id, claim.study, text, "inconclusive", cells, needs=needs, grade="undecided")
    verdict, *words = _VERDICTS[judgement.holds]
    word = gettext(words[judgement.grade == "undecided"])
    ratios = gettext(", ").join(
        f"{part.ratio} {ratio.ratio:.3g} [{ratio.low:.3g}-{ratio.high:.3g}]"
        for part, ratio in zip(claim.parts, judgement.ratios, strict=True)
    )
    if any(from_own_cache(results.get(cell), results.facts) for cell in cells):
        ratios = gettext("; ").join((ratios, gettext(_CACHED)))
    deciding = judgement.ratios[judgement.part]
    return Finding(
        claim.id,
        claim.study,
        gettext("{statement}: {word}: {ratios}.", statement=claim.statement, word=word, ratios=ratios),
        "inconclusive" if judgement.grade == "undecided" else verdict,
        cells,
        IntervalOf(deciding.low, deciding.high, INTERVAL_CONFIDENCE, claim.parts[judgement.part].ratio, "times"),
        gettext(_MORE_BLOCKS) if judgement.grade == "undecided" else "",
        grade=judgement.grade,
    )


def choices_of(questions: Sequence[Question], results: Results) -> list[Choice]:
    """Return a Choice for each question: the measured values of the question's options."""
    biased = _is_busy(results.facts)
    return [
        Choice(tuple(_values(option, results) for option in question.options), question.ordered, biased)
        for question in questions
    ]


def answers_of(questions: Sequence[Question], results: Results) -> tuple[Answer, ...]:
    """Return the answers to the questions, with grades of certainty. Omit questions with too few paired values."""
    found = grades.grade(choices_of(questions, results))
    return tuple(
        _answer(question, _agreeing(question, answer, results), results)
        for question, answer in zip(questions, found, strict=True)
        if answer and not _is_of_slowed_creates(question.measures, results)
    )


def _agreeing(question: Question, answer: grades.Answer, results: Results) -> grades.Answer:
    """Return the answer, with the grade "undecided" for rates of a burst or if another computation contradicts it.

    The other computation extends phases that end at their time limit until the slowest rank has done as much as the
    mean rank. On a busy machine, it also omits the correction for the load of other programs.
    """
    counts = [replace(results, measured=tuple(map(_until_slowest_rank, results.measured)))]
    if _is_busy(results.facts):
        counts.append(replace(results, facts={**results.facts, "others_busy": 0}))
    values = [[_values(option, count) for option in question.options] for count in counts]

    def gains(versus: Versus, levels: Sequence[Mapping[int, float]]) -> bool:
        chosen, other = levels[answer.chosen], levels[versus.level]
        return sum(chosen[block] - other[block] for block in chosen.keys() & other.keys()) > 0

    operations = {results.get(measure).settings.get("operation") for measure in question.measures}
    burst = not operations.isdisjoint(bursts(results.facts))

    def agreeing(versus: Versus) -> Versus:
        agreed = not burst and (versus.grade == "alike" or all(gains(versus, levels) for levels in values))
        return versus if agreed else replace(versus, grade="undecided")

    versus = agreeing(answer.versus)
    return replace(answer, grade=versus.grade, versus=versus, others=tuple(map(agreeing, answer.others)))


def bursts(facts: Mapping[str, Any]) -> dict[Any, float]:
    """Return operation -> slowdown with four times the work, for operations that are fast only at first (burst)."""
    return {name: times for name, (times, _) in facts.get("longer", {}).items() if times > _BURST_TIMES}


def is_slowed_by_removals(cell: Measured, facts: Mapping[str, Any]) -> bool:
    """Return whether the measurement creates files on ext4 without a journal, where earlier removals slow it down.

    Without a journal, ext4 reuses inodes of removed files only after one to five minutes, and until then skips them
    (recently_deleted() in fs/ext4/ialloc.c).
    """
    without_journal = (facts.get("block_device") or {}).get("no_journal")
    return bool(without_journal) and any(seen.sample.operation in _CREATING for seen in cell.observations)


def _is_of_slowed_creates(measures: Sequence[str], results: Results) -> bool:
    return any(is_slowed_by_removals(results.get(measure), results.facts) for measure in measures)


def answer_among(cells: Sequence[Measured], results: Results, *, ordered: bool = False) -> Answer | None:
    """Return the answer to "which of these settings is best?", graded together with all questions of the run.

    If a study of the run asks this question, return that answer, so that advice and report have the same grade.
    """
    studies = dict.fromkeys(cell.study for cell in results.measured)
    asked = questions_of([study_named(name) for name in studies], results)
    compared = {(cell.id,) for cell in cells}
    own = Question("advice", cells[0].study, "", tuple(Option(cell.id, (cell.id,)) for cell in cells), ordered)
    same = (one for one in asked if one.ordered == ordered and {option.measures for option in one.options} == compared)
    wanted = next(same, own)
    answers = answers_of(asked if wanted is not own else [*asked, own], results)
    return next((answer for answer in answers if answer.id == wanted.id), None)


def _answer(question: Question, answer: grades.Answer, results: Results) -> Answer:
    def comparison(versus: Versus) -> Comparison:
        option = question.options[versus.level]
        return Comparison(option.label, option.measures[0], versus.ratio, versus.low, versus.high, versus.grade)

    chosen = question.options[answer.chosen]
    against = question.options[answer.versus.level]
    common = _values(chosen, results).keys() & _values(against, results).keys()
    return Answer(
        question.id,
        question.study,
        question.title,
        answer.grade,
        chosen.label,
        chosen.measures[0],
        comparison(answer.versus),
        tuple(map(comparison, answer.others)),
        INTERVAL_CONFIDENCE,
        len(common),
        answer.within,
        question.alike,
        question.advises,
        question.remark,
    )


def _is_busy(facts: Mapping[str, Any]) -> bool:
    return float(facts.get("others_busy") or 0) > BUSY_CPU_SHARE


def _on_idle_processors(cell: Measured, facts: Mapping[str, Any]) -> Measured:
    # Do not correct FUSE: its client process also waits for processors, which the counters of ranks do not show.
    if cell.is_side or not _is_busy(facts) or str(facts.get("file_system", "")).startswith("fuse"):
        return cell
    seen = [replace(one, value=one.value * slowdown(one.sample, facts) ** cell.direction) for one in cell.observations]
    return replace(cell, observations=tuple(seen))


def _until_slowest_rank(cell: Measured) -> Measured:
    seen = [replace(one, value=one.value * _balance(one.sample) ** cell.direction) for one in cell.observations]
    return cell if cell.is_side else replace(cell, observations=tuple(seen))


def _balance(sample: Sample) -> float:
    """Return the slowest rank's work divided by the mean rank's work. It is 1 if no time limit ended the phase."""
    done = sample.column("operations")
    return min(done) * len(done) / sum(done) if sample.stopped_by == "seconds" and any(done) else 1.0


def slowdown(sample: Sample, facts: Mapping[str, Any]) -> float:
    """Return the factor by which other programs on the processors lengthened a phase.

    The factor is the phase's duration divided by the duration without other programs, the larger of two estimates: the
    ranks' total running time / c (utilization law, Denning and Buzen, 1978), and the maximum, over the ranks, of the
    rank's duration - waiting time * m / max(m, k + m - c). On average, k ranks and m other threads are ready to run.
    They share c processors equally (egalitarian processor sharing, Kleinrock, 1967).

    >>> rows = [[0, 0.0, 6.0, 1.0, 4.0], [1, 0.0, 5.0, 1.0, 4.0]]
    >>> columns = ["rank", "start_s", "end_s", "running_s", "runnable_s"]
    >>> sample = Sample("write", columns=columns, ranks=rows, elapsed_s=6.0)
    >>> slowdown(sample, {"cpus": 2, "others_running": 4.0}), slowdown(Sample("write"), {"cpus": 2})
    (3.0, 1.0)
    """
    waiting_s = sample.column("runnable_s")
    if not waiting_s or not sample.elapsed_s:
        return 1.0
    nodes = max(1, len(sample.nodes))
    cpus, others = float(facts.get("cpus") or 1), float(facts.get("others_running") or 0)
    running_s = sum(sample.column("running_s"))
    ready = (running_s + sum(waiting_s)) / sample.elapsed_s / nodes
    share = others / max(others, ready + others - cpus) if others else 0.0
    rows = zip(sample.column("start_s"), sample.column("end_s"), waiting_s, strict=True)
    alone_s = max(end - start - share * waited for start, end, waited in rows)
    least_s = running_s / min(cpus * nodes, len(sample.ranks))
    return sample.elapsed_s / min(max(alone_s, least_s), sample.elapsed_s)
