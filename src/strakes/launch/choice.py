"""Which launcher, with how many ranks, and where: what the command line says, as a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from strakes.launch.engine import Engine

Launcher = Literal["local", "mpi", "slurm", "command"]
LAUNCHERS: tuple[Launcher, ...] = ("local", "mpi", "slurm", "command")


@dataclass(frozen=True)
class Launch:
    """How engines are started.

    ``ranks`` is the most that a plan can have; None: as many as it wants under ``local``, else what ``processes`` says.
    ``options``: further words for mpiexec or srun. ``command``: the template of another launcher.
    """

    launcher: Launcher = "local"
    ranks: int | None = None
    hosts: tuple[str, ...] = ()
    ranks_per_node: int | None = None
    mpiexec: Path | None = None
    options: tuple[str, ...] = ()
    command: str = ""


LOCAL = Launch()


def engine_for(launch: Launch, log: Callable[[str], None] | None = None) -> Engine:
    """Make an engine that is not started yet. The registry of launchers."""
    if launch.launcher == "mpi":
        from strakes.launch.mpi import MpiEngine

        return MpiEngine(
            processes(launch), launch.hosts, launch.ranks_per_node, launch.mpiexec, log=log, options=launch.options
        )
    if launch.launcher == "slurm":
        from strakes.launch.slurm import SlurmEngine

        return SlurmEngine(processes(launch), launch.hosts, launch.ranks_per_node, launch.options, log=log)
    if launch.launcher == "command":
        from strakes.launch.template import TemplateEngine

        return TemplateEngine(launch.command, processes(launch), launch.hosts, launch.ranks_per_node, log=log)
    from strakes.launch.local import LocalEngine

    return LocalEngine(log=log)


def processes(launch: Launch) -> int:
    """How many processes are started where ranks are processes.

    >>> processes(Launch("mpi", hosts=("a", "b"), ranks_per_node=3)), processes(Launch("mpi", ranks=5))
    (6, 5)
    """
    import os

    if launch.ranks is not None:
        return launch.ranks
    if launch.launcher == "slurm":
        from strakes.launch.slurm import tasks_in_allocation

        return tasks_in_allocation(launch.hosts, launch.ranks_per_node)
    per_node = launch.ranks_per_node or max(2, len(os.sched_getaffinity(0)))
    return per_node * max(1, len(launch.hosts))
