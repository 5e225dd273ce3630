"""Commands left running by a killed process may still change a knob; they are recognised by their mark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from strakes.base.processes import commands_of, process_start

_KILLED = "from strakes.targets.command import run; print(flush=True); run(['sleep', '3'])"


def test_a_command_that_outlives_its_process_is_recognised_by_its_mark() -> None:
    with subprocess.Popen([sys.executable, "-c", _KILLED], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None and worker.stdout.readline()
        started = process_start(worker.pid)
        assert started is not None
        while not (left := commands_of(worker.pid, started)):
            time.sleep(0.01)
        worker.kill()
    assert commands_of(worker.pid, started) == left and commands_of(worker.pid, started + 1) == ()
    for number in left:
        os.kill(number, signal.SIGKILL)
    while commands_of(worker.pid, started):
        time.sleep(0.01)
