"""The memory of this machine, and the use of its processors by other programs."""

from __future__ import annotations

import os
import time
from pathlib import Path

# Sampling of running threads: time between samples in seconds (one kernel tick), and number of samples.
_SAMPLE_S, _SAMPLES = 0.01, 30


def memory_sizes() -> dict[str, int]:
    """Return the bytes of each kind of memory (MemTotal, MemAvailable, ...), or {} without /proc/meminfo."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return {}
    rows = (line.split() for line in lines)
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3}


def load_average() -> list[float]:
    """Return the load averages of 1, 5 and 15 minutes, or [] if the system refuses the query."""
    try:
        return list(os.getloadavg())
    except OSError:
        return []


def other_programs() -> tuple[float, float] | None:
    """Return the load by other programs in the next 0.3 s, or None if it cannot be measured.

    The load is their share of the processor time (0 to 1), and their mean number of running threads.
    """
    running = 0
    try:
        before = _ticks()
        for _ in range(_SAMPLES):
            time.sleep(_SAMPLE_S)
            # The fourth field is running/all threads (proc_loadavg(5)). Subtract this thread.
            running += int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1
        busy, every = (after - earlier for after, earlier in zip(_ticks(), before, strict=True))
        return max(0.0, busy / every), max(0.0, running / _SAMPLES)
    except (OSError, ValueError, IndexError, ZeroDivisionError):
        return None


def _ticks() -> tuple[int, int]:
    user, nice, system, idle, iowait, *rest = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    busy = user + nice + system + sum(rest)
    return busy, busy + idle + iowait
