"""Collect the histories of measurements that were repeated in several stored runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from strakes.base.errors import BadInputError, StrakesError
from strakes.model.cell import DIRECTIONS, Cell
from strakes.model.portrait import CellEstimate
from strakes.model.record import from_record
from strakes.model.setting_text import settings_text
from strakes.runs.run import Run, RunSummary, told_as_damage
from strakes.runs.store import Store
from strakes.survey.analysis_collect import collect
from strakes.survey.analysis_held_back import held_back
from strakes.survey.compare_work import SIZES, same_work
from strakes.survey.history_judge import History, HistoryPoint, HistorySeries


def gather(
    store: Store, name: str = "", target: str = "", left_out: Callable[[StrakesError], None] = lambda _: None
) -> list[History]:
    """Return a history of measurements for each group of at least two runs with the same kind and options.

    ``name``: name of the runs, such as transfer-size. ``left_out``: called with the error of each damaged run.
    """
    groups: dict[str, list[RunSummary]] = {}
    for summary in store.runs():
        if summary.status != "complete" or (name and summary.name != name) or (target and summary.target != target):
            continue
        try:
            manifest = Run(summary.path).manifest
            key = f"{manifest['kind']} {manifest['options'].get('fingerprint', '')}"
        except StrakesError as error:
            left_out(error)
        else:
            groups.setdefault(key, []).append(summary)
    histories = [_history(key.split(" ")[1], members, left_out) for key, members in groups.items()]
    return [history for history in histories if len(history.runs) > 1 and history.series]


def _history(fingerprint: str, members: Sequence[RunSummary], left_out: Callable[[StrakesError], None]) -> History:
    found: dict[str, list[list[tuple[HistoryPoint, CellEstimate, Cell]]]] = {}
    whole: list[str] = []
    for summary in members:
        run = Run(summary.path)
        try:
            cells = {cell.key: cell for cell in run.cells}
            estimates = _estimates(run)
        except StrakesError as error:
            left_out(error)
            continue
        whole.append(run.id)
        when = datetime.fromisoformat(summary.created).astimezone(UTC).isoformat(timespec="seconds")
        for one in estimates:
            if DIRECTIONS.get(one.unit) and (cell := cells.get(one.id.rsplit(":", 1)[0])):
                point = HistoryPoint(run.id, when, one.median, one.low, one.high)
                of_cell = found.setdefault(one.id, [])
                own = next((every for every in of_cell if same_work(every[0][2], cell)), [])
                of_cell[:] = [*(every for every in of_cell if every is not own), [*own, (point, one, cell)]]
    series = []
    for identifier, of_cell in found.items():
        for number, every in enumerate(of_cell, start=1):
            _, about, cell = every[-1]
            if number == len(of_cell) or len(every) > 1:
                points = tuple(point for point, *_ in every)
                of = _amount(cell) if len(of_cell) > 1 else ""
                series.append(HistorySeries(identifier, about.settings, about.unit, points, of))
    last = members[-1]
    shown = {point.run for one in series for point in one.points}
    missing = tuple(run for run in whole if run not in shown)
    return History(fingerprint, last.kind, last.name, last.target, tuple(whole), tuple(series), missing)


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
