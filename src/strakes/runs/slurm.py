"""Engine whose ranks are started by srun on the nodes of the current Slurm allocation."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.runs.launch import Launch
from strakes.runs.messages import Hello
from strakes.runs.mpi import MpiEngine
from strakes.runs.mpi_family import IN_ROOT, chosen_pmi, find_mpi_engine, pmi_of

# Message of srun about a failed task. The reason "Terminated" means that srun itself killed the task.
_NAMED = re.compile(r"srun: error: (?P<host>[^\s:]{1,253}): tasks? (?P<rank>\d{1,9})(?!\d)[^\s:]*: (?!Terminated)")
_NODE = re.compile(r"srun: error: Node failure on (?P<host>[\w.-]+)")  # Message of srun about a failed node.


@dataclass(frozen=True)
class Allocation:
    """The Slurm job in which strakes runs. ``tasks``: number of tasks that the job requested, or None."""

    nodes: int
    tasks: int | None
    cpus_per_node: int


def allocation(variables: Mapping[str, str] = os.environ) -> Allocation:
    """Return the allocation of this process.

    Raises BadInputError outside an allocation, EnvironmentLacksError without Slurm.

    >>> job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "3", "SLURM_NTASKS": "6"}
    >>> allocation({**job, "SLURM_JOB_CPUS_PER_NODE": "8(x2),4"})
    Allocation(nodes=3, tasks=6, cpus_per_node=4)
    """
    if not variables.get("SLURM_JOB_ID"):
        find_srun()
        what = "--launcher slurm works only inside a Slurm allocation"
        remedy = "Get an allocation first: salloc -N 4 strakes …, or sbatch -N 4 --wrap 'exec strakes …'"
        raise BadInputError(what, why="SLURM_JOB_ID is not set", remedy=remedy)
    cpus = re.findall(r"(\d+)(?:\(x\d+\))?", variables.get("SLURM_JOB_CPUS_PER_NODE", ""))
    tasks, nodes = variables.get("SLURM_NTASKS", ""), variables.get("SLURM_JOB_NUM_NODES") or "1"
    if not all(re.fullmatch(r"[1-9]\d{0,6}", text) for text in (nodes, tasks or "1", *cpus)):
        why = f"SLURM_JOB_NUM_NODES={nodes[:80]}, SLURM_NTASKS={tasks[:80]}, SLURM_JOB_CPUS_PER_NODE={cpus[:9]}"
        raise BadInputError("variables of the Slurm job are not numbers of at most seven digits", why=why)
    return Allocation(int(nodes), int(tasks) if tasks else None, min(map(int, cpus), default=1))


class SlurmEngine(MpiEngine):
    """An engine whose ranks srun starts. ``launch.options``: further arguments for srun."""

    _gone: Mapping[str, str | int] = {}

    def command(self) -> Sequence[str]:
        self._gone = {}
        srun = find_srun()
        allocation()
        engine = self._executable or find_mpi_engine()
        options = self._launch.options
        start = [*placed(srun, self._launch), *_language(engine, options), *options]
        return [*start, *IN_ROOT, str(engine), "--expect-ranks", str(self._ranks)]

    @property
    def remedy(self) -> str:
        spoken = pmi_of(self._executable or find_mpi_engine())
        pmi = f" The engine's MPI needs {spoken}; srun --mpi=list shows what this Slurm supports." if spoken else ""
        return f"Check that srun can start a program on these nodes: srun hostname.{pmi}"

    def _lost(self, hello: Hello | None) -> Mapping[str, str | int]:
        return self._gone or super()._lost(hello)

    def _hear(self, line: str) -> None:
        named = _NAMED.match(line)
        if not self._gone and named is not None:
            self._gone = {"host": named["host"], "rank": int(named["rank"])}
        elif not self._gone and (node := _NODE.match(line)) is not None:
            self._gone = {"host": node["host"]}
        super()._hear(line)


def find_srun() -> Path:
    """Return the path of srun. Raises EnvironmentLacksError if it is not on PATH."""
    found = shutil.which("srun")
    if found is None:
        remedy = "Load the Slurm client of your site."
        raise EnvironmentLacksError("srun is missing", where="PATH", why="no srun is on PATH", remedy=remedy)
    return Path(found)


def placed(srun: Path, launch: Launch) -> list[str]:
    """Return the srun command. Its options give the input to the first task only, and end all tasks if one fails.

    >>> " ".join(placed(Path("srun"), Launch("slurm", 8, ("n1", "n2"), 4)))
    'srun --input=0 --kill-on-bad-exit=1 --ntasks=8 --ntasks-per-node=4 --nodes=2 --nodelist=n1,n2'
    """
    words = [str(srun), "--input=0", "--kill-on-bad-exit=1", f"--ntasks={launch.ranks or 1}"]
    if launch.ranks_per_node is not None:
        words.append(f"--ntasks-per-node={launch.ranks_per_node}")
    hosts = launch.hosts
    return [*words, f"--nodes={len(hosts)}", f"--nodelist={','.join(hosts)}"] if hosts else words


def _language(engine: Path, options: Sequence[str]) -> list[str]:
    spoken, chosen = pmi_of(engine), chosen_pmi(options)
    # Slurm's names of PMI interfaces may include a version, such as pmix_v4.
    if spoken is None or chosen == spoken or chosen.startswith(f"{spoken}_"):
        return []
    if chosen:
        what = f"srun is set to the PMI interface {chosen}, but the engine's MPI library uses {spoken}"
        remedy = f"Use --mpi={spoken}, or leave out --mpi so that strakes chooses."
        raise BadInputError(what, where=str(engine), why="each process would run on its own, or fail", remedy=remedy)
    return [f"--mpi={spoken}"]
