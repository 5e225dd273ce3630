"""Verdicts on series.

The probability of any false change in all series together is at most ``error``, also if successive runs are correlated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from strakes.base.units import counted
from strakes.stats.level_shifts import SHORTEST, detectable_shift, level_shifts
from strakes.survey.compare_fail_on import Condition
from strakes.survey.history_series import NO_CHANGE, History, HistorySeries, RunChange, Verdict

# Least number of runs to detect a level shift.
FEWEST = 2 * SHORTEST


def judged(histories: Sequence[History], error: float = 0.05, since: datetime | None = None) -> list[History]:
    """Return the histories with a verdict on each series, by its last level shift not before ``since``."""
    series = sum(len(cell_series.points) >= FEWEST for history in histories for cell_series in history.series)
    share = error / max(series, 1)  # Bonferroni
    return [
        replace(history, series=tuple(_judged(cell_series, share, since) for cell_series in history.series))
        for history in histories
    ]


def failures(histories: Sequence[History], conditions: Sequence[Condition]) -> list[str]:
    """Return a text for each series that meets a condition of ``--fail-on``."""
    met = []
    for history in histories:
        for series in history.series:
            ratio = series.changes[-1].ratio if series.changes else 1.0
            if any(_meets(condition, series.verdict, ratio) for condition in conditions):
                met.append(
                    f"{series.cell} is {series.verdict}"
                    + (f" since {series.changes[-1].when[:10]}" if series.changes else "")
                )
    return met


def _judged(series: HistorySeries, error: float, since: datetime | None) -> HistorySeries:
    if len(series.points) < FEWEST:
        return _undecided(series)
    values = [point.median for point in series.points]
    if min(values) <= 0:
        return replace(series, verdict="INCONCLUSIVE", needs="figures above zero")
    changes = []
    for shift in level_shifts([math.log(value) for value in values], error):
        point = series.points[shift.index]
        before, after = math.exp(shift.before), math.exp(shift.after)
        ratio = before / after if series.lower_is_better else after / before
        changes.append(RunChange(point.run, point.when, before, after, ratio, shift.p_value))
    recent = [change for change in changes if since is None or datetime.fromisoformat(change.when) >= since]
    if recent:
        verdict: Verdict = "SLOWER" if recent[-1].ratio < 1 else "FASTER"
        return replace(series, changes=tuple(changes), verdict=verdict)
    seen_from = math.expm1(detectable_shift([math.log(value) for value in values], error))
    return replace(series, changes=tuple(changes), verdict=NO_CHANGE, seen_from=seen_from)


def _undecided(series: HistorySeries) -> HistorySeries:
    needs = f"{counted(FEWEST - len(series.points), 'more run')} of this measurement"
    return replace(series, verdict="INCONCLUSIVE", needs=needs)


def _meets(condition: Condition, verdict: Verdict, ratio: float) -> bool:
    if condition.verdict is None or verdict != condition.verdict.value:
        return False
    if verdict == "SLOWER":
        return ratio <= 1 - condition.at_least
    return verdict != "FASTER" or ratio >= 1 + condition.at_least
