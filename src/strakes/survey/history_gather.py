"""Collect the history of each cell from the stored runs with one fingerprint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from strakes.base.errors import BadInputError, StrakesError
from strakes.runs.run import Run, RunSummary, told_as_damage
from strakes.runs.store import Store
from strakes.survey.analysis_collect import collect
from strakes.survey.analysis_held_back import held_back
from strakes.survey.history_judge import History, HistoryPoint, HistorySeries

# Units of measures with a verdict. The load of the machine, for example, has none.
_FIGURES = ("B/s", "op/s", "s")
_KEYS = ("id", "settings", "unit", "median", "low", "high")


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
    points: dict[str, list[tuple[str, HistoryPoint]]] = {}  # with the fingerprint of the plan
    about: dict[str, Mapping[str, Any]] = {}
    whole: list[Run] = []
    for summary, run in members:
        try:
            fingerprints = {cell.key: cell.fingerprint for cell in run.cells}
            estimates = _estimates(run)
        except StrakesError as error:
            left_out(error)
            continue
        whole.append(run)
        when = datetime.fromisoformat(summary.created).astimezone(UTC).isoformat(timespec="seconds")
        for estimate in estimates:
            cell = str(estimate["id"])
            if estimate["unit"] not in _FIGURES or (only and not any(fnmatchcase(cell, pattern) for pattern in only)):
                continue
            point = HistoryPoint(run.id, when, estimate["median"], estimate["low"], estimate["high"])
            points.setdefault(cell, []).append((fingerprints.get(cell.rsplit(":", 1)[0], ""), point))
            about[cell] = estimate
    newest = members[-1][0]
    series = []
    for cell, every in points.items():
        # Rates depend on the amount of work, so only runs with the newest run's amounts belong to the history.
        same = [point for plan, point in every if plan == every[-1][0]]
        series.append(
            HistorySeries(cell, about[cell]["settings"], about[cell]["unit"], tuple(same), len(every) - len(same))
        )
    return History(fingerprint, newest.kind, newest.name, newest.target, tuple(run.id for run in whole), tuple(series))


def _estimates(run: Run) -> list[Mapping[str, Any]]:
    """Return the stored findings of a run, or compute them from its samples if they are missing or damaged.

    Figures that --impact or --neighbour limited are left out. Raises BadInputError for a damaged run.
    """
    with suppress(BadInputError, AttributeError, LookupError, TypeError, ValueError):
        if run.findings is not None:
            found = [cell for cell in run.findings["cells"] if "held-back" not in cell["warnings"]]
            return [{**{key: cell[key] for key in _KEYS}, "median": float(cell["median"])} for cell in found]
    with told_as_damage(run):
        results = collect(run.cells, run.visits, float(run.manifest["options"]["confidence"]), {})
        made = [cell.estimate for cell in results.measured if cell.estimate is not None and not held_back(cell)]
    return [{key: getattr(estimate, key) for key in _KEYS} for estimate in made]
