"""The transfers of a run as IOR's JSON summary has them, for programs that read that; the interval stands beside IOR's
own keys.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from strakes.errors import BadInputError
from strakes.findings.cell import Cell
from strakes.findings.results import Measured
from strakes.interop.exports.rows import results_of
from strakes.store import Run
from strakes.units import KIB, MIB
from strakes.version import __version__

_LAYOUTS = {"file-per-process": "file-per-process", "shared-file": "single-shared-file"}
_TIME = "%a %b %d %H:%M:%S %Y"


def to_ior_json(run: Run) -> dict[str, Any]:
    """One test for each cell that moved data, one result for each run of it.

    Raises BadInputError where there is none.
    """
    results = results_of(run)
    tests: list[dict[str, Any]] = []
    summary: list[dict[str, Any]] = []
    for cell in run.cells:
        moved = []
        for measure in cell.measures:
            phase = _phase(cell, measure.phase)
            measured = results.get(cell.measure_id(measure.phase))
            if measured.unit == "B/s" and phase["operation"] in ("write", "read") and measured.estimate is not None:
                moved.append((phase, measured))
        if moved:
            number = len(tests)
            began = _time(run.manifest["created"])
            options = _options(moved[0][0], cell, run)
            entries = [
                _result(phase, measured, index)
                for phase, measured in moved
                for index in range(len(measured.observations))
            ]
            tests.append(
                {
                    "TestID": number,
                    "StartTime": began,
                    "Path": run.manifest["target"],
                    "Options": options,
                    "Results": entries,
                }
            )
            summary += [_summary(phase, measured, number, options) for phase, measured in moved]
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


def _phase(cell: Cell, name: str) -> Mapping[str, Any]:
    """Return the keys of the phase in the plan; those of an imported cell come from its settings."""
    if cell.imported:
        return {"operation": name, "name": name, **cell.settings}
    return asdict(next(phase for phase, _ in cell.plan.each() if phase.name == name))


def _options(phase: Mapping[str, Any], cell: Cell, run: Run) -> dict[str, Any]:
    ranks = int(cell.settings.get("ranks", 1))
    transfer, block, segments = (int(phase.get(key, 0)) for key in ("transfer_bytes", "block_bytes", "segments"))
    return {
        "api": str(phase.get("backend", phase.get("api", "posix"))).upper(),
        "test filename": run.manifest["target"],
        "access": _LAYOUTS.get(str(phase.get("layout", "")), str(phase.get("layout", ""))),
        "segments": segments,
        "tasks": ranks,
        "xfersize": f"{transfer} bytes",
        "blocksize": f"{block} bytes",
        "aggregate filesize": f"{ranks * max(segments, 1) * block} bytes",
    }


def _result(phase: Mapping[str, Any], measured: Measured, index: int) -> dict[str, Any]:
    seen = measured.observations[index]
    sample = seen.sample
    row: dict[str, Any] = {
        "access": phase["operation"],
        "bwMiB": seen.value / MIB,
        "blockKiB": phase.get("block_bytes", 0) / KIB,
        "xferKiB": phase.get("transfer_bytes", 0) / KIB,
    }
    if sample.is_measured:
        row |= {"iops": sample.operations_per_s, "totalTime": sample.elapsed_s}
    opened, closed = sample.column("open_s"), sample.column("close_s")
    if opened:
        rows = zip(sample.column("start_s"), opened, closed, sample.column("end_s"), strict=True)
        row |= {"openTime": max(opened), "closeTime": max(closed)}
        row["wrRdTime"] = max(end_s - start_s - open_s - close_s for start_s, open_s, close_s, end_s in rows)
    return row


def _summary(phase: Mapping[str, Any], measured: Measured, test: int, options: Mapping[str, Any]) -> dict[str, Any]:
    values = [seen.value / MIB for seen in measured.observations]
    times = [seen.sample.elapsed_s for seen in measured.observations if seen.sample.is_measured]
    estimate = measured.estimate
    assert estimate is not None
    in_mib: Sequence[float | None] = [
        None if bound is None else bound / MIB for bound in (estimate.median, estimate.low, estimate.high)
    ]
    return {
        "operation": phase["operation"],
        "API": options["api"],
        "TestID": test,
        "segmentCount": options["segments"],
        "blockSize": int(phase.get("block_bytes", 0)),
        "transferSize": int(phase.get("transfer_bytes", 0)),
        "numTasks": options["tasks"],
        "repetitions": len(values),
        "filePerProc": int(options["access"] == "file-per-process"),
        "bwMaxMIB": max(values),
        "bwMinMIB": min(values),
        "bwMeanMIB": statistics.fmean(values),
        "bwStdMIB": statistics.pstdev(values),
        **({"MeanTime": statistics.fmean(times)} if times else {}),
        "strakes": {
            "bwMedianMIB": in_mib[0],
            "bwLowMIB": in_mib[1],
            "bwHighMIB": in_mib[2],
            "confidence": estimate.confidence,
            "cell": measured.id,
        },
    }


def _time(text: str) -> str:
    return datetime.fromisoformat(text).astimezone(UTC).strftime(_TIME)
