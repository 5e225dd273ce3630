"""Collect measurements that were repeated in several stored runs, and judge their histories."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from strakes.base.errors import BadInputError, StrakesError
from strakes.base.units import counted
from strakes.model.cell import DIRECTIONS, Cell
from strakes.model.portrait import CellEstimate, Setting
from strakes.model.record import from_record
from strakes.model.setting_text import settings_text
from strakes.runs.run import Run, RunSummary, told_as_damage
from strakes.runs.store import Store
from strakes.stats.level_shifts import SHORTEST, detectable_shift, level_shifts
from strakes.survey.analysis_collect import collect
from strakes.survey.analysis_held_back import held_back
from strakes.survey.compare_work import SIZES, same_work
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
    the median, relative to the median, that the test detects with a power of 80 % (None: more than 1000 times).
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


@dataclass
class _Repeated:
    """Measurements that did the same work as ``cell``. Cells of all runs would take 1 GB for 2,000 surveys."""

    cell: Cell
    points: list[HistoryPoint] = field(default_factory=list)
    settings: Mapping[str, Setting] = field(default_factory=dict)
    amount: str = ""


# Minimum number of runs to detect a level shift.
FEWEST = 2 * SHORTEST
_MOST_SHIFT = math.log(1000)  # Maximum detectable shift that is stated: no storage changes by a larger factor.


def gather(
    store: Store, name: str = "", target: str = "", left_out: Callable[[StrakesError], None] = lambda _: None
) -> list[History]:
    """Return the histories of measurements that at least two runs with the same fingerprint contain.

    ``name``: name of the runs, such as transfer-size. ``left_out``: called with the error of each damaged run.
    """
    groups: dict[str, list[RunSummary]] = {}
    for summary in store.runs():
        if summary.status != "complete" or (name and summary.name != name) or (target and summary.target != target):
            continue
        try:
            manifest = Run(summary.path).manifest
            key = f"{manifest['kind']} {manifest['options'].get('fingerprint', '')}"
            groups.setdefault(key, []).append(summary)
        except StrakesError as error:
            left_out(error)
    histories = [_history(key.split(" ")[1], members, left_out) for key, members in groups.items()]
    return [history for history in histories if len(history.runs) > 1 and history.series]


def _history(fingerprint: str, members: Sequence[RunSummary], left_out: Callable[[StrakesError], None]) -> History:
    found: dict[tuple[str, str], list[_Repeated]] = {}
    whole: list[str] = []
    for summary in members:
        run = Run(summary.path)
        try:
            with told_as_damage(where=f"{run.path} (run {run.id})"):
                seen = _seen(run)
        except StrakesError as error:
            left_out(error)
            continue
        whole.append(run.id)
        for point, one, cell, amount in seen:
            of_cell = found.setdefault((one.id, one.unit), [])
            own = next((each for each in of_cell if same_work(each.cell, cell)), None) or _Repeated(cell)
            own.points.append(point)
            own.settings, own.amount = one.settings, amount
            of_cell[:] = [*(each for each in of_cell if each is not own), own]
    series = []
    for (identifier, unit), of_cell in found.items():
        for own in of_cell:
            if own is of_cell[-1] or len(own.points) > 1:
                amount = own.amount if len(of_cell) > 1 else ""
                series.append(HistorySeries(identifier, own.settings, unit, tuple(own.points), amount))
    last = members[-1]
    shown = {point.run for one in series for point in one.points}
    missing = tuple(run for run in whole if run not in shown)
    return History(fingerprint, last.kind, last.name, last.target, tuple(whole), tuple(series), missing)


def _seen(run: Run) -> list[tuple[HistoryPoint, CellEstimate, Cell, str]]:
    when = datetime.fromisoformat(run.manifest["created"]).astimezone(UTC).isoformat(timespec="seconds")
    cells = {cell.key: cell for cell in run.cells}
    return [
        (HistoryPoint(run.id, when, one.median, one.low, one.high), one, cell, _amount(cell))
        for one in _estimates(run)
        if DIRECTIONS.get(one.unit) and (cell := cells.get(one.id.rsplit(":", 1)[0]))
    ]


def _amount(cell: Cell) -> str:
    if cell.imported:
        return ""
    phase = dict[str, Any](cell.plan.to_json())["phases"][0]
    return settings_text({key: phase[key] for key in SIZES if phase.get(key, 1) != 1})


def _estimates(run: Run) -> list[CellEstimate]:
    with suppress(BadInputError, AttributeError, LookupError, TypeError, ValueError):
        if run.findings is not None:
            stored = [from_record(CellEstimate, cell) for cell in run.findings["cells"]]
            return [cell for cell in stored if "held-back" not in cell.warnings]
    with told_as_damage(run):
        results = collect(run.cells, run.visits, float(run.manifest["options"]["confidence"]), {})
        return [cell.estimate for cell in results.measured if cell.estimate is not None and not held_back(cell)]


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
    rise = detectable_shift([math.log(value) for value in values], error)
    seen_from = math.expm1(rise) if rise < _MOST_SHIFT else None
    return replace(series, changes=tuple(changes), verdict=NO_CHANGE, seen_from=seen_from)
