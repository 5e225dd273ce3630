"""One processor for a program and for the kernel's threads that serve it.

Whoever waits for a loop device waits for a thread of the kernel. On another processor it has to be woken there: on a
virtual machine that takes 5 to 50 us by chance, more than anything that programs differ in. On one processor it is a
switch to that thread, which takes the same time for everybody.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OF_THREADS = Path("/sys/devices/virtual/workqueue/cpumask")


@contextmanager
def together(threads: Path = _OF_THREADS) -> Iterator[int]:
    """Give the number of the processor that whatever is started meanwhile runs on, and the kernel's unbound threads."""
    allowed = os.sched_getaffinity(0)
    processor = min(allowed)
    mask = threads.read_text()
    os.sched_setaffinity(0, {processor})
    threads.write_text(f"{1 << processor:x}")
    try:
        yield processor
    finally:
        threads.write_text(mask)
        os.sched_setaffinity(0, allowed)
