"""Format graded answers ("use 1 MiB requests: sure") as short texts. All forms of the report share these texts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from strakes.base.errors import BadInputError
from strakes.base.language import gettext
from strakes.base.units import parse_bytes
from strakes.model.answers import Answer, Comparison
from strakes.model.portrait import Portrait
from strakes.report.facts import source_of
from strakes.report.numbers import percent
from strakes.stats.grades import ALIKE_WITHIN, GOOD_ENOUGH, LIKELY_ERROR, Grade

GRADES: Mapping[Grade, str] = {"sure": "sure", "likely": "likely", "alike": "alike", "undecided": "-"}


@dataclass(frozen=True)
class AnswerLine:
    """One row of the report's section "How to use it".

    ``grade``: None for a remark. ``source``: a caution about data from this node's page cache, or "". ``in_memory``:
    whether the data came from the page cache or from a file system in memory.
    """

    title: str
    text: str
    grade: Grade | None
    source: str = ""
    in_memory: bool = False

    @property
    def word(self) -> str:
        """The grade as shown to the user, in parentheses if the data came from memory."""
        word = gettext(GRADES[self.grade]) if self.grade else ""
        return f"({word})" if self.in_memory and self.grade != "undecided" else word

    @property
    def full_text(self) -> str:
        """The answer, followed by the caution in ``source``."""
        return gettext("; ").join(filter(None, (self.text, self.source)))


def answer_lines(portrait: Portrait) -> list[AnswerLine]:
    """Return a line for each answer, cached data last. Equal answers for writes and reads share a line."""
    lines: dict[str, AnswerLine] = {}
    memory = any(warning.code == "memory-file-system" for warning in portrait.warnings)
    for answer in portrait.answers:
        source = source_of(portrait, [answer.measure, *(one.measure for one in answer.others)])
        line = AnswerLine(answer.title, answer_text(answer), answer.grade, source, memory or bool(source))
        of_writes = lines.get(answer.id.replace("-read", "-write"), line)
        both = gettext("{writes} and reads", writes=of_writes.title)
        alike = of_writes is not line and replace(of_writes, title=line.title) == line
        if alike and of_writes.title.endswith(gettext("writes")):
            lines[answer.id.replace("-read", "-write")] = replace(line, title=both)
        else:
            lines[answer.id] = line
    # A skipped entry without settings means that the whole question was not measured.
    skipped = [cell.reason for cell in portrait.skipped if not cell.settings]
    lines |= {reason: AnswerLine(gettext("creating files"), gettext(reason), None) for reason in skipped}
    return sorted(lines.values(), key=lambda line: line.source)


def answer_text(answer: Answer) -> str:
    """Return an answer as text: the best setting, and its speed as a multiple of the other settings' speeds.

    >>> against = Comparison("buffered", "b", 4.1, 2.0, 6.7, "sure")
    >>> answer_text(Answer("q", "s", "8 MiB writes", "sure", "O_DIRECT", "a", against, (against,), 0.9, 12))
    'O_DIRECT: 4.1 times as fast as buffered [2-6.7]'
    >>> others = Comparison("1", "b", 1.46, 1.3, 1.7, "sure"), Comparison("2", "c", 1.03, 0.9, 1.1, "undecided")
    >>> answer_text(Answer("q", "s", "processes", "sure", "8", "a", others[0], others, 0.9, 12))
    '8: 1.46 times as fast as 1 [1.3-1.7]; 2 may be slower than 8, or up to 10 % faster'
    >>> others = Comparison("4 KiB", "b", 6, 5, 7, "likely"), Comparison("8 MiB", "c", 1.03, 0.9, 1.1, "undecided")
    >>> answer_text(Answer("q", "s", "writes", "undecided", "1 MiB", "a", others[0], others, 0.9, 12))[:68]
    'avoid 4 KiB, which is likely slower; else not decided, leaning to 1 '
    """
    return gettext("; ").join(filter(None, (_text(answer), answer.remark)))


def _text(answer: Answer) -> str:
    options = [answer.chosen, *(one.option for one in answer.others)]
    with suppress(BadInputError):  # Settings that are not numbers or sizes have no order, so they form no range.
        options = sorted(options, key=parse_bytes)
    apart = [one for one in answer.others if not one.low <= 1 <= one.high]
    slower = [one for one in answer.others if one.grade != "undecided"]
    shown, message = answer.others, "not decided; leaning to {chosen} ({others})"
    if answer.grade == "alike":
        message = "{finding} (within {share})" if answer.alike else "{options}: equally fast (within {share})"
    elif answer.grade != "undecided":
        shown, message = tuple(slower), "{chosen}: {others}"
    elif not apart:
        message = "not decided ({others})"
    elif any(one.ratio < 1 for one in answer.others):
        message = "not decided; {chosen} may be enough ({others}; gains below {gain} do not count)"
    elif slower and len(answer.others) > 1:
        message = "avoid {slower}, which is likely slower; else not decided, leaning to {chosen} ({others})"
    others = gettext(", ").join(_compared(one, answer.chosen, named=not apart and one is shown[0]) for one in shown)
    if unclear := [option for option in options if option in {one.option for one in answer.others if one not in shown}]:
        # The answer has a grade, so no other setting is faster by more than GOOD_ENOUGH (stats.grades).
        rest = "{options} may be slower than {chosen}, or up to {gain} faster"
        shown_rest = gettext(rest, options=gettext(", ").join(unclear), chosen=answer.chosen, gain=_GAIN)
        others = gettext("; ").join((others, shown_rest))
    return gettext(
        message,
        finding=answer.alike,
        share=percent((answer.within or 1.0) - 1),
        options=gettext(", ").join(options),
        chosen=answer.chosen,
        others=others,
        gain=_GAIN,
        slower=gettext(", ").join(one.option for one in slower),
    )


_GAIN = percent(GOOD_ENOUGH - 1)


def _compared(one: Comparison, chosen: str, *, named: bool) -> str:
    names, ratio, low, high = (chosen, one.option), one.ratio, one.low, one.high
    if ratio < 1:
        names, ratio, low, high = names[::-1], 1 / ratio, 1 / high, 1 / low
    message = "{chosen} is {ratio} times as fast as {other} [{low}-{high}]"
    if one.ratio >= 1 and not named:
        message = "{ratio} times as fast as {other} [{low}-{high}]"
    shown = dict(zip(("ratio", "low", "high"), map(number, (ratio, low, high)), strict=True))
    return gettext(message, chosen=names[0], other=names[1], **shown)


def legend() -> str:
    """Return the legend of the grades of answers."""
    return gettext(
        "sure: all answers marked sure hold, with 95 % confidence; likely: wrong with at most {share} probability; "
        "alike: at most {most} apart; -: not decided, settings may be equally fast or differ more; "
        "(in parentheses): may hold for memory only",
        share=percent(LIKELY_ERROR),
        most=percent(max(ALIKE_WITHIN) - 1),
    )


def number(value: float) -> str:
    """Format a ratio with two significant digits, or with three from 1,000 on.

    >>> number(4.123), number(0.97), number(1.001), number(41.3), number(1234.0)
    ('4.1', '0.97', '1.00', '41', '1,230')
    """
    if f"{value:.2f}" == "1.00":
        return "1.00"
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.2g}" if value >= 2 or value < 0.1 else f"{float(f'{value:.2f}'):g}"
