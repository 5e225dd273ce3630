"""Collect the results of a run from its stored trials. All functions are pure, so old runs can be analysed again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from strakes.model.cell import DIRECTIONS, UNITS, Cell, Measure, Metric
from strakes.model.portrait import CellEstimate
from strakes.model.results import Measured, Observation, Results
from strakes.model.sample import Sample, sample_named
from strakes.runs.records import Visit
from strakes.stats.interval import figure_interval, median
from strakes.studies.compose import from_memory, from_own_cache
from strakes.survey.amounts import LONG_ENOUGH_S
from strakes.survey.analysis_held_back import under_one_limit
from strakes.survey.pilot import LONGER


def metric_value(metric: Metric, sample: Sample, device: str = "") -> float:
    """Return the value of a metric in its unit. ``device``: the file system's device on this node, or ""."""
    if metric == "seconds_per_item":
        items_per_rank = sample.operations / len(sample.ranks)
        return sample.elapsed_s / items_per_rank if items_per_rank else float("nan")
    if not DIRECTIONS[UNITS[metric]]:
        return _side_value(metric, sample, device)
    return float(getattr(sample, metric))


def _side_value(metric: Metric, sample: Sample, device: str) -> float:
    counters = sample.counters
    if metric == "utilisation":
        return float(sample.trained["utilisation_percent"])
    if metric == "memory_available":
        return float(counters.get("memory_available_bytes", 0))
    if metric == "device_busy":
        devices = counters.get("devices", {})
        own = [devices[device]] if device in devices else devices.values()
        busiest = max((float(counts["busy_s"]) for counts in own), default=0.0)
        return min(100.0, 100 * busiest / sample.elapsed_s) if sample.elapsed_s else 0.0
    spent = [float(counters.get(f"cpu_{what}_s", 0.0)) for what in ("iowait", "user", "system", "idle")]
    return 100 * spent[0] / sum(spent) if sum(spent) else 0.0


def _memory_of(servers: Mapping[str, Mapping[str, float]]) -> float | None:
    told = [counters["now.memory_bytes"] for counters in servers.values() if "now.memory_bytes" in counters]
    return sum(told) if told else None


def collect(cells: Sequence[Cell], visits: Sequence[Visit], confidence: float, facts: Mapping[str, Any]) -> Results:
    """Return the results of all measurements.

    Failed trials are omitted. If the load limit changed, only trials with the most frequent limit are used.
    """
    by_cell: dict[str, list[Visit]] = {}
    for visit in under_one_limit(visits):
        by_cell.setdefault(visit.cell, []).append(visit)
    measured = [
        _measured(cell, measure, by_cell.get(cell.key, []), confidence, _device(cell, facts))
        for cell in cells
        for measure in cell.measures
    ]
    return Results(tuple(measured), confidence, facts)


def _device(cell: Cell, facts: Mapping[str, Any]) -> str:
    side = facts.get("against", {}) if cell.place.target == "against" else facts
    return str((side.get("block_device") or {}).get("name", ""))


def _measured(cell: Cell, measure: Measure, visits: Sequence[Visit], confidence: float, device: str) -> Measured:
    observations = []
    for visit in visits:
        sample = sample_named(visit.samples, measure.phase)
        if sample is None:
            continue
        of_servers = measure.metric == "servers_memory"
        value = _memory_of(visit.servers) if of_servers else metric_value(measure.metric, sample, device)
        if value is not None and math.isfinite(value):
            at_s = visit.started_unix_s or 0.0
            observations.append(Observation(visit.block, visit.purpose, value, sample, visit.servers, at_s))
    identifier = cell.measure_id(measure.suffix)
    settings = {**cell.settings, **measure.settings}
    unit = UNITS[measure.metric]
    estimate = None
    if regular := [seen for seen in observations if seen.purpose == "measure"]:
        values = tuple(seen.value for seen in regular)
        interval = figure_interval(values, confidence)
        estimate = CellEstimate(
            id=identifier,
            study=cell.study,
            settings=settings,
            median=median(values),
            low=interval.low if interval else None,
            high=min(interval.high, 100.0 if unit == "%" else math.inf) if interval else None,
            confidence=confidence,
            runs=len(values),
            unit=unit,
            values=values,
            pooled=_pooled(measure.metric, regular),
        )
    if cell.imported and estimate is not None:
        # The other tool's method of repetition is unknown, so imported results get no interval.
        estimate = replace(estimate, low=None, high=None, imported=True)
    elsewhere = cell.plan.made_elsewhere(measure.phase)
    return Measured(identifier, cell.study, settings, unit, tuple(observations), estimate, elsewhere=elsewhere)


def _pooled(metric: Metric, observations: Sequence[Observation]) -> float | None:
    work = {"bytes_per_s": "bytes", "operations_per_s": "operations"}.get(metric)
    total_s = sum(seen.sample.elapsed_s for seen in observations)
    if work is None or not total_s or not all(seen.sample.is_measured for seen in observations):
        return None
    return sum(float(getattr(seen.sample, work)) for seen in observations) / total_s


def longer_work(cells: Sequence[Cell], visits: Sequence[Visit], results: Results) -> dict[str, tuple[float, float]]:
    """Return operation -> (slowdown with four times the work, seconds of the larger work).

    Left out: operations that take less than 0.07 s, and operations that a cache of this node served.
    """
    longer = [replace(cell, key=f"{LONGER}{cell.key}") for cell in cells]
    usual = {
        f"{LONGER}{cell.id}": cell.estimate.median
        for cell in results.measured
        if cell.estimate and not from_memory(cell, results.facts)
        if not (from_own_cache(cell, results.facts) and any(seen.servers for seen in cell.observations))
    }
    return {
        str(cell.settings["operation"]): (usual[cell.id] / fastest.value, fastest.sample.elapsed_s)
        for cell in collect(longer, visits, results.confidence, results.facts).measured
        if cell.id in usual and cell.direction > 0 and cell.observations
        if (fastest := max(cell.observations, key=lambda seen: seen.value)).sample.elapsed_s > LONG_ENOUGH_S
    }


# Report the first file creation rate separately if it is more than twice the highest later rate.
_FRESH = 2.0


def fresh_rates(visits: Sequence[Visit], results: Results) -> dict[str, float]:
    """Return the rates of file creation in the pilot measurement, if they were far higher than all later rates.

    Some file systems create files many times faster until files have been removed or a journal is full.
    """
    pilots = [
        sample for visit in visits if visit.cell == "pilot" for sample in visit.samples if sample.name == "create"
    ]
    if not pilots:
        return {}
    first = pilots[0]
    return {
        figure.id: first.operations_per_s
        for figure in results.measured
        if figure.estimate is not None
        and figure.settings.get("operation") == "file-create"
        and figure.settings.get("ranks") == len(first.ranks)
        and first.operations_per_s > _FRESH * max(figure.estimate.values)
    }
