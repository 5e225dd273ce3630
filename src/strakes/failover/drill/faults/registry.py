"""Every fault by its word. Adding one is its module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import NamedTuple

from strakes.errors import BadInputError
from strakes.failover.drill.faults.base import Ask, Fault
from strakes.failover.drill.faults.bmc import PowerOff
from strakes.failover.drill.faults.cephfs import FailServer, KillServer, StopServer
from strakes.failover.drill.faults.command import CommandFault
from strakes.failover.drill.faults.pacemaker import FailResource, FenceNode, StandbyNode

COMMAND = "command"


class Entry(NamedTuple):
    """``takes``: what of an Ask it has a use for, beside the directory."""

    make: Callable[[Ask], Fault]
    takes: tuple[str, ...]
    summary: str


FAULTS: Mapping[str, Entry] = {
    COMMAND: Entry(CommandFault, ("command", "restore"), "what --fault-command says"),
    "mds-kill": Entry(KillServer, (), "the active metadata server of a CephFS lab is killed"),
    "mds-stop": Entry(StopServer, (), "it is stopped, as one that hangs"),
    "mds-fail": Entry(FailServer, (), "rank 0 of any CephFS is given up in an orderly way (ceph mds fail)"),
    "node-standby": Entry(StandbyNode, ("node", "via"), "a node of Pacemaker's hands over all it serves"),
    "node-fence": Entry(FenceNode, ("node", "via"), "a node of Pacemaker's is powered off by its fencing"),
    "resource-fail": Entry(FailResource, ("node", "resource", "via"), "a resource of Pacemaker's fails"),
    "power-off": Entry(PowerOff, ("bmc", "bmc_user", "bmc_password_file", "via"), "a BMC cuts the power of a server"),
}


def make_fault(name: str, ask: Ask) -> Fault:
    """Raises BadInputError for what is unknown, for what it has no use for, and where it cannot be done."""
    if name not in FAULTS:
        raise BadInputError(f"no fault {name!r}", remedy=f"One of: {', '.join(FAULTS)}.")
    entry = FAULTS[name]
    for field in fields(ask):
        if field.name not in ("directory", *entry.takes) and getattr(ask, field.name):
            raise BadInputError(f"--{_option(field.name)} is not for the fault {name}", remedy="Leave it out.")
    return entry.make(ask)


def _option(field: str) -> str:
    return {"command": "fault-command", "restore": "restore-command"}.get(field, field.replace("_", "-"))
