"""Write the guide "how to use our file system" for users of a computing centre, from the results of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from strakes.base.foreign_text import for_terminal
from strakes.base.language import gettext, ngettext
from strakes.base.units import format_bytes
from strakes.model.portrait import CellEstimate, Figure, Finding, Portrait
from strakes.report.answer_text import answer_lines
from strakes.report.facts import ended_early, facts_of, headlines_of, source_of, title_of
from strakes.report.html import environment
from strakes.report.notices import FIRST, notices
from strakes.report.numbers import listed, percent, show, show_interval, show_interval_of, show_remarks
from strakes.report.sections import VERDICTS


def render_guide(portrait: Portrait, layouts: Sequence[tuple[str, str]] = ()) -> str:
    """Return the guide as Markdown. ``layouts``: title and commands of each file layout, ready to paste."""
    answers, standing = answer_lines(portrait), headlines_of(portrait)
    cells = {cell.id: cell for cell in portrait.cells}
    undecided = [finding for finding in portrait.findings if finding.verdict in ("unknown", "inconclusive")]
    template = environment(_text, autoescape=False).get_template("guide.md.j2")
    text = template.render(
        title=title_of(portrait),
        scope=gettext("; ").join(portrait.scope.split("; ")),
        ended=ended_early(portrait),
        table=_table,
        statements=_statements,
        drawn=lambda figure: _figure(figure, cells),
        facts=[(gettext(name), value) for name, value in facts_of(portrait)],
        decided=[
            (one.title, Markup(f"**{_text(one.full_text)}**"), one.word) for one in answers if one.grade != "undecided"
        ],
        layouts=layouts,
        confidence=percent(standing[0][1].confidence) if standing else "",
        headlines=[
            (
                listed(line.label, source_of(portrait, [cell.id])),
                show(cell.median, cell.unit),
                listed(show_interval(cell), show_remarks(cell)),
                str(cell.runs),
            )
            for line, cell in standing
        ],
        findings=portrait.findings,
        settled=[one for one in portrait.findings if one not in undecided and one.tone == "neutral"],
        studies=dict.fromkeys(figure.study for figure in portrait.figures),
        figures=portrait.figures,
        leanings=[one for one in answers if one.grade == "undecided"],
        open=undecided,
        notices=notices(portrait),
        first=FIRST,
        markdown=Markup,
        text=_text,
        repeat=for_terminal(portrait.reproduce[0]) if portrait.reproduce else "",
    )
    return text.rstrip() + "\n"


def _figure(figure: Figure, cells: Mapping[str, CellEstimate]) -> str:
    levels = list(dict.fromkeys(point.x for series in figure.series for point in series.points))
    if figure.x_scale != "category":
        levels.sort(key=float)
    columns = [
        {point.x: cells[point.cell] for point in series.points if point.cell in cells} for series in figure.series
    ]
    rows = [(_level(level, figure.x_unit), *(_value(column.get(level)) for column in columns)) for level in levels]
    title = f"**{_text(gettext('{sentence}.', sentence=figure.title))}** {_text(figure.question)}"
    return Markup(f"{title}\n\n{_table((figure.x_label, *(series.name for series in figure.series)), rows)}")


def _value(cell: CellEstimate | None) -> str:
    if cell is None:
        return ""
    interval = show_interval(cell) if cell.low is not None else ngettext("{count} run", "{count} runs", cell.runs)
    return f"{show(cell.median, cell.unit)} ({interval})"


def _level(level: float | str, unit: str) -> str:
    if isinstance(level, str):
        return level
    return format_bytes(level) if unit == "B" else f"{level:,.6g} {unit}".rstrip()


def _statements(findings: Iterable[Finding]) -> str:
    lines = []
    for one in findings:
        interval = "" if one.interval is None else f" [{show_interval_of(one.interval)}]"
        verdict = "" if one.verdict == "measured" else f" ({gettext(VERDICTS.get(one.verdict, one.verdict))})"
        needs = f" {gettext('Needed: {needs}.', needs=one.needs)}" if one.needs else ""
        lines.append(f"- {_text(f'{one.statement}{verdict}{interval}{needs}')}\n")
    return Markup("".join([*lines, "\n"]) if lines else "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(map(_text, row))} |" for row in (head, *rows)]
    return Markup("\n".join([lines[0], f"|{'---|' * len(head)}", *lines[1:], ""]))


def _text(text: object) -> str:
    r"""Escape Markdown and HTML in a text, so that it cannot become a tag or a link.

    >>> _text("a|b <i> [c](javascript:d)")
    'a\\|b &lt;i> [c]\\(javascript:d)'
    """
    if hasattr(text, "__html__"):
        return str(text)
    text = for_terminal(text).replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    return text.replace("|", "\\|").replace("`", "\\`").replace("](", "]\\(").replace("][", "]\\[")
