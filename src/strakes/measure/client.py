"""How fast the client itself is just now: a fixed piece of work that touches no file system.

A shared machine may be a quarter slower for a minute. Beside every visit it is measured what that does to memory and
system calls, so that ``compare`` does not take a slower client for a slower file system.
"""

from __future__ import annotations

import os
import time

from strakes.units import KIB

_COPIED_BYTES = 256 * KIB
_COPIES = 50
_CALLS = 3000


def time_client() -> float:
    """Time the work: some milliseconds.

    >>> 0 < time_client() < 10
    True
    """
    source, target = bytearray(_COPIED_BYTES), bytearray(_COPIED_BYTES)
    started = time.perf_counter()
    for _ in range(_COPIES):
        target[:] = source
    for _ in range(_CALLS):
        os.getppid()
    return time.perf_counter() - started
