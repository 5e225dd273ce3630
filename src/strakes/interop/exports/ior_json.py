"""Export of the transfers of a run in the format of IOR's JSON summary. Intervals are under the key ``strakes``."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from strakes.errors import BadInputError
from strakes.findings.cell import Cell
from strakes.findings.results import Measured, Observation
from strakes.interop.exports.rows import results_of
from strakes.store import Run
from strakes.units import KIB, MIB
from strakes.version import __version__

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
            if measured.unit == "B/s" and measured.estimate is not None and work.operation in ("write", "read")
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


@dataclass(frozen=True)
class _Work:
    """Parameters of a data phase; for an imported cell, from its settings."""

    operation: str
    api: str
    layout: str
    ranks: int
    transfer_bytes: int
    block_bytes: int
    segments: int


def _work(cell: Cell, name: str) -> _Work:
    keys: Mapping[str, Any] = {**cell.settings, "operation": name}
    if not cell.imported:
        keys = asdict(next(phase for phase, _ in cell.plan.each() if phase.name == name))
    layout = str(keys.get("layout", ""))
    return _Work(
        str(keys.get("operation", "")),  # phases of small files have several
        str(keys.get("backend", keys.get("api", "posix"))).upper(),
        _LAYOUTS.get(layout, layout),
        int(cell.settings.get("ranks", 1)),
        *(int(keys.get(key, 0)) for key in ("transfer_bytes", "block_bytes", "segments")),
    )


def _options(work: _Work) -> dict[str, object]:
    return {
        "api": work.api,
        "access": work.layout,
        "segments": work.segments,
        "tasks": work.ranks,
        "xfersize": f"{work.transfer_bytes} bytes",
        "blocksize": f"{work.block_bytes} bytes",
        "aggregate filesize": f"{work.ranks * max(work.segments, 1) * work.block_bytes} bytes",
    }


def _result(work: _Work, observation: Observation) -> dict[str, object]:
    sample = observation.sample
    row: dict[str, object] = {
        "access": work.operation,
        "bwMiB": observation.value / MIB,
        "blockKiB": work.block_bytes / KIB,
        "xferKiB": work.transfer_bytes / KIB,
    }
    if sample.is_measured:
        row |= {"iops": sample.operations_per_s, "totalTime": sample.elapsed_s}
    opened, closed = sample.column("open_s"), sample.column("close_s")
    if opened:
        rows = zip(sample.column("start_s"), opened, closed, sample.column("end_s"), strict=True)
        row |= {"openTime": max(opened), "closeTime": max(closed)}
        row["wrRdTime"] = max(end_s - start_s - open_s - close_s for start_s, open_s, close_s, end_s in rows)
    return row


def _summary(work: _Work, measured: Measured, test: int) -> dict[str, object]:
    values = [observation.value / MIB for observation in measured.observations]
    estimate = measured.estimate
    assert estimate is not None
    bounds = {"bwMedianMIB": estimate.median, "bwLowMIB": estimate.low, "bwHighMIB": estimate.high}
    return {
        "operation": work.operation,
        "API": work.api,
        "TestID": test,
        "segmentCount": work.segments,
        "blockSize": work.block_bytes,
        "transferSize": work.transfer_bytes,
        "numTasks": work.ranks,
        "repetitions": len(values),
        "filePerProc": int(work.layout == "file-per-process"),
        "bwMaxMIB": max(values),
        "bwMinMIB": min(values),
        "bwMeanMIB": statistics.fmean(values),
        "bwStdMIB": statistics.pstdev(values),
        "strakes": {
            **{name: None if bound is None else bound / MIB for name, bound in bounds.items()},
            "confidence": estimate.confidence,
            "cell": measured.id,
        },
    }


def _time(text: str) -> str:
    return datetime.fromisoformat(text).astimezone(UTC).strftime(_TIME)
