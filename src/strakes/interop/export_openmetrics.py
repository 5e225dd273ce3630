"""Export of the estimates of a run as OpenMetrics text, for Prometheus and node_exporter's textfile collector.

Only the metric strakes_run_info has the run's id as a label. On other metrics, this label would begin a new time series
with each run. All metrics are gauges: these are valid both in OpenMetrics and in older Prometheus text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import SimpleNamespace

from strakes.base.foreign_text import escaped
from strakes.interop.command_options import table_of
from strakes.interop.export_rows import results_of
from strakes.model.latency import latencies_by_call
from strakes.model.results import Measured
from strakes.runs.run import Run
from strakes.survey.analysis_held_back import held_back
from strakes.tuning.portraits import build_portrait

# Name of each metric -> its unit and description.
FAMILIES: Mapping[str, Sequence[str]] = table_of("openmetrics")
BANDWIDTH, RATE, TIME, SHARE, AMOUNT, LATENCY, RUNS, WARNED, CREATED, INFO = FAMILIES
_BY_UNIT = {"B/s": BANDWIDTH, "op/s": RATE, "s": TIME, "%": SHARE, "B": AMOUNT}


def to_openmetrics(run: Run) -> str:
    """Return the estimates of a run as OpenMetrics text, with the final line that OpenMetrics requires."""
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.openmetrics.exposition import generate_latest

    families = {name: GaugeMetricFamily(name, text, unit=unit) for name, (unit, text) in FAMILIES.items()}
    for name, labels, value in _samples(run):
        plain = {key: escaped(text).replace("\r", "\\r") for key, text in labels.items() if text}
        families[name].add_sample(name, plain, value)
    used = [family for family in families.values() if family.samples]
    text: bytes = generate_latest(SimpleNamespace(collect=lambda: used))  # type: ignore[no-untyped-call]
    return text.decode()


def _samples(run: Run) -> Iterator[tuple[str, Mapping[str, str], float]]:
    portrait = build_portrait(run)
    common = {
        "target": run.directories,
        "file_system": str(portrait.target.get("file_system", "")),
        "host": str(run.environment.get("host", "")),
        "name": str(run.manifest["name"]),
    }
    measured = [cell for cell in results_of(run).measured if cell.estimate is not None]
    warned: dict[str, set[str]] = {}
    for warning in portrait.warnings:
        warned.setdefault(warning.code, set()).update(warning.cells or [cell.id for cell in measured])
    for cell in measured:
        yield from ((name, {**common, **labels}, value) for name, labels, value in _of_cell(cell))
    yield from ((WARNED, {**common, "code": code}, len(cells)) for code, cells in warned.items())
    yield CREATED, common, datetime.fromisoformat(run.manifest["created"]).timestamp()
    about = {"run": run.id, **{key: str(run.manifest[key]) for key in ("kind", "status")}}
    yield INFO, {**common, **about, "version": str(run.manifest["strakes_version"])}, 1


def _of_cell(cell: Measured) -> Iterator[tuple[str, Mapping[str, str], float]]:
    estimate = cell.estimate
    assert estimate is not None
    # The label held_back marks rates that a load limit reduced (--impact, --neighbour).
    labels = {"study": cell.study, "cell": cell.id, "held_back": "true" if held_back(cell) else ""}
    for which, value in (("median", estimate.median), ("low", estimate.low), ("high", estimate.high)):
        if value is not None:
            yield _BY_UNIT[cell.unit], {**labels, "estimate": which}, value
    yield RUNS, labels, estimate.runs
    for call, latencies in latencies_by_call(observation.sample for observation in cell.observations).items():
        for name, seconds in latencies.percentiles.items():
            yield LATENCY, {**labels, "call": call, "percentile": name}, seconds
