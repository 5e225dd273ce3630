"""Find the engine that fits an mpiexec, and the PMI interface of srun that fits an engine.

If launcher and engine do not match, every process runs as a separate job with one rank.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from strakes.base.errors import EnvironmentLacksError, StrakesError
from strakes.runs.engine import find_engine
from strakes.targets.command import CommandTimeout, run

Family = Literal["mpich", "openmpi"]
"""MPICH and its derivatives (Intel MPI, Cray MPI, MVAPICH) start processes in one way, Open MPI in another."""

_CHECKOUT = Path(__file__).resolve().parents[3]
_BUILD = "build it for your site's MPI (docs/guide/mpi.md)."
_PIP = f"{sys.executable} -m pip install" if find_spec("pip") else f"uv pip install --python {sys.executable}"
# Command that rebuilds the engine; "" for an installed wheel. ./strakes rebuilds it if strakes.stamp is missing.
BUILD_AGAIN = f"rm -f {sys.prefix}/strakes.stamp && {_CHECKOUT}/strakes doctor" if (_CHECKOUT / "dev").is_file() else ""
GET_MPI = (
    f"run {_PIP} 'mpich>=5' && {BUILD_AGAIN}, or {_BUILD}"
    if BUILD_AGAIN
    else f"install strakes from its source instead of a wheel, which has no engine for MPI, and {_BUILD}"
)
_NAMES: dict[Family, str] = {"mpich": "MPICH, Intel MPI or another relative of MPICH", "openmpi": "Open MPI"}
_OPEN_MPI = ("Open MPI", "OpenRTE", "PRRTE")

Pmi = Literal["pmi2", "pmix"]

_LDD_S = 10.0
_OPEN_MPI_FILES = re.compile(r"\blib(pmix|open-pal|open-rte|prrte)\.so")
_MPICH = re.compile(r"\blibmpi(_abi|ch|cxx)?\.so\.1(2)?\b|\blibmpich\.so")
# On Cray systems, srun already uses the PMI of Cray's MPI libraries, so strakes chooses none.
_CRAY = re.compile(r"\blib(pmi|mpi)_cray")

# Start the engine in /. Otherwise UCX, a library of MPI, would read ucx.conf in the current directory.
IN_ROOT = ("env", "--chdir=/")


def find_mpi_engine(mpiexec: Path | None = None) -> Path:
    """Return the engine for ``mpiexec``, or the first installed engine if ``mpiexec`` is None.

    $STRAKES_ENGINE_MPI replaces the installed engines. Raises EnvironmentLacksError if no engine fits.
    """
    chosen = os.environ.get("STRAKES_ENGINE_MPI")
    if chosen:
        candidates = [Path(chosen).absolute()]
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
        if ("Open MPI" in library_of_engine(path)) == (wanted == "openmpi"):
            return path
    choose = "Unset STRAKES_ENGINE_MPI, or choose" if chosen else "Choose"
    get = _BUILD if wanted == "openmpi" else GET_MPI
    engines = " and ".join(f"{path} ({library_of_engine(path)})" for path in there)
    what = "no engine for the MPI library of this mpiexec"
    why = f"mpiexec belongs to {_NAMES[wanted]}; the engines are {engines}"
    remedy = f"{choose} the mpiexec that belongs to the engine with --mpiexec, or {get}"
    raise EnvironmentLacksError(what, where=str(mpiexec), why=why, remedy=remedy)


def mpi_engines() -> tuple[Path, Path]:
    """Return the paths of the engines for the standard MPI ABI and for the site's MPI. These files may be missing."""
    engine = find_engine()
    return engine.with_name("strakes-engine-mpi"), engine.with_name("strakes-engine-mpi-site")


@functools.cache
def family_of_mpiexec(mpiexec: Path) -> Family:
    """Return the MPI family of an mpiexec, from its file name or from the output of mpiexec --version."""
    if mpiexec.resolve().name in ("orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi"):
        return "openmpi"
    return "openmpi" if any(name in _answer(mpiexec, "--version") for name in _OPEN_MPI) else "mpich"


@functools.cache
def library_of_engine(engine: Path) -> str:
    """Return the version string of the engine's MPI library, or "" if the engine does not print it."""
    return _answer(engine, "--mpi").strip()


def _answer(program: Path, question: str) -> str:
    try:
        return run([*IN_ROOT, str(program.absolute()), question]).stdout
    except StrakesError:
        return ""


def pmi_of(engine: Path) -> Pmi | None:
    """Return the PMI version of the engine's MPI, or None if unknown."""
    try:
        return pmi_of_libraries(run(["ldd", str(engine)], _LDD_S).stdout)
    except CommandTimeout:
        return None


def pmi_of_libraries(listing: str) -> Pmi | None:
    """Return the PMI version of an MPI from the output of ldd(1), or None if unknown.

    >>> mpich = "libmpi_abi.so.1 => /x/libmpi_abi.so.1 (0x1)"
    >>> open_mpi = "libopen-pal.so.40 => /usr/lib/libopen-pal.so.40"
    >>> pmi_of_libraries(mpich), pmi_of_libraries(open_mpi)
    ('pmi2', 'pmix')
    >>> pmi_of_libraries("libmpich.so.12 => /usr/lib/libmpich.so.12\\nlibpmix.so.2 => /usr/lib/libpmix.so.2")
    'pmix'
    """
    if _CRAY.search(listing):
        return None
    if _OPEN_MPI_FILES.search(listing):
        return "pmix"
    return "pmi2" if _MPICH.search(listing) else None


def chosen_pmi(options: Sequence[str]) -> str:
    """Return the value of the last ``--mpi`` among the options of srun, or "" without it.

    >>> chosen_pmi(["-p", "main", "--mpi=pmix_v4"]), chosen_pmi(["--mpi", "pmi2"]), chosen_pmi([])
    ('pmix_v4', 'pmi2', '')
    """
    given = re.findall(r"(?:^| )--mpi[= ](\S+)", " ".join(options))
    return str(given[-1]) if given else ""
