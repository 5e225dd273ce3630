"""The other benchmarks (peers) that are installed on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from bench.contenders import Contender
from bench.elbencho import Elbencho
from bench.fio import Fio
from bench.launched import Ior, Mdtest
from bench.postmark import Postmark


def found_peers(mpiexec: str) -> tuple[list[Contender], list[str]]:
    """Return the peers on PATH, and the names of missing ones. MPI programs also need the launcher."""
    peers: list[Contender] = []
    absent = []
    launcher = shutil.which(mpiexec)
    makers: tuple[tuple[str, str, Callable[[str], Contender]], ...] = (
        ("mdtest", "mdtest", lambda program: Mdtest(mpiexec, program)),
        ("IOR", "ior", lambda program: Ior(mpiexec, program)),
        ("elbencho", "elbencho", Elbencho),
        ("fio", "fio", Fio),
        ("Postmark", "postmark", Postmark),
    )
    for name, program, make in makers:
        path = shutil.which(program)
        if path is None or (program in ("mdtest", "ior") and launcher is None):
            absent.append(name)
        else:
            peers.append(make(path))
    return peers, absent
