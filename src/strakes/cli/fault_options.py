"""Options of commands that cause a fault on a live system: the fault, its target, and the user's consent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from strakes.base.errors import BadInputError
from strakes.cli.options import PATH, Command, with_options
from strakes.cli.say import say

if TYPE_CHECKING:
    from strakes.control.drill_visit import DrillVisit
    from strakes.control.fault import Fault
    from strakes.targets.command import Servers

# Default fault of a study.
_USUAL = "mds-kill"


@dataclass(frozen=True)
class AskedFault:
    """The requested fault. ``words``: the fields of an ``Ask``, without its directory and servers."""

    name: str | None
    words: Mapping[str, Any]

    def make(self, directory: Path, usual: str = "", servers: Servers | None = None) -> Fault:
        """Return the fault, or ``usual`` if none was named. Raises BadInputError if it is not possible here."""
        from strakes.control.fault import Ask
        from strakes.control.fault_registry import COMMAND, FAULTS, make_fault

        if self.name == "list":
            for known, entry in FAULTS.items():
                click.echo(f"{known:<20} {entry.works_on:<23} {entry.summary}")
            raise click.exceptions.Exit(0)
        name = self.name or (COMMAND if self.words["command"] else usual)
        if not name:
            remedy = "--fault list lists the faults. For one of your own, give --fault-command 'ssh mds1 reboot -f'."
            raise BadInputError("no fault was given", remedy=remedy)
        fault = make_fault(name, Ask(directory, servers=servers, **self.words))
        fault.require_serves(directory)
        return fault


_WORDS = {
    "command": click.option(
        "--fault-command",
        "command",
        metavar="COMMAND",
        default="",
        help="Command that causes the fault, for any system.",
    ),
    "restore": click.option(
        "--restore-command", "restore", metavar="COMMAND", default="", help="Command that undoes the fault."
    ),
    "node": click.option("--node", metavar="NODE", default="", help="Pacemaker node to act on."),
    "resource": click.option("--resource", metavar="NAME", default="", help="Pacemaker resource to fail."),
    "target": click.option(
        "--target",
        metavar="NAME",
        default="",
        help="Lustre target to act on, such as labfs-MDT0001.  [default: the metadata target that DIR is on]",
    ),
    "nic": click.option("--nic", metavar="NAME", default="", help="Network card to switch off, such as eth1."),
    "peer": click.option(
        "--peer",
        metavar="ADDRESS",
        default="",
        help="Machine to cut off: it no longer receives what this machine (or the one that --via reaches) sends.",
    ),
    "via": click.option(
        "--via",
        metavar="COMMAND",
        default="",
        help="Command to put before the commands of the fault, such as 'ssh root@NODE'.",
    ),
    "bmc": click.option("--bmc", metavar="HOST[:PORT]", default="", help="BMC of the server whose power is cut."),
    "bmc_user": click.option("--bmc-user", metavar="USER", default="", help="User name on the BMC."),
    "bmc_password_file": click.option(
        "--bmc-password-file", type=PATH, help="File with the password of the BMC, readable by you alone."
    ),
}


def fault_options(command: Command) -> Command:
    """Add ``--fault`` and the options of all kinds of fault, passed as one AskedFault in ``fault``."""

    @wraps(command)
    def with_fault(*, fault: str | None, **options: Any) -> object:
        asked = AskedFault(fault, {name: options.pop(name) for name in _WORDS})
        return command(fault=asked, **options)

    named = click.option("--fault", metavar="FAULT", help='Fault to cause. "--fault list" lists all.')
    return with_options(cast("Command", with_fault), named, *_WORDS.values())


def has_sessions(directory: Path) -> bool:
    """Return whether clients can be libcephfs sessions there; print the remedy if only the engine lacks support."""
    from strakes.control.fault_cephfs import is_cephfs
    from strakes.runs.engine import LocalEngine

    if not is_cephfs(directory):
        return False
    with LocalEngine() as engine:
        absence = engine.start().absent.get("cephfs")
    if absence is None:
        return True
    say(
        f"strakes: clients are threads on the mount, one client to the servers: {absence['why']}. {absence['remedy']}",
        err=True,
    )
    return False


def drill_visit(directory: Path, agreed: bool, fault: AskedFault, servers: Servers | None = None) -> DrillVisit:
    """Return the visit of a study of drills. Raises BadInputError if the fault is impossible or lacks consent."""
    from strakes.base.files import default_root
    from strakes.control.drill_visit import DrillVisit
    from strakes.studies.recovery import TIMING

    fault.make(directory, _USUAL, servers)
    require_consent(directory, agreed)
    return DrillVisit(lambda place: fault.make(place, _USUAL, servers), TIMING, default_root(), servers)


def require_consent(directory: Path, agreed: bool) -> None:
    """Raise BadInputError unless the user has agreed to the interruption."""
    if not agreed:
        raise BadInputError(
            "a drill interrupts the service of everyone who uses this file system",
            where=str(directory),
            remedy="To agree, add --yes-this-interrupts-service. To see what would be done, run strakes failover "
            "drill with --dry-run.",
        )
