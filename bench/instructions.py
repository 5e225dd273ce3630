"""Count the engine's user-space instructions per operation with callgrind. Other load does not change the counts.

The result is the slope of the count over the number of operations, so that start-up, opening and reporting cancel.
Instructions of other phases are subtracted.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.contenders import output_of
from bench.work import SMALL, Work
from strakes.runs.engine import find_engine

_FEW, _MANY = 2_000, 102_000  # numbers of operations, so different that heartbeats (by time) are negligible
_SUMMARY = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
# In order of execution. Later phases need files and directories of earlier ones.
_METADATA = (
    "file-create",
    "file-stat",
    "file-open-close",
    "file-rename",
    "file-remove",
    "dir-create",
    "dir-stat",
    "dir-rename",
    "dir-remove",
)
_DATA = ("write", "write, stamped", "read", "read, verified")
_QUEUED = ("write, queued", "read, queued")
_CREATE_AND_WRITE = "file-create, 4 KiB"


def per_operation(*, quick: bool) -> dict[str, float]:
    """Return operation -> instructions (one rank, one directory on tmpfs, 4 KiB transfers), or {} without valgrind."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return {}
    few, many = (_FEW // 10, _MANY // 10) if quick else (_FEW, _MANY)
    counts: dict[str, float] = {}
    for names in (_METADATA, _DATA, _QUEUED, (_CREATE_AND_WRITE,)):
        before = 0.0
        for last in range(1, len(names) + 1):
            slope = (_count(valgrind, names[:last], many) - _count(valgrind, names[:last], few)) / (many - few)
            counts.setdefault(names[last - 1], slope - before)
            before = slope
    counts[SMALL] = counts.pop(_CREATE_AND_WRITE) + counts["file-remove"]
    return counts


def name_of(work: Work, operation: str) -> str:
    """Return the key of an operation's count. Rewrites count as writes."""
    if work.kind != "data":
        return operation
    counted = "read" if operation == "read" else "write"
    return f"{counted}, queued" if work.depth > 1 else counted


def table(counts: Mapping[str, float]) -> str:
    lines = ["| operation | instructions |", "| --- | ---: |"]
    lines += [f"| {name} | {count:,.0f} |" for name, count in counts.items()]
    return "\n".join(lines) + "\n"


def _count(valgrind: str, names: Sequence[str], amount: int) -> int:
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="strakes-bench-") as place:
        (Path(place) / ".strakes-marker").touch()
        plan = {
            "schema": 1,
            "seed": 1,
            "team": {"ranks": 1},
            "phases": [_phase(name, number, amount) for number, name in enumerate(names)],
        }
        # "keep" leaves the files at the end, because their removal must not be counted.
        message = {
            "type": "plan",
            "version": 1,
            "id": "p",
            "directory": place,
            "plan": plan,
            "limit_s": 600,
            "keep": True,
        }
        counts = Path(place) / "counts"
        command = [valgrind, "--tool=callgrind", f"--callgrind-out-file={counts}", str(find_engine())]
        done = subprocess.run(command, input=json.dumps(message) + "\n", capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"bench: {' '.join(command)}: {done.stderr.strip()}\n{done.stdout.strip()}")
        match = _SUMMARY.search(counts.read_text())
        if match is None:
            raise SystemExit(f"bench: callgrind gave no count: {output_of([valgrind, '--version']).strip()}")
        return int(match.group(1))


def _phase(name: str, number: int, amount: int) -> dict[str, Any]:
    operation, _, how = name.partition(", ")
    common = {"name": f"p{number}", "operation": operation}
    if operation not in ("write", "read"):
        bytes_of_file = {"file_bytes": 4096} if how else {}
        return {"kind": "metadata", **common, "directory": "unique", "items": amount, **bytes_of_file}
    data: dict[str, Any] = {"kind": "transfer", **common, "layout": "file-per-process", "access": "segmented"}
    data |= {"transfer_bytes": 4096, "block_bytes": 4096, "segments": amount, "verify": how == "verified"}
    data["pattern"] = "stamped" if how in ("stamped", "verified") else "once"
    return data | ({"backend": "uring", "queue_depth": 32} if how == "queued" else {})
