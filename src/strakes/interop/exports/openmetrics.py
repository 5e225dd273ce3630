"""Export of the estimates of a run as OpenMetrics text, for Prometheus and node_exporter's textfile collector.

Only one metric has the run's id, because as a label of all metrics it would start new time series with every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from strakes.analysis.held_back import held_back
from strakes.findings.latency import latencies_by_call
from strakes.findings.results import Measured
from strakes.foreign_text import escaped
from strakes.interop.exports.rows import results_of
from strakes.portraits.build import build_portrait
from strakes.store import Run


@dataclass(frozen=True)
class MetricFamily:
    """A metric. All are gauges, so that the file is valid both as OpenMetrics and as older Prometheus text."""

    name: str
    unit: str
    help: str


# By the unit of a cell.
VALUES: Mapping[str, MetricFamily] = {
    "B/s": MetricFamily(
        "strakes_bandwidth_bytes_per_second",
        "bytes_per_second",
        "Bandwidth of a cell: median over runs and its interval.",
    ),
    "op/s": MetricFamily(
        "strakes_rate_operations_per_second",
        "operations_per_second",
        "Operations per second of a cell: median and interval.",
    ),
    "s": MetricFamily(
        "strakes_time_seconds", "seconds", "Time of one item of a cell: median over runs and its interval."
    ),
    "%": MetricFamily(
        "strakes_share_percent", "percent", "A share, such as how busy a device was: median and interval."
    ),
    "B": MetricFamily("strakes_amount_bytes", "bytes", "An amount, such as the available memory: median and interval."),
}
LATENCY = MetricFamily(
    "strakes_latency_seconds", "seconds", "Latency of the calls of a cell: percentiles over all its runs together."
)
RUNS = MetricFamily("strakes_measured_runs", "", "Number of runs behind the estimate of a cell.")
WARNED = MetricFamily(
    "strakes_warned_cells", "", "Number of cells that a warning affects; all cells if it affects the whole run."
)
CREATED = MetricFamily("strakes_run_created_timestamp_seconds", "seconds", "When the run began.")
INFO = MetricFamily("strakes_run_info", "", "The run that the values come from.")
FAMILIES = (*VALUES.values(), LATENCY, RUNS, WARNED, CREATED, INFO)


def to_openmetrics(run: Run) -> str:
    """Return the text, with the final line that OpenMetrics requires."""
    portrait = build_portrait(run)
    common = labels_of_run(run, portrait.target)
    measured = [cell for cell in results_of(run).measured if cell.estimate is not None]
    warned: dict[str, set[str]] = {}
    for warning in portrait.warnings:
        warned.setdefault(warning.code, set()).update(warning.cells or [cell.id for cell in measured])
    lines: list[str] = []
    for unit, family in VALUES.items():
        lines += _family(
            family, [sample for cell in measured if cell.unit == unit for sample in _estimate(cell, common)]
        )
    lines += _family(LATENCY, [sample for cell in measured for sample in _latency(cell, common)])
    lines += _family(RUNS, [(_labels(cell, common), cell.estimate.runs) for cell in measured if cell.estimate])
    lines += _family(WARNED, [({**common, "code": code}, len(cells)) for code, cells in warned.items()])
    lines += _family(CREATED, [(common, datetime.fromisoformat(run.manifest["created"]).timestamp())])
    about = {"run": run.id, "kind": str(run.manifest["kind"]), "status": str(run.manifest["status"])}
    lines += _family(INFO, [({**common, **about, "version": str(run.manifest["strakes_version"])}, 1)])
    return "\n".join([*lines, "# EOF", ""])


def labels_of_run(run: Run, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of all metrics of a run. ``facts`` describe its file system."""
    return {
        "target": run.directories,
        "file_system": str(facts.get("file_system", "")),
        "host": str(run.environment.get("host", "")),
        "name": str(run.manifest["name"]),
    }


def _labels(cell: Measured, common: Mapping[str, str]) -> dict[str, str]:
    # Rates that a load limit of strakes reduced are separate series.
    return {**common, "study": cell.study, "cell": cell.id, "held_back": "true" if held_back(cell) else ""}


def _estimate(cell: Measured, common: Mapping[str, str]) -> Iterator[tuple[dict[str, str], float]]:
    assert cell.estimate is not None
    for which, value in (("median", cell.estimate.median), ("low", cell.estimate.low), ("high", cell.estimate.high)):
        if value is not None:
            yield {**_labels(cell, common), "estimate": which}, value


def _latency(cell: Measured, common: Mapping[str, str]) -> Iterator[tuple[dict[str, str], float]]:
    by_call = latencies_by_call(observation.sample for observation in cell.observations)
    for call, latencies in by_call.items():
        for name, seconds in latencies.percentiles.items():
            yield {**_labels(cell, common), "call": call, "percentile": name}, seconds


def _family(family: MetricFamily, samples: list[tuple[Any, float]]) -> list[str]:
    if not samples:
        return []
    head = [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} gauge"]
    unit = [f"# UNIT {family.name} {family.unit}"] if family.unit else []
    return [*head, *unit, *(f"{family.name}{{{written_labels(labels)}}} {value!r}" for labels, value in samples)]


def written_labels(labels: Mapping[str, str]) -> str:
    """Return the text of labels between braces, without empty labels."""
    return ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items() if value)


def _escaped(text: str) -> str:
    """Return the value of a label with its special characters escaped.

    >>> print(_escaped('a"b'))
    a\\"b
    """
    return escaped(text).replace("\r", "\\r").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
