"""Answer the questions of a run with grades, and judge the claims. All functions are pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from strakes.base.language import gettext
from strakes.model.answers import Answer, Claim, Comparison, Mean, Option, Question
from strakes.model.portrait import Finding, IntervalOf
from strakes.model.results import Measured, Results
from strakes.stats import grades
from strakes.stats.claims import Bound, Judgement, judge
from strakes.stats.grades import INTERVAL_CONFIDENCE, Choice, Versus
from strakes.studies.compose import from_own_cache, mean_log_values
from strakes.studies.registry import study_named
from strakes.studies.study import Study
from strakes.survey.analysis_held_back import held_back

_CACHED = "from this client's cache"
_CROWDED = "other programs use the processors, so more processes get a larger share"
_MORE_BLOCKS = "more blocks: give a larger --budget"


def questions_of(studies: Sequence[Study], results: Results) -> list[Question]:
    """Return the questions of all studies that can be answered from these results."""
    return [question for study in studies for question in study.questions(results.of_study(study.name))]


def _values(option: Option, results: Results) -> dict[int, float]:
    return _mean(option.measures, option.mean, results)


def _mean(measures: Sequence[str], mean: Mean, results: Results) -> dict[int, float]:
    cells = [results.get(measure) for measure in measures]
    # A rate under a load limit shows the limit, not the file system.
    return {} if any(map(held_back, cells)) else mean_log_values(cells, mean)


def claims_of(studies: Sequence[Study], results: Results) -> list[Claim]:
    """Return the claims of all studies that can be judged from these results."""
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
    """Return a graded verdict on each published claim. It is inconclusive with fewer than three paired values."""
    found = judge(bounds_of(claims, results))
    return [_finding(claim, judgement, results) for claim, judgement in zip(claims, found, strict=True)]


def _finding(claim: Claim, judgement: Judgement | None, results: Results) -> Finding:
    cells = claim.measures
    if judgement is None:
        text = gettext("{statement}: not decided; too few blocks measured both settings.", statement=claim.statement)
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
    """Return the questions as choices between settings with measured values."""
    return [
        Choice(tuple(_values(option, results) for option in question.options), question.ordered)
        for question in questions
    ]


def answers_of(questions: Sequence[Question], results: Results) -> tuple[Answer, ...]:
    """Return graded answers to the questions. Questions with too few paired values are omitted."""
    found = grades.grade(choices_of(questions, results))
    return tuple(
        _answer(question, answer, results)
        for question, answer in zip(questions, found, strict=True)
        if answer is not None
    )


def answer_among(cells: Sequence[Measured], results: Results, *, ordered: bool = False) -> Answer | None:
    """Return the answer to "which of these settings is best?", graded together with all questions of the run.

    If the run has this question itself, return the run's answer, so that no derived advice has a higher grade.
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
    grade, remark = answer.grade, question.remark
    if grade != "undecided" and _decided_by_load(question, answer, results):
        grade, remark = "undecided", gettext("; ").join(filter(None, (remark, gettext(_CROWDED))))
        answer = replace(answer, versus=replace(answer.versus, grade=grade), within=None)
    return Answer(
        question.id,
        question.study,
        question.title,
        grade,
        chosen.label,
        chosen.measures[0],
        comparison(answer.versus),
        tuple(map(comparison, answer.others)),
        INTERVAL_CONFIDENCE,
        len(common),
        answer.within,
        question.alike,
        question.advises,
        remark,
    )


def _decided_by_load(question: Question, answer: grades.Answer, results: Results) -> bool:
    settings = [results.get(option.measures[0]).settings.get("ranks") for option in question.options]
    ranks = [number for number in settings if isinstance(number, int)]
    if len(ranks) < len(settings) or len(set(ranks)) == 1:
        return False
    for versus in answer.others:
        gain = load_gain(ranks[answer.chosen], ranks[versus.level], results.facts)
        if answer.grade == "alike":
            decided = max(gain, 1 / gain) > grades.ALIKE_WITHIN[0]
        else:
            least = 1.0 if versus.level == answer.versus.level else 1 / grades.GOOD_ENOUGH
            decided = gain > 1 and versus.low / gain <= least
        if decided:
            return True
    return False


def load_gain(one: float, other: float, facts: Mapping[str, Any]) -> float:
    """Return the maximum factor by which other programs raise the rate of ``one`` relative to ``other`` processes.

    A scheduler divides the processors fairly among all running threads, so more processes get a larger share. The
    factor is the ratio of both shares, divided by their ratio on idle processors.

    >>> busy = {"cpus": 2, "others_running": 4.0}
    >>> round(load_gain(16, 2, busy), 2), round(load_gain(16, 1, busy), 2), load_gain(16, 2, {"cpus": 2})
    (2.4, 2.0, 1.0)
    """
    cpus, others = float(facts.get("cpus") or 1), float(facts.get("others_running") or 0)
    nodes = max(1, len(facts.get("nodes") or ()))

    def share(ranks: float, others: float) -> float:
        return ranks * min(1.0, cpus / (ranks + others))

    one, other = one / nodes, other / nodes
    return share(one, others) / share(other, others) * share(other, 0) / share(one, 0)
