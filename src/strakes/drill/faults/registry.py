"""Every fault by its name. Adding one is its module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import NamedTuple

from strakes.drill.faults.bmc import PowerOff
from strakes.drill.faults.cephfs import FailServer, KillServer, StopServer
from strakes.drill.faults.command import CommandFault
from strakes.drill.faults.fault import Ask, Fault
from strakes.drill.faults.lustre import CutClient, ForceUnmountTarget, SlowDisk, StopServices, UnmountTarget
from strakes.drill.faults.pacemaker import FailResource, FenceNode, StandbyNode
from strakes.errors import BadInputError

COMMAND = "command"


class FaultEntry(NamedTuple):
    """One kind of fault; ``takes`` are the fields of an Ask that it uses, beside the directory."""

    make: Callable[[Ask], Fault]
    takes: tuple[str, ...]
    summary: str


FAULTS: Mapping[str, FaultEntry] = {
    COMMAND: FaultEntry(CommandFault, ("command", "restore"), "run the command of --fault-command"),
    "mds-kill": FaultEntry(KillServer, (), "kill the active metadata server of a CephFS lab"),
    "mds-stop": FaultEntry(StopServer, (), "stop the active metadata server (SIGSTOP), as if it hung"),
    "mds-fail": FaultEntry(FailServer, (), "fail rank 0 of a CephFS in an orderly way (ceph mds fail)"),
    "node-standby": FaultEntry(StandbyNode, ("node", "via"), "move all services away from a Pacemaker node (standby)"),
    "node-fence": FaultEntry(FenceNode, ("node", "via"), "power off a Pacemaker node by its fencing device"),
    "resource-fail": FaultEntry(FailResource, ("node", "resource", "via"), "fail a Pacemaker resource"),
    "power-off": FaultEntry(
        PowerOff, ("bmc", "bmc_user", "bmc_password_file", "via"), "cut the power of a server by its BMC"
    ),
    "lustre-umount": FaultEntry(UnmountTarget, ("target",), "unmount a target of Lustre on its server"),
    "lustre-umount-force": FaultEntry(
        ForceUnmountTarget, ("target",), "unmount a target of Lustre by force: its clients are evicted"
    ),
    "lustre-server-stop": FaultEntry(StopServices, ("target",), "unmount all Lustre targets of one server"),
    "lustre-slow-disk": FaultEntry(SlowDisk, ("target",), "slow the disk of a target of Lustre"),
    "lustre-client-cut": FaultEntry(CutClient, (), "cut this client off from its Lustre servers"),
}


def make_fault(name: str, ask: Ask) -> Fault:
    """Make a fault by its name.

    Raises BadInputError for an unknown name, for options that the fault does not use, and where the fault cannot be
    done.
    """
    if name not in FAULTS:
        raise BadInputError(f"no fault {name!r}", remedy=f"One of: {', '.join(FAULTS)}.")
    entry = FAULTS[name]
    for field in fields(ask):
        if field.name not in ("directory", "servers", *entry.takes) and getattr(ask, field.name):
            raise BadInputError(f"--{_option(field.name)} cannot be used with the fault {name}", remedy="Leave it out.")
    return entry.make(ask)


def _option(field: str) -> str:
    return {"command": "fault-command", "restore": "restore-command"}.get(field, field.replace("_", "-"))
