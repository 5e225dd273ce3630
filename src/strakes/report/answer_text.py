"""Graded answers as short lines of text, the same in all forms of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from strakes.findings.answers import Answer, Comparison
from strakes.report.numbers import percent
from strakes.statistics.grades import Grade

GRADES: Mapping[Grade, str] = {"sure": "sure", "likely": "likely", "alike": "alike", "undecided": "-"}
# Above this ratio a difference is shown as a factor, below in percent.
_IN_TIMES = 1.5
# Differences below this share are shown as "alike".
_SAME = 0.03


@dataclass(frozen=True)
class AnswerLine:
    """One row of "How to use it": the decision, the answer, and its grade in a word."""

    title: str
    text: str
    grade: Grade

    @property
    def word(self) -> str:
        """The displayed grade."""
        return GRADES[self.grade]


def answer_lines(answers: Sequence[Answer]) -> list[AnswerLine]:
    """Return all answers as lines, in their order. Equal answers for writes and for reads become one line."""
    lines: list[AnswerLine] = []
    for answer in answers:
        line = AnswerLine(answer.title, answer_text(answer), answer.grade)
        before = next(
            (
                index
                for index, other in enumerate(lines)
                if (other.text, other.grade) == (line.text, line.grade)
                and other.title.endswith(", writes")
                and line.title == f"{other.title.removesuffix(', writes')}, reads"
            ),
            None,
        )
        if before is None:
            lines.append(line)
        else:
            lines[before] = replace(line, title=f"{line.title.removesuffix(', reads')}, writes and reads")
    return lines


def answer_text(answer: Answer) -> str:
    """Return the answer in words.

    >>> against = Comparison("buffered", "b", 4.1, 2.0, 6.7, "sure")
    >>> answer_text(Answer("q", "s", "8 MiB writes", "sure", "O_DIRECT", "a", against, (against,), 0.9, 12))
    'O_DIRECT: 4.1 times buffered [2-6.7]'
    """
    text = _text(answer)
    return f"{text}; {answer.remark}" if answer.remark else text


def _text(answer: Answer) -> str:
    against = answer.against
    spread = f"{number(min(one.low for one in answer.others))}-{number(max(one.high for one in answer.others))}"
    if answer.grade == "alike":
        within = f"within {percent((answer.within or 1.0) - 1)}"
        if answer.alike:
            return f"{answer.alike}, {within} ({spread})"
        return f"{answer.chosen} is enough: all alike {within} ({spread})"
    if len(answer.others) == 1:
        ratio = f"{number(against.ratio)} times"
        bounds = f"{number(against.low)}-{number(against.high)}"
        if answer.grade == "undecided":
            return f"not decided; leaning to {answer.chosen} ({ratio} {against.option} [{bounds}])"
        return f"{answer.chosen}: {ratio} {against.option} [{bounds}]"
    others = _others(answer)
    if answer.grade == "undecided":
        return f"not decided; leaning to {answer.chosen} ({others})"
    return f"{answer.chosen} ({others})"


def _others(answer: Answer) -> str:
    decided = [one for one in answer.others if one.grade in ("sure", "likely")]
    rest = [one for one in answer.others if one not in decided]
    told = [_slower(one) for one in sorted(decided, key=lambda one: -one.ratio)]
    if rest:
        names = ", ".join(one.option for one in rest)
        told.append(f"{names}: no difference shown" if decided else f"{', '.join(map(_slower, rest))}")
    return "; ".join(told)


def _slower(one: Comparison) -> str:
    """Return the comparison with an option as text.

    >>> _slower(Comparison("4 KiB", "m", 6.04, 5.0, 7.0, "sure")), _slower(Comparison("4", "m", 1.09, 1, 1.2, "likely"))
    ('4 KiB: 6 times slower [5-7]', '4: 8 % slower [1-1.2]')
    """
    bounds = f"[{number(one.low)}-{number(one.high)}]"
    if one.ratio >= _IN_TIMES:
        return f"{one.option}: {number(one.ratio)} times slower {bounds}"
    if abs(one.ratio - 1) < _SAME:
        return f"{one.option}: alike {bounds}"
    share = percent(round(1 - 1 / one.ratio, 2) if one.ratio > 1 else round(1 / one.ratio - 1, 2))
    return f"{one.option}: {share} {'slower' if one.ratio > 1 else 'faster'} {bounds}"


def number(value: float) -> str:
    """Return a ratio with two significant digits.

    >>> number(4.123), number(0.97), number(41.3), number(1234.0)
    ('4.1', '0.97', '41', '1,230')
    """
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.2g}" if value >= 2 or value < 0.1 else f"{float(f'{value:.2f}'):g}"
