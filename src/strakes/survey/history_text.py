"""Histories as text for the terminal, and as a document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from strakes.base.foreign_text import for_terminal, shell_line
from strakes.base.units import counted
from strakes.report.numbers import show
from strakes.survey.compare_work import ALIKE_TIMES
from strakes.survey.history_judge import NO_CHANGE, History, HistorySeries

_BARS = "▁▂▃▄▅▆▇█"
_UNDECIDED = "INCONCLUSIVE"
_ORDER = ("SLOWER", "FASTER", _UNDECIDED, NO_CHANGE)
_LONGEST_LINE = 24
# Maximum numbers of printed series: unchanged ones, and undecided ones.
_MOST_STEADY_LINES = 12
_MOST_UNDECIDED_LINES = 5


def to_document(histories: Sequence[History], failures: Sequence[str]) -> dict[str, Any]:
    """Return the histories as JSON values."""
    return {"schema": 1, "histories": [asdict(history) for history in histories], "failures": list(failures)}


def render(histories: Sequence[History]) -> str:
    """Return a paragraph for each measurement, with changed measurements first."""
    return "\n\n".join(_block(history) for history in histories)


def _block(history: History) -> str:
    whens = sorted(point.when for series in history.series for point in series.points)
    what = (history.kind,) if history.kind == history.name else (history.kind, history.name)
    head = f"{' '.join(what)} of {history.target}: {counted(len(history.runs), 'run')}"
    lines = [for_terminal(f"{head}, {whens[0][:10]} to {whens[-1][:10]}")]
    ordered = sorted(history.series, key=lambda series: _ORDER.index(series.verdict))
    steady = [series for series in ordered if series.verdict == NO_CHANGE]
    undecided = [series for series in ordered if series.verdict == _UNDECIDED]
    changed = [series for series in ordered if series.verdict not in (NO_CHANGE, _UNDECIDED)]
    shown = changed + undecided[:_MOST_UNDECIDED_LINES] + steady[:_MOST_STEADY_LINES]
    width = min(60, max(len(_name(series)) for series in shown))
    lines += [_line(series, width) for series in shown]
    if len(undecided) > _MOST_UNDECIDED_LINES:
        lines.append(f"  {len(undecided) - _MOST_UNDECIDED_LINES} more are INCONCLUSIVE: --json FILE has them all")
    if len(steady) > _MOST_STEADY_LINES:
        lines.append(f"  {len(steady) - _MOST_STEADY_LINES} more show no change: --json FILE has them all")
    needs = sorted({series.needs for series in history.series if series.needs})
    if needs:
        lines.append(f"  Needed to decide INCONCLUSIVE ones: {needs[-1]}")
    if history.left_out:
        lines.append(f"  Not shown, because no other run did similar amounts of work: {', '.join(history.left_out)}")
    if any(series.amount for series in history.series):
        again = shell_line(["strakes", *what, history.target, "--like", history.runs[-1]])
        lines.append(
            f"  Runs whose amounts of work differ more than {ALIKE_TIMES:g} times have separate lines. "
            f"To repeat the newest run with its amounts: {again}"
        )
    return "\n".join(lines)


def _name(series: HistorySeries) -> str:
    name = f"{series.cell} ({series.amount})" if series.amount else series.cell
    return for_terminal(name)


def _line(series: HistorySeries, width: int) -> str:
    line = f"  {series.verdict:<15} {_name(series):<{width}}  {_bars(series)}  "
    if not series.changes:
        line += show(series.points[-1].median, series.unit)
        if (rise := series.seen_from) is None:
            return line
        # On a logarithmic scale, a rise of a value by the share s equals a fall by s / (1 + s).
        fall = rise / (1 + rise)
        return f"{line} (a rise by {100 * rise:.2g} % or a fall by {100 * fall:.2g} % would probably have been found)"
    last = series.changes[-1]
    earlier = f", {counted(len(series.changes) - 1, 'earlier change')}" if len(series.changes) > 1 else ""
    return (
        f"{line}{show(last.before, series.unit)} -> {show(last.after, series.unit)} since {last.when[:10]} (p "
        f"{last.p_value:.4f}{earlier})"
    )


def _bars(series: HistorySeries) -> str:
    values = [point.median for point in series.points[-_LONGEST_LINE:]]
    least, most = min(values), max(values)
    if most == least:
        return _BARS[3] * len(values)
    return "".join(_BARS[round((value - least) / (most - least) * (len(_BARS) - 1))] for value in values)
