"""Which engine for MPI belongs to which mpiexec: processes that no MPI joins would each measure alone."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

from strakes.errors import EnvironmentLacksError
from strakes.launch.local import find_engine

Family = Literal["mpich", "openmpi"]
"""MPICH and what descends from it (Intel MPI, Cray MPI, MVAPICH) start processes in one way, Open MPI in another."""

_CHECKOUT = Path(__file__).resolve().parents[3]
_BUILD = "build it for your site's MPI (docs/guide/mpi.md)."
# What sets up a checkout brings MPICH along; elsewhere it is pip's to install.
GET_MPI = (
    f"run {_CHECKOUT}/dev setup, which installs MPICH and builds the engine for it, or {_BUILD}"
    if (_CHECKOUT / "dev").is_file()
    else f"run pip install 'mpich>=5' in the environment of strakes and install strakes again, or {_BUILD}"
)
_NAMES: dict[Family, str] = {"mpich": "MPICH, Intel MPI or another relative of MPICH", "openmpi": "Open MPI"}
_OPEN_MPI = ("Open MPI", "OpenRTE", "PRRTE")
_ANSWER_S = 10.0


def find_mpi_engine(mpiexec: Path | None = None) -> Path:
    """Return the engine for ``mpiexec``: $STRAKES_ENGINE_MPI, else the one beside the local engine that belongs to it.

    The site's own is taken with an mpiexec from outside the environment strakes runs in. Without ``mpiexec``: the first
    there is. Raises EnvironmentLacksError where there is none, and where none belongs to ``mpiexec``.
    """
    chosen = os.environ.get("STRAKES_ENGINE_MPI")
    if chosen:
        candidates = [Path(chosen)]
    else:
        abi, site = mpi_engines()
        candidates = [abi, site] if mpiexec is None or mpiexec.parent == Path(sys.executable).parent else [site, abi]
    there = [path for path in candidates if path.is_file()]
    if not there:
        remedy = "Unset STRAKES_ENGINE_MPI, or set it to the path of the engine." if chosen else GET_MPI
        why = "no such file" if chosen else "strakes was installed without MPI"
        raise EnvironmentLacksError("the engine for MPI is missing", where=str(candidates[0]), why=why, remedy=remedy)
    if mpiexec is None:
        return there[0]
    wanted = family_of_mpiexec(mpiexec)
    for path in there:
        if family_of_engine(path) == wanted:
            return path
    raise EnvironmentLacksError(
        "no engine fits this mpiexec",
        where=str(mpiexec),
        why=f"it belongs to {_NAMES[wanted]}; the engines are "
        f"{' and '.join(f'{path} ({library_of_engine(path)})' for path in there)}",
        remedy=_remedy(wanted, chosen),
    )


def mpi_engines() -> tuple[Path, Path]:
    """Where the engine of the standard ABI and that of the site's MPI are, if they are."""
    engine = find_engine()
    return engine.with_name("strakes-engine-mpi"), engine.with_name("strakes-engine-mpi-site")


@functools.cache
def family_of_mpiexec(mpiexec: Path) -> Family:
    """By the name behind its links, else by what it says of itself."""
    if mpiexec.resolve().name in ("orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi"):
        return "openmpi"
    return "openmpi" if any(name in _answer(mpiexec, "--version") for name in _OPEN_MPI) else "mpich"


def family_of_engine(engine: Path) -> Family:
    """By the library it is linked with."""
    return "openmpi" if "Open MPI" in library_of_engine(engine) else "mpich"


@functools.cache
def library_of_engine(engine: Path) -> str:
    """Return what its MPI calls itself, without starting it; empty where it does not say."""
    return _answer(engine, "--mpi").strip()


def _remedy(wanted: Family, chosen: str | None) -> str:
    if chosen:
        return "Unset STRAKES_ENGINE_MPI, or choose the mpiexec that belongs to that engine with --mpiexec."
    if wanted == "openmpi":
        return "Build strakes for the site's MPI (docs/guide/mpi.md), or choose another mpiexec with --mpiexec."
    return f"Choose the mpiexec that belongs to the engine with --mpiexec, or {GET_MPI}"


def _answer(program: Path, question: str) -> str:
    try:
        return subprocess.run(
            [program, question],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_S,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
