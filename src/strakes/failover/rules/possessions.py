"""What belongs to the cluster, and is nobody else's: disks, directories, addresses, pools, groups of volumes, units."""

from __future__ import annotations

import re
from dataclasses import dataclass

from strakes.failover.rules.layers import volume_groups, volume_named
from strakes.failover.rules.lustre import made_targets
from strakes.failover.rules.mounts import ADDRESSES
from strakes.failover.rules.node_files import UNITS_OF
from strakes.failover.setup import Setup

_ARRAYS = ("mdraid", "Raid1", "mdadm")
_EXPORTING = ("exportfs", "nfsserver")


@dataclass(frozen=True)
class Possessions:
    """Names of what the cluster has.

    ``disks`` are the devices that it mounts, hands out or makes pools of; ``copies`` the disks below DRBD, which each
    node has of its own. ``exports`` tells whether Pacemaker exports over NFS.
    """

    disks: frozenset[str]
    copies: frozenset[str]
    places: frozenset[str]
    addresses: frozenset[str]
    pools: frozenset[str]
    groups: frozenset[str]
    units: frozenset[str]
    resources: frozenset[str]
    arrays: frozenset[str]
    exports: bool

    def has_disk(self, device: str) -> bool:
        """Tell whether a disk is one that the cluster mounts, hands out, makes a pool of or replicates."""
        return one_name(device) in self.disks | self.copies

    def place_around(self, directory: str) -> str:
        """Return the directory of the cluster that this one is, or lies in; empty where it is in none."""
        path = f"{directory.rstrip('/')}/"
        return next((place for place in sorted(self.places) if path.startswith(f"{place}/")), "")

    def place_below(self, directory: str) -> str:
        """Return the directory of the cluster that lies below this one, empty where there is none."""
        path = f"{directory.rstrip('/')}/"
        return next((place for place in sorted(self.places) if path != "/" and place.startswith(path)), "")


def one_name(device: str) -> str:
    """Return the device under the one name that is compared: of volumes /dev/GROUP/VOLUME.

    >>> one_name("/dev/mapper/vg-home"), one_name("/dev/sdb")
    ('/dev/vg/home', '/dev/sdb')
    """
    group, volume = volume_named(device)
    return f"/dev/{group}/{volume}" if group else device


def possessions_of(setup: Setup) -> Possessions:
    """Collect what belongs to the cluster from all files that name it."""
    services = setup.services
    disks = {one.device for one in services if one.uses_disk}
    disks |= {
        volume[0].partition(" ")[0] for one in setup.drbd for host in one.hosts for volume in host.volumes.values()
    }
    copies = {volume[1] for one in setup.drbd for host in one.hosts for volume in host.volumes.values()}
    places = {one.mount_point for one in services if one.is_mount}
    pools = {one.values.get("pool", "") for one in services if one.agent == "ZFS"}
    for target in setup.cluster.targets if setup.cluster else ():
        disks |= {target.device, *(target.devices.values() if target.shared else target.vdevs)}
        disks |= {word for word in target.vdevs if word.startswith("/dev/")}
        pools.add(target.pool)
    for words in made_targets(setup):
        disks.add(words[-1])
    for line in re.sub(r"\\\n", " ", setup.lustre).splitlines():
        if line.strip().startswith("zpool create"):
            disks |= {word for word in line.split() if word.startswith("/dev/")}
    units, arrays = set[str](), set[str]()
    for one in services:
        if one.standard in ("systemd", "service"):
            units.add(f"{one.agent.removesuffix('.service')}.service")
        if one.agent in _ARRAYS:
            arrays |= {value for value in one.values.values() if value.startswith("/dev/")}
        resource = one.values.get("drbd_resource", "")
        units |= {unit.replace("{drbd_resource}", resource) for unit in UNITS_OF.get(one.agent, ())}
    return Possessions(
        disks=frozenset(one_name(disk) for disk in disks if disk),
        copies=frozenset(one_name(disk) for disk in copies if disk),
        places=frozenset(place for place in places if place),
        addresses=frozenset(one.values.get("ip", "") for one in services if one.agent in ADDRESSES) - {""},
        pools=frozenset(pools) - {""},
        groups=frozenset(group for _, group, _ in (volume_groups(setup.cib) if setup.cib else ())) - {""},
        units=frozenset(units),
        resources=frozenset(one.name for one in setup.drbd),
        arrays=frozenset(arrays),
        exports=any(one.agent in _EXPORTING for one in services),
    )
