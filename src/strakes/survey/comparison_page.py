"""A comparison as a self-contained HTML page without scripts. Each row has a verdict, and a bar for the ratio."""

from __future__ import annotations

import math

from strakes.base.language import gettext
from strakes.report.html import render_page
from strakes.report.numbers import show
from strakes.stats.ratios import Verdict
from strakes.survey.comparison import CellVerdict, Comparison
from strakes.survey.comparison_text import cautions_of, order_cells, say_interval, say_overall, say_scope, say_verdict

# The axis of ratios ends between 1.25 (25 % faster) and 10. Bars of larger ratios are cut.
_LEAST_END_TIMES, _MOST_END_TIMES = 1.25, 10.0
_STYLES = {Verdict.INCONCLUSIVE: "inconclusive", Verdict.SLOWER: "does-not", Verdict.FASTER: "holds"}


def render_comparison_page(comparison: Comparison) -> str:
    """Return the page as text. The file must be written in UTF-8."""
    end = _find_end(comparison)
    cells = order_cells(comparison)
    low, high = _place(1 - comparison.margin, end), _place(1 + comparison.margin, end)
    return render_page(
        "comparison.html.j2",
        a=comparison.a,
        b=comparison.b,
        headline=say_overall(comparison),
        scope=say_scope(comparison),
        margin=f"±{100 * comparison.margin:.3g} %",
        low=f"{1 / end:.2g}",
        high=f"{end:.2g}",
        middle=_place(1.0, end),
        band=(low, round(high - low, 2)),
        rows=[_to_row(cell, end) for cell in cells],
        needs=list(dict.fromkeys(cell.needs for cell in cells if cell.needs)),
        caution=cautions_of(comparison),
        unlike=comparison.unlike,
    )


def _to_row(cell: CellVerdict, end: float) -> dict[str, object]:
    bar = None
    if cell.low is not None and cell.high is not None:
        start = _place(cell.low, end)
        bar = (start, round(_place(cell.high, end) - start, 2))
    return {
        "verdict": say_verdict(cell),
        "style": _STYLES.get(cell.verdict, ""),
        "id": cell.id,
        "ratio": f"{cell.ratio:.3f}",
        "interval": say_interval(cell),
        "median_a": show(cell.median_a, cell.unit),
        "median_b": show(cell.median_b, cell.unit),
        "runs": gettext("{a} and {b}", a=cell.runs_a, b=cell.runs_b),
        "place": round(_place(cell.ratio, end) - 0.45, 2),
        "bar": bar,
    }


def _find_end(comparison: Comparison) -> float:
    bounds = [value for cell in comparison.cells for value in (cell.low, cell.high, cell.ratio) if value and value > 0]
    farthest = max((abs(math.log(bound)) for bound in bounds if math.isfinite(bound)), default=0.0)
    return min(_MOST_END_TIMES, max(_LEAST_END_TIMES, math.exp(farthest)))


def _place(ratio: float, end: float) -> float:
    share = 0.5 + 0.5 * math.log(ratio) / math.log(end) if ratio > 0 else 0.0
    return round(100 * min(1.0, max(0.0, share)), 2)
