"""The present speed of the client: times a fixed amount of work without any file system.

A shared machine may be 25 % slower for a minute. Memory copies and system calls are timed with every visit, so that
``compare`` does not mistake a slower client for a slower file system.
"""

from __future__ import annotations

import os
import time

from strakes.base.units import KIB

_COPIED_BYTES = 256 * KIB
_COPIES = 50
_CALLS = 3000


def time_client() -> float:
    """Return the duration of the work in seconds, a few milliseconds.

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
