"""Answer the questions of a run with grades, and judge its claims. All functions are pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from strakes.base.language import gettext
from strakes.model.answers import Answer, Claim, Comparison, Mean, Option, Question
from strakes.model.portrait import Finding, IntervalOf
from strakes.model.results import Results
from strakes.stats import grades
from strakes.stats.claims import Bound, Judgement, judge
from strakes.stats.grades import INTERVAL_CONFIDENCE, Choice, Versus
from strakes.studies.compose import from_own_cache, mean_log_values
from strakes.studies.study import Study
from strakes.survey.analysis_held_back import held_back

# Remark on a claim if its figures come from a cache of this node's client.
_CACHED = "from this client's cache"
_MORE_BLOCKS = "more blocks: give a larger --budget"


def questions_of(studies: Sequence[Study], results: Results) -> list[Question]:
    """Return the questions of all studies that these results can answer."""
    return [question for study in studies for question in study.questions(results.of_study(study.name))]


def _values(option: Option, results: Results) -> dict[int, float]:
    return _mean(option.measures, option.mean, results)


def _mean(measures: Sequence[str], mean: Mean, results: Results) -> dict[int, float]:
    cells = [results.get(measure) for measure in measures]
    # A limit of the load is no property of the file system.
    return {} if any(map(held_back, cells)) else mean_log_values(cells, mean)


def claims_of(studies: Sequence[Study], results: Results) -> list[Claim]:
    """Return the claims of all studies that these results can judge."""
    return [claim for study in studies for claim in study.claims(results.of_study(study.name))]


def bounds_of(claims: Sequence[Claim], results: Results) -> list[list[Bound]]:
    """Return the claims as bounds on measured values."""
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
    """Return each claim as a finding with its grade. A claim with fewer than three common blocks is inconclusive."""
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
    """Return the questions as choices between measured values."""
    return [
        Choice(tuple(_values(option, results) for option in question.options), question.ordered)
        for question in questions
    ]


def answers_of(questions: Sequence[Question], results: Results) -> tuple[Answer, ...]:
    """Return graded answers in the order of the questions, except for questions with too few common blocks."""
    found = grades.grade(choices_of(questions, results))
    return tuple(
        _answer(question, answer, results)
        for question, answer in zip(questions, found, strict=True)
        if answer is not None
    )


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
