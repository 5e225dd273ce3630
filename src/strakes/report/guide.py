"""A portrait as the page "how to use our file system" for users of a centre, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strakes.base.foreign_text import for_terminal
from strakes.base.language import gettext, ngettext
from strakes.base.units import format_bytes
from strakes.model.portrait import CellEstimate, Figure, Finding, Portrait
from strakes.report.answer_text import answer_lines
from strakes.report.facts import ended_early, facts_of, headlines_of, title_of
from strakes.report.notices import notices
from strakes.report.numbers import listed, percent, show, show_fresh, show_interval, show_interval_of, show_width
from strakes.report.sections import VERDICTS

_OPEN = ("unknown", "inconclusive")


def render_guide(portrait: Portrait, layouts: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page. ``layouts``: settings to paste, each with a title and its text."""
    parts = (
        _head(portrait),
        _advice(portrait),
        _layouts(layouts),
        _expect(portrait),
        _traits(portrait.findings),
        _studies(portrait),
        _open(portrait),
        _mistrust(portrait),
        _own(portrait),
    )
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def _head(portrait: Portrait) -> Iterator[str]:
    yield f"# {_text(gettext('How to use {directory}', directory=title_of(portrait)))}"
    yield ""
    yield from _paragraph(
        gettext(
            "Everything on this page was measured with strakes. Scope: {scope}.",
            scope=gettext("; ").join(portrait.scope.split("; ")),
        )
    )
    if ended_early(portrait):
        yield from _paragraph(ended_early(portrait))
    yield from _table(("", ""), [(gettext(name), value) for name, value in facts_of(portrait)])


def _advice(portrait: Portrait) -> Iterator[str]:
    yield from _heading(gettext("In short"))
    decided = [line for line in answer_lines(portrait.answers) if line.grade != "undecided"]
    if not decided:
        yield from _paragraph(gettext("No question was decided: give a larger --budget."))
        return
    rows = [(line.title, f"**{_text(line.text)}**", line.word) for line in decided]
    yield from _table(("", "", gettext("how sure")), rows)


def _layouts(layouts: Sequence[tuple[str, str]]) -> Iterator[str]:
    if not layouts:
        return
    yield from _heading(gettext("Settings to paste"))
    for title, text in layouts:
        yield from _paragraph(gettext("{title}:", title=f"{title[0].upper()}{title[1:]}"))
        yield from ("```sh", text.rstrip(), "```", "")


def _expect(portrait: Portrait) -> Iterator[str]:
    standing = headlines_of(portrait)
    if not standing:
        return
    yield from _heading(gettext("What to expect"))
    confidence = percent(standing[0][1].confidence)
    rows = [
        (
            line.label,
            show(cell.median, cell.unit),
            listed(show_interval(cell), show_width(cell), show_fresh(cell)),
            str(cell.runs),
        )
        for line, cell in standing
    ]
    interval = gettext("{confidence} interval", confidence=confidence)
    yield from _table(("", gettext("median"), interval, gettext("runs")), rows)


def _traits(findings: Sequence[Finding]) -> Iterator[str]:
    for tone, title in (("good", "Strengths"), ("bad", "Weaknesses")):
        chosen = [finding for finding in findings if finding.tone == tone]
        if chosen:
            yield from _heading(gettext(title))
            yield from _statements(chosen)


def _studies(portrait: Portrait) -> Iterator[str]:
    """Yield each study's findings, and its figures as tables."""
    cells = {cell.id: cell for cell in portrait.cells}
    for study in dict.fromkeys(figure.study for figure in portrait.figures):
        yield from _heading(gettext(study.replace("-", " ").capitalize()))
        settled = [
            finding
            for finding in portrait.findings
            if finding.study == study and finding.verdict not in _OPEN and finding.tone == "neutral"
        ]
        yield from _statements(settled)
        for figure in portrait.figures:
            if figure.study == study:
                yield from _figure(figure, cells)


def _figure(figure: Figure, cells: dict[str, CellEstimate]) -> Iterator[str]:
    yield f"**{_text(gettext('{sentence}.', sentence=figure.title))}** {_text(figure.question)}"
    yield ""
    levels = list(dict.fromkeys(point.x for series in figure.series for point in series.points))
    if figure.x_scale != "category":
        levels.sort(key=float)
    columns = [
        {point.x: cells[point.cell] for point in series.points if point.cell in cells} for series in figure.series
    ]
    rows = [(_level(level, figure.x_unit), *(_value(column.get(level)) for column in columns)) for level in levels]
    yield from _table((figure.x_label, *(series.name for series in figure.series)), rows)


def _value(cell: CellEstimate | None) -> str:
    if cell is None:
        return ""
    interval = show_interval(cell) if cell.low is not None else ngettext("{count} run", "{count} runs", cell.runs)
    return f"{show(cell.median, cell.unit)} ({interval})"


def _level(level: float | str, unit: str) -> str:
    if isinstance(level, str):
        return level
    return format_bytes(level) if unit == "B" else f"{level:,.6g} {unit}".rstrip()


def _open(portrait: Portrait) -> Iterator[str]:
    undecided = [finding for finding in portrait.findings if finding.verdict in _OPEN]
    leanings = [line for line in answer_lines(portrait.answers) if line.grade == "undecided"]
    if undecided or leanings:
        yield from _heading(gettext("Not decided or not measured"))
        for line in leanings:
            yield f"- {_text(gettext('{title}: {text}', title=line.title, text=line.text))}"
        yield from _statements(undecided)
        yield ""


def _mistrust(portrait: Portrait) -> Iterator[str]:
    remarks = notices(portrait)
    if remarks:
        yield from _heading(gettext("Warnings"))
        for remark in remarks:
            said = {"code": remark.code, "extent": _text(remark.extent), "advice": _text(remark.advice)}
            yield f"- {gettext('**{code}** ({extent}): {advice}', **said)}"
        yield ""


def _own(portrait: Portrait) -> Iterator[str]:
    yield from _heading(gettext("For your own application"))
    yield from _paragraph(
        gettext(
            "Describe the application in a file, or make the file from a Darshan log, to get settings from these "
            "measurements:"
        )
    )
    yield from ("```sh", "strakes advise --darshan job.darshan > app.toml", "strakes advise --app app.toml", "```", "")
    if portrait.reproduce:
        yield from _paragraph(gettext("This page was made from this run, which can be repeated:"))
        yield from ("```sh", *map(for_terminal, portrait.reproduce[:1]), "```", "")


def _statements(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        interval = "" if finding.interval is None else f" [{_text(show_interval_of(finding.interval))}]"
        verdict = "" if finding.verdict == "measured" else gettext(VERDICTS[finding.verdict])
        needs = f" {_text(gettext('Needed: {needs}.', needs=finding.needs))}" if finding.needs else ""
        yield f"- {_text(finding.statement)}{f' ({_text(verdict)})' if verdict else ''}{interval}{needs}"
    if findings:
        yield ""


def _heading(title: str) -> Iterator[str]:
    yield f"## {_text(title)}"
    yield ""


def _paragraph(text: str) -> Iterator[str]:
    yield _text(text)
    yield ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(_text, head))} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(text if text.startswith('**') else _text(text) for text in row)} |"
    yield ""


def _text(text: str) -> str:
    r"""Return a text with Markdown escaped, so that a path makes no tag or link.

    >>> _text("a|b <i> [c](javascript:d)")
    'a\\|b &lt;i> [c]\\(javascript:d)'
    """
    text = for_terminal(text).replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    return text.replace("|", "\\|").replace("`", "\\`").replace("](", "]\\(").replace("][", "]\\[")
