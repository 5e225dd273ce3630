"""The list of runs agrees with the contents of the store."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from strakes.runs.store import Store


def test_names_that_are_not_utf_8_are_kept_as_they_are(store: Store, measured: Path) -> None:
    """A path that is not UTF-8, and a lone surrogate, which only an imported file can contain."""
    target = measured / os.fsdecode(b"caf\xe9")
    target.mkdir()
    with store.create("survey", "lone \ud800", target, {}, {}) as writer:
        writer.finish("complete")
    for _ in range(2):
        (run,) = store.runs()
        assert (os.fsencode(run.target), run.name) == (os.fsencode(target), "lone \ud800")
    shutil.rmtree(run.path)
    assert store.runs() == []


def test_writers_at_the_same_time_lose_nothing(store: Store, measured: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from strakes.runs.store import Store\n"
        "for number in range(10):\n"
        "    with Store(Path(sys.argv[1])).create('study', f'w{sys.argv[3]}', Path(sys.argv[2]), {}, {}) as writer:\n"
        "        writer.append_visit({'visit': number}); writer.finish('complete')\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(store.root), str(measured), str(number)])
        for number in range(3)
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    runs = store.runs()
    assert len(runs) == 30
    assert {run.status for run in runs} == {"complete"}
