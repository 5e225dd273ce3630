"""Processor time and memory of the watch, including its child processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from strakes.processes import descendants_of

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class OwnLoad:
    """``processor_s``: total since the start. ``memory_bytes``: proportional set size."""

    processor_s: float
    memory_bytes: float


def own_load() -> OwnLoad:
    """Return the load of this process and of its running and ended children.

    >>> load = own_load()
    >>> load.processor_s > 0 and load.memory_bytes > 0
    True
    """
    times = os.times()
    used_s = times.user + times.system + times.children_user + times.children_system
    living = list(_living(descendants_of(os.getpid())))
    own_bytes = _memory_bytes("self")
    return OwnLoad(
        used_s + sum(load.processor_s for load in living), own_bytes + sum(load.memory_bytes for load in living)
    )


def _memory_bytes(process: int | str) -> float:
    """Return the proportional set size (Pss of proc_pid_smaps(5)), or the resident set size if the kernel has none."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024.0
    return float(int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE_BYTES)


def _living(processes: tuple[int, ...]) -> Iterator[OwnLoad]:
    for process in processes:
        # It may end meanwhile.
        with suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks = sum(map(int, fields[11:15]))
            yield OwnLoad(ticks / _TICKS_A_SECOND, _memory_bytes(process))
