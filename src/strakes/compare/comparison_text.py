"""A comparison as text for the terminal and as a document for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from strakes.compare.comparison import CellVerdict, Comparison
from strakes.foreign_text import for_terminal
from strakes.language import translate
from strakes.language.width import padded
from strakes.report.numbers import percent, show
from strakes.statistics.contrast import Verdict
from strakes.units import counted

_ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.INCONCLUSIVE, Verdict.SAME)
_MOST_UNLIKE = 8


def to_document(comparison: Comparison) -> dict[str, Any]:
    """Return the fields of ``Comparison`` as JSON values."""
    return {"schema": 1, **asdict(comparison)}


def render(comparison: Comparison) -> str:
    """Return the comparison as text, changed cells first."""
    overall = comparison.overall
    lines = [
        f"A  {for_terminal(str(comparison.a['id']))}  {for_terminal(str(comparison.a['target']))}",
        f"B  {for_terminal(str(comparison.b['id']))}  {for_terminal(str(comparison.b['target']))}",
        "",
        translate(say_overall(comparison)),
        *([translate(f"  Needed to decide: {overall.needs}")] if overall.needs else []),
        translate(say_scope(comparison)),
        "",
    ]
    ordered = order_cells(comparison)
    widest = max(len(cell.id) for cell in comparison.cells)
    lines += [_line(cell, min(widest, 60)) for cell in ordered]
    needs = {cell.needs: 0 for cell in ordered if cell.needs}
    if needs:
        lines += ["", translate(f"Needed to decide INCONCLUSIVE cells: {'; or '.join(needs)}")]
    cautions = (*comparison.caution, *(f"Differs: {line}" for line in comparison.differs))
    lines += [translate(for_terminal(text)) for text in cautions]
    if comparison.unlike:
        lines += ["", translate(f"Not compared ({len(comparison.unlike)}):")]
        lines += [
            f"  {for_terminal(pair.id)}: {translate(for_terminal(pair.why))}"
            for pair in comparison.unlike[:_MOST_UNLIKE]
        ]
        if len(comparison.unlike) > _MOST_UNLIKE:
            lines.append(translate(f"  {len(comparison.unlike) - _MOST_UNLIKE} more: --json has them all"))
    return "\n".join(lines)


def say_overall(comparison: Comparison) -> str:
    """Return the verdict over all cells as one sentence."""
    overall = comparison.overall
    times = _times(overall.ratio, overall.low, overall.high)
    return f"B is {overall.verdict}{times} over {counted(len(comparison.cells), 'cell')}."


def say_scope(comparison: Comparison) -> str:
    """Return the explanation of ratios, SAME and intervals."""
    return (
        f"A ratio says how many times better B is than A; SAME means within ±{100 * comparison.margin:.3g} %. The "
        f"overall interval holds with {percent(comparison.confidence)} confidence, and so do the intervals of all "
        "cells together."
    )


def order_cells(comparison: Comparison) -> list[CellVerdict]:
    """Return the cells, changed ones first."""
    return sorted(comparison.cells, key=lambda cell: (_ORDER.index(cell.verdict), cell.ratio))


def _line(cell: CellVerdict, width: int) -> str:
    known = cell.low is not None and cell.high is not None
    interval = (
        f"{cell.low:.3f} - {cell.high:.3f}" if known else translate("no interval" if cell.needs else "too few runs")
    )
    values = f"{show(cell.median_a, cell.unit)} -> {show(cell.median_b, cell.unit)}"
    runs = translate(f"({cell.runs_a} and {counted(cell.runs_b, 'run')})")
    name = f"{padded(translate(cell.verdict), 12)} {for_terminal(cell.id):<{width}}"
    ratio = translate(f"{cell.ratio:.3f} times")
    return f"  {name}  {ratio} [{interval}]  {values}  {runs}"


def _times(ratio: float | None, low: float | None, high: float | None) -> str:
    if ratio is None:
        return ""
    if low is None or high is None:
        return f": {ratio:.3f} times as good, without an interval,"
    return f": {ratio:.3f} times as good [{low:.3f} - {high:.3f}]"
