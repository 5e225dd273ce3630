"""Rules about what a service stands on: volume groups, lock managers, mounts, and the order of these."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.cib import Cib
from strakes.failover.cib_values import is_true
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules.mounts import ADDRESSES
from strakes.failover.rules.rule import AGENTS, PACEMAKER, rule
from strakes.failover.setup import Setup

_LOCKED = ("gfs2", "ocfs2")
# Where agents of services say that their data are.
_DATA = ("datadir", "pgdata", "named_rootdir", "catalina_base")


def volume_groups(cib: Cib) -> Iterator[tuple[Primitive, str, str]]:
    """Yield each resource that activates volumes, with the volume group and the volume, which may be empty."""
    for one in cib.services:
        if one.agent in ("LVM-activate", "LVM"):
            yield one, one.values.get("vgname") or one.values.get("volgrpname", ""), one.values.get("lvname", "")


def volume_of(primitive: Primitive) -> tuple[str, str]:
    """Return the volume group and the volume that a mount or a logical unit is on; empty where it is on none."""
    return volume_named(primitive.device)


def volume_named(device: str) -> tuple[str, str]:
    """Return the volume group and the volume of a device; empty where it is no volume.

    A hyphen within a name is doubled in /dev/mapper.
    """
    mapped = re.fullmatch(r"/dev/mapper/((?:[^-/]|--)+)-((?:[^-/]|--)+)", device)
    plain = re.fullmatch(r"/dev/(?!disk/|mapper/|drbd|md/|zvol/)([^/]+)/([^/]+)", device)
    found = mapped or plain
    return (found[1].replace("--", "-"), found[2].replace("--", "-")) if found else ("", "")


@rule("pacemaker").error(
    reason="Before its volume group is activated, the device does not exist: the mount fails, and the group is banned "
    "from the node.",
    remedy="Put LVM-activate before the mount in the group, or add an order.",
    source=f"{AGENTS}/LVM-activate",
)
def volume_group_activated_too_late(setup: Setup) -> Iterator[str]:
    """Find mounts that do not wait for their volume group."""
    cib = setup.pacemaker
    for activation, group, volume in volume_groups(cib):
        for one in cib.services:
            used_group, used_volume = volume_of(one)
            uses = used_group == group and (not volume or used_volume == volume)
            if one.uses_disk and group and uses and not cib.ties.starts_after(one, activation):
                yield f"cib: {one.id} uses {group}, and does not wait for {activation.id}"


@rule("pacemaker").error(
    reason="The group activates one volume group and mounts a volume of a different one, which nothing activates.",
    remedy="Use the same volume group in vgname and in the device of the mount.",
    source=f"{AGENTS}/LVM-activate",
)
def volume_group_not_activated(setup: Setup) -> Iterator[str]:
    """Find mounts beside an activation that activates something else."""
    cib = setup.pacemaker
    activated = {group for _, group, _ in volume_groups(cib)}
    used = {volume_of(one)[0] for one in cib.services}
    for activation, group, _ in volume_groups(cib):
        for one in cib.groups.get(activation.group, ()):
            if one.uses_disk and group not in used and volume_of(one)[0] not in (*activated, ""):
                yield f"cib: {activation.id} activates {group}, {one.id} uses {one.device}"
    volumes = {volume_of(one) for one in cib.services}
    each = {(group, volume) for _, group, volume in volume_groups(cib)}
    for activation, group, volume in volume_groups(cib):
        for one in cib.groups.get(activation.group, ()) if volume and (group, volume) not in volumes else ():
            if one.uses_disk and volume_of(one)[0] == group and not each & {volume_of(one), (group, "")}:
                yield f"cib: {activation.id} activates {group}/{volume}, {one.id} uses {one.device}"


@rule("pacemaker").error(
    reason="No resource assembles the array or imports the pool: on the node that takes over, the disk does not exist.",
    remedy="Use one name in the device of the mount and in the resource that assembles or imports it.",
    source=f"{AGENTS}/mdraid",
)
def array_or_pool_not_managed(setup: Setup) -> Iterator[str]:
    """Find disks that no resource gives: where others are given, or where what is given is not used."""
    cib = setup.pacemaker
    on_bases = {user.id for user, _ in bases(cib)}
    used = {base.id for _, base in bases(cib)}
    for members in cib.groups.values():
        for number, giver in enumerate(members):
            given = _array_of(giver) or _pool_of(giver)
            for one in members[number + 1 :] if given and giver.id not in used else ():
                disk = one.values.get("encrypted_dev") or (one.device if one.uses_disk else "")
                if disk and one.id not in on_bases:
                    yield f"cib: {giver.id} gives {given}, and {one.id} uses {disk}"
    arrays, pools = ({get(one) for one in cib.services} - {""} for get in (_array_of, _pool_of))
    for one in cib.services:
        if arrays and re.fullmatch(r"/dev/md/?\w+", one.device) and one.uses_disk and one.device not in arrays:
            yield f"cib: {one.id} uses {one.device}, which no resource assembles"
        pool = one.device.partition("/")[0] if one.is_lustre and "/" in one.device else ""
        if pools and pool and pool not in pools:
            yield f"cib: {one.id} uses {one.device}, and no resource imports {pool}"


@rule("pacemaker").error(
    reason="Only one node can activate a volume exclusively: all other instances of the clone fail.",
    remedy="activation_mode=shared and vg_access_mode=lvmlockd; or remove the clone.",
    source=f"{AGENTS}/LVM-activate",
)
def exclusive_volume_in_a_clone(setup: Setup) -> Iterator[str]:
    """Find clones that activate a volume exclusively."""
    for one in setup.pacemaker.services:
        alone = one.values.get("activation_mode", "exclusive") == "exclusive"
        if one.agent == "LVM-activate" and one.clone and (alone or one.values.get("vg_access_mode") == "system_id"):
            yield f"cib: {one.id} is in the clone {one.clone}"


@rule("pacemaker").error(
    reason="Cluster file systems and shared volumes cannot start before the lock manager (controld) runs on the node.",
    remedy="Add an order: start the clone of controld (and lvmlockd), then what uses it; and a colocation.",
    source=f"{PACEMAKER}/constraints.rst",
)
def started_without_its_lock_manager(setup: Setup) -> Iterator[str]:
    """Find shared volumes and cluster file systems that do not wait for the lock manager, or have none."""
    cib = setup.pacemaker
    locks = [one for one in cib.services if one.agent in ("lvmlockd", "clvm")]
    for one in cib.services if not locks else ():
        if one.agent == "LVM-activate" and one.values.get("vg_access_mode") in ("lvmlockd", "clvmd"):
            yield f"cib: {one.id} has vg_access_mode={one.values['vg_access_mode']}, and nothing starts that"
    managers = [one for one in cib.services if one.agent == "controld"]
    for one in cib.services if managers else ():
        locked = one.agent in ("lvmlockd", "clvm") or one.values.get("vg_access_mode") in ("lvmlockd", "clvmd")
        if (locked or (one.is_mount and one.values.get("fstype") in _LOCKED)) and not any(
            cib.ties.starts_after(one, manager) for manager in managers
        ):
            yield f"cib: {one.id} does not wait for {managers[0].id}"


@rule("pacemaker").error(
    reason="Without locks between the nodes, each node overwrites what the other has in memory: the file system is "
    "destroyed.",
    remedy="Remove lockproto from the options.",
    source="https://manpages.debian.org/bookworm/gfs2-utils/gfs2.5.en.html",
)
def cluster_file_system_without_locks(setup: Setup) -> Iterator[str]:
    """Find cluster file systems that are mounted on several nodes without locks."""
    for one in setup.pacemaker.services:
        if one.is_mount and one.clone and "lock_nolock" in one.values.get("options", ""):
            yield f"cib: {one.id} has options={one.values['options']}"


@rule("pacemaker").warning(
    reason="Without interleave, each instance waits for all instances of the other clone: whenever a node joins or "
    "leaves, the service restarts on all nodes.",
    remedy="interleave=true on the clone that waits.",
    source=f"{PACEMAKER}/resources.rst",
)
def clone_waits_for_all_nodes(setup: Setup) -> Iterator[str]:
    """Find clones that wait for another clone without ``interleave``; that of the other one does not count."""
    cib = setup.pacemaker
    for order in cib.orders:
        between = order.mandatory and {order.first, order.then} <= set(cib.clones)
        if between and not is_true(cib.clones[order.then].get("interleave", "false")):
            yield f"cib: {order.id} lets {order.then} wait for {order.first}"


@rule("pacemaker").warning(
    reason="The clone has only one copy and runs on one node: resources on other nodes that wait for it never start.",
    remedy="Remove clone-max, or the clone.",
    source=f"{PACEMAKER}/collective.rst",
)
def clone_with_one_copy(setup: Setup) -> Iterator[str]:
    """Find clones that are limited to one copy."""
    cib = setup.pacemaker
    for name, meta in cib.clones.items():
        if meta.get("clone-max") == "1" and len(cib.nodes) > 1 and not cib.promotable(name):
            yield f"cib: {name} has clone-max=1"


def _pool_of(primitive: Primitive) -> str:
    """Return the ZFS pool that a resource imports, empty for any other."""
    return primitive.values.get("pool", "") if "zfs" in primitive.agent.lower() or primitive.agent == "zpool" else ""


def _array_of(primitive: Primitive) -> str:
    """Return the device that a resource makes of others, empty for any other resource."""
    if primitive.agent == "crypt" and primitive.values.get("crypt_dev"):
        return f"/dev/mapper/{primitive.values['crypt_dev']}"
    return primitive.values.get("md_dev") or primitive.values.get("raiddev", "")


def _stands_on(user: Primitive, base: Primitive) -> bool:
    """Tell whether a parameter of the user names what the base gives: a path, a dataset, or an array of disks."""
    if array := _array_of(base):
        return array in (user.device, user.values.get("encrypted_dev"))
    pool, place = _pool_of(base), base.mount_point if base.is_mount else ""
    beginnings = [f"{place}/"] if place else [f"{pool}/", f"/{pool}/", f"/dev/zvol/{pool}/"] if pool else []
    values = [f"{value.rstrip('/')}/" for value in user.values.values()]
    return any(value.startswith(beginning) for value in values for beginning in beginnings)


def bases(cib: Cib) -> Iterator[tuple[Primitive, Primitive]]:
    """Yield each service with each mount or pool that it stands on."""
    for base in cib.services:
        for user in cib.services if base.is_mount or _pool_of(base) or _array_of(base) else ():
            if user.id != base.id and not user.mount_point == base.mount_point != "" and _stands_on(user, base):
                yield user, base


@rule("pacemaker").error(
    reason="A parameter names a directory or a dataset that another resource mounts or imports: without an order, the "
    "service starts on an empty directory, or fails.",
    remedy="Put the mount and the pool first in the group, or add an order.",
    source=f"{PACEMAKER}/constraints.rst",
)
def started_before_its_directory_exists(setup: Setup) -> Iterator[str]:
    """Find services that do not wait for the mount or pool that their parameters name."""
    for user, base in bases(setup.pacemaker):
        if not setup.pacemaker.ties.starts_after(user, base):
            yield f"cib: {user.id} does not wait for {base.id}"


@rule("pacemaker").error(
    reason="A parameter names a directory or a dataset that another resource mounts or imports, but nothing keeps the "
    "two on the same node.",
    remedy="One group, or a colocation with score INFINITY.",
    source=f"{PACEMAKER}/constraints.rst",
)
def not_colocated_with_its_directory(setup: Setup) -> Iterator[str]:
    """Find services that may run on another node than the mount or pool that their parameters name."""
    cib = setup.pacemaker
    for user, base in bases(cib):
        if base.id not in cib.ties.together(user):
            yield f"cib: {user.id} is not kept with {base.id}"


@rule("pacemaker").warning(
    reason="A service that is colocated with a mount but not ordered after it starts on the empty directory; one that "
    "is ordered but not colocated may start on the other node.",
    remedy="Use both a colocation and an order, or one group.",
    source=f"{PACEMAKER}/constraints.rst",
)
def half_tied_to_its_mount(setup: Setup) -> Iterator[str]:
    """Find services that are colocated with a mount and not ordered after it, or the other way round."""
    cib = setup.pacemaker
    for mount in (one for one in cib.services if one.is_mount and not one.is_lustre and not one.clone):
        near = cib.ties.together(mount)
        for one in cib.services:
            if one.is_mount or one.clone or one.id == mount.id or one.group == mount.group != "":
                continue
            after = cib.ties.starts_after(one, mount)
            # An address that is there too early costs an error message, not the data.
            tied = after if one.id not in near else after or one.agent in ADDRESSES
            if (one.id in near) != tied and not cib.ties.starts_after(mount, one):
                yield f"cib: {one.id} {'waits for' if after else 'is kept with'} {mount.id}, and no more"


@rule("pacemaker").error(
    reason="The service keeps its data on the node's own disk: after a take-over it serves different data, or none.",
    remedy="Use a directory on the mount of its group.",
    source=f"{PACEMAKER}/resources.rst",
)
def data_outside_the_mount(setup: Setup) -> Iterator[str]:
    """Find services whose data are on no mount of their group."""
    cib = setup.pacemaker
    for members in cib.groups.values():
        mounts = [one.mount_point for one in members if one.is_mount and one.mount_point]
        for one in members if mounts else ():
            for name in _DATA:
                place = one.values.get(name, "")
                if place.startswith("/") and not any(f"{place}/".startswith(f"{mount}/") for mount in mounts):
                    yield f"cib: {one.id} has {name}={place}, the mounts are {' and '.join(mounts)}"
