"""Which series changed.

The chance that any of them is said to have changed without having done so is ``error`` for all together, also where
each run resembles the one before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from strakes.compare.fail_on import Condition
from strakes.history.series import NO_CHANGE, History, HistorySeries, RunChange, Verdict
from strakes.statistics.autoregression import seen_change
from strakes.statistics.change_points import MOST_ORDERS, SHORTEST, change_points

# Runs before a change of level can be told from chance.
FEWEST = 2 * SHORTEST


def judged(histories: Sequence[History], error: float = 0.05, since: datetime | None = None) -> list[History]:
    """With verdicts on the newest level of each series.

    Against the level before it, if the change was after ``since``.
    """
    series = sum(len(cell_series.points) >= FEWEST for history in histories for cell_series in history.series)
    # Divided among the series (Bonferroni), but not below what random orders can resolve.
    share = max(error / max(series, 1), 1 / (MOST_ORDERS + 1))
    return [
        replace(history, series=tuple(_judged(cell_series, share, since) for cell_series in history.series))
        for history in histories
    ]


def failures(histories: Sequence[History], conditions: Sequence[Condition]) -> list[str]:
    """Return what met a condition of ``--fail-on``, one text each."""
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
        return _undecided(series, error)
    values = [point.median for point in series.points]
    if min(values) <= 0:
        return replace(series, verdict="INCONCLUSIVE", needs="figures above zero")
    changes = []
    for change_point in change_points([math.log(value) for value in values], error, dependent=True):
        point = series.points[change_point.index]
        before, after = math.exp(change_point.before), math.exp(change_point.after)
        ratio = before / after if series.lower_is_better else after / before
        changes.append(RunChange(point.run, point.when, before, after, ratio, change_point.p_value))
    recent = [change for change in changes if since is None or datetime.fromisoformat(change.when) >= since]
    if recent:
        verdict: Verdict = "SLOWER" if recent[-1].ratio < 1 else "FASTER"
        return replace(series, changes=tuple(changes), verdict=verdict)
    if _missing(len(values), error):
        return _undecided(series, error)
    seen_from = math.expm1(seen_change([math.log(value) for value in values], error, SHORTEST))
    return replace(series, changes=tuple(changes), verdict=NO_CHANGE, seen_from=seen_from)


def _undecided(series: HistorySeries, error: float) -> HistorySeries:
    missing = _missing(len(series.points), error)
    needs = f"{missing} more run{'s' if missing > 1 else ''} of this measurement"
    return replace(series, verdict="INCONCLUSIVE", needs=needs)


def _missing(runs: int, error: float) -> int:
    """Return how many more runs it takes before a change can show: fewer have too few orders to be beyond chance.

    >>> _missing(3, 0.05), _missing(10, 0.05), _missing(10, 0.001)
    (7, 0, 4)
    """
    enough = max(runs, FEWEST)
    while 2 / math.comb(enough, enough // 2) > error:
        enough += 1
    return enough - runs


def _meets(condition: Condition, verdict: Verdict, ratio: float) -> bool:
    if condition.verdict is None or verdict != condition.verdict.value:
        return False
    if verdict == "SLOWER":
        return ratio <= 1 - condition.at_least
    return verdict != "FASTER" or ratio >= 1 + condition.at_least
