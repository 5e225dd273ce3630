"""A comparison as text for the terminal, and as a document for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from strakes.base.foreign_text import for_terminal
from strakes.base.language import gettext, ngettext
from strakes.base.text_width import columns, padded
from strakes.report.numbers import percent, show
from strakes.stats.ratios import Verdict
from strakes.survey.comparison import CellVerdict, Comparison, Overall

_DIRECTIONS = {"likely": ("likely SLOWER", "likely FASTER"), "leaning": ("leaning to SLOWER", "leaning to FASTER")}
_ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.INCONCLUSIVE, Verdict.SAME)
# Maximum number of printed measurements that cannot be compared.
_MOST_LINES = 8


def to_document(comparison: Comparison) -> dict[str, Any]:
    """Return the fields of ``Comparison`` as JSON values."""
    return {"schema": 1, **asdict(comparison)}


def render(comparison: Comparison) -> str:
    """Return the comparison of two runs as text, with changed measurements first."""
    overall = comparison.overall
    lines = [
        f"A  {for_terminal(str(comparison.a['id']))}  {for_terminal(str(comparison.a['target']))}",
        f"B  {for_terminal(str(comparison.b['id']))}  {for_terminal(str(comparison.b['target']))}",
        "",
        say_overall(comparison),
        *([f"  {gettext('Needed for a sure verdict: {needs}', needs=overall.needs)}"] if overall.needs else []),
        say_scope(comparison),
        "",
    ]
    ordered = order_cells(comparison)
    widest = max(len(cell.id) for cell in comparison.cells)
    words = max(columns(say_verdict(cell)) for cell in ordered)
    lines += [_line(cell, words, min(widest, 60)) for cell in ordered]
    if needs := gettext("; or ").join(dict.fromkeys(cell.needs for cell in ordered if cell.needs)):
        lines += ["", gettext("Needed for sure verdicts on the other cells: {needs}", needs=needs)]
    lines += [for_terminal(text) for text in cautions_of(comparison)]
    if comparison.unlike:
        lines += ["", gettext("Not compared ({count}):", count=len(comparison.unlike))]
        lines += [f"  {for_terminal(pair.id)}: {for_terminal(pair.why)}" for pair in comparison.unlike[:_MOST_LINES]]
        if (more := len(comparison.unlike) - _MOST_LINES) > 0:
            lines.append(f"  {gettext('{count} more; --json lists all', count=more)}")
    return "\n".join(lines)


def say_overall(comparison: Comparison) -> str:
    """Return the verdict on all measurements together as one sentence."""
    overall = comparison.overall
    cells, verdict = len(comparison.cells), say_verdict(overall)
    if overall.grade == "leaning":
        verdict = gettext("not decided; {direction}", direction=verdict)
    if overall.ratio is None:
        one, several = "B is {verdict} over {count} cell.", "B is {verdict} over {count} cells."
        return ngettext(one, several, cells, verdict=verdict)
    ratio = f"{overall.ratio:.3f}"
    if overall.low is None or overall.high is None:
        one = "B is {verdict}: {ratio} times as good, without an interval, over {count} cell."
        several = "B is {verdict}: {ratio} times as good, without an interval, over {count} cells."
        return ngettext(one, several, cells, verdict=verdict, ratio=ratio)
    one = "B is {verdict}: {ratio} times as good [{low} - {high}] over {count} cell."
    several = "B is {verdict}: {ratio} times as good [{low} - {high}] over {count} cells."
    bounds = {"low": f"{overall.low:.3f}", "high": f"{overall.high:.3f}"}
    return ngettext(one, several, cells, verdict=verdict, ratio=ratio, **bounds)


def say_verdict(one: CellVerdict | Overall) -> str:
    """Return the verdict in words. For an INCONCLUSIVE verdict, say which run is probably faster.

    >>> say_verdict(Overall(Verdict.INCONCLUSIVE, 0.3, 0.2, 0.4, grade="likely"))
    'likely SLOWER'
    """
    if one.ratio is None or one.grade not in _DIRECTIONS:
        return gettext(one.verdict)
    return gettext(_DIRECTIONS[one.grade][one.ratio > 1])


def say_scope(comparison: Comparison) -> str:
    """Return a text that explains the ratios, the verdict SAME and the intervals."""
    return gettext(
        "A ratio says how many times better B is than A. SAME: the difference is at most {margin} %. Only the "
        "verdicts FASTER, SLOWER and SAME are sure. The overall interval holds with {confidence} confidence, and so "
        "do the intervals of all cells together.",
        margin=f"{100 * comparison.margin:.3g}",
        confidence=percent(comparison.confidence),
    )


def cautions_of(comparison: Comparison) -> list[str]:
    """Return the reasons to distrust the verdicts, followed by the differences between the runs."""
    return [*comparison.caution, *(gettext("Differs: {what}", what=text) for text in comparison.differs)]


def order_cells(comparison: Comparison) -> list[CellVerdict]:
    """Return the compared measurements, with changed ones first."""
    return sorted(comparison.cells, key=lambda cell: (_ORDER.index(cell.verdict), cell.grade != "likely", cell.ratio))


def say_interval(cell: CellVerdict) -> str:
    """Return the interval of a ratio as text, or the reason why there is no interval."""
    if cell.low is None or cell.high is None:
        return gettext("no interval") if cell.needs else gettext("too few runs")
    return f"{cell.low:.3f} - {cell.high:.3f}"


def _line(cell: CellVerdict, words: int, width: int) -> str:
    values = f"{show(cell.median_a, cell.unit)} -> {show(cell.median_b, cell.unit)}"
    runs = ngettext("({a} and {count} run)", "({a} and {count} runs)", cell.runs_b, a=cell.runs_a)
    name = f"{padded(say_verdict(cell), words)} {for_terminal(cell.id):<{width}}"
    ratio = gettext("{ratio} times", ratio=f"{cell.ratio:.3f}")
    return f"  {name}  {ratio} [{say_interval(cell)}]  {values}  {runs}"
