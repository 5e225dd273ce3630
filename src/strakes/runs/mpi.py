"""Engine whose ranks are MPI processes, started by mpiexec on one or several hosts."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from strakes.base.errors import EnvironmentLacksError
from strakes.runs.engine import Engine
from strakes.runs.launch import MOST_RANKS, Launch
from strakes.runs.messages import Hello, PlanResult
from strakes.runs.mpi_family import GET_MPI, IN_ROOT, family_of_mpiexec, find_mpi_engine
from strakes.runs.process import EngineProcess

# Message about a failed process. MPICH's launcher (Hydra) prints it, or strakes-engine-mpi if a signal ended a rank.
_NAMED = re.compile(r"PID (?P<pid>\d+) RUNNING AT (?P<host>\S{1,253})")
# Maximum seconds until the engine's first message: base and addition per rank. MPI starts many ranks slowly.
_HELLO_S = 30.0
_HELLO_PER_RANK_S = 0.3
# Maximum seconds for an engine to exit after its last message.
_LAST_BREATH_S = 1.0
_TICK_S = 0.02
_SILENCE = "STRAKES_SILENCE_S"
_PROCESS_NAME = "strakes-engine-mpi"[:15]  # The kernel truncates names in /proc/PID/stat to 15 characters.


def find_mpiexec(chosen: Path | None = None) -> Path:
    """Return the path of ``chosen``, else of the mpiexec in the directory of this Python, else of one on PATH.

    Raises EnvironmentLacksError if none is found.
    """
    if chosen is not None:
        program = shutil.which(str(chosen))
        if program is None:
            what, remedy = "this mpiexec does not exist", "Give the path of a program: --mpiexec FILE"
            raise EnvironmentLacksError(what, where=str(chosen), remedy=remedy)
        return Path(program)
    own = Path(sys.executable).parent
    program = shutil.which("mpiexec", path=f"{own}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    if program is None:
        raise EnvironmentLacksError("mpiexec is missing", where="PATH", why="no mpiexec is on PATH", remedy=GET_MPI)
    return Path(program)


def _silence_s(chosen: str) -> float:
    """Return STRAKES_SILENCE_S, limited to the range from 3 to 3,600 seconds, or 8 seconds if it is not a number.

    >>> _silence_s(""), _silence_s("60"), _silence_s("1"), _silence_s("soon")
    (8.0, 60.0, 3.0, 8.0)
    """
    return float(min(max(int(chosen), 3), 3600)) if re.fullmatch("[0-9]{1,9}", chosen) else 8.0


class MpiEngine(Engine):
    """An engine with one process for each of ``launch.ranks`` ranks. Plans can use fewer ranks."""

    def __init__(self, launch: Launch, executable: Path | None = None) -> None:
        super().__init__()
        self._named: list[tuple[str, str]] = []
        self._launch, self._ranks, self._executable = launch, launch.ranks or 1, executable

    def command(self) -> Sequence[str]:
        self._named = []
        mpiexec = find_mpiexec(self._launch.mpiexec)
        engine = self._executable or find_mpi_engine(mpiexec)
        start = [*placed(mpiexec, self._launch), *self._launch.options]
        return [*start, *IN_ROOT, str(engine), "--expect-ranks", str(self._ranks)]

    def patience_s(self) -> float:
        return _HELLO_S + _HELLO_PER_RANK_S * self._ranks

    @property
    def silence_s(self) -> float | None:
        return _silence_s(os.environ.get(_SILENCE, ""))

    @property
    def remedy(self) -> str:
        return "Check that mpiexec belongs to the MPI of strakes-engine-mpi and reaches the hosts. Is /dev/shm full?"

    def _lost(self, hello: Hello | None) -> Mapping[str, str | int]:
        if hello is None:
            return super()._lost(hello)
        # Ignore process ids that are not ranks, because some launchers report the id of a rank's parent.
        host, pid = next((one for one in self._named if " ".join(one) in hello.ranks), (hello.host, str(hello.pid)))
        return {"host": host, "rank": hello.ranks.get(f"{host} {pid}", 0)}

    def _all_gone(self, hello: Hello | None) -> bool:
        # Wait for the ranks to exit, then kill the others. A killed rank that remains waits for the file system.
        for kill in (False, True):
            if kill:
                self._kill_ranks(hello)
            deadline = time.monotonic() + _LAST_BREATH_S
            while self._ranks_here(hello) and time.monotonic() < deadline:
                time.sleep(_TICK_S)
        return not self._ranks_here(hello)

    def _ranks_here(self, hello: Hello | None) -> list[int]:
        ranks = (name.rpartition(" ") for name in (hello.ranks if hello else ()))
        return [int(pid) for host, _, pid in ranks if host == platform.node() and _is_rank(int(pid))]

    def _hear(self, line: str) -> None:
        if len(self._named) < MOST_RANKS and (named := _NAMED.search(line)) is not None:
            self._named.append((named["host"], named["pid"]))

    def _after_an_end_without_cleaning(
        self, process: EngineProcess, result: PlanResult, directory: Path, name: str
    ) -> PlanResult:
        # After the loss of one process, MPI ends all others, so no rank removes the files.
        hello = self._forget()
        if not process.end_input(_LAST_BREATH_S) or not self._all_gone(hello):
            return result
        left = self._sweep_all(directory, name)
        return replace(result, cleaned=not left, left=left)


def _is_rank(pid: int) -> bool:
    try:
        name, state = re.fullmatch(r"\d+ \((.*)\) (\S).*", Path(f"/proc/{pid}/stat").read_text(), re.DOTALL).groups()  # type: ignore[union-attr]
    except OSError:
        return False
    return name == _PROCESS_NAME and state not in "ZX"


def placed(mpiexec: Path, launch: Launch) -> list[str]:
    """Return the mpiexec command with its options, which differ between Hydra (MPICH, Intel MPI) and Open MPI.

    >>> placed(Path("/x/mpiexec"), Launch("mpi", 4, ("a", "b"), 2))
    ['/x/mpiexec', '-hosts', 'a,b', '-ppn', '2', '-n', '4']
    """
    ranks, hosts, ranks_per_node = launch.ranks or 1, launch.hosts, launch.ranks_per_node
    if family_of_mpiexec(mpiexec) == "openmpi":
        command = [str(mpiexec), "--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
        # Open MPI only passes the named variables to other hosts. The last two are from private_mpi_directory().
        command += ["-x", _SILENCE] if _SILENCE in os.environ else []
        command += ["-x", "STRAKES_SHARED_NAMES", "-x", "HWLOC_COMPONENTS"]
        if hosts:
            command += ["--host", ",".join(f"{host}:{ranks_per_node or -(-ranks // len(hosts))}" for host in hosts)]
        if ranks_per_node is not None:
            command += ["--map-by", f"ppr:{ranks_per_node}:node"]
        return [*command, "-n", str(ranks)]
    command = [str(mpiexec)]
    if hosts:
        command += ["-hosts", ",".join(hosts)]
    if ranks_per_node is not None or hosts:
        command += ["-ppn", str(ranks_per_node or -(-ranks // len(hosts)))]
    return [*command, "-n", str(ranks)]
