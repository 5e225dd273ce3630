"""Use of this machine's processors by other programs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

# Sampling of running threads: duration in seconds, and number of samples (one per kernel tick of 10 ms).
_LOOK_S, _SAMPLES = 0.3, 30


class OtherPrograms(NamedTuple):
    """Load by other programs. ``share`` of processor time: 0 to 1. ``running``: mean number of running threads."""

    share: float
    running: float


def other_programs(proc: Path = Path("/proc"), look_s: float = _LOOK_S) -> OtherPrograms | None:
    """Return the load by other programs during ``look_s`` seconds, or None if it cannot be measured."""
    before = _ticks(proc / "stat")
    running = 0
    try:
        for _ in range(_SAMPLES):
            time.sleep(look_s / _SAMPLES)
            # The fourth field is running/all threads (proc_loadavg(5)). Subtract this thread.
            running += int((proc / "loadavg").read_text().split()[3].partition("/")[0]) - 1
    except (OSError, ValueError, IndexError):
        return None
    after = _ticks(proc / "stat")
    if before is None or after is None or after[1] <= before[1]:
        return None
    return OtherPrograms(max(0.0, (after[0] - before[0]) / (after[1] - before[1])), max(0.0, running / _SAMPLES))


def _ticks(stat: Path) -> tuple[int, int] | None:
    try:
        user, nice, system, idle, iowait, *rest = map(int, stat.read_text().split("\n", 1)[0].split()[1:9])
    except (OSError, ValueError):
        return None
    busy = user + nice + system + sum(rest)
    return busy, busy + idle + iowait
