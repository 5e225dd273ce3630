"""Find level shifts in the medians of repeated runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from strakes.base.units import counted
from strakes.model.cell import DIRECTIONS
from strakes.model.portrait import Setting
from strakes.stats.level_shifts import SHORTEST, detectable_shift, level_shifts
from strakes.survey.comparison import Condition

NO_CHANGE: Final = "NO CHANGE SHOWN"
Verdict = Literal["SLOWER", "FASTER", "NO CHANGE SHOWN", "INCONCLUSIVE"]


@dataclass(frozen=True)
class HistoryPoint:
    """Median and interval of one run, in the unit of the series. ``when``: ISO 8601 in UTC."""

    run: str
    when: str
    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class RunChange:
    """A level shift. ``run``: the first run with the median ``after`` instead of ``before``.

    ``ratio``: above 1 if ``after`` is better (``after / before`` for rates, ``before / after`` for seconds).
    """

    run: str
    when: str
    before: float
    after: float
    ratio: float
    p_value: float


@dataclass(frozen=True)
class HistorySeries:
    """Medians of one measurement in successive runs, with a verdict.

    ``amount``: work per run, or "" if it is the same in all runs of the store. ``seen_from``: smallest lasting rise of
    the median, relative to the median, that the test detects with a power of 80 %.
    """

    cell: str
    settings: Mapping[str, Setting]
    unit: str
    points: tuple[HistoryPoint, ...]
    amount: str = ""
    changes: tuple[RunChange, ...] = ()
    verdict: Verdict = "INCONCLUSIVE"
    needs: str = ""
    seen_from: float | None = None


@dataclass(frozen=True)
class History:
    """All repetitions of one measurement, oldest first.

    ``left_out``: runs whose amounts of work differ from those of all other runs.
    """

    fingerprint: str
    kind: str
    name: str
    target: str
    runs: tuple[str, ...]
    series: tuple[HistorySeries, ...]
    left_out: tuple[str, ...] = ()


# Minimum number of runs to detect a level shift.
FEWEST = 2 * SHORTEST


def judged(histories: Sequence[History], error: float = 0.05, since: datetime | None = None) -> list[History]:
    """Add a verdict to each series of the histories. ``since``: earlier level shifts are ignored.

    ``error``: maximum probability that at least one reported level shift is false, even for autocorrelated runs.
    """
    series = sum(len(cell_series.points) >= FEWEST for history in histories for cell_series in history.series)
    share = error / max(series, 1)  # Bonferroni correction for all series
    return [
        replace(history, series=tuple(_judged(cell_series, share, since) for cell_series in history.series))
        for history in histories
    ]


def failures(histories: Sequence[History], conditions: Sequence[Condition]) -> list[str]:
    """Return a text for each series whose verdict meets a ``--fail-on`` condition."""
    met = []
    for history in histories:
        for series in history.series:
            ratio = series.changes[-1].ratio if series.changes else 1.0
            if any(condition.is_met(series.verdict, ratio) for condition in conditions):
                since = f" since {series.changes[-1].when[:10]}" if series.changes else ""
                met.append(f"{series.cell} is {series.verdict}{since}")
    return met


def _judged(series: HistorySeries, error: float, since: datetime | None) -> HistorySeries:
    if len(series.points) < FEWEST:
        needs = f"{counted(FEWEST - len(series.points), 'more run')} of this measurement"
        return replace(series, verdict="INCONCLUSIVE", needs=needs)
    values = [point.median for point in series.points]
    if min(values) <= 0:
        return replace(series, verdict="INCONCLUSIVE", needs="figures above zero")
    changes = []
    for shift in level_shifts([math.log(value) for value in values], error):
        point = series.points[shift.index]
        before, after = math.exp(shift.before), math.exp(shift.after)
        ratio = (after / before) ** DIRECTIONS[series.unit]
        changes.append(RunChange(point.run, point.when, before, after, ratio, shift.p_value))
    recent = [change for change in changes if since is None or datetime.fromisoformat(change.when) >= since]
    if recent:
        verdict: Verdict = "SLOWER" if recent[-1].ratio < 1 else "FASTER"
        return replace(series, changes=tuple(changes), verdict=verdict)
    seen_from = math.expm1(detectable_shift([math.log(value) for value in values], error))
    return replace(series, changes=tuple(changes), verdict=NO_CHANGE, seen_from=seen_from)
