"""The memory of this machine, from /proc/meminfo."""

from __future__ import annotations

from pathlib import Path


def memory_sizes(meminfo: Path = Path("/proc/meminfo")) -> dict[str, int]:
    """Return the bytes of each kind of memory (MemTotal, MemAvailable, ...), or {} for an unreadable file."""
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return {}
    rows = (line.split() for line in lines)
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3}
