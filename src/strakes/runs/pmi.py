"""Which language an MPI library and whoever starts its processes speak.

Where they differ, every process believes that it is alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from strakes.targets import command

Pmi = Literal["pmi2", "pmix"]

_ASK_S = 10.0
_OPEN_MPI = re.compile(r"\blib(pmix|open-pal|open-rte|prrte)\.so")
_MPICH = re.compile(r"\blibmpi(_abi|ch|cxx)?\.so\.1(2)?\b|\blibmpich\.so")
# Cray's libraries bring their own, and their srun is configured for it.
_CRAY = re.compile(r"\blib(pmi|mpi)_cray")


def pmi_of(engine: Path) -> Pmi | None:
    """Return the PMI version of the engine's MPI, from the libraries that it loads, or None if they do not show it."""
    try:
        return pmi_of_libraries(command.run(["ldd", str(engine)], _ASK_S).stdout)
    except command.CommandTimeout:
        return None


def pmi_of_libraries(listing: str) -> Pmi | None:
    """From what ldd(1) says.

    >>> mpich = "libmpi_abi.so.1 => /x/libmpi_abi.so.1 (0x1)"
    >>> open_mpi = "libopen-pal.so.40 => /usr/lib/libopen-pal.so.40"
    >>> pmi_of_libraries(mpich), pmi_of_libraries(open_mpi)
    ('pmi2', 'pmix')
    >>> pmi_of_libraries("libmpich.so.12 => /usr/lib/libmpich.so.12\\nlibpmix.so.2 => /usr/lib/libpmix.so.2")
    'pmix'
    """
    if _CRAY.search(listing):
        return None
    if _OPEN_MPI.search(listing):
        return "pmix"
    return "pmi2" if _MPICH.search(listing) else None


def offered(listing: str) -> frozenset[str]:
    """From what ``srun --mpi=list`` says.

    >>> listed = "MPI plugin types are...\\n\\tpmix\\n\\tnone\\nspecific pmix plugin versions available: pmix_v4"
    >>> sorted(offered(listed))
    ['none', 'pmix', 'pmix_v4']
    """
    names: set[str] = set()
    for line in listing.splitlines():
        before, colon, after = line.rpartition(":")
        if colon and "version" in before:
            names.update(name.strip() for name in after.split(","))
        elif re.fullmatch(r"\s+\w+", line):
            names.add(line.strip())
    return frozenset(names)


def chosen(options: Sequence[str]) -> str:
    """Return what ``--mpi`` among srun's options says last; empty where nothing does.

    >>> chosen(["-p", "main", "--mpi=pmix_v4"]), chosen(["--mpi", "pmi2"]), chosen([])
    ('pmix_v4', 'pmi2', '')
    """
    value = ""
    for index, word in enumerate(options):
        if word.startswith("--mpi="):
            value = word.removeprefix("--mpi=")
        elif word == "--mpi" and index + 1 < len(options):
            value = options[index + 1]
    return value


def fits(spoken: Pmi, launcher: str) -> bool:
    """Whether what srun speaks (``pmix_v4`` is one of pmix) is what the library understands."""
    return launcher == spoken or launcher.startswith(f"{spoken}_")
