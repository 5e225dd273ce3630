"""Export of the transfers of a run in the format of IOR's JSON summary. Intervals are under the key ``strakes``."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from strakes.errors import BadInputError
from strakes.findings.cell import Cell
from strakes.findings.latency import latencies_by_call
from strakes.findings.results import Measured, Observation
from strakes.interop.exports.rows import results_of
from strakes.store import Run
from strakes.units import KIB, MIB
from strakes.version import __version__

_LAYOUTS = {"file-per-process": "file-per-process", "shared-file": "single-shared-file"}
_TIME = "%a %b %d %H:%M:%S %Y"


@dataclass(frozen=True)
class _Transfer:
    """Parameters of a data phase; for an imported cell, from its settings."""

    operation: str
    api: str
    layout: str
    transfer_bytes: int
    block_bytes: int
    segments: int


def to_ior_json(run: Run) -> dict[str, object]:
    """Return IOR's JSON with one test for each cell that moved data, and one result for each of its runs.

    Raises BadInputError if no cell moved data.
    """
    results = results_of(run)
    tests: list[dict[str, object]] = []
    summary: list[dict[str, object]] = []
    for cell in run.cells:
        moved = []
        for measure in cell.measures:
            transfer, measured = _transfer(cell, measure.phase), results.get(cell.measure_id(measure.phase))
            if measured.unit == "B/s" and transfer.operation in ("write", "read") and measured.estimate is not None:
                moved.append((transfer, measured))
        if moved:
            ranks = int(cell.settings.get("ranks", 1))
            summary += [_summary(transfer, measured, len(tests), ranks) for transfer, measured in moved]
            tests.append(
                {
                    "TestID": len(tests),
                    "StartTime": _time(run.manifest["created"]),
                    "Path": run.manifest["target"],
                    "Options": _options(moved[0][0], ranks, run.manifest["target"]),
                    "Results": [
                        _result(transfer, observation)
                        for transfer, measured in moved
                        for observation in measured.observations
                    ],
                }
            )
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


def _transfer(cell: Cell, name: str) -> _Transfer:
    keys: Mapping[str, Any] = cell.settings
    operation = name
    if not cell.imported:
        keys = asdict(next(phase for phase, _ in cell.plan.each() if phase.name == name))
        operation = str(keys.get("operation", ""))  # phases of small files have several
    layout = str(keys.get("layout", ""))
    return _Transfer(
        operation,
        str(keys.get("backend", keys.get("api", "posix"))).upper(),
        _LAYOUTS.get(layout, layout),
        *(int(keys.get(key, 0)) for key in ("transfer_bytes", "block_bytes", "segments")),
    )


def _options(transfer: _Transfer, ranks: int, target: str) -> dict[str, object]:
    return {
        "api": transfer.api,
        "test filename": target,
        "access": transfer.layout,
        "segments": transfer.segments,
        "tasks": ranks,
        "xfersize": f"{transfer.transfer_bytes} bytes",
        "blocksize": f"{transfer.block_bytes} bytes",
        "aggregate filesize": f"{ranks * max(transfer.segments, 1) * transfer.block_bytes} bytes",
    }


def _result(transfer: _Transfer, observation: Observation) -> dict[str, object]:
    sample = observation.sample
    row: dict[str, object] = {
        "access": transfer.operation,
        "bwMiB": observation.value / MIB,
        "blockKiB": transfer.block_bytes / KIB,
        "xferKiB": transfer.transfer_bytes / KIB,
    }
    if sample.is_measured:
        row |= {"iops": sample.operations_per_s, "totalTime": sample.elapsed_s}
    if by_call := latencies_by_call([sample]):
        row["strakes"] = {
            "latencies": {
                call: {f"{name}_s": seconds for name, seconds in latencies.percentiles.items()}
                for call, latencies in by_call.items()
            }
        }
    opened, closed = sample.column("open_s"), sample.column("close_s")
    if opened:
        rows = zip(sample.column("start_s"), opened, closed, sample.column("end_s"), strict=True)
        row |= {"openTime": max(opened), "closeTime": max(closed)}
        row["wrRdTime"] = max(end_s - start_s - open_s - close_s for start_s, open_s, close_s, end_s in rows)
    return row


def _summary(transfer: _Transfer, measured: Measured, test: int, ranks: int) -> dict[str, object]:
    values = [observation.value / MIB for observation in measured.observations]
    samples = [observation.sample for observation in measured.observations]
    times = [sample.elapsed_s for sample in samples if sample.is_measured]
    estimate = measured.estimate
    assert estimate is not None
    median, low, high = (
        None if bound is None else bound / MIB for bound in (estimate.median, estimate.low, estimate.high)
    )
    return {
        "operation": transfer.operation,
        "API": transfer.api,
        "TestID": test,
        "segmentCount": transfer.segments,
        "blockSize": transfer.block_bytes,
        "transferSize": transfer.transfer_bytes,
        "numTasks": ranks,
        "repetitions": len(values),
        "filePerProc": int(transfer.layout == "file-per-process"),
        "bwMaxMIB": max(values),
        "bwMinMIB": min(values),
        "bwMeanMIB": statistics.fmean(values),
        "bwStdMIB": statistics.pstdev(values),
        **({"MeanTime": statistics.fmean(times)} if times else {}),
        "strakes": {
            "bwMedianMIB": median,
            "bwLowMIB": low,
            "bwHighMIB": high,
            "confidence": estimate.confidence,
            "cell": measured.id,
        },
    }


def _time(text: str) -> str:
    return datetime.fromisoformat(text).astimezone(UTC).strftime(_TIME)
