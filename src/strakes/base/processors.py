"""Use of this machine's processors, from /proc/stat."""

from __future__ import annotations

import time
from pathlib import Path

# Long enough for 30 of the kernel's ticks of 10 ms on one processor, too short for anybody to notice.
_LOOK_S = 0.3


def busy_share(stat: Path = Path("/proc/stat"), look_s: float = _LOOK_S) -> float | None:
    """Return the share of all processors' time that was spent on programs during a short look; None if unknown.

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
    """Return busy ticks and all ticks; waiting for devices is not being busy."""
    try:
        user, nice, system, idle, iowait, *rest = map(int, stat.read_text().split("\n", 1)[0].split()[1:9])
    except (OSError, ValueError):
        return None
    busy = user + nice + system + sum(rest)
    return busy, busy + idle + iowait
