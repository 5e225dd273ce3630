"""From the store to series: runs of one fingerprint, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from strakes.analysis.build import rule_of
from strakes.analysis.collect import collect
from strakes.analysis.held_back import held_back
from strakes.history.series import History, HistoryPoint, HistorySeries
from strakes.store import Run, RunSummary, Store

# What a file system is judged by; how busy the machine was meanwhile has no better or worse.
_FIGURES = ("B/s", "op/s", "s")


def gather(store: Store, name: str = "", target: str = "", only: Sequence[str] = ()) -> list[History]:
    """Histories of two runs or more. ``name``: of the run (survey, transfer-size …); ``only``: patterns of cell ids."""
    groups: dict[str, list[tuple[RunSummary, Run]]] = {}
    for summary in store.runs():
        if summary.status != "complete" or (name and summary.name != name) or (target and summary.target != target):
            continue
        run = Run(summary.path)
        groups.setdefault(f"{run.manifest['kind']} {run.manifest['options'].get('fingerprint', '')}", []).append(
            (summary, run)
        )
    histories = [_history(key.split(" ")[1], members, only) for key, members in groups.items() if len(members) > 1]
    return [history for history in histories if history.series]


def _history(fingerprint: str, members: Sequence[tuple[RunSummary, Run]], only: Sequence[str]) -> History:
    points: dict[str, list[HistoryPoint]] = {}
    about: dict[str, Mapping[str, Any]] = {}
    plans: dict[str, set[str]] = {}
    for summary, run in members:
        fingerprints = {cell.key: cell.fingerprint for cell in run.cells}
        when = datetime.fromisoformat(summary.created).astimezone(UTC).isoformat(timespec="seconds")
        for estimate in _estimates(run):
            cell = str(estimate["id"])
            if estimate["unit"] not in _FIGURES or (only and not any(fnmatchcase(cell, pattern) for pattern in only)):
                continue
            points.setdefault(cell, []).append(
                HistoryPoint(run.id, when, estimate["median"], estimate["low"], estimate["high"])
            )
            about[cell] = estimate
            plans.setdefault(cell, set()).add(fingerprints.get(cell.rsplit(":", 1)[0], ""))
    newest = members[-1][0]
    series = [
        HistorySeries(cell, about[cell]["settings"], about[cell]["unit"], tuple(cell_points), len(plans[cell]))
        for cell, cell_points in points.items()
        if len(cell_points) > 1
    ]
    return History(
        fingerprint, newest.kind, newest.name, newest.target, tuple(run.id for _, run in members), tuple(series)
    )


def _estimates(run: Run) -> Iterable[Mapping[str, Any]]:
    """Return the run's own findings where it has them; made of its samples where nobody has asked for a report yet.

    None that limits held back.
    """
    if run.findings is not None:
        return [cell for cell in run.findings["cells"] if "held-back" not in cell["warnings"]]
    results = collect(run.cells, run.visits, rule_of(run.manifest["options"]), {})
    estimates = [cell.estimate for cell in results.measured if cell.estimate is not None and not held_back(cell)]
    return [
        {key: getattr(estimate, key) for key in ("id", "settings", "unit", "median", "low", "high")}
        for estimate in estimates
    ]
