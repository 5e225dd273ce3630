"""The launcher, the number of ranks and the hosts that the command line selects, as a frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Launcher = Literal["local", "mpi", "slurm", "command"]
LAUNCHERS: tuple[Launcher, ...] = ("local", "mpi", "slurm", "command")


@dataclass(frozen=True)
class Launch:
    """How to start engines.

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
