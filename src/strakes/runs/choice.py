"""Which launcher, with how many ranks, and where: what the command line says, as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from strakes.base.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from strakes.runs.engine import Engine

Launcher = Literal["local", "mpi", "slurm", "command"]
LAUNCHERS: tuple[Launcher, ...] = ("local", "mpi", "slurm", "command")


@dataclass(frozen=True)
class Launch:
    """The way to start engines.

    ``ranks``: largest number of ranks of a plan; None: no limit under ``local``, otherwise the value of ``processes``.
    ``options``: further arguments for mpiexec or srun. ``command``: the template of another launcher.
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
        from strakes.runs.mpi import MpiEngine

        team = processes(launch), launch.hosts, launch.ranks_per_node
        return MpiEngine(*team, launch.mpiexec, log=log, options=launch.options)
    if launch.launcher == "slurm":
        from strakes.runs.slurm import SlurmEngine

        return SlurmEngine(processes(launch), launch.hosts, launch.ranks_per_node, log=log, options=launch.options)
    if launch.launcher == "command":
        from strakes.runs.template import TemplateEngine

        return TemplateEngine(launch.command, processes(launch), launch.hosts, launch.ranks_per_node, log=log)
    from strakes.runs.engine import LocalEngine

    return LocalEngine(log=log)


def how_to_get(launcher: Launcher) -> str:
    """Return how to get what a launcher needs; empty where this machine has it."""
    from strakes.runs.mpi import find_mpiexec
    from strakes.runs.mpi_family import find_mpi_engine
    from strakes.runs.slurm import find_srun

    try:
        if launcher == "mpi":
            find_mpi_engine(find_mpiexec())
        elif launcher == "slurm":
            find_srun()
    except EnvironmentLacksError as error:
        return error.remedy
    return ""


def offer(launchers: Sequence[Launcher]) -> str:
    """Return the remedy to use one of the launchers, with instructions to install missing ones."""
    ways = {launcher: how_to_get(launcher) for launcher in launchers}
    there = [launcher for launcher, way in ways.items() if not way]
    return _and_missing([f"Add --launcher {' or '.join(there)}."] if there else [], ways)


def with_launcher(remedy: str) -> str:
    """Return an engine's remedy; where it names a launcher that this machine lacks, also how to get that."""
    return _and_missing([remedy], {each: how_to_get(each) for each in LAUNCHERS if f"--launcher {each}" in remedy})


def _and_missing(sentences: Sequence[str], ways: Mapping[Launcher, str]) -> str:
    lacking = [f"This machine lacks what --launcher {each} needs: {way}" for each, way in ways.items() if way]
    return " ".join([*sentences, *lacking])


def processes(launch: Launch) -> int:
    """How many processes are started where ranks are processes.

    >>> processes(Launch("mpi", hosts=("a", "b"), ranks_per_node=3)), processes(Launch("mpi", ranks=5))
    (6, 5)
    """
    import os

    if launch.ranks is not None:
        return launch.ranks
    if launch.launcher == "slurm":
        from strakes.runs.slurm import tasks_in_allocation

        return tasks_in_allocation(launch.hosts, launch.ranks_per_node)
    per_node = launch.ranks_per_node or max(2, len(os.sched_getaffinity(0)))
    return per_node * max(1, len(launch.hosts))
