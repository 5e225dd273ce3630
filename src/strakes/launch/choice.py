"""Which launcher, with how many ranks, and where: what the command line says, as a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from strakes.launch.engine import Engine

LAUNCHERS = ("local", "mpi")


@dataclass(frozen=True)
class Launch:
    """``ranks`` is the most that a plan can have; None: as many as it wants under ``local``, this machine's processors under ``mpi``."""

    launcher: Literal["local", "mpi"] = "local"
    ranks: int | None = None
    hosts: tuple[str, ...] = ()
    ranks_per_node: int | None = None
    mpiexec: Path | None = None


LOCAL = Launch()


def engine_for(launch: Launch, log: Callable[[str], None] | None = None) -> Engine:
    """An engine that is not started yet. The registry of launchers."""
    if launch.launcher == "mpi":
        from strakes.launch.mpi import MpiEngine

        return MpiEngine(processes(launch), launch.hosts, launch.ranks_per_node, launch.mpiexec, log=log)
    from strakes.launch.local import LocalEngine

    return LocalEngine(log=log)


def processes(launch: Launch) -> int:
    """How many processes ``mpi`` starts.

    >>> processes(Launch("mpi", hosts=("a", "b"), ranks_per_node=3)), processes(Launch("mpi", ranks=5))
    (6, 5)
    """
    import os

    if launch.ranks is not None:
        return launch.ranks
    per_node = launch.ranks_per_node or max(2, len(os.sched_getaffinity(0)))
    return per_node * max(1, len(launch.hosts))
