"""Present a reproduction as a table and as JSON: published statements and values next to those of this system."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from io import StringIO
from typing import Any

from strakes.base.foreign_text import for_terminal
from strakes.base.text_width import wrapped
from strakes.base.units import typed_seconds
from strakes.model.answers import Answer
from strakes.model.literature import (
    Omitted,
    PublishedValue,
    Source,
    published_values,
    replication_disagreement,
    replication_table,
    scale,
    statements,
)
from strakes.model.portrait import Finding, Portrait
from strakes.report.answer_text import GRADES, number
from strakes.report.facts import source_of
from strakes.report.numbers import percent, show, show_bounds, show_interval
from strakes.report.summary import wrap
from strakes.stats.grades import times_to_decide

_WIDTH_COLUMNS = 100
# Show only the first and the last value of a published curve that has more values. Twice the number doubles the text.
_MOST_VALUES = 4
_HOLDS = {"holds": "holds", "does-not": "does not hold"}
_YES = "leaning to yes"
_MORE = "a larger --budget"


@dataclass(frozen=True)
class Row:
    """A published statement, and whether it holds on this system. ``decides``: runs and budget that would decide it."""

    published: str
    here: str
    grade: str
    ratio: str = ""
    decides: str = ""


def to_document(source: Source, portraits: Sequence[Portrait]) -> dict[str, Any]:
    """Return the reproduction as a JSON document, with published and measured values in separate lists."""

    def every(name: str) -> list[dict[str, Any]]:
        return [asdict(each) for portrait in portraits for each in getattr(portrait, name)]

    return {
        "schema": 1,
        "source": source.name,
        "paper": source.paper,
        "runs": [portrait.run["id"] for portrait in portraits],
        "scale": [{"what": what, "theirs": theirs, "ours": ours} for what, theirs, ours in scale(source, portraits)],
        "table": [asdict(row) for row in rows(source, portraits)],
        "published": [asdict(value) for portrait in portraits for value in published_values(portrait, source.name)],
        "statements": [text for portrait in portraits for text in statements(portrait, source.name)],
        "answers": every("answers"),
        "findings": every("findings"),
        "replication": [asdict(row) for row in replication_table()] if source.name == "S2" else [],
        "disagreements": [replication_disagreement()] if source.name == "S2" else [],
        "omitted": [asdict(omission) for omission in _left_out(source, portraits)],
        "skipped": every("skipped"),
    }


def _left_out(source: Source, portraits: Sequence[Portrait]) -> tuple[Omitted, ...]:
    return source.left_out(against=any("against" in portrait.target for portrait in portraits))


def render(source: Source, portraits: Sequence[Portrait], reports: Sequence[str]) -> str:
    """Return the reproduction as text: size of both experiments, results, rules for this system, and omissions."""
    lines = [f"{source.name}  {source.paper}", "", "Scale: published, then here"]
    lines += [f"  {what:<18} {theirs:<44} {for_terminal(ours)}" for what, theirs, ours in scale(source, portraits)]
    lines += ["", *_table(rows(source, portraits))]
    if source.rules:
        lines += ["", "Rules for this system"]
        lines += [f"  {line}" for text in rules(source, portraits) for line in wrapped(text, _WIDTH_COLUMNS - 2)]
    if source.name == "S2":
        lines += ["", "Published estimates of replication (not measured here)"]
        lines.append(f"  {'files':>12} {'MB':>10} {'predicted s':>12} {'published s':>12} {'implied MB/s':>13}")
        for row in replication_table():
            times = f"{row.predicted_s:>12.3g} {row.published_s:>12.3g}"
            lines.append(f"  {row.files:>12,} {row.megabytes:>10,.1f} {times} {row.implied_mb_per_s:>13.0f}")
        lines += [f"  {line}" for line in wrap(replication_disagreement(), _WIDTH_COLUMNS - 2)]
    left_out = [f"{omission.what}: {omission.why}" for omission in _left_out(source, portraits)]
    counts = Counter((cell.study, cell.reason) for portrait in portraits for cell in portrait.skipped)
    for (study, reason), cells in counts.items():
        left_out.append(f"{study}: {reason}" + (f" ({cells} cells)" if cells > 1 else ""))
    if left_out:
        lines += ["", "Left out, and why"]
        lines += [f"  {line}" for text in left_out for line in wrap(text, _WIDTH_COLUMNS - 2)]
    return "\n".join([*lines, "", *(f"Report  {for_terminal(report)}" for report in reports)])


def rows(source: Source, portraits: Sequence[Portrait]) -> list[Row]:
    """Return the rows of the table: first those about published statements, then those about published values."""
    found = [row for text, patterns in source.published.items() for row in _rows_of(text, patterns, portraits)]
    if not source.published:
        for portrait in portraits:
            found += [_answered(answer.title, answer, portrait) for answer in portrait.answers]
            found += [_found("", finding, portrait) for finding in portrait.findings]
    values = _ends([value for portrait in portraits for value in published_values(portrait, source.name)])
    return [*found, *(row for value in values for row in _values(value))]


def rules(source: Source, portraits: Sequence[Portrait]) -> list[str]:
    """Return the rules of the publication, each with the best settings on this system and how certain they are."""
    lines = []
    for index, (rule, patterns) in enumerate(source.rules.items(), 1):
        answers = [answer for portrait in portraits for answer in portrait.answers if _matches(answer.id, patterns)]
        told = []
        for answer in answers:
            title = answer.title.partition(", ")[2] or answer.title
            grade = "" if answer.grade == "undecided" else f" ({GRADES[answer.grade]})"
            told.append(f"{title}: {_chosen(answer)}{grade}")
        lines.append(f"{index}. {rule}: {'; '.join(told) or 'not measured'}.")
    return lines


def _rows_of(text: str, patterns: Sequence[str], portraits: Sequence[Portrait]) -> list[Row]:
    found, findings = [], []
    for portrait in portraits:
        found += [_answered(text, one, portrait) for one in portrait.answers if _matches(one.id, patterns)]
        findings += [(one, _found(text, one, portrait)) for one in portrait.findings if _matches(one.id, patterns)]
    for finding, row in findings:
        several = finding.grade is not None and len(findings) > 1
        found.append(replace(row, here=f"{finding.statement.partition(': ')[0]}: {row.here}") if several else row)
    return found or [Row(text, "not measured", "-", decides=_missing(patterns, portraits))]


def _missing(patterns: Sequence[str], portraits: Sequence[Portrait]) -> str:
    skipped = [cell for each in portraits for cell in each.skipped if _is_about(cell.study, patterns)]
    cells = [cell for each in portraits for cell in each.cells if _is_about(cell.study, patterns)]
    measured = {key for cell in cells for key in cell.settings}
    skipped.sort(key=lambda cell: bool(cell.settings.keys() - measured))
    return [_MORE, *(cell.reason for cell in skipped)][-1]


def _is_about(study: str, patterns: Sequence[str]) -> bool:
    return any(pattern.startswith(study) for pattern in patterns)


def _matches(identifier: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(identifier, pattern) for pattern in patterns)


def _chosen(answer: Answer) -> str:
    leaning = "leaning to " if answer.grade == "undecided" else ""
    within = f", all alike within {percent(answer.within - 1)}" if answer.within else ""
    return f"{leaning}{answer.chosen}{within}"


def _answered(text: str, answer: Answer, portrait: Portrait) -> Row:
    against = answer.against
    here = _chosen(answer) if answer.title == text else f"{answer.title}: {_chosen(answer)}"
    ratio = f"{number(against.ratio)} [{number(against.low)}-{number(against.high)}] times {against.option}"
    decides = _decides(against.low, against.high, answer.blocks, portrait) if answer.grade == "undecided" else ""
    source = source_of(portrait, [answer.measure, against.measure])
    return Row(text, "; ".join(filter(None, (here, answer.remark, source))), GRADES[answer.grade], ratio, decides)


def _found(text: str, finding: Finding, portrait: Portrait) -> Row:
    published, here = text or finding.statement, _HOLDS.get(finding.verdict, "")
    if finding.grade is None:
        bounds = "" if finding.interval is None else f"[{show_bounds(finding.interval, '-')}]"
        grade = {"unknown": "-", "inconclusive": "-", "forecast": "forecast"}.get(finding.verdict, "measured")
        here = ": ".join(filter(None, (here, finding.statement if text else "")))
        return Row(published, here, grade, bounds, finding.needs)
    if finding.interval is None:
        return Row(published, "not decided", GRADES[finding.grade], "", finding.needs)
    low, high = finding.interval.low, finding.interval.high
    # The stored interval lacks an estimate, so use the geometric mean of its ends.
    ratio = f"{number(math.sqrt(low * high))} [{number(low)}-{number(high)}] {finding.interval.of}"
    here = here or (_YES if _YES in finding.statement else "leaning to no")
    decides = _decides(low, high, int(portrait.run.get("blocks", 0)), portrait) if finding.needs else ""
    return Row(published, here, GRADES[finding.grade], ratio, decides)


def _values(value: PublishedValue) -> list[Row]:
    text = f"{value.figure}, {value.at}; {value.label}: {show(value.published, value.unit)}"
    if not value.own:
        return [Row(text, "not measured", "-", decides=_MORE)]
    found = []
    for name, cell in value.own:
        here = f"{name}: {show(cell.median, cell.unit)} [{show_interval(cell, ' - ')}]"
        found.append(Row(text, here, "measured", f"{number(cell.median / value.published)} times as published"))
    return found


def _decides(low: float, high: float, blocks: int, portrait: Portrait) -> str:
    factor = times_to_decide(low, high)
    budget_s = factor * float(portrait.run.get("options", {}).get("budget_s", 0.0))
    budget = f" (--budget {typed_seconds(budget_s, up=True)})" if budget_s else ""
    return f"{math.ceil(factor * blocks)} blocks{budget}"


def _table(found: Sequence[Row]) -> list[str]:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, width=_WIDTH_COLUMNS)
    widths = {"published": 28, "here": 27, "grade": 10, "ratio [90 % interval]": 19, "would decide it": 14}
    for heading, share in widths.items():
        drawn.add_column(heading, ratio=share, overflow="fold")
    before = ""
    for row in found:
        shown = "" if row.published == before else row.published
        before = row.published
        drawn.add_row(*(Text(for_terminal(text)) for text in (shown, row.here, row.grade, row.ratio, row.decides)))
    printed = StringIO()
    Console(file=printed, width=_WIDTH_COLUMNS, no_color=True, highlight=False).print(drawn)
    return [line.rstrip() for line in printed.getvalue().splitlines() if line.strip()]


def _ends(values: Sequence[PublishedValue]) -> list[PublishedValue]:
    lines: dict[tuple[str, str], list[PublishedValue]] = {}
    for value in values:
        lines.setdefault((value.figure, value.label), []).append(value)
    return [value for line in lines.values() for value in (line if len(line) <= _MOST_VALUES else (line[0], line[-1]))]
