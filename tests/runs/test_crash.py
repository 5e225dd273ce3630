"""Writers killed at random moments: every visit they reported as written is stored, and the run can be resumed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strakes.runs.store import Store

# Reports each visit after writing it. It often finishes and resumes runs, so that a kill can hit any kind of write.
WRITER = """
import sys
from pathlib import Path
from strakes.model.cell import Cell
from strakes.runs.store import Store
from strakes.runs.records import CellDropped, Visit

store = Store(Path(sys.argv[1]))
def begin():
    return store.create("survey", "crash", Path(sys.argv[2]), {"fingerprint": "f"}, {"host": "h"})
if sys.argv[3] == "new":
    writer = begin()
else:
    writer = store.resume("f")
print("begun", writer.id, flush=True)
number = len(writer.run.visits)
while True:
    writer.append_visit(Visit(number, kept="x" * (number * 977 % 20000)))
    writer.append_event(CellDropped(str(number), "x" * number))
    print("visit", number, flush=True)
    number += 1
    if number % 7 == 0:
        writer.write_cells([Cell("s", str(cell), {}) for cell in range(number)])
        writer.run.write("findings.json", {"visits": number})
    if number % 11 == 0:
        writer.finish("interrupted")
        writer = store.resume("f")
"""


def run_and_kill(store: Store, measured: Path, how: str, moment: random.Random) -> int:
    """Start a writer and kill it after up to 0.25 s; return the last visit that it reported as written, or -1."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(store.root), str(measured), how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith("begun"), process.stderr.read()
    time.sleep(moment.uniform(0, 0.25))
    process.send_signal(signal.SIGKILL)
    said, errors = process.communicate()
    assert not errors
    numbers = [int(line.split()[1]) for line in said.splitlines() if line.startswith("visit") and line.split()[1:]]
    return max(numbers, default=-1)


def test_a_writer_killed_at_any_moment_loses_no_visit_and_is_resumed(store: Store, measured: Path) -> None:
    moment = random.Random(20260101)
    said = run_and_kill(store, measured, "new", moment)
    for _ in range(12):
        (summary,) = store.runs()
        assert summary.status == "interrupted"
        run = store.open("latest")
        visits = [visit.visit for visit in run.visits]
        assert visits == list(range(len(visits))) and len(visits) >= said + 1
        assert run.manifest["options"] == {"fingerprint": "f"}
        assert run.findings is None or run.findings["visits"] <= len(visits)
        _ = run.cells, run.events
        said = max(said, run_and_kill(store, measured, "again", moment))


@pytest.mark.parametrize("seed", range(6))
def test_a_writer_killed_at_its_start_leaves_a_usable_store(store: Store, measured: Path, seed: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(store.root), str(measured), "new"], stdout=subprocess.DEVNULL
    )
    runs = store.root / "runs"
    while not (runs.is_dir() and list(runs.iterdir())):
        assert process.poll() is None
        time.sleep(0.0005)
    time.sleep(seed * 0.002)
    process.kill()
    process.wait()
    for run in store.runs():
        assert run.status == "interrupted" and store.open(run.id).manifest["id"] == run.id
    with store.create("survey", "next", measured, {}, {}) as writer:
        writer.finish("complete")
    assert store.open("latest").id == writer.id
