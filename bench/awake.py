"""Processors that do not sleep: on a virtual machine the time until one wakes can be longer than what is measured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

# Runs only where nothing else wants to (sched(7)): whoever becomes ready takes its processor at once. Ends with the
# bench.
_SPIN = """\
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
print(flush=True)
while True:
    pass
"""


@contextmanager
def awake() -> Iterator[None]:
    """Keep every processor that this process may use busy with work that gives way to any other."""
    with ExitStack() as stack:
        for processor in sorted(os.sched_getaffinity(0)):
            spinning = subprocess.Popen([sys.executable, "-I", "-c", _SPIN, str(processor)], stdout=subprocess.PIPE)
            stack.enter_context(spinning)
            stack.callback(spinning.kill)
            assert spinning.stdout is not None
            spinning.stdout.readline()
        yield
