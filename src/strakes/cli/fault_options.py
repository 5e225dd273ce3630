"""Options of commands that cause a fault on a live system: the fault, the target, and the user's consent."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.errors import BadInputError
from strakes.cli.options import PATH, option
from strakes.cli.say import remark

if TYPE_CHECKING:
    from strakes.control.fault import Fault
    from strakes.targets.command import Servers


@dataclass(frozen=True, kw_only=True)
class FaultOptions:
    """Options of a fault: its kind, its target, and the user's consent to the interruption of the service."""

    fault: str | None = option('Fault to cause. "--fault list" lists all.', metavar="FAULT")
    fault_command: str = option("Command that causes the fault, for any system.", default="", metavar="COMMAND")
    restore_command: str = option("Command that undoes the fault.", default="", metavar="COMMAND")
    node: str = option("Pacemaker node to act on.", default="", metavar="NODE")
    resource: str = option("Pacemaker resource to fail.", default="", metavar="NAME")
    target: str = option(
        "Lustre target to act on, such as labfs-MDT0001.  [default: the metadata target that DIR is on]",
        default="",
        metavar="NAME",
    )
    via: str = option(
        "Command to put before the commands of the fault, such as 'ssh root@NODE'.", default="", metavar="COMMAND"
    )
    bmc: str = option("BMC of the server whose power is cut.", default="", metavar="HOST[:PORT]")
    bmc_user: str = option("User name on the BMC.", default="", metavar="USER")
    bmc_password_file: Path | None = option("File with the password of the BMC, readable by you alone.", type=PATH)
    agreed: bool = option(
        "Confirm that the service may be interrupted; nothing is done without it.",
        "--yes-this-interrupts-service",
        default=False,
    )

    def make(self, directory: Path, servers: Servers | None, usual: str = "") -> Fault:
        """Return the requested fault, or the fault ``usual`` if none is requested.

        Raises BadInputError if the fault cannot be caused in ``directory``.
        """
        from strakes.control.fault import Ask
        from strakes.control.fault_registry import COMMAND, FAULTS, make_fault

        if self.fault == "list":
            for known, entry in FAULTS.items():
                click.echo(f"{known:<20} {entry.works_on:<23} {entry.summary}")
            raise click.exceptions.Exit(0)
        name = self.fault or (COMMAND if self.fault_command else usual)
        if not name:
            remedy = "--fault list lists the faults. For one of your own, give --fault-command 'ssh mds1 reboot -f'."
            raise BadInputError("no fault was given", remedy=remedy)
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("fault", "agreed")}
        fault = make_fault(name, Ask(directory, servers=servers, **own))
        fault.require_serves(directory)
        return fault

    def require_consent(self, directory: Path) -> None:
        """Raise BadInputError unless the user has agreed to the interruption."""
        if not self.agreed:
            what = "a drill interrupts the service of everyone who uses this file system"
            remedy = "To agree, add --yes-this-interrupts-service. For a preview: strakes failover drill --dry-run"
            raise BadInputError(what, where=str(directory), remedy=remedy)


def has_sessions(directory: Path) -> bool:
    """Return whether a drill's clients can be libcephfs sessions. On a CephFS, print the reason if they cannot."""
    from strakes.control.fault_cephfs import is_cephfs
    from strakes.runs.choice import with_launcher
    from strakes.runs.engine import LocalEngine

    if not is_cephfs(directory):
        return False
    with LocalEngine() as engine:
        absence = engine.start().absent.get("cephfs")
    if absence is not None:
        reason = f"{absence['why']}. {with_launcher(absence['remedy'])}"
        remark(f"the clients are threads on one mount, so the servers see a single client: {reason}")
    return absence is None
