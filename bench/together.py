"""Restrict a program and the kernel threads that serve it to one processor.

A kernel thread serves the requests to a loop device. In a virtual machine, waking that thread on another processor
takes 5 to 50 us at random, more than the differences between programs. On the same processor, a context switch
suffices, which takes equally long for every program.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OF_THREADS = Path("/sys/devices/virtual/workqueue/cpumask")


@contextmanager
def together(threads: Path = _OF_THREADS) -> Iterator[int]:
    """Restrict this process, its children and the kernel's unbound work queues to a processor; yield its number."""
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
