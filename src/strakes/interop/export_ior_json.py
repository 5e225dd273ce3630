"""Export of the transfers of a run in the format of IOR's JSON summary. Intervals are under the key ``strakes``."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.units import KIB, MIB
from strakes.base.version import __version__
from strakes.interop.export_rows import results_of
from strakes.model.cell import Cell
from strakes.model.results import Measured, Observation
from strakes.runs.run import Run

_LAYOUTS = {"file-per-process": "file-per-process", "shared-file": "single-shared-file"}
_TIME = "%a %b %d %H:%M:%S %Y"


def to_ior_json(run: Run) -> dict[str, object]:
    """Return IOR's JSON with one test for each cell that moved data, and one result for each of its runs.

    Raises BadInputError if no cell moved data.
    """
    results, target = results_of(run), run.manifest["target"]
    tests: list[dict[str, object]] = []
    summary: list[dict[str, object]] = []
    for cell in run.cells:
        phases = [
            (_work(cell, measure.phase), results.get(cell.measure_id(measure.phase))) for measure in cell.measures
        ]
        moved = [
            (work, measured)
            for work, measured in phases
            if measured.unit == "B/s" and measured.estimate is not None and work["operation"] in ("write", "read")
        ]
        if moved:
            summary += [_summary(work, measured, len(tests)) for work, measured in moved]
            test = {"TestID": len(tests), "StartTime": _time(run.manifest["created"]), "Path": target}
            rows = [_result(work, observation) for work, measured in moved for observation in measured.observations]
            tests.append({**test, "Options": {**_options(moved[0][0]), "test filename": target}, "Results": rows})
    if not tests:
        remedy = "Use --format json or csv, which can hold every kind of measurement."
        raise BadInputError("this run has no writes or reads that fit into IOR's JSON", where=run.id, remedy=remedy)
    return {
        "Version": f"strakes {__version__}",
        "Began": _time(run.manifest["created"]),
        "Command line": run.manifest["options"]["command"],
        "Machine": f"Linux {run.environment.get('host', 'unknown')}",
        "tests": tests,
        "summary": summary,
        "Finished": _time(run.manifest.get("ended", run.manifest["created"])),
    }


def _work(cell: Cell, name: str) -> dict[str, Any]:
    """Return the parameters of a phase under IOR's names. An imported cell has them in its settings."""
    keys: Mapping[str, Any] = {**cell.settings, "operation": name}
    if not cell.imported:
        keys = asdict(next(phase for phase, _ in cell.plan.each() if phase.name == name))
    layout = keys.get("layout", "")
    return {
        "operation": keys.get("operation"),  # absent in phases of small files, which have several
        "API": str(keys.get("backend", keys.get("api", "posix"))).upper(),
        "access": _LAYOUTS.get(layout, layout),
        "numTasks": int(cell.settings.get("ranks", 1)),
        "segmentCount": int(keys.get("segments", 0)),
        "blockSize": int(keys.get("block_bytes", 0)),
        "transferSize": int(keys.get("transfer_bytes", 0)),
    }


def _options(work: Mapping[str, Any]) -> dict[str, object]:
    bytes_of_all = work["numTasks"] * max(work["segmentCount"], 1) * work["blockSize"]
    return {
        "api": work["API"],
        "access": work["access"],
        "segments": work["segmentCount"],
        "tasks": work["numTasks"],
        "xfersize": f"{work['transferSize']} bytes",
        "blocksize": f"{work['blockSize']} bytes",
        "aggregate filesize": f"{bytes_of_all} bytes",
    }


def _result(work: Mapping[str, Any], observation: Observation) -> dict[str, object]:
    sample, rate = observation.sample, observation.value / MIB
    sizes = {"blockKiB": work["blockSize"] / KIB, "xferKiB": work["transferSize"] / KIB}
    row: dict[str, object] = {"access": work["operation"], "bwMiB": rate, **sizes}
    if sample.is_measured:
        row |= {"iops": sample.operations_per_s, "totalTime": sample.elapsed_s}
    if opened := sample.column("open_s"):
        row |= {"openTime": max(opened), "closeTime": max(sample.column("close_s"))}
    return row


def _summary(work: Mapping[str, Any], measured: Measured, test: int) -> dict[str, object]:
    values = [observation.value / MIB for observation in measured.observations]
    estimate = measured.estimate
    assert estimate is not None
    bounds = {"bwMedianMIB": estimate.median, "bwLowMIB": estimate.low, "bwHighMIB": estimate.high}
    intervals = {name: None if bound is None else bound / MIB for name, bound in bounds.items()}
    return {
        **work,
        "TestID": test,
        "repetitions": len(values),
        "filePerProc": int(work["access"] == "file-per-process"),
        "bwMaxMIB": max(values),
        "bwMinMIB": min(values),
        "bwMeanMIB": statistics.fmean(values),
        "bwStdMIB": statistics.pstdev(values),
        "strakes": {**intervals, "confidence": estimate.confidence, "cell": measured.id},
    }


def _time(text: str) -> str:
    return datetime.fromisoformat(text).astimezone(UTC).strftime(_TIME)
