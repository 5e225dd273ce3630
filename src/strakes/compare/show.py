"""A comparison as text for the terminal and as a document for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from strakes.compare.model import CellVerdict, Comparison
from strakes.report.numbers import percent, show
from strakes.report.summary import clean, wrap
from strakes.statistics.contrast import Verdict

_WIDTH = 100
_ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.INCONCLUSIVE, Verdict.SAME)
_MOST_UNLIKE = 8


def to_document(comparison: Comparison) -> dict[str, Any]:
    """As values JSON knows: the fields of ``Comparison``."""
    return {"schema": 1, **asdict(comparison)}


def render(comparison: Comparison) -> str:
    """The comparison as lines of text, what changed first."""
    overall = comparison.overall
    lines = [
        f"A  {clean(str(comparison.a['id']))}  {clean(str(comparison.a['target']))}",
        f"B  {clean(str(comparison.b['id']))}  {clean(str(comparison.b['target']))}",
        "",
        f"B is {overall.verdict}{_times(overall.ratio, overall.low, overall.high)} over {_counted(len(comparison.cells), 'cell')}.",
        *([f"  It would take: {overall.needs}"] if overall.needs else []),
        *wrap(
            f"Ratios are how many times better B is than A. SAME: within ±{100 * comparison.margin:.3g} %. The overall interval holds with "
            f"{percent(comparison.confidence)}, those of the cells all together too.",
            _WIDTH,
        ),
        "",
    ]
    ordered = sorted(comparison.cells, key=lambda cell: (_ORDER.index(cell.verdict), cell.ratio))
    widest = max(len(cell.id) for cell in comparison.cells)
    lines += [_line(cell, min(widest, 60)) for cell in ordered]
    needs = {cell.needs: 0 for cell in ordered if cell.needs}
    if needs:
        lines += ["", "INCONCLUSIVE cells would take: " + "; or ".join(needs)]
    for text in (*comparison.caution, *(f"Differs: {line}" for line in comparison.differs)):
        lines += wrap(text, _WIDTH, most=4)
    if comparison.unlike:
        lines += ["", f"Not compared ({len(comparison.unlike)}):"]
        lines += [f"  {clean(one.id)}: {clean(one.why)}" for one in comparison.unlike[:_MOST_UNLIKE]]
        if len(comparison.unlike) > _MOST_UNLIKE:
            lines.append(f"  {len(comparison.unlike) - _MOST_UNLIKE} more: --json has them all")
    return "\n".join(lines)


def _line(cell: CellVerdict, width: int) -> str:
    interval = "too few runs" if cell.low is None or cell.high is None else f"{cell.low:.3f} - {cell.high:.3f}"
    values = f"{show(cell.median_a, cell.unit)} -> {show(cell.median_b, cell.unit)}"
    return (
        f"  {cell.verdict:<12} {clean(cell.id):<{width}}  {cell.ratio:.3f} [{interval}]  {values}  ({cell.runs_a} and {cell.runs_b} runs)"
    )


def _times(ratio: float | None, low: float | None, high: float | None) -> str:
    if ratio is None:
        return ""
    return f": {ratio:.3f} times as good" + ("" if low is None or high is None else f" [{low:.3f} - {high:.3f}]")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
