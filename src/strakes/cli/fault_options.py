"""What commands share that do a fault to a live system: which one, to whom, and the consent to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strakes.cli.options import Command
from strakes.errors import BadInputError

if TYPE_CHECKING:
    from strakes.failover.drill.faults.base import Fault
    from strakes.failover.drill.visit import DrillVisit

_WORDS = ("command", "restore", "node", "resource", "via", "bmc", "bmc_user", "bmc_password_file")
# Of a study that was not told which.
_USUAL = "mds-kill"
PATH = click.Path(path_type=Path)


def fault_options(command: Command) -> Command:
    """``--fault`` and what the kinds of fault need; all of it is for ``fault_from``."""
    for option in reversed(
        (
            click.option("--fault", metavar="FAULT", help='What is done; "--fault list" lists them.'),
            click.option("--fault-command", "command", metavar="COMMAND", default="", help="A command that does it, for any system."),
            click.option("--restore-command", "restore", metavar="COMMAND", default="", help="A command that undoes it."),
            click.option("--node", default="", help="Of Pacemaker's."),
            click.option("--resource", default="", help="Of Pacemaker's."),
            click.option("--via", metavar="COMMAND", default="", help="Goes before the cluster's commands: 'ssh root@NODE'."),
            click.option("--bmc", metavar="HOST[:PORT]", default="", help="Of the server whose power is cut."),
            click.option("--bmc-user", metavar="USER", default="", help="Of the BMC."),
            click.option("--bmc-password-file", type=PATH, metavar="FILE", help="Its password, in a file that only you can read."),
        )
    ):
        command = option(command)
    return command


def fault_from(directory: Path, fault: str | None, **words: Any) -> Fault:
    """Raises BadInputError where it cannot be done."""
    from strakes.failover.drill.faults.base import Ask
    from strakes.failover.drill.faults.registry import COMMAND, FAULTS, make_fault

    if fault == "list":
        for name, entry in FAULTS.items():
            click.echo(f"{name:<15} {entry.summary}")
        raise click.exceptions.Exit(0)
    name = fault or (COMMAND if words["command"] else "")
    if not name:
        raise BadInputError("no fault given", remedy="--fault list lists them; or give a command: --fault-command 'ssh mds1 reboot -f'")
    return make_fault(name, Ask(directory, **words))


def has_sessions(directory: Path) -> bool:
    """Whether clients can be sessions of libcephfs there."""
    from strakes.failover.drill.faults.cephfs import is_cephfs
    from strakes.launch.local import LocalEngine

    if not is_cephfs(directory):
        return False
    with LocalEngine() as engine:
        return "cephfs" in engine.start().backends


def take_fault_words(options: dict[str, Any]) -> dict[str, Any]:
    """Those of ``fault_options``, taken out of all options of a command."""
    return {name: options.pop(name) for name in ("fault", *_WORDS)}


def drill_visit(directory: Path, agreed: bool, fault_words: dict[str, Any]) -> DrillVisit:
    """For a study of which every visit is a drill. Raises BadInputError where the fault cannot be done, or nobody agreed to it."""
    from strakes.failover.drill.visit import DrillVisit
    from strakes.places import default_root
    from strakes.studies.recovery import TIMING

    if not fault_words["command"]:
        fault_words = {**fault_words, "fault": fault_words["fault"] or _USUAL}
    fault_from(directory, **fault_words)
    require_consent(directory, agreed)
    return DrillVisit(lambda place: fault_from(place, **fault_words), TIMING, default_root())


def require_consent(directory: Path, agreed: bool) -> None:
    if not agreed:
        raise BadInputError(
            "a drill interrupts the service of everybody who uses this file system",
            where=str(directory),
            remedy="Say so: --yes-this-interrupts-service. To see what would be done: strakes failover drill --dry-run.",
        )
