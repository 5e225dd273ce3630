"""What commands share that do a fault to a live system: which one, to whom, and the consent to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from strakes.cli.options import PATH, Command, with_options
from strakes.cli.say import say
from strakes.errors import BadInputError
from strakes.language import translate
from strakes.language.width import padded

if TYPE_CHECKING:
    from strakes.drill.faults.fault import Fault
    from strakes.drill.visit import DrillVisit
    from strakes.targets.command import Servers

# Of a study that was not told which.
_USUAL = "mds-kill"


@dataclass(frozen=True)
class AskedFault:
    """The fault that the command line asks for; ``words``: the fields of an ``Ask``, but its directory and servers."""

    name: str | None
    words: Mapping[str, Any]

    def make(self, directory: Path, usual: str = "", servers: Servers | None = None) -> Fault:
        """Make the fault, or ``usual`` where none was named. Raises BadInputError where it cannot be done."""
        from strakes.drill.faults.fault import Ask
        from strakes.drill.faults.registry import COMMAND, FAULTS, make_fault

        if self.name == "list":
            for known, entry in FAULTS.items():
                click.echo(f"{known:<20} {padded(translate(entry.works_on), 23)} {translate(entry.summary)}")
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
    """Add ``--fault`` and the options that the kinds of fault need: ``fault`` is an AskedFault."""

    @wraps(command)
    def with_fault(*, fault: str | None, **options: Any) -> object:
        asked = AskedFault(fault, {name: options.pop(name) for name in _WORDS})
        return command(fault=asked, **options)

    named = click.option("--fault", metavar="FAULT", help='Fault to cause. "--fault list" lists all.')
    return with_options(cast("Command", with_fault), named, *_WORDS.values())


def has_sessions(directory: Path) -> bool:
    """Return whether clients can be sessions of libcephfs there; say how to get it where only that is missing."""
    from strakes.drill.faults.cephfs import is_cephfs
    from strakes.launch.engine import LocalEngine

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
    """Return how a study of drills visits. Raises BadInputError where the fault is impossible or not agreed to."""
    from strakes.drill.visit import DrillVisit
    from strakes.files import default_root
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
