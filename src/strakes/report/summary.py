"""Summarise the results of a run on one screen: answers, main results, findings, omissions and warnings."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from strakes.base.foreign_text import for_terminal
from strakes.base.language import gettext, ngettext
from strakes.base.text_width import columns, padded, wrapped
from strakes.model.portrait import Portrait
from strakes.model.setting_text import level_text
from strakes.report.answer_text import AnswerLine, answer_lines, legend
from strakes.report.facts import (
    MEMORY_CODES,
    created,
    ended_early,
    felt_by_others,
    heading_of,
    headlines_of,
    no_headline,
    sides_of,
    size_of,
    source_of,
    taken_in_turn,
    title_of,
)
from strakes.report.next_steps import next_step
from strakes.report.notices import FIRST, Notice, notices
from strakes.report.numbers import listed, percent, show, show_bounds, show_interval, show_remarks
from strakes.report.words import title_of_warning
from strakes.stats.grades import INTERVAL_CONFIDENCE

MOST_COLUMNS = 100
FEWEST_COLUMNS = 60
MOST_FINDING_LINES = 5
DASH = "-"

_Line = tuple[tuple[str, str], ...]
_STYLES = {"sure": "bold green", "likely": "green", "alike": "", "undecided": "dim", None: ""}
# Style -> terminal code (SGR in ECMA-48).
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def render_summary(
    portrait: Portrait, report: Path | None = None, *, width: int | None = None, colour: bool | None = None
) -> str:
    """Return the summary as text. ``report``: path of the HTML report.

    ``width`` defaults to the terminal's width. ``colour`` defaults to yes on a terminal, unless NO_COLOR is set.
    """
    width = max(FEWEST_COLUMNS, min(width or shutil.get_terminal_size((MOST_COLUMNS, 24)).columns, MOST_COLUMNS))
    if colour is None:
        there = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        colour = there and not os.environ.get("NO_COLOR")  # NO_COLOR: see no-color.org.
    lines = ("".join(_styled(*piece, colour=colour) for piece in line) for line in _screen(portrait, report, width))
    return "\n".join(line.rstrip() for line in lines)


def _styled(text: str, style: str, *, colour: bool) -> str:
    codes = ";".join(_CODES[word] for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m" if colour and codes and text else text


def _screen(portrait: Portrait, report: Path | None, width: int) -> Iterator[_Line]:
    seen = notices(portrait)
    yield from _warned(seen, FIRST[:1], width)
    yield from _head(portrait, width)
    yield from _warned(seen, FIRST[1:], width)
    answers = answer_lines(portrait)
    if answers:
        yield ()
        title, word = gettext("How to use it"), gettext("grade")
        share = percent(INTERVAL_CONFIDENCE)
        about = "ratio of total rates [{confidence} interval]"
        if all(answer.study == "overview" for answer in portrait.answers):  # The study overview writes with fsync.
            about = "ratio of total rates, writes with fsync [{confidence} interval]"
        about = gettext(about, confidence=share)
        room = width - columns(title) - 4 - _WORD_COLUMNS
        yield ((title, "bold"), (f"  {padded(wrap(about, room, 1)[0], room)}  {word}", "dim"))
        yield from _answers(answers, width)
        yield from _plain(*(f"  {line}" for line in wrapped(legend(), width - 2)), style="dim")
    yield ()
    yield from _headlines(portrait, width)
    yield from _findings(portrait, width)
    yield from _remarks(gettext("Not measured"), _not_measured(portrait), width)
    # The first lines of the summary already warn of a file system in memory.
    said = {*FIRST, *(MEMORY_CODES if any(notice.code == "memory-file-system" for notice in seen) else ())}
    later = [title_of_warning(notice.code) for notice in seen if notice.code not in said]
    yield from _remarks(gettext("Keep in mind"), later, width)
    yield ()
    yield from _foot(portrait, report, width)


def _head(portrait: Portrait, width: int) -> Iterator[_Line]:
    target = portrait.target
    system = str(target.get("file_system") or gettext("file system"))
    what = [system, for_terminal(str(target.get("device") or "")), size_of(target), created(portrait)]
    yield (("strakes  ", "bold"), (wrap(title_of(portrait), width - 9, 1)[0], "bold cyan"))
    yield from _plain(*wrap(for_terminal("  ".join(filter(None, what))), width))
    yield from _plain(*wrap(portrait.scope, width))
    if sides := sides_of(portrait):
        yield from _plain(*wrap(sides, width))
    if several := taken_in_turn(portrait):
        yield from _plain(
            *wrap(gettext("Ranks alternate between: {directories}", directories=for_terminal(several)), width)
        )
    if felt := felt_by_others(portrait):
        yield from _plain(*wrap(gettext("other users: {latencies}", latencies=felt), width, 1))
    if ended_early(portrait):
        yield from _plain(*wrap(ended_early(portrait), width), style="yellow")


def _warned(seen: Iterable[Notice], codes: Collection[str], width: int) -> Iterator[_Line]:
    for notice in seen:
        if notice.code in codes:
            yield from _plain(*wrapped(for_terminal(notice.advice), width), style="yellow")


def warnings_in_short(portrait: Portrait, width: int) -> list[str]:
    """Return lines about the warnings: warnings about all values in full, and other warnings by title."""
    seen = notices(portrait)
    later = dict.fromkeys(title_of_warning(notice.code) for notice in seen if notice.code not in FIRST)
    texts = [notice.advice for notice in seen if notice.code in FIRST]
    if later:
        texts.append(f"Keep in mind: {'; '.join(later)}.")
    return [line for text in texts for line in wrap(text, width, 2)]


_WORD_COLUMNS = 8
_TITLE_COLUMNS = 34


def _answers(answers: Sequence[AnswerLine], width: int) -> Iterator[_Line]:
    ordered = sorted(answers, key=lambda line: (line.source, line.grade == "undecided"))
    titles = [for_terminal(line.title) for line in ordered]
    first = min(_TITLE_COLUMNS, max(map(columns, titles)) + 2)
    room = width - 2 - first - 2 - _WORD_COLUMNS
    for line, title, heading in zip(ordered, titles, _headed([line.source for line in ordered], width), strict=True):
        yield from heading
        # A line must not break between a number and its unit.
        text = re.sub(r"(?<=\d) (?=%|[KMGT]iB)", "\N{NO-BREAK SPACE}", for_terminal(line.text))
        answer = [part.replace("\N{NO-BREAK SPACE}", " ") for part in wrapped(text, room)]
        for left, right, word in zip_longest(wrapped(title, first - 1), answer, [line.word], fillvalue=""):
            style = _STYLES[line.grade]
            yield ((f"  {padded(left, first)}", ""), (f"{padded(right, room)}  {word}" if word else right, style))


def _headed(sources: Sequence[str], width: int) -> Iterator[Sequence[_Line]]:
    for before, source in zip(["", *sources], sources, strict=False):
        lines = wrap(heading_of(source), width - 2) if source != before else []
        yield [*(((),) if lines else ()), *_plain(*(f"  {line}" for line in lines), style="yellow")]


def _headlines(portrait: Portrait, width: int) -> Iterator[_Line]:
    standing = headlines_of(portrait)
    if not standing:
        yield from _plain(no_headline(portrait))
        return
    about = gettext("median [its {confidence} interval]", confidence=percent(standing[0][1].confidence))
    usual, ranks = standing[0][1], {cell.settings.get("ranks") for _, cell in standing}
    if (len(ranks) == 1 or usual.study == "overview") and isinstance(count := usual.settings.get("ranks"), int):
        about = gettext("; ").join((ngettext("{count} process in all", "{count} processes together", count), about))
    title = gettext("How fast it is")
    yield ((title, "bold"), (f"  {wrap(about, width - columns(title) - 2, 1)[0]}", "dim"))
    rows = []
    for line, cell in standing:
        told = listed(f"[{show_interval(cell, DASH)}]", show_remarks(cell, DASH))
        rows.append((for_terminal(line.label), show(cell.median, cell.unit), told))
    first = min(width - 16, max(columns(label) for label, *_ in rows) + 2)
    sources = [source_of(portrait, [cell.id]) for _, cell in standing]
    for (label, median, rest), heading in zip(rows, _headed(sources, width), strict=True):
        yield from heading
        start = (f"  {padded(wrap(label, first, 1)[0], first)}", ""), (padded(median, 12, right=True), "bold")
        if first + 16 + columns(rest) <= width:
            yield (*start, (f"  {rest}", ""))
        else:
            yield start
            yield from _plain(*(f"      {line}" for line in wrapped(rest, width - 6)))


_SIGNS = {"good": ("+", "green"), "bad": ("-", "red"), "neutral": ("*", "")}


def _findings(portrait: Portrait, width: int) -> Iterator[_Line]:
    decided = [finding for finding in portrait.findings if finding.verdict not in ("unknown", "inconclusive")]
    if portrait.run.get("kind") == "survey":
        decided = [finding for finding in decided if finding.tone != "neutral"]
    if not decided:
        return
    yield ()
    yield ((gettext("Other findings"), "bold"),)
    for finding in decided[:MOST_FINDING_LINES]:
        bounds = "" if finding.interval is None else f" [{show_bounds(finding.interval, DASH)}]"
        sign, style = _SIGNS[finding.tone]
        first, *rest = wrapped(for_terminal(finding.statement) + bounds, width - 4)
        yield ((f"  {sign} ", style), (first, ""))
        yield from _plain(*(f"    {line}" for line in rest))


_CLAUSE = re.compile(r"[:;.](?: |$)|[：；。]")


def _not_measured(portrait: Portrait) -> list[str]:
    undecided = [finding for finding in portrait.findings if finding.verdict in ("unknown", "inconclusive")]
    missing = [_CLAUSE.split(finding.statement)[0] for finding in undecided]
    few = [(cell.study, cell.settings.items()) for cell in portrait.skipped if cell.settings]
    enough = [
        one for one in portrait.cells if not any(one.study == of and own <= one.settings.items() for of, own in few)
    ]
    measured = {(cell.study, *level) for cell in enough for level in cell.settings.items()}
    levels = Counter((study, key) for study, key, _ in measured | {(one, *level) for one, own in few for level in own})
    settings: dict[str, dict[str, None]] = {}
    for cell in (one for one in portrait.skipped if one.settings):
        named = [level_text(*level) for level in cell.settings.items() if (cell.study, *level) not in measured]
        several = [level_text(*level) for level in cell.settings.items() if levels[cell.study, level[0]] > 1]
        clause = gettext(_CLAUSE.split(gettext(cell.reason))[0])
        settings.setdefault(clause, {}).update(dict.fromkeys(named or filter(None, [" ".join(several)])))
    for clause, names in settings.items():
        title = gettext(", ").join(names)
        missing.append(gettext("{title}: {text}", title=title, text=clause) if names else clause)
    return missing


def _remarks(title: str, remarks: Sequence[str], width: int) -> Iterator[_Line]:
    if remarks:
        yield ()
        indent = columns(title) + 2
        first, *rest = wrapped(for_terminal(gettext("; ").join(dict.fromkeys(remarks))), width - indent)
        yield ((title, "bold"), (f"  {first}", ""))
        yield from _plain(*(f"{'':{indent}}{line}" for line in rest))


def _foot(portrait: Portrait, report: Path | None, width: int) -> Iterator[_Line]:
    command, shown = next_step(portrait)
    # Do not shorten the path and the command, because users copy them.
    repeat, *written_by = portrait.reproduce or ("",)
    steps = [command, *wrapped(shown, width - 8)] if command else wrapped(shown, width - 8)
    rows = [("" if number else gettext("Next"), line) for number, line in enumerate(steps)]
    rows += [(gettext("Report"), str(report or "".join(written_by))), (gettext("Repeat"), "" if shown else repeat)]
    for label, text in rows:
        if text:
            yield ((padded(label, 8), "bold"), (for_terminal(text), ""))


def _plain(*lines: str, style: str = "") -> Iterator[_Line]:
    yield from (((line, style),) for line in lines)


def wrap(text: str, width: int, most: int = 3) -> list[str]:
    """Wrap a text to ``width`` columns, and return up to ``most`` lines. A shortened text ends in "...".

    >>> wrap("one two three four", 9, most=2), wrap("a long label", 11, 1), wrap("unbreakable", 9, 1)
    (['one two', 'three...'], ['a long...'], ['unbrea...'])
    """
    lines = wrapped(for_terminal(text), width) or [""]
    if len(lines) > most:
        last = wrapped(" ".join(lines[most - 1 :]), width - 3)[0].rstrip(" ,;:")
        lines[most - 1 :] = [f"{last}..."]
    return lines
