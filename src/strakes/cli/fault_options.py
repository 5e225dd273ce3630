"""What commands share that do a fault to a live system: which one, to whom, and the consent to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strakes.cli.options import Command
from strakes.errors import BadInputError

if TYPE_CHECKING:
    from strakes.drill.faults.fault import Fault
    from strakes.drill.visit import DrillVisit

_WORDS = ("command", "restore", "node", "resource", "via", "bmc", "bmc_user", "bmc_password_file")
# Of a study that was not told which.
_USUAL = "mds-kill"
PATH = click.Path(path_type=Path)


def fault_options(command: Command) -> Command:
    """Add ``--fault`` and the options that the kinds of fault need; ``fault_from`` takes their values."""
    for option in reversed(
        (
            click.option("--fault", metavar="FAULT", help='Fault to cause. "--fault list" lists all.'),
            click.option(
                "--fault-command",
                "command",
                metavar="COMMAND",
                default="",
                help="Command that causes the fault, for any system.",
            ),
            click.option(
                "--restore-command", "restore", metavar="COMMAND", default="", help="Command that undoes the fault."
            ),
            click.option("--node", default="", help="Pacemaker node to act on."),
            click.option("--resource", default="", help="Pacemaker resource to fail."),
            click.option(
                "--via",
                metavar="COMMAND",
                default="",
                help="Command to put before the cluster's commands, such as 'ssh root@NODE'.",
            ),
            click.option("--bmc", metavar="HOST[:PORT]", default="", help="BMC of the server whose power is cut."),
            click.option("--bmc-user", metavar="USER", default="", help="User name on the BMC."),
            click.option(
                "--bmc-password-file",
                type=PATH,
                metavar="FILE",
                help="File with the password of the BMC, readable by you alone.",
            ),
        )
    ):
        command = option(command)
    return command


def fault_from(directory: Path, fault: str | None, **words: Any) -> Fault:
    """Make the fault. Raises BadInputError where it cannot be done."""
    from strakes.drill.faults.fault import Ask
    from strakes.drill.faults.registry import COMMAND, FAULTS, make_fault

    if fault == "list":
        for name, entry in FAULTS.items():
            click.echo(f"{name:<15} {entry.summary}")
        raise click.exceptions.Exit(0)
    name = fault or (COMMAND if words["command"] else "")
    if not name:
        raise BadInputError(
            "no fault was given",
            remedy="--fault list lists the faults. For a fault of your own, give --fault-command 'ssh mds1 reboot -f'.",
        )
    return make_fault(name, Ask(directory, **words))


def has_sessions(directory: Path) -> bool:
    """Return whether clients can be sessions of libcephfs there."""
    from strakes.drill.faults.cephfs import is_cephfs
    from strakes.launch.local import LocalEngine

    if not is_cephfs(directory):
        return False
    with LocalEngine() as engine:
        return "cephfs" in engine.start().backends


def take_fault_words(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the values of ``fault_options`` from the options of a command, and return them."""
    return {name: options.pop(name) for name in ("fault", *_WORDS)}


def drill_visit(directory: Path, agreed: bool, fault_words: dict[str, Any]) -> DrillVisit:
    """Return how a study of drills visits. Raises BadInputError where the fault is impossible or not agreed to."""
    from strakes.drill.visit import DrillVisit
    from strakes.store_root import default_root
    from strakes.studies.recovery import TIMING

    if not fault_words["command"]:
        fault_words = {**fault_words, "fault": fault_words["fault"] or _USUAL}
    fault_from(directory, **fault_words)
    require_consent(directory, agreed)
    return DrillVisit(lambda place: fault_from(place, **fault_words), TIMING, default_root())


def require_consent(directory: Path, agreed: bool) -> None:
    """Raise BadInputError unless the user has agreed to the interruption."""
    if not agreed:
        raise BadInputError(
            "a drill interrupts the service of everyone who uses this file system",
            where=str(directory),
            remedy="To agree, add --yes-this-interrupts-service. To see what would be done, run strakes failover "
            "drill with --dry-run.",
        )
