"""From the stored visits of a run to measured results: pure, so that any run can be analysed again years later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from strakes.plan import MixedPhase
from strakes.plan.model import plan_from_record
from strakes.portrait.held_back import under_one_limit
from strakes.portrait.model import CellEstimate
from strakes.statistics.pooled import pooled_rate
from strakes.statistics.stopping import StoppingRule
from strakes.studies.base import SIDE_METRICS, UNITS, Cell, Measure, Metric
from strakes.studies.place import place_record
from strakes.studies.results import Measured, Observation, Results
from strakes.targets.model import layout_record


def cell_record(cell: Cell) -> dict[str, Any]:
    """A cell as the store keeps it."""
    return {
        "study": cell.study,
        "key": cell.key,
        "settings": dict(cell.settings),
        "priority": cell.priority,
        "measures": [{"phase": one.phase, "metric": one.metric, "settings": dict(one.settings)} for one in cell.measures],
        "fingerprint": cell.plan.fingerprint(),
        "plan": cell.plan.to_json(),
        **({} if cell.layout is None else {"layout": layout_record(cell.layout)}),
        "place": place_record(cell.place),
        "least_runs": cell.least_runs,
        "precision": cell.precision,
    }


def metric_value(metric: Metric, sample: Mapping[str, Any], device: str = "") -> float:
    """The value of a metric in its unit, from a raw sample message; ``device``: that of the file system, where it has one here."""
    if metric == "seconds_per_item":
        items_per_rank = sample["operations"] / len(sample["ranks"])
        return float(sample["elapsed_s"] / items_per_rank) if items_per_rank else float("nan")
    if metric in SIDE_METRICS:
        return _side_value(metric, sample, device)
    return float(sample[metric])


def _side_value(metric: Metric, sample: Mapping[str, Any], device: str) -> float:
    """Of the node that was measured: how busy the device is (else the busiest), the share of processor time that waited, memory left."""
    counters = sample["counters"]
    if metric == "memory_available":
        return float(counters.get("memory_available_bytes", 0))
    if metric == "device_busy":
        devices = counters.get("devices", {})
        own = [devices[device]] if device in devices else devices.values()
        busiest = max((float(one["busy_s"]) for one in own), default=0.0)
        return min(100.0, 100 * busiest / float(sample["elapsed_s"])) if sample["elapsed_s"] else 0.0
    spent = [float(counters.get(f"cpu_{what}_s", 0.0)) for what in ("iowait", "user", "system", "idle")]
    return 100 * spent[0] / sum(spent) if sum(spent) else 0.0


def _memory_of(servers: Mapping[str, Mapping[str, float]]) -> float | None:
    """What the servers that tell use together; None where none does."""
    told = [counters["now.memory_bytes"] for counters in servers.values() if "now.memory_bytes" in counters]
    return sum(told) if told else None


def sample_named(samples: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    """The sample of the phase, or of the part of a mixed phase, that has this name; a part's has the whole phase's counters.

    >>> both = {"name": "both", "host": "n1", "bytes": 5, "parts": [{"name": "dump", "bytes": 4}, {"name": "watch", "bytes": 1}]}
    >>> sample_named([{"name": "fill"}, both], "watch")
    {'name': 'watch', 'host': 'n1', 'bytes': 1}
    """
    for sample in samples:
        if sample["name"] == name:
            return sample
        for part in sample.get("parts", ()):
            if part["name"] == name:
                return {key: value for key, value in {**sample, **part}.items() if key != "parts"}
    return None


def collect(
    cells: Sequence[Mapping[str, Any]], visits: Sequence[Mapping[str, Any]], rule: StoppingRule, facts: Mapping[str, Any]
) -> Results:
    """Results of all cells; visits that did not end well carry no value, nor do those under another limit than most."""
    by_cell: dict[str, list[Mapping[str, Any]]] = {}
    for visit in under_one_limit(visits):
        by_cell.setdefault(visit["cell"], []).append(visit)
    measured = [
        _measured(cell, measure, by_cell.get(cell["key"], []), rule, _device(cell, facts)) for cell in cells for measure in cell["measures"]
    ]
    return Results(tuple(measured), rule.confidence, facts)


def _device(cell: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The device here that the cell's file system is on; empty where there is none."""
    side = facts.get("against", {}) if cell.get("place", {}).get("target") == "against" else facts
    return str((side.get("block_device") or {}).get("name", ""))


def _measured(
    cell: Mapping[str, Any], measure: Mapping[str, Any], visits: Sequence[Mapping[str, Any]], rule: StoppingRule, device: str
) -> Measured:
    metric: Metric = measure["metric"]
    imported = bool(cell.get("imported", False))
    asked = 0 if imported else _asked(cell["plan"], measure["phase"])
    observations = []
    for visit in visits:
        sample = sample_named(visit["samples"], measure["phase"])
        if sample is None:
            continue
        servers = visit.get("servers", {})
        value = _memory_of(servers) if metric == "servers_memory" else metric_value(metric, sample, device)
        if value is not None:
            observations.append(Observation(visit["block"], visit["purpose"], value, asked, sample, servers))
    identifier = f"{cell['key']}:{Measure(measure['phase'], metric, {}).suffix}"
    settings = {**cell["settings"], **measure["settings"]}
    unit = UNITS[metric]
    estimate = _estimate(identifier, cell["study"], settings, metric, observations, rule)
    if imported and estimate is not None:
        # Another tool's repetitions: how they were made is not known, so they carry no interval of ours.
        estimate = replace(estimate, low=None, high=None, stopped_because="imported")
    return Measured(identifier, cell["study"], settings, unit, tuple(observations), estimate)


def _asked(plan_record: Mapping[str, Any], phase_name: str) -> int:
    plan = plan_from_record(plan_record)
    parts = [part for phase in plan.phases if isinstance(phase, MixedPhase) for part in phase.parts]
    asked = {part.phase.name: part.operations(plan.ranks) for part in parts}
    return asked[phase_name] if phase_name in asked else next(one.operations(plan.ranks) for one in plan.phases if one.name == phase_name)


def _estimate(
    identifier: str,
    study: str,
    settings: Mapping[str, Any],
    metric: Metric,
    observations: Sequence[Observation],
    rule: StoppingRule,
) -> CellEstimate | None:
    regular = [one for one in observations if one.purpose == "measure"]
    if not regular:
        return None
    values = [one.value for one in regular]
    judgement = rule.judge(values)
    interval = judgement.estimate.interval
    return CellEstimate(
        id=identifier,
        study=study,
        settings=settings,
        median=judgement.estimate.median,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        confidence=rule.confidence,
        runs=len(values),
        unit=UNITS[metric],
        stopped_because=judgement.reason if judgement.stop else "budget-spent",
        values=tuple(values),
        pooled=_pooled(metric, regular),
    )


def _pooled(metric: Metric, observations: Sequence[Observation]) -> float | None:
    work = {"bytes_per_s": "bytes", "operations_per_s": "operations"}.get(metric)
    if work is None or any(work not in one.sample for one in observations):
        return None
    return pooled_rate([one.sample[work] for one in observations], [one.sample["elapsed_s"] for one in observations])
