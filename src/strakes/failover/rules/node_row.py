"""What a row says of one setting of a node, and what a setup has to use for it."""

from __future__ import annotations

from dataclasses import dataclass

from strakes.failover.rules.rule import Severity
from strakes.failover.setup import Setup

NO = "n|no|0|false|off"
YES = "y|yes|1|true|on"


@dataclass(frozen=True)
class NodeRow:
    """Table, names and values as regular expressions; ``only_with`` names what the setup has to use."""

    table: str
    names: str
    bad: str
    because: str
    severity: Severity
    only_with: str


@dataclass(frozen=True)
class SettingsOf:
    """Makes rows about the settings of one table: their names, the values that do harm, and what then happens."""

    table: str

    def error(self, names: str, bad: str, because: str, only_with: str = "") -> NodeRow:
        """Make a row about what works against the cluster."""
        return NodeRow(self.table, names, bad, because, "error", only_with)

    def warning(self, names: str, bad: str, because: str, only_with: str = "") -> NodeRow:
        """Make a row about what does less for the cluster than it could."""
        return NodeRow(self.table, names, bad, because, "warning", only_with)


# Tables that many rows are about.
SYSCTL = SettingsOf("sysctl")
LCTL = SettingsOf("lctl")
ZFS = SettingsOf("module zfs")
KERNEL_LINE = SettingsOf("kernel command line")
LVM = SettingsOf("lvm.conf global")
MULTIPATH = SettingsOf("multipath.conf defaults")
DATASET = SettingsOf("dataset")


def uses(setup: Setup, what: str) -> bool:
    """Tell whether the setup uses what a row is about."""
    agents = {one.agent for one in setup.services}
    devices = {one.agent for one in setup.devices}
    lustre = bool(setup.lustre or setup.lnet) or any(one.is_lustre for one in setup.services)
    return {
        "": True,
        "sbd": bool(setup.sbd),
        "lustre": lustre,
        "drbd": bool(setup.drbd),
        "zfs": "ZFS" in agents or "zpool create" in setup.lustre,
        "lvm": bool(agents & {"LVM-activate", "LVM", "clvm", "lvmlockd"}),
        "multipath": "etc/multipath.conf" in setup.texts,
        "address": bool(agents & {"IPaddr2", "IPaddr"}),
        "fence_kdump": "fence_kdump" in devices,
        "exports": bool(agents & {"exportfs", "nfsserver"}),
    }[what]
