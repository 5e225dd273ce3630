"""Command-line options for starting an engine: launcher, ranks and hosts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Launcher = Literal["local", "mpi", "slurm", "command"]
LAUNCHERS: tuple[Launcher, ...] = ("local", "mpi", "slurm", "command")
MOST_RANKS = 65536  # as in schemas/plan.json


@dataclass(frozen=True)
class Launch:
    """How to start an engine: launcher, number of ranks, and hosts.

    ``ranks``: maximum number of ranks of a plan. ``options``: further arguments for mpiexec or srun. ``command``:
    template of the start command, if ``launcher`` is "command".
    """

    launcher: Launcher = "local"
    ranks: int | None = None
    hosts: tuple[str, ...] = ()
    ranks_per_node: int | None = None
    mpiexec: Path | None = None
    options: tuple[str, ...] = ()
    command: str = ""


LOCAL = Launch()
