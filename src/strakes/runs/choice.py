"""Choose the engine for a launcher, and explain how to install missing launchers."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from strakes.base.errors import EnvironmentLacksError
from strakes.runs.launch import LAUNCHERS, Launch, Launcher

if TYPE_CHECKING:
    from strakes.runs.engine import Engine


def engine_for(launch: Launch) -> Engine:
    """Return an engine for a launcher. Its process is not started yet."""
    if launch.launcher == "local":
        from strakes.runs.engine import LocalEngine

        return LocalEngine()
    from strakes.runs.mpi import MpiEngine
    from strakes.runs.slurm import SlurmEngine
    from strakes.runs.template import TemplateEngine

    engines = {"mpi": MpiEngine, "slurm": SlurmEngine, "command": TemplateEngine}
    return engines[launch.launcher](replace(launch, ranks=processes(launch)))


def _how_to_get(launcher: Launcher) -> str:
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


def with_launcher(remedy: str) -> str:
    """Add commands to a remedy: to build strakes again, and to install the launchers that the remedy names."""
    from strakes.runs.mpi_family import BUILD_AGAIN

    if BUILD_AGAIN:
        remedy = remedy.replace("build strakes again", f"build strakes again: {BUILD_AGAIN}")
    named = re.findall(r"\w+", remedy.partition("--launcher ")[2])
    ways = {each: way for each in LAUNCHERS if each in named and (way := _how_to_get(each))}
    return " ".join([remedy, *(f"This machine lacks what --launcher {each} needs: {ways[each]}" for each in ways)])


def processes(launch: Launch) -> int:
    """Return the number of processes to start with mpiexec, srun or another launcher.

    The default is the number of tasks of a Slurm job, else one process per processor, and at least two.

    >>> processes(Launch("mpi", hosts=("a", "b"), ranks_per_node=3)), processes(Launch("mpi", ranks=5))
    (6, 5)
    """
    if launch.ranks is not None:
        return launch.ranks
    if launch.launcher == "slurm":
        from strakes.runs.slurm import allocation

        job = allocation()
        nodes = len(launch.hosts) or job.nodes
        if launch.ranks_per_node is not None:
            return launch.ranks_per_node * nodes
        return job.tasks if job.tasks is not None and not launch.hosts else max(2, job.cpus_per_node * nodes)
    per_node = launch.ranks_per_node or max(2, len(os.sched_getaffinity(0)))
    return per_node * max(1, len(launch.hosts))
