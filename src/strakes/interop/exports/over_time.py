"""Export of latency percentiles over time, from the ``latency_timeline`` of each phase.

The formats are a table, and OpenMetrics text with timestamps for ``promtool tsdb create-blocks-from openmetrics``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from strakes.errors import BadInputError
from strakes.findings.latency import SHARES
from strakes.findings.sample import Sample, sample_named
from strakes.interop.exports.openmetrics import MetricFamily, labels_of_run, written_labels
from strakes.interop.exports.rows import results_of, written_csv
from strakes.store import Run

# Name and SQL type of every column, in order. ``t_s``: end of a row, in seconds after ``origin_unix_s``. ``row_s``: its
# length; the last row of a phase may be shorter.
COLUMNS: dict[str, str] = {
    "run": "VARCHAR",
    "study": "VARCHAR",
    "cell": "VARCHAR",
    "purpose": "VARCHAR",
    "block": "BIGINT",
    "visit": "BIGINT",
    "call": "VARCHAR",
    "origin_unix_s": "DOUBLE",
    "t_s": "DOUBLE",
    "row_s": "DOUBLE",
    "calls": "BIGINT",
    **{f"{name}_s": "DOUBLE" for name in SHARES},
    "slowest_s": "DOUBLE",
}
OVER_TIME = MetricFamily(
    "strakes_latency_over_time_seconds",
    "seconds",
    "Latency percentiles of the calls of a cell that ended in an interval, at the end of the interval.",
)


def rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the rows of all measured phases that took more than two seconds, with all of COLUMNS.

    Raises BadInputError if no phase did.
    """
    results = results_of(run)
    empty = True
    for cell in run.cells:
        visits = [visit for visit in run.visits if visit.cell == cell.key and visit.ended_well]
        for phase in dict.fromkeys(measure.phase for measure in cell.measures):
            shared = {"run": run.id, "study": cell.study, "cell": results.get(cell.measure_id(phase)).id}
            for visit in visits:
                sample = sample_named(visit.samples, phase)
                if sample is not None and sample.latency_timeline:
                    seen = {key: getattr(visit, key) for key in ("purpose", "block", "visit")}
                    empty = False
                    yield from ({**shared, **seen, **row} for row in _of_sample(sample))
    if empty:
        raise BadInputError(
            "this run has no latencies over time",
            where=run.id,
            why="they are kept for phases that take more than 2 s",
            remedy="Run it with a larger --budget, or a plan with longer phases; or leave out --over-time.",
        )


def _of_sample(sample: Sample) -> Iterator[dict[str, Any]]:
    timeline = sample.latency_timeline
    for call, rows_of_call in timeline["rows"].items():
        for row in rows_of_call:
            values = dict(zip(timeline["columns"], row, strict=True))
            yield {"call": call, "origin_unix_s": sample.origin_unix_s, "row_s": timeline["row_s"], **values}


def to_csv(run: Run) -> str:
    """Return the table as CSV (RFC 4180) with a header."""
    return written_csv(COLUMNS, rows(run))


def to_openmetrics(run: Run) -> str:
    """Return the percentiles as gauges, each with the end of its row as timestamp."""
    common = labels_of_run(run, results_of(run).facts)
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows(run):
        for percentile in SHARES:
            labels = {**common, **{key: row[key] for key in ("study", "cell", "call")}, "percentile": percentile}
            moment = row["origin_unix_s"] + row["t_s"]
            points.setdefault(written_labels(labels), []).append((moment, row[f"{percentile}_s"]))
    name = OVER_TIME.name
    lines = [f"# HELP {name} {OVER_TIME.help}", f"# TYPE {name} gauge", f"# UNIT {name} {OVER_TIME.unit}"]
    for series, values in points.items():
        lines += [f"{name}{{{series}}} {seconds!r} {moment:.3f}" for moment, seconds in sorted(values)]
    return "\n".join([*lines, "# EOF", ""])
