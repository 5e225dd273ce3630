"""Export of a run as a table with a row for each measured value, or as a JSON document."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import asdict

from strakes.base.finite import finite
from strakes.base.foreign_text import for_csv
from strakes.model.latency import SHARES, latencies_of_all
from strakes.model.record import to_record
from strakes.model.results import Measured, Results
from strakes.model.sample import Sample, sample_named
from strakes.runs.records import Visit, event_to_record
from strakes.runs.run import Run
from strakes.survey.analysis_collect import collect, metric_value
from strakes.survey.analysis_held_back import held_share
from strakes.tuning.portraits import build_portrait

# Columns of the table. Times are in seconds, sizes in bytes, ``settings`` in JSON. p50_s to slowest_s are latencies.
_OF_RUN = ("run", "kind", "name", "created", "target", "file_system", "host", "imported")
_OF_VISIT = ("purpose", "block", "visit", "started_unix_s")
_OF_PHASE = ("elapsed_s", "bytes", "operations", "errors")
_LATENCIES = (*(f"{name}_s" for name in SHARES), "slowest_s")
_OF_ESTIMATE = ("median", "low", "high", "confidence", "runs")
COLUMNS = (
    *(*_OF_RUN, "study", "cell", "settings", *_OF_VISIT, *_OF_PHASE, *_LATENCIES),
    *("unit", "value", "impact", "held_back", *_OF_ESTIMATE),
)


def results_of(run: Run) -> Results:
    """Return each measured combination of settings, with its estimates."""
    return collect(run.cells, run.visits, float(run.manifest["options"]["confidence"]), run.facts)


def rows(run: Run) -> Iterator[dict[str, object]]:
    """Yield a row with the keys COLUMNS for each measured value. Unknown values are None."""
    results = results_of(run)
    shared = {
        "run": run.id,
        **{key: run.manifest[key] for key in ("kind", "name", "created")},
        "target": run.directories,
        "file_system": results.facts.get("file_system"),
        "host": run.environment.get("host"),
        "imported": run.manifest["kind"] == "import",
    }
    for cell in run.cells:
        visits = [visit for visit in run.visits if visit.cell == cell.key and visit.ended_well]
        for measure in cell.measures:
            measured = results.get(cell.measure_id(measure.phase))
            for visit in visits:
                sample = sample_named(visit.samples, measure.phase)
                if sample is not None:
                    value = metric_value(measure.metric, sample)
                    yield {**shared, **_of_cell(measured), **_of_visit(visit), **_of_sample(sample), "value": value}


def to_csv(run: Run) -> str:
    """Return the table as CSV (RFC 4180) with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows(run):
        cells = {**row, "imported": str(row["imported"]).lower()}
        writer.writerow([for_csv(cells[column]) for column in COLUMNS])
    return text.getvalue()


def to_export(run: Run) -> dict[str, object]:
    """Return the findings and all measurements of the run as one JSON document (``schemas/export.json``)."""
    return {
        "schema": 1,
        "manifest": run.manifest,
        "findings": finite(asdict(build_portrait(run))),
        "cells": [to_record(cell) for cell in run.cells],
        "visits": [to_record(visit) for visit in run.visits],
        "events": [event_to_record(event) for event in run.events],
    }


def _of_cell(cell: Measured) -> dict[str, object]:
    estimate = {name: getattr(cell.estimate, name, None) for name in _OF_ESTIMATE}
    settings = json.dumps(dict(cell.settings), sort_keys=True)
    runs = cell.estimate.runs if cell.estimate else 0
    return {"study": cell.study, "cell": cell.id, "settings": settings, "unit": cell.unit, **estimate, "runs": runs}


def _of_visit(visit: Visit) -> dict[str, object]:
    impact = to_record(visit.impact)
    seen = {key: getattr(visit, key) for key in _OF_VISIT}
    return {**seen, "impact": json.dumps(impact, sort_keys=True) if impact else None}


def _of_sample(sample: Sample) -> dict[str, object]:
    latencies = latencies_of_all([sample])
    slowest_s = max(sample.column("slowest_s"), default=math.inf)
    return {
        **{key: getattr(sample, key) if sample.is_measured else None for key in _OF_PHASE},
        # A percentile is the midpoint of a histogram bucket, which may exceed the slowest call. Then use the slowest.
        **{f"{name}_s": min(latencies.percentiles[name], slowest_s) if latencies else None for name in SHARES},
        "slowest_s": slowest_s if math.isfinite(slowest_s) else None,
        "held_back": held_share(sample),
    }
