"""``strakes doctor``: check the engines, packages, kernel, limits and tools of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.foreign_text import for_terminal
from strakes.base.units import counted
from strakes.cli.machine import MachineCheck, kernel, limits, tools
from strakes.cli.options import DIRECTORY, Output, json_option, launch_from, launch_options, write_json
from strakes.cli.say import say_sentence
from strakes.runs.choice import Launcher, with_launcher

if TYPE_CHECKING:
    from strakes.runs.messages import Hello

_PACKAGE = "python package "
# In the order of mpi_engines().
_MPI_ENGINES = ("engine for MPI", "engine for the site's MPI")


@click.command()
@click.argument("directory", metavar="[DIR]", type=DIRECTORY, required=False)
@launch_options
@json_option
def command(
    directory: Path | None, json: Output | None, launcher: Launcher, hosts: tuple[str, ...] | None, **options: Any
) -> int:
    """Check what this machine has and lacks; with --hosts (or --launcher slurm), check that the nodes are alike.

    On each node this checks the version of strakes, the wall clock, processors and free memory; with DIR also
    whether all nodes see DIR. Exits with status 3 if something is missing that strakes needs.
    """
    if hosts is not None and launcher == "local" and options["launcher_command"] is None:
        launcher = "mpi"
    launch = launch_from(launcher=launcher, hosts=hosts, **options)
    if launch.launcher != "local":
        from strakes.cli.doctor_nodes import examine_nodes

        if launch.launcher == "mpi" and not launch.hosts:
            raise BadInputError("no hosts to check were given", remedy="Add --hosts A,B.")
        return examine_nodes(launch, directory, json)
    if directory is not None:
        remedy = "Add --hosts A,B, or look at it from this host: strakes target DIR"
        raise BadInputError("DIR is checked only together with the nodes", remedy=remedy)
    checks = examine()
    if write_json(json, {"schema": 1, "ok": not _lacking(checks), "checks": [asdict(check) for check in checks]}):
        _print(checks)
    return EnvironmentLacksError.exit_status if _lacking(checks) else 0


def examine() -> list[MachineCheck]:
    """Return all checks in display order."""
    return [*_engine(), *_packages(), *kernel(), *limits(), *tools()]


def _lacking(checks: Iterable[MachineCheck]) -> list[MachineCheck]:
    return [check for check in checks if check.required and check.state == "missing"]


def _engine() -> list[MachineCheck]:
    from strakes.runs.engine import LocalEngine
    from strakes.runs.messages import Hello
    from strakes.runs.mpi_family import mpi_engines

    try:
        with LocalEngine() as engine:
            hello = engine.start()
    except StrakesError as error:
        return [
            MachineCheck(
                "engine",
                "missing",
                f"{error.what} {error.why}".strip(),
                error.remedy or "Install strakes again.",
                required=True,
            )
        ]
    engine_check = MachineCheck(
        "engine", "ok", f"{hello.engine}, backends {', '.join(hello.backends)}, clock {hello.clock}", required=True
    )
    by_mpi = [(name, _said_by(path)) for name, path in zip(_MPI_ENGINES, mpi_engines(), strict=True)]
    hellos = [hello, *(reply for _, reply in by_mpi if isinstance(reply, Hello))]
    return [engine_check, *(_of_mpi(name, reply) for name, reply in by_mpi), _mpiexec(), *_backends(hellos)]


def _said_by(path: Path) -> Hello | EnvironmentLacksError:
    """Start an MPI engine without mpiexec, as a team of one rank; return its Hello, or why it does not start."""
    from strakes.runs.engine import LocalEngine
    from strakes.runs.mpi_family import GET_MPI

    if not path.is_file():
        return EnvironmentLacksError("it is not built", remedy=GET_MPI)
    try:
        with LocalEngine(path) as engine:
            return engine.start()
    except EnvironmentLacksError as error:
        return error


def _of_mpi(name: str, reply: Hello | EnvironmentLacksError) -> MachineCheck:
    """Return the check of an optional MPI engine. --launcher mpi needs one of them."""
    if isinstance(reply, EnvironmentLacksError):
        return MachineCheck(name, "missing", f"{reply.what}: {reply.why}".strip(": "), reply.remedy)
    return MachineCheck(name, "ok", f"{reply.engine}, {reply.mpi}, backends {', '.join(reply.backends)}")


def _mpiexec() -> MachineCheck:
    """Check the mpiexec that --launcher mpi uses, and the engine that it starts."""
    from strakes.runs.mpi import find_mpiexec
    from strakes.runs.mpi_family import find_mpi_engine

    try:
        mpiexec = find_mpiexec()
        return MachineCheck("launcher mpi", "ok", f"{mpiexec}, for {find_mpi_engine(mpiexec).name}")
    except EnvironmentLacksError as error:
        return MachineCheck("launcher mpi", "missing", f"{error.what}: {error.why}".strip(": "), error.remedy)


def _backends(hellos: Sequence[Hello]) -> Iterator[MachineCheck]:
    """Yield a check for each backend that every engine lacks, with the remedy of the last engine."""
    present = {name for hello in hellos for name in hello.backends}
    absent = {name: reason for hello in hellos for name, reason in hello.absent.items() if name not in present}
    for name, reason in absent.items():
        yield MachineCheck(f"backend {name}", "missing", reason["why"], with_launcher(reason["remedy"]))


def _packages() -> list[MachineCheck]:
    """Check the distributions that strakes itself declares, without its optional ones."""
    from importlib import metadata

    try:
        declared = metadata.requires("strakes") or []
    except metadata.PackageNotFoundError:
        return [
            MachineCheck(
                f"{_PACKAGE}strakes",
                "limited",
                "runs from its sources, not installed",
                "Use ./strakes or pip install .",
            )
        ]
    checks = []
    for line in declared:
        if "extra ==" in line:
            continue
        name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
        try:
            checks.append(MachineCheck(f"{_PACKAGE}{name}", "ok", metadata.version(name), required=True))
        except metadata.PackageNotFoundError:
            checks.append(
                MachineCheck(f"{_PACKAGE}{name}", "missing", "not installed", f"pip install '{line}'", required=True)
            )
    return checks


def _print(checks: Sequence[MachineCheck]) -> None:
    """Print the result, the missing and limited items grouped by reason, and the names of the others."""
    names = ", ".join(check.name for check in _lacking(checks))
    say_sentence(f"strakes cannot work here: {names} missing." if names else "strakes can work here.")
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for check in sorted(checks, key=lambda check: (not check.required, check.state != "limited")):
        state = check.state if check.required or check.state != "missing" else "absent"
        key = (state, check.detail, check.remedy) if check.state != "ok" else ("ok", "", "")
        reasons.setdefault(key, []).append(check.name)
    present = reasons.pop(("ok", "", ""), [])
    fine = [name for name in present if not name.startswith(_PACKAGE)]
    fine += [counted(len(present) - len(fine), "Python package")] if len(fine) < len(present) else []
    for (label, detail, remedy), alike in [*reasons.items(), *([(("ok", "", ""), fine)] if fine else [])]:
        text = ". ".join(for_terminal(part).rstrip(".") for part in (detail, remedy) if part)
        begin = f"{label:<8} "
        say_sentence(f"{begin}{', '.join(alike)}{': ' if text else ''}{text}", indent=len(begin))
    say_sentence("Details: strakes doctor --json -")
