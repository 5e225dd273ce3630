"""Use of this machine's processors, from /proc/stat."""

from __future__ import annotations

import time
from pathlib import Path

# Sampling time in seconds: 30 kernel ticks of 10 ms, too short for a user to notice.
_LOOK_S = 0.3


def busy_share(stat: Path = Path("/proc/stat"), look_s: float = _LOOK_S) -> float | None:
    """Return the share of processor time (0 to 1) that programs used during ``look_s`` seconds; None if unknown.

    >>> 0 <= (busy_share(look_s=0.05) or 0.0) <= 1
    True
    """
    before = _ticks(stat)
    time.sleep(look_s)
    after = _ticks(stat)
    if before is None or after is None or after[1] <= before[1]:
        return None
    return max(0.0, (after[0] - before[0]) / (after[1] - before[1]))


def _ticks(stat: Path) -> tuple[int, int] | None:
    """Return the busy ticks and all ticks of the processors since boot; waiting for I/O does not count as busy."""
    try:
        user, nice, system, idle, iowait, *rest = map(int, stat.read_text().split("\n", 1)[0].split()[1:9])
    except (OSError, ValueError):
        return None
    busy = user + nice + system + sum(rest)
    return busy, busy + idle + iowait
