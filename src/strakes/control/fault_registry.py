"""Registry of all faults by name. A new fault needs a class and one entry in the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import NamedTuple

from strakes.base.errors import BadInputError, did_you_mean
from strakes.control.fault import Ask, CommandFault, Fault, PowerOff
from strakes.control.fault_cephfs import FailServer, SignalServer
from strakes.control.fault_drbd import DiscardPeer, DisconnectPeer
from strakes.control.fault_lustre import CutClient, StopServices, UnmountTarget
from strakes.control.fault_pacemaker import FailResource, FenceNode, StandbyNode

COMMAND = "command"


class FaultEntry(NamedTuple):
    """Entry for a kind of fault. ``takes``: options (fields of ``Ask``) that it uses in addition to the directory."""

    make: Callable[[Ask], Fault]
    takes: tuple[str, ...]
    works_on: str
    summary: str


_LAB, _CEPH, _PACEMAKER, _LUSTRE = "CephFS lab", "CephFS", "Pacemaker", "Lustre"
_BMC = ("bmc", "bmc_user", "bmc_password_file", "via")
FAULTS: Mapping[str, FaultEntry] = {
    COMMAND: FaultEntry(CommandFault, ("fault_command", "restore_command"), "anything", "run --fault-command"),
    "mds-kill": FaultEntry(partial(SignalServer, word="KILL"), (), _LAB, "kill the active metadata server"),
    "mds-stop": FaultEntry(partial(SignalServer, word="STOP"), (), _LAB, "stop the active metadata server (SIGSTOP)"),
    "mds-fail": FaultEntry(FailServer, (), _CEPH, "replace the metadata server with rank 0 (ceph mds fail)"),
    "node-standby": FaultEntry(StandbyNode, ("node", "via"), _PACEMAKER, "move all services away from a node"),
    "node-fence": FaultEntry(FenceNode, ("node", "via"), _PACEMAKER, "power off a node by its fencing device"),
    "resource-fail": FaultEntry(FailResource, ("node", "resource", "via"), _PACEMAKER, "fail a resource"),
    "power-off": FaultEntry(PowerOff, _BMC, "server with a BMC", "cut the power of a server by its BMC"),
    "drbd-disconnect": FaultEntry(DisconnectPeer, (), "DRBD 8.4", "disconnect the peer; then it is synchronised"),
    "drbd-discard": FaultEntry(DiscardPeer, (), "DRBD 8.4", "discard the peer's copy; then all of it is sent again"),
    "lustre-umount": FaultEntry(UnmountTarget, ("target",), _LUSTRE, "unmount a target on its server"),
    "lustre-umount-force": FaultEntry(
        partial(UnmountTarget, how="umount -f"), ("target",), _LUSTRE, "the same by force: clients are evicted"
    ),
    "lustre-server-stop": FaultEntry(StopServices, ("target",), _LUSTRE, "unmount all targets of one server"),
    "lustre-client-cut": FaultEntry(CutClient, (), _LUSTRE, "cut this client off from its servers"),
}


def make_fault(name: str, ask: Ask) -> Fault:
    """Return a new fault of the kind ``name``. Raises BadInputError, also for an option that the fault does not use."""
    if name not in FAULTS:
        raise BadInputError(f"no fault {name!r}", remedy=did_you_mean(name, FAULTS))
    entry = FAULTS[name]
    for field in fields(ask):
        if field.name not in ("directory", "servers", *entry.takes) and getattr(ask, field.name):
            word = field.name.replace("_", "-")
            raise BadInputError(f"--{word} cannot be used with the fault {name}", remedy="Leave it out.")
    return entry.make(ask)
