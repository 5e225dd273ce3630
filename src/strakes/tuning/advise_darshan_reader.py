"""A child process that reads Darshan logs, because PyDarshan's C library aborts or crashes on damaged ones.

It reads a path per line, as a JSON string, and answers each with a line: {"facts": ...} or {"error": ...}.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from strakes.model.record import to_record
from strakes.tuning.advise_darshan import ALL_RANKS, CALL_CLASSES, COUNTED_MODULES, FileRecord, LogFacts

# Memory limit. An intact log needs less than 1 GiB; a damaged one may request any amount.
_MOST_MEMORY_BYTES = 8 << 30


def main() -> None:
    """Answer requests until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    # The C library prints its errors; only answers may reach the parent.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer: dict[str, object] = {"facts": to_record(read(json.loads(line)))}
        except Exception as error:  # noqa: BLE001 (PyDarshan raises whatever numpy and cffi raise)
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def read(path: str) -> LogFacts:
    """Return the facts in a log. Raises any exception of PyDarshan."""
    from darshan import DarshanReport

    report = DarshanReport(path, read_all=False)
    metadata = report.metadata["job"]
    modules = tuple(report.modules)
    counted = [name for name in COUNTED_MODULES if name in modules]
    for name in counted:
        report.mod_read_all_records(name, dtype="pandas")
    return LogFacts(
        program=str(report.metadata.get("exe", "")).split(" ")[0].rpartition("/")[2],
        ranks=int(metadata["nprocs"]),
        run_s=float(metadata.get("run_time", 0.0)),
        modules=modules,
        records={name: _records(report, name) for name in counted},
        partial=tuple(name for name in counted if report.modules[name].get("partial_flag")),
    )


def _records(report: Any, module: str) -> tuple[FileRecord, ...]:
    prefix = module.replace("-", "")
    records = []
    for table in report.records[module]:
        times = table["fcounters"].to_dict("records")
        for row, time in zip(table["counters"].to_dict("records"), times, strict=True):
            collective = sum(int(row.get(f"{prefix}_{name}", 0)) for name in ("COLL_READS", "COLL_WRITES"))
            records.append(
                FileRecord(
                    file=int(row["id"]),
                    rank=int(row["rank"]),
                    read_bytes=max(0, int(row[f"{prefix}_BYTES_READ"])),
                    written_bytes=max(0, int(row[f"{prefix}_BYTES_WRITTEN"])),
                    read_calls=_calls(row, prefix, "READ"),
                    write_calls=_calls(row, prefix, "WRITE"),
                    collective=collective > 0,
                    time_s=_time_s(time, prefix, shared=int(row["rank"]) == ALL_RANKS),
                )
            )
    return tuple(records)


def _time_s(row: Mapping[str, Any], prefix: str, *, shared: bool) -> float:
    slowest = float(row.get(f"{prefix}_F_SLOWEST_RANK_TIME", 0.0))
    if shared and slowest > 0:
        return slowest
    return sum(max(0.0, float(row.get(f"{prefix}_F_{name}_TIME", 0.0))) for name in ("READ", "WRITE", "META"))


def _calls(row: Mapping[str, Any], prefix: str, operation: str) -> dict[int, int]:
    if prefix == "STDIO":
        # This module has no size classes.
        calls = max(0, int(row.get(f"STDIO_{operation}S", 0)))
        moved = max(0, int(row["STDIO_BYTES_READ" if operation == "READ" else "STDIO_BYTES_WRITTEN"]))
        return {max(1, round(moved / calls)): calls} if calls else {}
    aggregated = "_AGG" if prefix == "MPIIO" else ""
    counts: dict[int, int] = {}
    for name, size in CALL_CLASSES.items():
        if number := max(0, int(row.get(f"{prefix}_SIZE_{operation}{aggregated}_{name}", 0))):
            counts[size] = counts.get(size, 0) + number
    return counts


if __name__ == "__main__":
    main()
