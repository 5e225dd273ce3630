"""Instructions of the engine in user space for each operation, counted by callgrind: the same whatever else the machine
does.

The slope over the amount: what starting, opening and reporting cost is the same for both amounts. A phase's own is what
it adds to a plan.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.contenders import output_of
from strakes.launch.local import LocalEngine, find_engine

PAGE = Path(__file__).parents[1] / "docs" / "instructions.md"
_FEW, _MANY = 2_000, 102_000  # what watching and reporting cost by time is small beside the difference
_SUMMARY = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
# In the order in which they can follow each other in a plan.
_METADATA = (
    "file-create",
    "file-stat",
    "file-open-close",
    "file-rename",
    "file-remove",
    "dir-create",
    "dir-stat",
    "dir-remove",
)
_DATA = ("write, stamped", "read", "read, verified")


def per_operation() -> dict[str, float]:
    """One rank, one directory on a tmpfs; transfers of 4 KiB."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SystemExit("bench: valgrind is missing: apt install valgrind")
    counts = {}
    for names in (_METADATA, _DATA):
        before = 0.0
        for last in range(1, len(names) + 1):
            slope = (_count(valgrind, names[:last], _MANY) - _count(valgrind, names[:last], _FEW)) / (_MANY - _FEW)
            counts[names[last - 1]] = slope - before
            before = slope
    return counts


def render(counts: Mapping[str, float], earlier: str) -> str:
    """Return the page: a column for this version beside those of earlier ones."""
    with LocalEngine() as engine:
        version = engine.start().engine
    columns: dict[str, dict[str, str]] = {}
    header = [
        cell.strip()
        for cell in next((line for line in earlier.splitlines() if line.startswith("| operation")), "").split("|")[2:-1]
    ]
    for line in earlier.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == len(header) + 1 and cells[0] in counts:
            for release, cell in zip(header, cells[1:], strict=True):
                columns.setdefault(release, {})[cells[0]] = cell
    columns[version] = {name: f"{count:,.0f}" for name, count in counts.items()}
    lines = [
        "# Instructions per operation",
        "",
        "What the engine itself executes in user space for one operation: callgrind's count, the slope over the number",
        "of operations, one rank, transfers of 4 KiB. It hardly depends on the machine's load, so a regression shows",
        "whatever else runs. `./dev bench --instructions` counts again and fills the column of its version;",
        "differences below 20 are noise.",
        f"Last: {datetime.now(UTC):%Y-%m-%d}, {os.uname().machine}.",
        "",
        "| operation | " + " | ".join(columns) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    lines += [
        f"| {name} | " + " | ".join(column.get(name, "") for column in columns.values()) + " |" for name in counts
    ]
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
        # Kept, so that removing everything in the end does not count.
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
    if name in _METADATA:
        return {"kind": "metadata", "name": f"p{number}", "operation": name, "directory": "unique", "items": amount}
    operation, _, how = name.partition(", ")
    data = {
        "kind": "transfer",
        "name": f"p{number}",
        "operation": operation,
        "layout": "file-per-process",
        "access": "segmented",
    }
    return {**data, "transfer_bytes": 4096, "block_bytes": 4096, "segments": amount, "verify": how == "verified"}
