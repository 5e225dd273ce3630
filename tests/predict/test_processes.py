"""Several processes do what one does, and none of them outlives the one that started them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strakes.predict.processes import map_in_processes

# Each value says on a line of its own which process has it, and waits for long.
_WAITING = """
import os, time
from strakes.predict.processes import map_in_processes

def wait(value):
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(60)

if __name__ == "__main__":
    map_in_processes(wait, range(10), 2)
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_results_are_in_the_order_of_the_values(processes: int) -> None:
    assert map_in_processes(abs, range(-12, 0), processes) == tuple(range(12, 0, -1))


def test_where_no_processes_can_be_started_one_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("/dev/shm")

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", refuse)
    assert map_in_processes(abs, [-1, -2], 2) == (1, 2)


def test_processes_end_with_one_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(_WAITING)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        started = [int(parent.stdout.readline()) for _ in range(2)]
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while any(map(_is_alive, started)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    # What nobody has waited for yet has ended, too.
    return state != "Z"
