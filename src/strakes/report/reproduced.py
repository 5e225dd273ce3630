"""A reproduction as text and as a document for programs: theirs and ours in columns of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from strakes.findings.portrait import Finding, Portrait
from strakes.foreign_text import for_terminal
from strakes.literature.replication import disagreements, table
from strakes.literature.sources import Source
from strakes.literature.tables import Beside, beside, scale, statements
from strakes.report.answer_text import answer_lines
from strakes.report.numbers import show, show_bounds, show_interval
from strakes.report.sources import SOURCES as PAPERS
from strakes.report.summary import wrap

_WIDTH = 100
# A source may leave many comparisons open; a screen has room for so many of them. S5 alone has seven statements.
_MOST_OPEN = 10
# And for so many values of one published line.
_MOST_VALUES = 4
_VERDICTS = {
    "holds": "HOLDS",
    "does-not": "DOES NOT",
    "inconclusive": "INCONCLUSIVE",
    "unknown": "UNKNOWN",
    "measured": "measured",
    "forecast": "forecast",
}


def to_document(source: Source, portraits: Sequence[Portrait]) -> dict[str, Any]:
    """As values JSON knows; published values and own ones in lists of their own."""
    return {
        "schema": 1,
        "source": source.name,
        "paper": PAPERS[source.name],
        "runs": [portrait.run["id"] for portrait in portraits],
        "scale": [{"what": what, "theirs": theirs, "ours": ours} for what, theirs, ours in scale(source, portraits)],
        "published": [asdict(value) for portrait in portraits for value in beside(portrait, source.name)],
        "statements": [text for portrait in portraits for text in statements(portrait, source.name)],
        "answers": [asdict(answer) for portrait in portraits for answer in portrait.answers],
        "findings": [asdict(finding) for portrait in portraits for finding in portrait.findings],
        "replication": [{**asdict(row), "implied_mb_per_s": row.implied_mb_per_s} for row in table()]
        if source.name == "S2"
        else [],
        "disagreements": list(disagreements()) if source.name == "S2" else [],
        "omitted": [asdict(omission) for omission in source.left_out(against=_against(portraits))],
        "skipped": [asdict(cell) for portrait in portraits for cell in portrait.skipped],
    }


def render(source: Source, portraits: Sequence[Portrait], reports: Sequence[str]) -> str:
    """Return the whole in the order: scale, theirs beside ours, what was found, what was left out."""
    lines = [f"{source.name}  {PAPERS[source.name]}", "", "Scale: published, then here"]
    lines += [f"  {what:<18} {theirs:<44} {for_terminal(ours)}" for what, theirs, ours in scale(source, portraits)]
    values = _ends([value for portrait in portraits for value in beside(portrait, source.name)])
    if values:
        lines += ["", "Published values, and measured values at the same points"]
    for value in values:
        lines.append(f"  {value.figure}, {value.at}; {value.label}: {show(value.published, value.unit)}")
        lines += [
            f"      measured here, {name}: {show(cell.median, cell.unit)} [{show_interval(cell, ' - ')}]"
            for name, cell in value.own
        ]
        if not value.own:
            lines.append("      nothing was measured here at that point")
    remarks = [text for portrait in portraits for text in statements(portrait, source.name)]
    if remarks:
        lines += ["", "What it says"]
        lines += [f"  {line}" for text in dict.fromkeys(remarks) for line in wrap(text, _WIDTH - 2)]
    if source.name == "S2":
        lines += ["", *_replication()]
    answers = [line for portrait in portraits for line in answer_lines(portrait.answers)]
    lines += ["", "What was decided here"]
    lines += [
        f"  {text}" for line in answers for text in wrap(f"{line.word}: {line.title}: {line.text}", _WIDTH - 2, most=4)
    ]
    lines += ["", "Other findings here"]
    findings = [finding for portrait in portraits for finding in portrait.findings]
    lines += [f"  {line}" for text in _found(findings) for line in wrap(text, _WIDTH - 2, most=4)]
    left_out = [f"{omission.what}: {omission.why}" for omission in source.left_out(against=_against(portraits))]
    skipped = dict.fromkeys(f"{cell.study}: {cell.reason}" for portrait in portraits for cell in portrait.skipped)
    if left_out or skipped:
        lines += ["", "Left out, and why"]
        lines += [f"  {line}" for text in (*left_out, *skipped) for line in wrap(text, _WIDTH - 2)]
    return "\n".join([*lines, "", *(f"Report  {for_terminal(report)}" for report in reports)])


def _ends(values: Sequence[Beside]) -> list[Beside]:
    """Of a line of many published values the first and the last: the report has them all."""
    lines: dict[tuple[str, str], list[Beside]] = {}
    for value in values:
        lines.setdefault((value.figure, value.label), []).append(value)
    return [value for line in lines.values() for value in (line if len(line) <= _MOST_VALUES else (line[0], line[-1]))]


def _found(findings: Sequence[Finding]) -> list[str]:
    """Return the findings as lines, what is decided first; of many that are open only the first, and how many more."""
    decided = [finding for finding in findings if finding.verdict != "inconclusive"]
    undecided = [finding for finding in findings if finding.verdict == "inconclusive"]
    lines = [
        f"{_VERDICTS[finding.verdict]}: {finding.statement}{_bounds(finding)}"
        for finding in (*decided, *undecided[:_MOST_OPEN])
    ]
    left = len(undecided) - _MOST_OPEN
    return [*lines, f"{left} more are INCONCLUSIVE: see the report"] if left > 0 else lines


def _bounds(finding: Finding) -> str:
    """Return the interval in short, where there is one."""
    return "" if finding.interval is None else f" [{show_bounds(finding.interval, ' - ')}]"


def _against(portraits: Sequence[Portrait]) -> bool:
    return any("against" in portrait.target for portrait in portraits)


def _replication() -> list[str]:
    lines = ["Published estimates of replication (not measured here)"]
    lines.append(f"  {'files':>12} {'MB':>10} {'predicted s':>12} {'published s':>12} {'implied MB/s':>13}")
    lines += [
        f"  {row.files:>12,} {row.megabytes:>10,.1f} {row.predicted_s:>12.3g} {row.published_s:>12.3g} "
        f"{row.implied_mb_per_s:>13.0f}"
        for row in table()
    ]
    return [*lines, *(f"  {line}" for text in disagreements() for line in wrap(text, _WIDTH - 2))]
