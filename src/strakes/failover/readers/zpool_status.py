"""Read ``zpool status`` output: the pools and their disks."""

from __future__ import annotations

import re

_DISK = re.compile(r"\s+([^\s:]+)\s+(?:ONLINE|DEGRADED|FAULTED|OFFLINE|UNAVAIL|REMOVED|AVAIL|INUSE)\b")
# Rows that group disks; the first row of a pool has its name.
_GROUPS = re.compile(r"(?:mirror|raidz\d?|draid\d?|spare|replacing)(?:-\d+|:\S+)?|logs|cache|spares|special|dedup")


def read_pools(text: str) -> dict[str, tuple[str, ...]]:
    """Return the disks of each pool by its name.

    >>> read_pools("  pool: p\\nconfig:\\n\\n\\tp  ONLINE\\n\\t  mirror-0  ONLINE\\n\\t    sda  ONLINE")
    {'p': ('sda',)}
    """
    pools: dict[str, tuple[str, ...]] = {}
    name = ""
    for line in text.splitlines():
        if head := re.match(r"\s*pool:\s+(\S+)", line):
            name = head[1]
            pools[name] = ()
        elif name and (row := _DISK.match(line)) and row[1] != name and not _GROUPS.fullmatch(row[1]):
            pools[name] = (*pools[name], row[1])
    return pools
