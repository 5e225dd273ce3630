"""``strakes doctor``: check the engines, kernel, limits and tools of this machine."""

from __future__ import annotations

import os
import platform
import resource
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from strakes.base.errors import EnvironmentLacksError, StrakesError
from strakes.base.units import GIB, format_bytes
from strakes.cli.options import Json, command_named, write_json
from strakes.cli.say import say_sentence
from strakes.runs.choice import with_launcher

if TYPE_CHECKING:
    from strakes.runs.messages import Hello

_TOOLS = {
    "lfs": "Lustre needs the package lustre-client of your file system's vendor",
    "ceph": "For CephFS: apt install ceph-common, or dnf install ceph-common",
    "srun": "--launcher slurm needs the Slurm client of your site",
}


@dataclass(frozen=True)
class MachineCheck:
    """Result of checking one item. ``required``: strakes cannot work without the item. ``remedy``: how to get it."""

    name: str
    state: Literal["ok", "limited", "missing"]
    detail: str
    remedy: str = ""
    required: bool = False


@command_named("doctor")
def command(json: Json) -> int:
    """Check what this machine has and lacks.

    Exits with status 3 if something is missing that strakes needs.
    """
    checks = examine()
    lacking = [check.name for check in checks if check.required and check.state == "missing"]
    if write_json(json, {"schema": 1, "ok": not lacking, "checks": list(map(asdict, checks))}):
        say_sentence(
            f"strakes cannot work here: {', '.join(lacking)} missing." if lacking else "strakes can work here."
        )
        _print(checks)
    return EnvironmentLacksError.exit_status if lacking else 0


def examine() -> list[MachineCheck]:
    """Return all checks in display order."""
    kernel = MachineCheck("kernel", "ok", f"{platform.system()} {platform.release()} {platform.machine()}")
    return [*_engines(), kernel, *_limits(), *tools()]


def _engines() -> Iterator[MachineCheck]:
    """Yield the checks of the engines and of mpiexec, and a failed check for each backend that no engine has."""
    from strakes.runs.engine import LocalEngine
    from strakes.runs.mpi import find_mpiexec
    from strakes.runs.mpi_family import find_mpi_engine, mpi_engines

    try:
        with LocalEngine() as engine:
            hello = engine.start()
    except StrakesError as error:
        remedy = error.remedy or "Install strakes again."
        yield MachineCheck("engine", "missing", f"{error.what} {error.why}".strip(), remedy, required=True)
        return
    detail = f"{hello.engine}, backends {', '.join(hello.backends)}, clock {hello.clock}"
    yield MachineCheck("engine", "ok", detail, required=True)
    hellos = [hello]

    def mpi(path: Path) -> str:
        hellos.append(_hello_of(path))
        return f"{hellos[-1].engine}, {hellos[-1].mpi}, backends {', '.join(hellos[-1].backends)}"

    def launcher() -> str:
        mpiexec = find_mpiexec()
        return f"{mpiexec}, for {find_mpi_engine(mpiexec).name}"

    names = dict(zip(("engine for MPI", "engine for the site's MPI"), mpi_engines(), strict=True))
    finders = {name: partial(mpi, path) for name, path in names.items()} | {"launcher mpi": launcher}
    for name, find in finders.items():
        try:
            yield MachineCheck(name, "ok", find())
        except EnvironmentLacksError as error:
            yield MachineCheck(name, "missing", f"{error.what}: {error.why}".strip(": "), error.remedy)
    present = {name for hello in hellos for name in hello.backends}
    absent = {name: reason for hello in hellos for name, reason in hello.absent.items() if name not in present}
    for name, reason in absent.items():
        yield MachineCheck(f"backend {name}", "missing", reason["why"], with_launcher(reason["remedy"]))


def _hello_of(path: Path) -> Hello:
    """Return the Hello of an MPI engine started as one rank without mpiexec. Raises EnvironmentLacksError if absent."""
    from strakes.runs.engine import LocalEngine
    from strakes.runs.mpi_family import GET_MPI

    if not path.is_file():
        raise EnvironmentLacksError("it is not built", remedy=GET_MPI)
    with LocalEngine(path) as engine:
        return engine.start()


def _print(checks: Sequence[MachineCheck]) -> None:
    """Print the missing and limited items grouped by reason, and the names of the others."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for check in sorted(checks, key=lambda check: (check.state == "ok", not check.required, check.state != "limited")):
        state = check.state if check.required or check.state != "missing" else "absent"
        key = (state, check.detail, check.remedy) if check.state != "ok" else ("ok", "", "")
        reasons.setdefault(key, []).append(check.name)
    for (label, detail, remedy), alike in reasons.items():
        text = ". ".join(part.rstrip(".") for part in (detail, remedy) if part)
        begin = f"{label:<8} "
        say_sentence(f"{begin}{', '.join(alike)}{': ' if text else ''}{text}", indent=len(begin))
    say_sentence("Details: strakes doctor --json -")


def _limits() -> Iterator[MachineCheck]:
    """Yield the checks of the available memory, and of the limits on open files and processes."""
    from strakes.base.memory import memory_sizes

    memory = memory_sizes().get("MemAvailable", os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    too_little = "Studies whose data must exceed the page cache measure less."
    yield _check("memory available", memory >= 2 * GIB, format_bytes(memory), too_little)
    # An engine needs a descriptor per rank and file, and a thread per rank. These limits suffice for a thousand ranks.
    for name, limit, letter, enough in (
        ("open files", resource.RLIMIT_NOFILE, "n", 4096),
        ("processes", resource.RLIMIT_NPROC, "u", 1024),
    ):
        soft = resource.getrlimit(limit)[0]
        unlimited = soft == resource.RLIM_INFINITY
        detail = "unlimited" if unlimited else f"{soft:,}"
        yield _check(name, unlimited or soft >= enough, detail, f"ulimit -{letter} {enough}")


def tools() -> list[MachineCheck]:
    """Return the checks of the programs that strakes can use but does not need."""
    found = {name: shutil.which(name) for name in _TOOLS}
    return [
        MachineCheck(name, "ok", path) if path else MachineCheck(name, "missing", "not found", _TOOLS[name])
        for name, path in found.items()
    ]


def _check(name: str, good: bool, detail: str, remedy: str) -> MachineCheck:
    """Return the check of an optional item: ok, or limited with the remedy."""
    return MachineCheck(name, "ok", detail) if good else MachineCheck(name, "limited", detail, remedy)
