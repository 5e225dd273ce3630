"""``strakes doctor``: check the engines and launchers of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from strakes.base.errors import EnvironmentLacksError, StrakesError
from strakes.cli.options import Json, command_named, write_json
from strakes.cli.say import say_sentence
from strakes.runs.choice import with_launcher


@dataclass(frozen=True)
class MachineCheck:
    """Result of a check. ``required``: strakes cannot work without the item. ``remedy``: how to install the item."""

    name: str
    state: Literal["ok", "missing"]
    detail: str
    remedy: str = ""
    required: bool = False


@command_named("doctor")
def command(json: Json) -> int:
    """Check which engines, launchers and backends this machine has.

    Exits with status 3 if something is missing that strakes needs.
    """
    checks = list(examine())
    lacking = [check.name for check in checks if check.required and check.state == "missing"]
    if write_json(json, {"schema": 1, "ok": not lacking, "checks": list(map(asdict, checks))}):
        verdict = f"cannot work here: {', '.join(lacking)} missing." if lacking else "can work here."
        say_sentence(f"strakes {verdict}")
        _print(checks)
    return EnvironmentLacksError.exit_status if lacking else 0


def examine() -> Iterator[MachineCheck]:
    """Yield a result for each engine and launcher, and a failure for each backend that no engine provides."""
    from strakes.runs.engine import LocalEngine
    from strakes.runs.mpi import find_mpiexec
    from strakes.runs.mpi_family import GET_MPI, find_mpi_engine, mpi_engines
    from strakes.runs.slurm import find_srun

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
        if not path.is_file():
            raise EnvironmentLacksError("it is not built", remedy=GET_MPI)
        with LocalEngine(path) as engine:
            hellos.append(engine.start())
        return f"{hellos[-1].engine}, {hellos[-1].mpi}, backends {', '.join(hellos[-1].backends)}"

    def launcher() -> str:
        mpiexec = find_mpiexec()
        return f"{mpiexec}, for {find_mpi_engine(mpiexec).name}"

    names = dict(zip(("engine for MPI", "engine for the site's MPI"), mpi_engines(), strict=True))
    finders: dict[str, Callable[[], str]] = {name: partial(mpi, path) for name, path in names.items()}
    finders |= {"launcher mpi": launcher, "launcher slurm": lambda: f"{find_srun()}, for {find_mpi_engine().name}"}
    for name, find in finders.items():
        try:
            yield MachineCheck(name, "ok", find())
        except StrakesError as error:
            yield MachineCheck(name, "missing", f"{error.what}: {error.why}".strip(": "), error.remedy)
    present = {name for hello in hellos for name in hello.backends}
    absent = {name: reason for hello in hellos for name, reason in hello.absent.items() if name not in present}
    for name, reason in absent.items():
        yield MachineCheck(f"backend {name}", "missing", reason["why"], with_launcher(reason["remedy"]))


def _print(checks: Sequence[MachineCheck]) -> None:
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for check in sorted(checks, key=lambda check: (check.state == "ok", not check.required)):
        state = check.state if check.required or check.state != "missing" else "absent"
        key = (state, check.detail, check.remedy) if check.state != "ok" else ("ok", "", "")
        reasons.setdefault(key, []).append(check.name)
    for (label, detail, remedy), alike in reasons.items():
        text = ". ".join(part.rstrip(".") for part in (detail, remedy) if part)
        begin = f"{label:<8} "
        say_sentence(f"{begin}{', '.join(alike)}{': ' if text else ''}{text}", indent=len(begin))
    say_sentence("Details: strakes doctor --json -")
