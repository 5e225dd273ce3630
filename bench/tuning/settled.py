"""Wait between repetitions until dirty data are written back and the devices are idle."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Sequence
from pathlib import Path

# Devices are idle after this many seconds without a request. Servers that delete in the background make shorter pauses.
_QUIET_S = 0.12
_LOOK_S = 0.03
# Maximum time to wait, in seconds: some servers are never idle.
PATIENCE_S = 1.0


def settle(directory: Path, devices: Sequence[str], statistics: Path = Path("/proc/diskstats")) -> float:
    """Wait until ``devices`` are idle. Return the waited seconds. ``devices``: names in the file ``statistics``."""
    began = time.monotonic()
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        ctypes.CDLL(None).syncfs(descriptor)
    finally:
        os.close(descriptor)
    since, before = time.monotonic(), _work(devices, statistics)
    while (now := time.monotonic()) - since < _QUIET_S and now - began < PATIENCE_S:
        time.sleep(_LOOK_S)
        seen = _work(devices, statistics)
        if seen != before or any(in_flight for _, in_flight in seen):
            since, before = time.monotonic(), seen
    return time.monotonic() - began


def _work(devices: Sequence[str], statistics: Path) -> list[tuple[int, int]]:
    counts = []
    for line in statistics.read_text(encoding="ascii").splitlines():
        words = line.split()
        if words[2] in devices:
            # Linux, Documentation/admin-guide/iostats.rst: fields 1 and 5 are completed reads and writes, field 9 is in
            # flight.
            counts.append((int(words[3]) + int(words[7]), int(words[11])))
    return counts
