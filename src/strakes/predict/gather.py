"""Collect the measured quantities of stored runs for each system size, such as each number of clients."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, median

from strakes.base.errors import BadInputError
from strakes.model.cell import Cell
from strakes.model.portrait import Setting
from strakes.model.results import Measured
from strakes.model.sample import Sample, sample_named
from strakes.predict.levels import FigureLevels, MeasuredLevel, Part, Scale
from strakes.report.facts import caution_of
from strakes.runs.records import Visit
from strakes.runs.run import Run, told_as_damage
from strakes.studies.compose import from_memory
from strakes.survey.analysis_build import results_of
from strakes.survey.analysis_warnings import run_warnings

_SCALE_SETTINGS = ("ranks", "clients", "nodes", "metadata_targets", "stripe_count", "files", "of", "writers")
# Standard error of the median of normal values, divided by the standard error of their mean: square root of pi / 2.
_NORMAL_MEDIAN = 1.2533


def figures_of(runs: Sequence[Run]) -> tuple[FigureLevels, ...]:
    """Return the measured quantities of some runs. Raises BadInputError for a run of strakes tune."""
    levels: dict[tuple[str, str, str, tuple[tuple[str, Setting], ...]], dict[Scale, list[MeasuredLevel]]] = defaultdict(
        dict
    )
    of_clients, reached = set(), set()
    for run in runs:
        if run.manifest.get("kind") == "tune":
            remedy = "Give runs of strakes study, strakes survey or strakes run."
            raise BadInputError("a run of strakes tune cannot be used for a forecast", where=run.id, remedy=remedy)
        with told_as_damage(run):
            measures = {cell.measure_id(each.suffix): (cell, each) for cell in run.cells for each in cell.measures}
            results = results_of(run)
            warnings = () if run.manifest["options"].get("imported") else run_warnings(run, results)
            device = str((run.facts.get("block_device") or {}).get("name", ""))
            visits: dict[str, list[Visit]] = defaultdict(list)
            for visit in run.visits:
                visits[visit.cell].append(visit)
            for measured in results.measured:
                if measured.is_side or measured.id not in measures or not measured.observations:
                    continue
                cell, phase = measures[measured.id][0], measures[measured.id][1].phase
                told = _imported if cell.imported else partial(_told, run, cell, phase, visits[cell.key], device)
                level, apart = told(measured)
                if level is None:
                    continue
                codes = {warning.code for warning in warnings if measured.id in warning.cells}
                level = replace(level, caution=caution_of(codes))
                operation = str(apart.get("operation", phase))
                figure = (measured.study, operation, measured.unit, tuple(sorted(apart.items(), key=str)))
                levels[figure].setdefault(level.scale, []).append(level)
                if "clients" in measured.settings or (not cell.imported and cell.plan.inside_ceph()):
                    of_clients.add(figure)
                if run.facts.get("remote", True) or level.scale.clients > 1:
                    reached.add(figure)
    return tuple(
        FigureLevels(
            *figure[:3],
            dict(figure[3]),
            tuple(_together(same) for same in by_scale.values()),
            rank_is_client=figure in of_clients,
            local=figure not in reached,
        )
        for figure, by_scale in levels.items()
    )


def scale_of(cell: Cell, settings: Mapping[str, Setting], nodes: int = 0) -> Scale:
    """Return the system size that a cell measures. ``nodes``: number of client nodes, or 0 if unknown."""
    ranks = max(1, cell.plan.ranks)
    return Scale(
        clients=ranks if cell.plan.inside_ceph() else min(nodes or _number(settings.get("nodes")) or 1, ranks),
        ranks=ranks,
        mdts=_number(settings.get("metadata_targets")) or 1,
        osts=(cell.layout.stripe_count if cell.layout is not None else None) or 0,
        files=_number(settings.get("files")) or 0,
    )


def _told(
    run: Run, cell: Cell, phase: str, visits: Sequence[Visit], device: str, measured: Measured
) -> tuple[MeasuredLevel | None, dict[str, Setting]]:
    level = _level_in(measured, cell, phase, visits, device)
    if level is not None:
        level = replace(level, from_cache=from_memory(measured, run.facts), requests=_requests(visits))
    return level, {name: value for name, value in measured.settings.items() if name not in _SCALE_SETTINGS}


def _imported(measured: Measured) -> tuple[MeasuredLevel | None, dict[str, Setting]]:
    apart = {name: value for name, value in measured.settings.items() if name not in (*_SCALE_SETTINGS, "items")}
    ranks = _number(measured.settings.get("ranks"))
    if ranks is None:
        return None, apart
    # Do not mix strong scaling (fixed total of items) with weak scaling (fixed number of items per rank).
    if items := _number(measured.settings.get("items")):
        apart["items_each"] = items / ranks
    return level_of(measured, Scale(min(_number(measured.settings.get("nodes")) or 1, ranks), ranks, osts=0)), apart


def _is_undivided(cell: Cell, samples: Sequence[Sample]) -> bool:
    placed = cell.place.entries.values()
    by_hand = [place for place in placed if place.kind == "manual" and len(place.metadata_targets) == 1]
    ended = sum(sample.stopped_by == "amount" for sample in samples)
    return len(by_hand) == cell.plan.ranks and 2 * ended > len(samples)


def level_of(measured: Measured, scale: Scale, busy: Mapping[Part, float] | None = None) -> MeasuredLevel | None:
    """Return the median at one system size, or None if no value is usable. ``busy``: utilization by component."""
    seen = [each.value for each in measured.observations if each.purpose != "pilot"]
    logs = [math.log(value) for value in seen if 0 < value < math.inf]
    if not logs:
        return None
    middle, runs = median(logs), len(logs)
    # Correction of the median absolute deviation for few values (Croux and Rousseeuw 1992).
    scatter = 1.4826 * runs / (runs - 0.8) * median(abs(value - middle) for value in logs)
    return MeasuredLevel(scale, middle, _NORMAL_MEDIAN * scatter / math.sqrt(runs), busy or {}, runs=runs)


def _level_in(measured: Measured, cell: Cell, phase: str, visits: Sequence[Visit], device: str) -> MeasuredLevel | None:
    own = [visit for visit in visits if visit.purpose != "pilot"]
    samples = [sample for visit in own if (sample := sample_named(visit.samples, phase)) is not None]
    ranks = max(1, cell.plan.ranks)
    nodes = max((len({node.host for node in each.nodes if node.first_rank < ranks}) for each in samples), default=0)
    scale = replace(scale_of(cell, measured.settings, nodes), undivided=_is_undivided(cell, samples))
    return level_of(measured, scale, _device_busy(samples, device))


def _requests(visits: Sequence[Visit]) -> float | None:
    requests = operations = 0.0
    for visit in visits:
        counted = [counters["md.requests"] for counters in visit.servers.values() if "md.requests" in counters]
        whole = counted and not visit.servers_disturbed and visit.purpose != "pilot"
        if whole and all(sample.kind == "metadata" for sample in visit.samples):
            requests += sum(counted)
            operations += sum(sample.operations for sample in visit.samples)
    return requests / operations if operations else None


def _device_busy(samples: Sequence[Sample], device: str) -> dict[Part, float]:
    shares = [
        min(1.0, float(counted["busy_s"]) / sample.elapsed_s)
        for sample in samples
        if (counted := sample.counters.get("devices", {}).get(device)) is not None and sample.elapsed_s > 0
    ]
    return {"osts": fmean(shares)} if shares else {}


def _together(levels: Sequence[MeasuredLevel]) -> MeasuredLevel:
    values = [level.log_value for level in levels]
    between = (max(values) - min(values)) / 2
    error = math.hypot(fmean(level.log_error for level in levels), between) / math.sqrt(len(levels))
    busy = {part: share for level in levels for part, share in level.busy.items()}
    return replace(
        levels[0], log_value=median(values), log_error=error, busy=busy, runs=sum(level.runs for level in levels)
    )


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1 else None
