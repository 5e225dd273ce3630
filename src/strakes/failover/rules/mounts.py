"""Rules about what is mounted, exported and reached by clients: in which order, where, and how often."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations

from strakes.failover.cib import Cib
from strakes.failover.rules.fencing_devices import address_of
from strakes.failover.rules.rule import AGENTS, OWN, PACEMAKER, rule
from strakes.failover.setup import Setup

_INFINITY = float("inf")
# No bundle has more.
_MOST_REPLICAS = 1000
_EXPORTS = ("exportfs", "nfsserver")
ADDRESSES = ("IPaddr2", "IPaddr", "IPv6addr")
_OF_THE_NETWORK = {"nfs": r"\S+:/\S*", "nfs4": r"\S+:/\S*", "cifs": r"//\S+", "ceph": r"\S*[:=]/?\S*"}
_CLUSTER_FILE_SYSTEMS = ("gfs2", "ocfs2", "nfs", "nfs4", "cifs", "glusterfs", "ceph", "tmpfs")


@rule("pacemaker").error(
    reason="If it is exported or started before the file system is mounted, clients get the empty directory below the "
    "mount point.",
    remedy="Order the members of the group: file system, server, export, address.",
    source=f"{AGENTS}/exportfs",
)
def exported_before_mounted(setup: Setup) -> Iterator[str]:
    """Find exports and services that start before their group's file system is mounted."""
    for group in setup.pacemaker.groups.values():
        for earlier, later in combinations(group, 2):
            if (earlier.agent in _EXPORTS or earlier.standard in ("systemd", "lsb", "service")) and later.is_mount:
                yield f"cib: {earlier.id} starts before {later.id} is mounted"


@rule("pacemaker").warning(
    reason="Clients that reach the address before the file system is mounted get errors, or stale handles, instead of "
    "waiting.",
    remedy="Put the address last in its group.",
    source=f"{AGENTS}/exportfs",
)
def address_before_mount(setup: Setup) -> Iterator[str]:
    """Find addresses that are up before their group's file system is mounted."""
    for group in setup.pacemaker.groups.values():
        for earlier, later in combinations(group, 2):
            if earlier.agent in ADDRESSES and later.is_mount:
                yield f"cib: {earlier.id} is up before {later.id} is mounted"


@rule("pacemaker").warning(
    reason="An address or an export without a colocation may run on a node that does not have the file system.",
    remedy="One group, or a colocation with score INFINITY.",
    source=f"{PACEMAKER}/constraints.rst",
)
def service_not_with_its_mount(setup: Setup) -> Iterator[str]:
    """Find addresses and exports that may run on another node than what they belong to."""
    cib = setup.pacemaker
    tied = {name for colocation in cib.colocations if colocation.score == _INFINITY for name, _ in colocation.resources}
    mounts = [one for one in cib.services if one.is_mount and not one.clone]
    for primitive in cib.services if mounts else ():
        if primitive.agent not in (*ADDRESSES, "exportfs") or primitive.clone:
            continue
        mates = cib.groups.get(primitive.group, (primitive,))
        if len(mates) < 2 and not {primitive.id, primitive.group} & tied:
            yield f"cib: {primitive.id} is tied to no other resource"


@rule("pacemaker").error(
    reason="Two mounts on one directory hide each other; two resources for one device may mount it on both nodes.",
    remedy="Give each mount its own device and its own directory.",
    source=f"{AGENTS}/Filesystem",
)
def directory_or_device_mounted_twice(setup: Setup) -> Iterator[str]:
    """Find devices and directories that several resources mount."""
    seen: dict[tuple[str, str], str] = {}
    for primitive in setup.pacemaker.services:
        if not primitive.uses_disk:
            continue
        for what, value in (("directory", primitive.mount_point), ("device", primitive.device)):
            bound = "bind" in primitive.values.get("options", "")
            other = seen.setdefault((what, value), primitive.id)
            if other != primitive.id and value and not (what == "device" and bound):
                yield f"cib: {other} and {primitive.id} have the {what} {value}"


@rule("pacemaker").error(
    reason="A clone mounts the same ext4, XFS or ldiskfs on both nodes at once, which destroys it.",
    remedy="Remove the clone, or use a cluster file system (gfs2, ocfs2) with fencing.",
    source=f"{AGENTS}/Filesystem",
)
def mounted_on_both_nodes(setup: Setup) -> Iterator[str]:
    """Find mounts on several nodes of a file system that allows only one."""
    for primitive in setup.pacemaker.services:
        cloned = primitive.clone and (primitive.is_mount or primitive.agent == "ZFS")
        if cloned and primitive.values.get("fstype", "") not in _CLUSTER_FILE_SYSTEMS:
            yield f"cib: {primitive.id} is in the clone {primitive.clone}"


@rule("pacemaker").error(
    reason="Two resources for one pool may import it on both nodes at once, which destroys it.",
    remedy="Use one resource for each pool, and set: zpool set multihost=on POOL",
    source=f"{AGENTS}/ZFS",
)
def pool_imported_twice(setup: Setup) -> Iterator[str]:
    """Find pools that several resources import."""
    pools: dict[str, str] = {}
    for primitive in setup.pacemaker.services:
        if primitive.agent != "ZFS":
            continue
        other = pools.setdefault(primitive.values.get("pool", ""), primitive.id)
        if other != primitive.id:
            yield f"cib: {other} and {primitive.id} have the pool {primitive.values.get('pool')}"


@rule("pacemaker").error(
    reason="With async, the NFS server acknowledges data that are only in its memory: a take-over loses them.",
    remedy="exportfs options=rw,sync",
    source="https://manpages.debian.org/bookworm/nfs-kernel-server/exports.5.en.html",
)
def acknowledged_before_written(setup: Setup) -> Iterator[str]:
    """Find exports and mounts that acknowledge writes before they are on the disk."""
    for primitive in setup.pacemaker.services:
        options = primitive.values.get("options", "").split(",")
        if primitive.agent == "exportfs" and "async" in options:
            yield f"cib: {primitive.id} exports with async"
        risky = [option for option in options if option in ("nobarrier", "barrier=0", "data=writeback")]
        if primitive.is_mount and risky:
            yield f"cib: {primitive.id} mounts with {', '.join(risky)}"


@rule("pacemaker").error(
    reason="Clients identify a file system by its fsid: two exports with the same fsid look like one. An export "
    "outside a mount does not move in a take-over.",
    remedy="Give each export its own fsid=N; put the exported directory and nfs_shared_infodir on the mount.",
    source=f"{AGENTS}/exportfs",
)
def exports_collide(setup: Setup) -> Iterator[str]:
    """Find exports that are on no mount, and identifiers of exports that are used twice."""
    cib = setup.pacemaker
    mounts = [one.mount_point for one in cib.services if one.is_mount and one.mount_point]
    datasets = any(one.agent in ("ZFS", "ZFSexport") for one in cib.services)
    seen: dict[str, tuple[str, str]] = {}
    clients: dict[tuple[str, str], str] = {}
    for primitive in cib.services:
        directory = primitive.values.get("directory", "") if primitive.agent == "exportfs" else ""
        state = primitive.values.get("nfs_shared_infodir", "") if primitive.agent == "nfsserver" else ""
        for place in filter(None, (directory, state)):
            within = any(f"{place}/".startswith(f"{mount}/") for mount in mounts)
            if mounts and not within and not datasets:
                yield f"cib: {primitive.id} has {place}, which is on no mount"
        whom = directory.rstrip("/"), primitive.values.get("clientspec", "")
        if directory and clients.setdefault(whom, primitive.id) != primitive.id:
            yield f"cib: {clients[whom]} and {primitive.id} export {directory} to {whom[1]}"
        number = primitive.values.get("fsid", "")
        if directory and number:
            other, exported = seen.setdefault(number, (primitive.id, directory))
            if exported != directory:
                yield f"cib: {other} and {primitive.id} have fsid={number}"


@rule("pacemaker").error(
    reason="Two resources, or a resource and a machine, have this address, and both answer: clients reach one or the "
    "other.",
    remedy="Give each service an address of its own.",
    source=f"{AGENTS}/IPaddr2",
)
def service_address_already_used(setup: Setup) -> Iterator[str]:
    """Find service addresses that a node, a BMC, a container or another resource has."""
    rings = setup.membership.one("nodelist").all("node") if setup.corosync else []
    taken = {
        value: node.get("name") or "a node" for node in rings for key, value in node.settings if key.endswith("_addr")
    }
    for node in setup.cluster.nodes if setup.cluster else ():
        taken |= dict.fromkeys((*node.addresses.values(), node.bmc.address), node.name)
    taken |= {address_of(device): device.id for device in setup.pacemaker.devices if address_of(device)}
    for given, bundle in _bundled(setup.pacemaker):
        if given in taken:
            yield f"cib: {bundle} and {taken[given]} have the address {given}"
        taken[given] = bundle
    for primitive in setup.pacemaker.services:
        server = primitive.values.get("server", "") if primitive.agent == "remote" else ""
        if server and server in taken:
            yield f"cib: {primitive.id} and {taken[server]} have the address {server}"
    for primitive in setup.pacemaker.services:
        ip = primitive.values.get("ip", "") if primitive.agent in ADDRESSES else ""
        other = taken.get(ip, "")
        if ip and other:
            yield f"cib: {primitive.id} and {other} have the address {ip}"
        if ip and not primitive.clone:
            taken[ip] = primitive.id


def _bundled(cib: Cib) -> Iterator[tuple[str, str]]:
    """Yield the addresses that Pacemaker gives to the containers of bundles, with the bundle that has them."""
    for bundle in cib.root.iter("bundle"):
        network = bundle.find("./network")
        replicas = next((part.get("replicas", "1") for part in bundle if part.get("image")), "1")
        with suppress(ValueError, AttributeError):
            first = ipaddress.ip_address(network.get("ip-range-start", "") if network is not None else "")
            for number in range(min(int(replicas), _MOST_REPLICAS)):
                yield str(first + number), bundle.get("id", "")


@rule("pacemaker").error(
    reason="A network file system needs a server and not a device, a disk file system a device and not a server: the "
    "mount fails on every node.",
    remedy="device=SERVER:/DIRECTORY with fstype=nfs; device=/dev/... with the type of the file system on it.",
    source=f"{AGENTS}/Filesystem",
)
def mount_device_of_the_wrong_kind(setup: Setup) -> Iterator[str]:
    """Find devices that are none of the kind of file system that they are said to have."""
    for one in setup.pacemaker.services:
        kind = one.values.get("fstype", "").lower()
        if one.agent != "Filesystem" or not one.device:
            continue
        remote = _OF_THE_NETWORK.get(kind)
        if (remote and one.device.startswith("/dev/")) or (
            kind in ("ext3", "ext4", "xfs", "btrfs", "gfs2", "ocfs2")
            and re.fullmatch(_OF_THE_NETWORK["nfs"], one.device)
        ):
            yield f"cib: {one.id} mounts {one.device} with fstype={kind}"


@rule("pacemaker").warning(
    reason="The pool moves to the other node, but this path does not: what clients see, or the locks that they hold, "
    "stay behind.",
    remedy="Use a directory in the pool.",
    source=OWN,
)
def path_outside_its_pool(setup: Setup) -> Iterator[str]:
    """Find exports and states of NFS that lie outside of the pool in which others of their group lie."""
    for group in setup.pacemaker.groups.values():
        pools = [one for one in group if one.agent in ("ZFS", "zpool") and one.values.get("pool")]
        homes = {f"/{one.values['pool']}/" for one in pools}
        homes |= {f"{one.mount_point}/" for one in group if one.is_mount and one.mount_point}
        paths = [
            (one.id, path)
            for one in group
            for name in ("directory", "nfs_shared_infodir")
            if one.agent in ("exportfs", "nfsserver") and (path := one.values.get(name, ""))
        ]
        inside = {path for _, path in paths if any(f"{path}/".startswith(home) for home in homes)}
        if inside and pools:
            yield from (f"cib: {name} has {path}" for name, path in paths if path not in inside)


@rule("pacemaker").error(
    reason="zpool import -F, -X and -T go back to an older state: a take-over discards writes that clients believe are "
    "safe. With -N nothing is mounted, with readonly nothing can be written.",
    remedy='importargs="-d DIRECTORY"; going back must be a decision of a person.',
    source="https://openzfs.github.io/openzfs-docs/man/master/8/zpool-import.8.html",
)
def pool_import_discards_writes(setup: Setup) -> Iterator[str]:
    """Find pools that are imported with the loss of their last writes."""
    for one in setup.pacemaker.services:
        words = one.values.get("importargs", "").split() if one.agent == "ZFS" else []
        bad = [word for word in words if re.fullmatch(r"-[A-Za-z]*[FXTN][A-Za-z]*|(-o)?readonly=on", word)]
        if bad:
            yield f"cib: {one.id} has importargs with {' '.join(bad)}"
