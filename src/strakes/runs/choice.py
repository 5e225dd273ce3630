"""Choose the engine for a launcher, and the number of its processes."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from strakes.base.errors import BadInputError
from strakes.runs.launch import MOST_RANKS, Launch

if TYPE_CHECKING:
    from strakes.runs.engine import Engine


def engine_for(launch: Launch) -> Engine:
    """Return an engine for a launcher, without starting the engine's process."""
    if launch.launcher == "local":
        from strakes.runs.engine import LocalEngine

        return LocalEngine()
    from strakes.runs.mpi import MpiEngine
    from strakes.runs.slurm import SlurmEngine
    from strakes.runs.template import TemplateEngine

    engines = {"mpi": MpiEngine, "slurm": SlurmEngine, "command": TemplateEngine}
    return engines[launch.launcher](replace(launch, ranks=processes(launch)))


def with_launcher(remedy: str) -> str:
    """Return ``remedy`` with the build command after "build strakes again". An installed wheel has no such command."""
    from strakes.runs.mpi_family import BUILD_AGAIN

    return remedy.replace("build strakes again", f"build strakes again: {BUILD_AGAIN}") if BUILD_AGAIN else remedy


def processes(launch: Launch) -> int:
    """Return the number of processes to start with mpiexec, srun or another launcher.

    The default is the number of tasks of a Slurm job, else one process per processor, but at least two.

    >>> processes(Launch("mpi", hosts=("a", "b"), ranks_per_node=3)), processes(Launch("mpi", ranks=5))
    (6, 5)
    """
    if launch.ranks is not None:
        return launch.ranks
    each, hosts = launch.ranks_per_node, len(launch.hosts)
    ranks = (each or max(2, len(os.sched_getaffinity(0)))) * max(1, hosts)
    if launch.launcher == "slurm":
        from strakes.runs.slurm import allocation

        job = allocation()
        ranks = (each or job.cpus_per_node) * (hosts or job.nodes)
        if each is None:
            ranks = job.tasks if job.tasks is not None and not hosts else max(2, ranks)
    if ranks > MOST_RANKS:
        raise BadInputError(f"the default number of ranks is above {MOST_RANKS}", remedy="Give a number: -n N.")
    return ranks
