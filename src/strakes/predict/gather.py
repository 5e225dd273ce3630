"""From stored runs to the figures that can be forecast: what was measured of each, and with which scale."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, median

from strakes.analysis.build import results_of
from strakes.errors import BadInputError
from strakes.findings.cell import Cell
from strakes.findings.portrait import Setting
from strakes.findings.results import Measured
from strakes.findings.sample import Sample, sample_named
from strakes.predict.figure_levels import FigureLevels
from strakes.predict.scale import MeasuredLevel, Part, Scale
from strakes.store import Run
from strakes.store.records import Visit
from strakes.store.run import told_as_damage
from strakes.studies.compose import from_memory

# Settings of cells that say how large the system was, or how much asked of it; all others tell figures apart.
_SCALE_SETTINGS = ("ranks", "clients", "nodes", "metadata_targets", "stripe_count", "files", "of", "writers")
# How far one run lies off, as a deviation of the logarithm, where repetitions do not tell. Of two systems that were
# submitted to IO500 several times on one day, with as many nodes and ranks, phases differ by 2 to 6 % in the median.
TYPICAL_SCATTER = 0.03
# What is typical counts like one more run; what the figure's levels show together, like so many more at each of them.
_SHARED_RUNS = 4
# Nothing is known better than this, however often it was measured.
_LEAST_ERROR = 0.01
_NORMAL_MEDIAN = 1.2533


def figures_of(runs: Sequence[Run]) -> tuple[FigureLevels, ...]:
    """Return every figure, in the order of the runs' cells.

    Raises BadInputError for a run of the tuner.
    """
    levels: dict[tuple[str, str, str, tuple[tuple[str, Setting], ...]], dict[Scale, list[MeasuredLevel]]] = defaultdict(
        dict
    )
    of_clients, reached, rooms = set(), set(), defaultdict(list)
    for run in runs:
        if run.manifest.get("kind") == "tune":
            remedy = "Give runs of strakes study, strakes survey or strakes run."
            raise BadInputError("a search for settings has no figures to forecast from", where=run.id, remedy=remedy)
        with told_as_damage(run):
            measures = {cell.measure_id(each.suffix): (cell, each) for cell in run.cells for each in cell.measures}
            device = str((run.facts.get("block_device") or {}).get("name", ""))
            visits: dict[str, list[Visit]] = defaultdict(list)
            for visit in run.visits:
                visits[visit.cell].append(visit)
            for measured in results_of(run).measured:
                if measured.is_side or measured.id not in measures or not measured.observations:
                    continue
                cell, phase = measures[measured.id][0], measures[measured.id][1].phase
                told = _imported if cell.imported else partial(_told, run, cell, phase, visits[cell.key], device)
                level, apart = told(measured)
                if level is None:
                    continue
                operation = str(apart.get("operation", phase))
                figure = (measured.study, operation, measured.unit, tuple(sorted(apart.items(), key=str)))
                levels[figure].setdefault(level.scale, []).append(level)
                if "clients" in measured.settings or (not cell.imported and cell.plan.inside_ceph()):
                    of_clients.add(figure)
                if run.facts.get("remote", True) or level.scale.clients > 1:
                    reached.add(figure)
                if room := _number(run.facts.get("total_inodes")):
                    rooms[figure].append(room)
    return tuple(
        FigureLevels(
            *figure[:3],
            dict(figure[3]),
            settle_errors([_together(same) for same in by_scale.values()]),
            rank_is_client=figure in of_clients,
            local=figure not in reached,
            room_for_files=min(rooms[figure], default=0),
        )
        for figure, by_scale in levels.items()
    )


def scale_of(cell: Cell, settings: Mapping[str, Setting], nodes: int = 0) -> Scale:
    """Return the scale with which a cell was measured, ``nodes``: on so many, where its samples tell.

    Clients are nodes, or sessions where each rank has its own. Of data targets only a layout tells how many were used.
    """
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
    """Return what a cell tells of a figure, None where it does not, and the settings that tell the figure apart."""
    level = level_in(measured, cell, phase, visits, device)
    if level is not None:
        level = replace(level, from_cache=from_memory(measured, run.facts), requests=_requests(visits))
    return level, {name: value for name, value in measured.settings.items() if name not in _SCALE_SETTINGS}


def _imported(measured: Measured) -> tuple[MeasuredLevel | None, dict[str, Setting]]:
    """Return the same of what another tool measured, which has no counters; None without a number of ranks."""
    apart = {name: value for name, value in measured.settings.items() if name not in (*_SCALE_SETTINGS, "items")}
    ranks = _number(measured.settings.get("ranks"))
    if ranks is None:
        return None, apart
    # Ranks that have less to do each, the more there are, do other work.
    if items := _number(measured.settings.get("items")):
        apart["items_each"] = items / ranks
    return level_of(measured, Scale(min(_number(measured.settings.get("nodes")) or 1, ranks), ranks, osts=0)), apart


def _is_undivided(cell: Cell, samples: Sequence[Sample]) -> bool:
    """Tell whether each rank has a directory by hand on one metadata target, and no time ends the phase."""
    placed = cell.place.entries.values()
    by_hand = [place for place in placed if place.kind == "manual" and len(place.metadata_targets) == 1]
    ended = sum(sample.stopped_by == "amount" for sample in samples)
    return len(by_hand) == cell.plan.ranks and 2 * ended > len(samples)


def level_of(measured: Measured, scale: Scale, busy: Mapping[Part, float] | None = None) -> MeasuredLevel | None:
    """Return what was measured of one figure at that scale; None without a run of its own."""
    logs = [math.log(seen.value) for seen in measured.observations if seen.purpose != "pilot" and seen.value > 0]
    return level_from(logs, scale, busy or {}) if logs else None


def level_from(logs: Sequence[float], scale: Scale, busy: Mapping[Part, float]) -> MeasuredLevel:
    """Return the level of runs by the logarithms of what they measured; a single one scatters as is typical."""
    middle, runs = median(logs), len(logs)
    if runs == 1:
        return MeasuredLevel(scale, middle, TYPICAL_SCATTER, busy)
    # Of few runs the median deviation is too small (Croux, Rousseeuw 1992).
    scatter = 1.4826 * runs / (runs - 0.8) * median(abs(value - middle) for value in logs)
    return MeasuredLevel(scale, middle, _NORMAL_MEDIAN * scatter / math.sqrt(runs), busy, runs=runs)


def level_in(measured: Measured, cell: Cell, phase: str, visits: Sequence[Visit], device: str) -> MeasuredLevel | None:
    """Return what a cell's visits tell of one figure, with what counters told; None without a run of its own."""
    own = [visit for visit in visits if visit.purpose != "pilot"]
    samples = [sample for visit in own if (sample := sample_named(visit.samples, phase)) is not None]
    busy = _busy(samples, device)
    if servers := _servers_busy([visit.servers_busy.get(phase, {}) for visit in own]):
        # The busiest one is what more of them would have to relieve.
        busy["mdts"] = max(servers.values())
    if cell.plan.inside_ceph():
        # Sessions share the processors of their nodes, which do not grow in number with them.
        busy.pop("clients", None)
    ranks = max(1, cell.plan.ranks)
    nodes = max((len({node.host for node in each.nodes if node.first_rank < ranks}) for each in samples), default=0)
    scale = replace(scale_of(cell, measured.settings, nodes), undivided=_is_undivided(cell, samples))
    return level_of(measured, scale, busy)


def _servers_busy(told: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean share of each server over the visits that tell; none where fewer than two do."""
    shares: dict[str, list[float]] = defaultdict(list)
    for visit in told:
        for server, share in visit.items():
            shares[server].append(share)
    return {server: fmean(values) for server, values in shares.items() if len(values) > 1}


def _requests(visits: Sequence[Visit]) -> float | None:
    """Return how many requests servers of metadata counted for each operation; None where they do not tell.

    Counters are of a whole visit, all its phases together, so that only visits of metadata alone tell.
    """
    requests = operations = 0.0
    for visit in visits:
        counted = [counters["md.requests"] for counters in visit.servers.values() if "md.requests" in counters]
        whole = counted and not visit.servers_disturbed and visit.purpose != "pilot"
        if whole and all(sample.kind == "metadata" for sample in visit.samples):
            requests += sum(counted)
            operations += sum(sample.operations for sample in visit.samples)
    return requests / operations if operations else None


def _busy(samples: Sequence[Sample], device: str) -> dict[Part, float]:
    """Return the busy shares of the clients' processors and of the file system's device, where they were counted."""
    processors, devices = [], []
    for sample in samples:
        spent = {
            name: float(sample.counters.get(f"cpu_{name}_s", 0.0)) for name in ("user", "system", "iowait", "idle")
        }
        if sum(spent.values()) > 0:
            processors.append((spent["user"] + spent["system"]) / sum(spent.values()))
        counted = sample.counters.get("devices", {}).get(device)
        if counted is not None and sample.elapsed_s > 0:
            devices.append(min(1.0, float(counted["busy_s"]) / sample.elapsed_s))
    busy: dict[Part, float] = {}
    if processors:
        busy["clients"] = fmean(processors)
    if devices:
        busy["osts"] = fmean(devices)
    return busy


def _together(levels: Sequence[MeasuredLevel]) -> MeasuredLevel:
    """Return one level of several runs with one scale: what runs differ by counts as error."""
    if len(levels) == 1:
        return levels[0]
    values = [level.log_value for level in levels]
    between = (max(values) - min(values)) / math.sqrt(len(values))
    error = math.hypot(fmean(level.log_error for level in levels) / math.sqrt(len(levels)), between / 2)
    busy: dict[Part, float] = {}
    for level in levels:
        busy.update(level.busy)
    return MeasuredLevel(levels[0].scale, median(values), error, busy, runs=sum(level.runs for level in levels))


def settle_errors(levels: Sequence[MeasuredLevel]) -> tuple[MeasuredLevel, ...]:
    """Return the levels of a figure with errors by the scatter of their own runs, of all levels', and what is typical.

    Few runs tell their scatter badly, and a single one not at all: then the others' counts.
    """
    own = [(level.runs - 1, level.runs * level.log_error**2) for level in levels]
    told = sum(freedom for freedom, _ in own)
    usual = (TYPICAL_SCATTER**2 + sum(freedom * variance for freedom, variance in own)) / (1 + told)
    settled = []
    for level, (freedom, variance) in zip(levels, own, strict=True):
        both = (_SHARED_RUNS * usual + freedom * variance) / (_SHARED_RUNS + freedom)
        settled.append(replace(level, log_error=max(_LEAST_ERROR, math.sqrt(both / level.runs))))
    return tuple(settled)


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1 else None
