"""From a run's questions to graded answers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.findings.answers import Answer, Comparison, Option, Question
from strakes.findings.results import Results
from strakes.statistics import grades
from strakes.statistics.grades import INTERVAL_CONFIDENCE, Choice, Versus
from strakes.studies.compose import from_memory, from_own_cache, mean_log_values
from strakes.studies.study import Study

# Remark on an answer whose figures come from a cache of this node's client.
_CACHED = "from this client's cache"


def questions_of(studies: Sequence[Study], results: Results) -> list[Question]:
    """Return the questions of all studies that these results can answer."""
    return [
        _remarked(question, results) if study.of_file_system else question
        for study in studies
        for question in study.questions(results.of_study(study.name))
    ]


def _remarked(question: Question, results: Results) -> Question:
    cells = [results.get(measure) for option in question.options for measure in option.measures]
    cached = any(from_own_cache(cell, results.facts) or from_memory(cell, results.facts) for cell in cells)
    return replace(question, remark=_CACHED) if cached else question


def _values(option: Option, results: Results) -> dict[int, float]:
    return mean_log_values([results.get(measure) for measure in option.measures], option.mean)


def choices_of(questions: Sequence[Question], results: Results) -> list[Choice]:
    """Return the questions in numbers."""
    return [
        Choice(tuple(_values(option, results) for option in question.options), question.ordered)
        for question in questions
    ]


def answers_of(questions: Sequence[Question], results: Results) -> tuple[Answer, ...]:
    """Return the graded answers, in the questions' order; a question with too few common blocks has none."""
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
