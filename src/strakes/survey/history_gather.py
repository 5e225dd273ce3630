"""Collect the history of each cell from the stored runs with one fingerprint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from strakes.base.errors import BadInputError, StrakesError
from strakes.model.portrait import CellEstimate
from strakes.model.record import from_record
from strakes.runs.run import Run, RunSummary, told_as_damage
from strakes.runs.store import Store
from strakes.survey.analysis_collect import collect
from strakes.survey.analysis_held_back import held_back
from strakes.survey.history_judge import History, HistoryPoint, HistorySeries

# Units of measures that get a verdict. The load of the machine, for example, gets no verdict.
_FIGURES = ("B/s", "op/s", "s")


def gather(
    store: Store,
    name: str = "",
    target: str = "",
    only: Sequence[str] = (),
    left_out: Callable[[StrakesError], None] = lambda _: None,
) -> list[History]:
    """Return the histories of measurements with at least two runs.

    ``name``: name of the run (survey, transfer-size …). ``only``: patterns of cell ids. ``left_out`` is called with
    the error of each damaged run, which is skipped.
    """
    groups: dict[str, list[tuple[RunSummary, Run]]] = {}
    for summary in store.runs():
        if summary.status != "complete" or (name and summary.name != name) or (target and summary.target != target):
            continue
        run = Run(summary.path)
        try:
            key = f"{run.manifest['kind']} {run.manifest['options'].get('fingerprint', '')}"
        except StrakesError as error:
            left_out(error)
        else:
            groups.setdefault(key, []).append((summary, run))
    histories = [
        _history(key.split(" ")[1], members, only, left_out) for key, members in groups.items() if len(members) > 1
    ]
    return [history for history in histories if any(series.left_out or series.points[1:] for series in history.series)]


def _history(
    fingerprint: str,
    members: Sequence[tuple[RunSummary, Run]],
    only: Sequence[str],
    left_out: Callable[[StrakesError], None],
) -> History:
    found: dict[str, list[tuple[str, HistoryPoint, CellEstimate]]] = {}  # with fingerprints of plans
    whole: list[str] = []
    for summary, run in members:
        try:
            plans = {cell.key: cell.fingerprint for cell in run.cells}
            estimates = _estimates(run)
        except StrakesError as error:
            left_out(error)
            continue
        whole.append(run.id)
        when = datetime.fromisoformat(summary.created).astimezone(UTC).isoformat(timespec="seconds")
        for one in estimates:
            if one.unit in _FIGURES and (not only or any(fnmatchcase(one.id, pattern) for pattern in only)):
                point = HistoryPoint(run.id, when, one.median, one.low, one.high)
                found.setdefault(one.id, []).append((plans.get(one.id.rsplit(":", 1)[0], ""), point, one))
    series = []
    for cell, every in found.items():
        # Rates depend on the amount of work, so only runs with the newest run's amounts belong to the history.
        newest, _, about = every[-1]
        same = tuple(point for plan, point, _ in every if plan == newest)
        series.append(HistorySeries(cell, about.settings, about.unit, same, len(every) - len(same)))
    last = members[-1][0]
    return History(fingerprint, last.kind, last.name, last.target, tuple(whole), tuple(series))


def _estimates(run: Run) -> list[CellEstimate]:
    """Return the stored findings of a run, or compute them from its samples if they are missing or damaged.

    Figures that --impact or --neighbour limited are left out. Raises BadInputError for a damaged run.
    """
    with suppress(BadInputError, AttributeError, LookupError, TypeError, ValueError):
        if run.findings is not None:
            stored = [from_record(CellEstimate, cell) for cell in run.findings["cells"]]
            return [cell for cell in stored if "held-back" not in cell.warnings]
    with told_as_damage(run):
        results = collect(run.cells, run.visits, float(run.manifest["options"]["confidence"]), {})
        return [cell.estimate for cell in results.measured if cell.estimate is not None and not held_back(cell)]
