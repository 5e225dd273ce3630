"""Disks, directories, pools, addresses and systemd units that the cluster controls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from strakes.failover.cib_values import read_table
from strakes.failover.known_options import options_of
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.setup import Setup

_CHANGES = re.compile(
    r".*\b(standby|unstandby|stop|disable|ban|move|migrate|clear|cleanup|maintenance\S*|fence|-[rBsCU])\b.*"
)


def volume_named(device: str) -> tuple[str, str]:
    """Return (volume group, logical volume) of the path of a device; ("", "") if it is not a logical volume."""
    # /dev/mapper/a-b--1 is the volume b-1 of group a.
    mapped = re.fullmatch(r"/dev/mapper/((?:[^-/]|--)+)-((?:[^-/]|--)+)", device)
    plain = re.fullmatch(r"/dev/(?!disk/|mapper/|drbd|md/|zvol/)([^/]+)/([^/]+)", device)
    found = mapped or plain
    return (found[1].replace("--", "-"), found[2].replace("--", "-")) if found else ("", "")


def one_name(device: str) -> str:
    """Return the name /dev/GROUP/VOLUME for a logical volume, or else the given name."""
    group, volume = volume_named(device)
    return f"/dev/{group}/{volume}" if group else device


def units_of(one: Primitive) -> tuple[str, ...]:
    """Return the systemd units that start the same program as a resource."""
    if one.standard in ("systemd", "service"):
        return (f"{one.agent.removesuffix('.service')}.service",)
    units = options_of(f"units of {one.agent}") or (f"{one.agent}.service",)
    return tuple(unit.replace("NAME", one.values.get("drbd_resource", "")) for unit in units)


@dataclass(frozen=True)
class Possessions:
    """Disks, mount points (``places``), addresses, pools, volume groups and systemd units of the cluster."""

    disks: frozenset[str]
    places: frozenset[str]
    addresses: frozenset[str]
    pools: frozenset[str]
    groups: frozenset[str]
    units: frozenset[str]
    replicates: bool
    exports: bool

    def takes(self, source: str, place: str) -> bool:
        """Return whether a mount uses a disk, pool or directory of the cluster."""
        if source and (one_name(source) in self.disks or source.split("/", maxsplit=1)[0] in self.pools):
            return True
        below = [f"{path.rstrip('/')}/" for path in (place, source) if path.startswith("/") and path != "/"]
        own = tuple(f"{one}/" for one in self.places)
        return source.startswith("/dev/drbd") or any(path.startswith(own) for path in below)

    def is_touched_by(self, words: Sequence[str]) -> bool:
        """Return whether a command uses or changes anything that belongs to the cluster."""
        text, given = " ".join(words), words[1:]
        named = {part for word in given for part in (word, word.partition("=")[2], word.partition("/")[0]) if part}
        groups = {re.sub(r"^/dev/", "", word).partition("/")[0] for word in given}
        all_of_them = not [word for word in given[1:] if not word.startswith("-")] or "-a" in given
        touched = {
            "drbd": self.replicates,
            "pool": bool(self.pools & named) or (bool(self.pools) and all_of_them),
            "group": bool(self.groups & groups) or (bool(self.groups) and all_of_them),
            "disk": any(self.takes(word, word) for word in named if word.startswith("/")),
            "export": self.exports,
            "unit": bool(self.units & {word if "." in word else f"{word}.service" for word in given}),
            "address": bool(self.addresses & named),
            "cluster": bool(_CHANGES.fullmatch(text)),
        }
        tables = read_table("options/commands").items()
        kinds = [kind for kind, patterns in tables if any(re.fullmatch(one, text) for one in patterns)]
        return any(touched.get(kind, True) for kind in kinds)


def possessions_of(setup: Setup) -> Possessions:
    """Return the disks, pools, systemd units and so on that belong to the cluster."""
    services = setup.services
    disks = {one.device for one in services if one.uses_disk}
    disks |= {part for one in setup.drbd for host in one.hosts for row in host.volumes.values() for part in row[:2]}
    pools = {one.values.get("pool", "") for one in services if one.agent in ("ZFS", "zpool")}
    for target in setup.cluster.targets if setup.cluster else ():
        disks |= {target.device, *(word for word in target.vdevs if word.startswith("/dev/"))}
        pools.add(target.pool)
    lvm = [one.values for one in services if one.agent in ("LVM", "LVM-activate")]
    mounts = {one.mount_point for one in services if one.is_mount}
    return Possessions(
        frozenset(one_name(disk) for disk in disks if disk.startswith("/")),
        frozenset(place for place in mounts if place),
        frozenset(one.values.get("ip", "") for one in services) - {""},
        frozenset(pools) - {""},
        frozenset(values.get("vgname") or values.get("volgrpname", "") for values in lvm) - {""},
        frozenset(unit for one in services for unit in units_of(one)),
        bool(setup.drbd),
        any(one.agent in ("exportfs", "nfsserver") for one in services),
    )
