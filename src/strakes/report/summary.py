"""A portrait on one screen: what was measured, what it can do, how to use it, what to mistrust, where there is more."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from strakes.findings.portrait import CellEstimate, Finding, Portrait, Recommendation
from strakes.foreign_text import for_terminal
from strakes.language import translate
from strakes.language.width import columns, padded, shortened, wrapped
from strakes.report.facts import (
    created,
    ended_early,
    felt_by_others,
    headlines_of,
    no_headline,
    size_of,
    taken_in_turn,
    title_of,
)
from strakes.report.notices import Notice, notices
from strakes.report.numbers import figures_of, listed, percent, show_bounds, show_gain, show_width
from strakes.report.words import name_of_warning, reserve, title_of_warning

if TYPE_CHECKING:
    from rich.text import Text

MOST_LINES = 40
MOST_COLUMNS = 100
FEWEST_COLUMNS = 60
MOST_HEADLINES = 10
MOST_TRAITS = 5
# Amounts are in it, and what they are not figures of: at 60 columns, too.
_MOST_OF_SCOPE = 12
_LEAST_LABEL = 12
DASH = " - "

_Line = tuple[tuple[str, str], ...]  # pieces of (text, style)


def render_summary(
    portrait: Portrait, report: Path | None = None, *, width: int | None = None, colour: bool | None = None
) -> str:
    """Return the summary as text; ``report`` is where the HTML report is.

    At most MOST_LINES lines, unless all advice and headlines leave no room for the rest: neither is ever left out.

    ``width`` defaults to that of the terminal; ``colour`` to what standard output and NO_COLOR allow.
    """
    from io import StringIO

    from rich.console import Console

    if width is None:
        width = shutil.get_terminal_size((MOST_COLUMNS, MOST_LINES)).columns
    width = max(FEWEST_COLUMNS, min(width, MOST_COLUMNS))
    if colour is None:
        here = Console()
        # A terminal may know no colours (TERM=dumb).
        colour = here.color_system is not None and not here.no_color
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
    )
    with console.capture() as capture:
        for line in _lines(portrait, report, width):
            console.print(_text(line), soft_wrap=True)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _text(line: _Line) -> Text:
    from rich.text import Text

    text = Text()
    for piece, style in line:
        text.append(piece, style)
    return text


def _lines(portrait: Portrait, report: Path | None, width: int) -> list[_Line]:
    """Head, all advice, headlines, scope and foot always; the rest of the room goes to traits, warnings, then what is
    not known.
    """
    warnings = notices(portrait)
    open_ = [finding for finding in portrait.findings if finding.verdict in ("unknown", "inconclusive")]
    traits = [finding for tone in ("bad", "good") for finding in portrait.findings if finding.tone == tone]
    # Of one study everything is wanted; a survey has many figures, and its report has room for them.
    plain = (
        [finding for finding in portrait.findings if finding not in open_ and finding not in traits]
        if portrait.run.get("kind") == "study"
        else []
    )
    blocks = (
        ("Does well (+) and badly (-)", [[_trait(finding, width) for finding in traits[:MOST_TRAITS]]]),
        ("What else was found", [[_trait(finding, width) for finding in plain[:MOST_TRAITS]]]),
        ("Warnings", [[_warning(warning, width, most) for warning in warnings] for most in (2, 1)]),
        ("Not known", [[_gap(finding, width, most) for finding in open_] for most in (3, 2)]),
    )
    # The answer first, then on what it rests.
    scope = [(), *(_plain(line) for line in wrap(portrait.scope, width, most=_MOST_OF_SCOPE))]
    headlines, foot = [*_headlines(portrait, width), *scope], [(), *_foot(portrait, report)]
    head = [*_head(portrait, width), ()]
    later = sum(_KEPT for _, levels in blocks if levels[0])
    advice = _advice(portrait.recommendations, width, MOST_LINES - len(head) - len(headlines) - len(foot) - 1 - later)
    body: list[_Line] = []
    room = max(later, MOST_LINES - len(head) - len(advice) - 1 - len(headlines) - len(foot))
    for index, (title, levels) in enumerate(blocks):
        kept = sum(_KEPT for _, others in blocks[index + 1 :] if others[0])
        names = list(dict.fromkeys(warning.code for warning in warnings)) if title == "Warnings" else ()
        body += _block(title, levels, room - len(body) - kept, names, width)
    return [*head, *advice, (), *headlines, *body, *foot]


# Lines a block leaves to each later one: an empty one, the title, and two of content.
_KEPT = 4
_NO_ADVICE = "no setting is recommended: there is not enough evidence"


def _block(
    title: str, levels: Sequence[Sequence[list[_Line]]], room: int, names: Sequence[str], width: int
) -> list[_Line]:
    """Return a titled block in as much detail as fits; else the items that fit, and how many did not.

    ``levels``: each item's lines, with the most detail first. ``names`` stand for the items where not one fits.
    """
    items = next((blocks for blocks in levels if 2 + sum(map(len, blocks)) <= room), levels[-1])
    if not items or room < 2:
        return []
    lengths = accumulate(map(len, items), initial=2)
    count = sum(length <= room for length in lengths) - 1
    chosen = [line for item in items[:count] for line in item]
    left = len(items) - count
    more = (translate(f"  {left} more in the report"), "dim") if left else ("", "")
    if not chosen:
        lines, left = _brief(names, width, room - 2)
        chosen = [_plain(line) for line in lines]
        told = f"  {left} more, explained in the report" if left else "  explained in the report"
        more = (translate(told if names else f"  {left or len(items)} in the report"), "dim")
    return [(), ((translate(title), "bold"), more), *chosen]


def _head(portrait: Portrait, width: int) -> Iterator[_Line]:
    target = portrait.target
    system = str(target.get("file_system") or "file system")
    what = "  ".join(
        filter(
            None, [system, for_terminal(str(target.get("device") or "")), translate(size_of(target)), created(portrait)]
        )
    )
    yield (("strakes  ", "bold"), (cut(for_terminal(title_of(portrait)), width - 9), "bold cyan"))
    yield _plain(cut(for_terminal(what), width))
    if several := taken_in_turn(portrait):
        yield from (_plain(line) for line in wrap(f"{translate('Ranks take in turn')}: {for_terminal(several)}", width))
    if felt := felt_by_others(portrait):
        yield _plain(cut(f"other users: {felt}", width))
    if ended_early(portrait):
        yield from (((line, "yellow"),) for line in wrap(ended_early(portrait), width))


def _headlines(portrait: Portrait, width: int) -> list[_Line]:
    standing = headlines_of(portrait)
    if not standing:
        return [_plain(translate(no_headline(portrait)))]
    rows = [
        (
            translate(for_terminal(line.label)),
            translate(figures_of(cell)[0]),
            listed(f"[{translate(_interval(cell))}]", translate(listed(show_width(cell), reserve(line)))),
            str(cell.runs),
        )
        for line, cell in standing[:MOST_HEADLINES]
    ]
    confidence = percent(standing[0][1].confidence)
    header = tuple(map(translate, ("Headlines", "median", f"{confidence} interval", "runs")))
    widths = [max(columns(row[column]) for row in (header, *rows)) for column in range(4)]
    room = width - widths[1] - widths[3] - 4
    widths[2] = _interval_width(rows, columns(header[2]), room)
    label_width = max(_LEAST_LABEL, min(widths[0] + 4, room - widths[2]))
    lines: list[_Line] = []
    for row, style in ((header, "dim"), *((row, "") for row in rows)):
        # What does not fit into its column, with a blank at least before the median, stands on lines of its own.
        label = row[0] if style else f"  {row[0]}"
        if columns(label) >= label_width:
            lines += [_plain(f"  {line}") for line in _lines_of(row[0], width - 2, most=9)]
            label = ""
        indented = padded(label, label_width)
        # Nor does an interval that is too wide, below its median.
        fits = columns(row[2]) <= widths[2]
        rest = f"  {padded(row[2] if fits else '', widths[2])}  {padded(row[3], widths[3], right=True)}"
        lines.append(
            (
                (indented, "bold" if style else ""),
                (padded(row[1], widths[1], right=True), style or "bold"),
                (rest, style),
            )
        )
        lines += [] if fits else [_plain(f"    {line}") for line in _lines_of(row[2], width - 4, most=9)]
    if len(standing) > MOST_HEADLINES:
        lines.append(((translate(f"  {len(standing) - MOST_HEADLINES} more in the report"), "dim"),))
    return lines


def _interval_width(rows: Sequence[tuple[str, ...]], least: int, room: int) -> int:
    """Return how wide the column of intervals is where fewest labels and intervals need lines of their own.

    >>> long = ("a label of some length", "1", "[1 - 2]", "9")
    >>> rows = [long, long, ("short", "1", "[1 then 20 then 300]", "9")]
    >>> _interval_width(rows, 5, 40), _interval_width(rows, 5, 60)
    (7, 20)
    """

    def lines(chosen: int) -> int:
        return sum((columns(row[0]) + 2 >= room - chosen) + (columns(row[2]) > chosen) for row in rows)

    widths = {least, *(width for row in rows if least < (width := columns(row[2])) <= room - _LEAST_LABEL)}
    return min(sorted(widths, reverse=True), key=lines)


def _interval(cell: CellEstimate) -> str:
    if cell.low is None and not cell.levels and cell.stopped_because != "imported":
        return "too few runs"
    return figures_of(cell, DASH)[1]


def _advice(recommendations: Sequence[Recommendation], width: int, room: int) -> list[_Line]:
    """Return every setting with its value and gain; what the gain is over, and the reasons, where all of them fit."""
    lines: list[_Line] = [((translate("How to use it"), "bold"),)]
    if not recommendations:
        return [*lines, *(_plain(f"  {line}") for line in wrap(_NO_ADVICE, width - 2))]
    short = [_setting(recommendation, width) for recommendation in recommendations]
    over = [[*setting, *_over(one, width)] for one, setting in zip(recommendations, short, strict=True)]
    long = [
        [*setting, *(_plain(f"    {line}") for line in wrap(one.reason, width - 4, most=99))]
        for one, setting in zip(recommendations, over, strict=True)
    ]
    told = next((form for form in (long, over) if 1 + sum(map(len, form)) <= room), short)
    return lines + [line for setting in told for line in setting]


def _setting(recommendation: Recommendation, width: int) -> list[_Line]:
    """Return one line where it fits, else the gain on lines of its own: nothing of it is cut."""
    label = f"  {translate(for_terminal(recommendation.setting))} = "
    value = translate(for_terminal(recommendation.value))
    proof = listed("confirmed" if recommendation.confirmed else "not confirmed", reserve(recommendation))
    told = show_gain(recommendation.interval, DASH, recommendation.median)
    gain = ", ".join(map(translate, (told, proof)))
    style = "bold green" if recommendation.confirmed else "bold"
    if columns(label + value + gain) + 2 <= width:
        return [((label, ""), (value, style), (f"  {gain}", "dim"))]
    first, *rest = _lines_of(label.strip() + " " + value, width - 2, most=99)
    split = min(len(first), len(label) - 2)
    lines: list[_Line] = [((f"  {first[:split]}", ""), (first[split:], style))]
    lines += [((f"    {line}", style),) for line in rest]
    return lines + [((f"    {line}", "dim"),) for line in _lines_of(gain, width - 4, most=99)]


def _over(recommendation: Recommendation, width: int) -> list[_Line]:
    interval = recommendation.interval
    told = translate(for_terminal(f"{percent(interval.confidence)} interval of the {interval.of}"))
    return [((f"    {line}", "dim"),) for line in _lines_of(told, width - 4, most=99)]


def _brief(names: Sequence[str], width: int, most: int) -> tuple[list[str], int]:
    """At most ``most`` lines: the first names in a few words, as many as leave room for the others, and how many are
    left.

    >>> _brief(["drift", "stonewalled", "few-runs"], 60, 2)
    (['  drift: Everything became faster or slower during the run', '  work cut short, few runs'], 0)
    """
    told = [_lines_of(f"{name}: {translate(title_of_warning(name))}", width - 2, most=9) for name in names]
    for count in range(len(names), 0, -1):
        lines = [f"  {line}" for text in told[:count] for line in text]
        others, left = _names(names[count:], width, max(0, most - len(lines)))
        if len(lines) <= most and not left:
            return [*lines, *others], 0
    return _names(names, width, most)


def _names(names: Sequence[str], width: int, most: int) -> tuple[list[str], int]:
    """At most ``most`` lines of names in words, and how many are left: they stand where the text of none has room.

    >>> _names(["cache-suspect", "short-phases", "stonewalled"], 32, 1)
    (['  cached reads, short phases'], 1)
    """
    lines: list[str] = []
    for index, name in enumerate(translate(name_of_warning(code)) for code in names):
        # Not broken within one.
        if lines and columns(f"{lines[-1]}, {name},") <= width:
            lines[-1] += f", {name}"
        elif len(lines) < most:
            lines = [*(f"{line.removesuffix(',')}," for line in lines), f"  {name}"]
        else:
            return lines, len(names) - index
    return lines, 0


def _warning(notice: Notice, width: int, most: int) -> list[_Line]:
    # Its code is a name in every language.
    told = translate(for_terminal(notice.text))
    rows = _sentences(f"{notice.code} ({translate(for_terminal(notice.extent))}): {told}", width - 4, most)
    lines: list[_Line] = [((f"  {notice.code}", "yellow"), (rows[0][len(notice.code) :], ""))]
    lines += [_plain(f"    {line}") for line in rows[1:]]
    remedy = _sentences(translate(for_terminal(notice.remedy)), width - 7, most)
    lines += [_plain(f"    {'   ' if index else '-> '}{line}") for index, line in enumerate(remedy)]
    return lines


_SIGNS = {"good": ("+", "green"), "bad": ("-", "red"), "neutral": ("*", "")}


def _trait(finding: Finding, width: int) -> list[_Line]:
    bounds = "" if finding.interval is None else f" [{translate(show_bounds(finding.interval, DASH))}]"
    bounds += f" ({translate(reserve(finding))})" if finding.in_bursts else ""
    sign, style = _SIGNS[finding.tone]
    first, *rest = wrapped(translate(for_terminal(finding.statement)) + bounds, width - 4)
    return [((f"  {sign} ", style), (first, "")), *(_plain(f"    {line}") for line in rest)]


def _gap(finding: Finding, width: int, most: int) -> list[_Line]:
    needs = f" Needed: {finding.needs}" if finding.needs else ""
    lines = _sentences(translate(for_terminal(f"{finding.statement}{needs}")), width - 4, most)
    return [_plain(f"{'    ' if index else '  '}{line}") for index, line in enumerate(lines)]


def _foot(portrait: Portrait, report: Path | None) -> Iterator[_Line]:
    # Neither is cut: both are there to be copied.
    if report is not None:
        yield ((padded(translate("Report"), 8), "bold"), (for_terminal(str(report)), ""))
    if portrait.reproduce:
        yield ((padded(translate("Repeat"), 8), "bold"), (for_terminal(portrait.reproduce[0]), ""))
    if len(portrait.reproduce) > 1:
        yield (("        ", ""), (for_terminal(portrait.reproduce[1]), ""))


def _plain(text: str) -> _Line:
    return ((text, ""),)


def cut(text: str, width: int) -> str:
    """At most ``width`` columns of it in the language in use, whole words where there are any.

    >>> cut("a long label", 11), cut("short", 9), cut("unbreakable", 9)
    ('a long...', 'short', 'unbrea...')
    """
    return _cut(translate(text), width)


def _cut(text: str, width: int) -> str:
    if columns(text) <= width:
        return text
    room = shortened(text, max(0, width - 2))
    whole, _, rest = room.rpartition(" ")
    # Chinese is cut between characters.
    whole = whole if columns(rest) == len(rest) else ""
    return f"{(whole or room[:-1]).rstrip(' ,;:')}..."


def wrap(text: str, width: int, most: int = 3) -> list[str]:
    """At most ``most`` lines of ``width`` columns in the language in use; the last one says when something was left
    out.

    >>> wrap("one two three four", 9, most=2)
    ['one two', 'three...']
    """
    return _lines_of(translate(for_terminal(text)), width, most)


# Where a sentence ends and another begins.
_END = re.compile(r"(?<!e\.g\.)(?<!i\.e\.)(?<=[.!?]) (?=[A-Z\d])|(?<=[。！？])(?=.)")


def _sentences(text: str, width: int, most: int) -> list[str]:
    """Return as many whole sentences as fit into ``most`` lines, and the first in any case.

    >>> _sentences("Of two. Three words here.", 12, 1), _sentences("One that needs more.", 8, 1)
    (['Of two.'], ['One that', 'needs', 'more.'])
    """
    ends = [end.start() for end in _END.finditer(text)] + [len(text)]
    fitting = [lines for end in ends if len(lines := wrapped(text[:end], width)) <= most]
    return fitting[-1] if fitting else wrapped(text[: ends[0]], width)


def _lines_of(text: str, width: int, most: int) -> list[str]:
    lines = wrapped(text, width) or [""]
    if len(lines) > most:
        lines[most - 1] = _cut(f"{lines[most - 1]} {lines[most]} {'x' * width}", max(width, 4))
    return lines[:most]
