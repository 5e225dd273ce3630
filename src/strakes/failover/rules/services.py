"""Rules about what Pacemaker runs, where, in which order, and whether it may."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.cib import Primitive, is_true, score, seconds
from strakes.failover.rules.rule import PACEMAKER, rule
from strakes.failover.setup import Setup

_INFINITY = float("inf")
_LINBIT = "https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc"
_EXPORTS = ("exportfs", "nfsserver")
_ADDRESSES = ("IPaddr2", "IPaddr", "IPv6addr")
_CLUSTER_FILE_SYSTEMS = ("gfs2", "ocfs2", "nfs", "nfs4", "cifs", "glusterfs", "ceph", "tmpfs")


def clone_of(setup: Setup, device: str) -> str:
    """Return the clone that promotes the resource of a replicated device; empty where there is none."""
    clones = {one.values.get("drbd_resource", ""): one.clone for one in setup.pacemaker.primitives if one.is_drbd}
    names = [resource.name for resource in setup.drbd if device in resource.devices]
    return next((clones[name] for name in names if name in clones), "")


def _on_drbd(setup: Setup) -> Iterator[tuple[Primitive, str]]:
    """Mounts of replicated devices, and the clone of each device."""
    for primitive in setup.pacemaker.services:
        if primitive.is_mount and primitive.device.startswith("/dev/drbd"):
            yield primitive, clone_of(setup, primitive.device)


def _together(cib_group: tuple[Primitive, ...]) -> Iterator[tuple[Primitive, Primitive]]:
    for number, earlier in enumerate(cib_group):
        for later in cib_group[number + 1 :]:
            yield earlier, later


@rule(
    "device-not-managed",
    "error",
    "pacemaker",
    "drbd",
    reason="What is mounted is a device that no DRBD resource of Pacemaker makes, and that does not promote itself as DRBD 9 can.",
    remedy="Correct the device, or add the ocf:linbit:drbd resource; with DRBD 9 also auto-promote yes.",
    source=_LINBIT,
)
def not_managed(setup: Setup) -> Iterator[str]:
    automatic = {
        device
        for resource in setup.drbd
        for device in resource.devices
        if resource.dialect9 and resource.option("options", "auto-promote") != "no"
    }
    for mount, clone in _on_drbd(setup):
        if not clone and mount.device not in automatic:
            yield f"cib: {mount.id} mounts {mount.device}, which nothing promotes"


@rule(
    "disk-below-drbd-mounted",
    "error",
    "pacemaker",
    "drbd",
    reason="What is written to the disk below DRBD is not replicated, and DRBD does not know of it: the copies differ.",
    remedy="Mount the DRBD device.",
    source=_LINBIT,
)
def backing_disk(setup: Setup) -> Iterator[str]:
    disks = {disk: resource.name for resource in setup.drbd for disk in resource.disks}
    for primitive in setup.pacemaker.services:
        if primitive.device in disks:
            yield f"cib: {primitive.id} mounts {primitive.device}, the disk of {disks[primitive.device]}"


@rule(
    "resource-of-drbd-unknown",
    "error",
    "pacemaker",
    "drbd",
    reason="The agent brings up a resource that the files do not have: it fails on both nodes.",
    remedy="drbd_resource=NAME as in drbd.d.",
    source=_LINBIT,
)
def unknown_resource(setup: Setup) -> Iterator[str]:
    known = {resource.name for resource in setup.drbd}
    seen: dict[str, str] = {}
    for primitive in filter(lambda one: one.is_drbd, setup.pacemaker.services):
        name = primitive.values.get("drbd_resource", "")
        if name not in known:
            yield f"cib: {primitive.id} has drbd_resource={name or '(none)'}"
        other = seen.setdefault(name, primitive.id)
        if other != primitive.id:
            yield f"cib: {other} and {primitive.id} both are {name}"


@rule(
    "mount-not-with-the-primary",
    "error",
    "pacemaker",
    "drbd",
    reason="Without the colocation the mount is started on the node that has only the secondary, and fails there.",
    remedy="Colocation of the group with the Promoted role of its DRBD clone, score INFINITY.",
    source=_LINBIT,
)
def colocation(setup: Setup) -> Iterator[str]:
    for mount, clone in _on_drbd(setup):
        if clone and not setup.pacemaker.tied(mount, clone):
            yield f"cib: {mount.group or mount.id} is not tied to the promoted {clone}"


@rule(
    "mount-before-promotion",
    "error",
    "pacemaker",
    "drbd",
    reason="Without the order the mount is tried before the device can be written to, fails, and is banned from the node.",
    remedy="Order: promote the DRBD clone, then start the group.",
    source=_LINBIT,
)
def order(setup: Setup) -> Iterator[str]:
    for mount, clone in _on_drbd(setup):
        if clone and setup.pacemaker.ordered_after_promotion(mount, clone) is None:
            yield f"cib: {mount.group or mount.id} is not ordered after the promotion of {clone}"


@rule(
    "demotion-before-unmount",
    "error",
    "pacemaker",
    "drbd",
    reason="With symmetrical=false nothing says that the unmount comes before the demotion: that fails, and the node is powered off.",
    remedy="Remove symmetrical=false.",
    source=f"{PACEMAKER}/constraints.rst",
)
def one_way_order(setup: Setup) -> Iterator[str]:
    for mount, clone in _on_drbd(setup):
        for order in setup.pacemaker.ordered_after_promotion(mount, clone) or ():
            if not order.symmetrical:
                yield f"cib: {order.id} has symmetrical=false"


@rule(
    "drbd-clone-wrong",
    "error",
    "pacemaker",
    reason="DRBD needs one promoted instance, two in all, and to be told what happens to its peer (notify=true).",
    remedy="promoted-max=1 clone-max=2 clone-node-max=1 notify=true",
    source=_LINBIT,
)
def clone_meta(setup: Setup) -> Iterator[str]:
    cib = setup.pacemaker
    for primitive in cib.primitives:
        if not primitive.is_drbd:
            continue
        meta = cib.clones.get(primitive.clone)
        if meta is None or not is_true(meta.get("promotable", "false")):
            yield f"cib: {primitive.id} is in no promotable clone"
            continue
        if not is_true(meta.get("notify", "false")):
            yield f"cib: {primitive.clone} has no notify=true"
        shared = any(one.values.get("fstype") in ("gfs2", "ocfs2") for one in cib.services)
        for keys, good in (
            (("promoted-max", "master-max"), ("1", "2") if shared else ("1",)),
            (("promoted-node-max", "master-node-max"), ("1",)),
            (("clone-node-max",), ("1",)),
        ):
            given = next((meta[key] for key in keys if key in meta), "1")
            if given not in good:
                yield f"cib: {primitive.clone} has {keys[0]}={given}"
        if meta.get("clone-max", "2") in ("0", "1"):
            yield f"cib: {primitive.clone} has clone-max={meta['clone-max']}: there is no second copy"


@rule(
    "left-over-move",
    "error",
    "pacemaker",
    reason="A move or ban by hand leaves a constraint behind; with it the service never goes to the other node again.",
    remedy="crm_resource --clear --resource RESOURCE",
    source="https://manpages.debian.org/bookworm/pacemaker-cli-utils/crm_resource.8.en.html",
)
def left_over(setup: Setup) -> Iterator[str]:
    for location in setup.pacemaker.locations:
        if location.id.startswith(("cli-ban-", "cli-prefer-", "cli-standby-")):
            yield f"cib: {location.id}"


@rule(
    "copy-locked-out",
    "error",
    "pacemaker",
    reason="DRBD's handler has found the other copy outdated; until it is up to date again, that node cannot take over.",
    remedy="Repair the replication: the handler removes the constraint when the copy has caught up.",
    source=_LINBIT,
)
def locked_out(setup: Setup) -> Iterator[str]:
    for identity in dict.fromkeys(location.id for location in setup.pacemaker.locations):
        if identity.startswith("drbd-fence-by-handler"):
            yield f"cib: {identity}"


@rule(
    "pinned-to-one-node",
    "error",
    "pacemaker",
    reason="A service that may run on one node only cannot be taken over.",
    remedy="A finite score, less than the stickiness; -INFINITY only for nodes beside the pair.",
    source=f"{PACEMAKER}/constraints.rst",
)
def pinned(setup: Setup) -> Iterator[str]:
    cib = setup.pacemaker
    if len(setup.node_names) < 2:
        return
    opt_in = not is_true(cib.properties.get("symmetric-cluster", "true"))
    for primitive in cib.services:
        names = {primitive.id, primitive.group, primitive.clone}
        own = [location for location in cib.locations if names & set(location.resources)]
        away = {
            node
            for location in own
            if location.score == -_INFINITY and location.certain and not location.id.startswith(("cli-", "drbd-fence"))
            for node in location.nodes
        }
        wanted = {node for location in own if location.score >= 0 for node in location.nodes}
        left = [node for node in setup.node_names if node not in away and (not opt_in or node in wanted)]
        if len(left) < 2:
            yield f"cib: {primitive.id} may only run on {left[0] if left else 'no node'}"


@rule(
    "services-keep-each-other-away",
    "error",
    "pacemaker",
    reason="When one node is left, one of the two services is not served: there is no take-over between them.",
    remedy="A finite negative score, such as -100.",
    source=f"{PACEMAKER}/constraints.rst",
)
def apart(setup: Setup) -> Iterator[str]:
    cib = setup.pacemaker
    for colocation in cib.colocations:
        members = [cib.members(name) for name, _ in colocation.resources]
        fencing = any(one.standard == "stonith" for group in members for one in group)
        if colocation.score == -_INFINITY and len(setup.node_names) < 3 and not fencing:
            yield f"cib: {colocation.id} keeps {' and '.join(name for name, _ in colocation.resources)} apart"


@rule(
    "no-stickiness",
    "warning",
    "pacemaker",
    reason="When the repaired node comes back the service moves home by itself: a second interruption, at a time nobody chose.",
    remedy="rsc_defaults: resource-stickiness=1000, more than any location score.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Clusters_from_Scratch/active-passive.rst",
)
def stickiness(setup: Setup) -> Iterator[str]:
    for name, stick, strongest in _homes(setup):
        if strongest > 0 and stick <= strongest:
            yield f"cib: {name} has stickiness {stick:g}, its preference is {strongest:g}"
            return


@rule(
    "stickiness-not-said",
    "note",
    "pacemaker",
    reason="Without stickiness Pacemaker may move a service to balance the nodes, when one comes back.",
    remedy="rsc_defaults: resource-stickiness=1000",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Clusters_from_Scratch/active-passive.rst",
)
def stickiness_not_said(setup: Setup) -> Iterator[str]:
    loose = [name for name, stick, strongest in _homes(setup) if strongest <= 0 and stick <= 0]
    if loose:
        yield f"cib: {', '.join(loose)}"


def _homes(setup: Setup) -> Iterator[tuple[str, float, float]]:
    """Each group or single service: its stickiness (members of a group add theirs up), and the strongest preference for a node."""
    cib = setup.pacemaker
    names = dict.fromkeys(one.group or one.clone or one.id for one in cib.services)
    for name in names:
        members = cib.members(name)
        if all(one.clone and not is_true(cib.clones[one.clone].get("promotable", "false")) for one in members):
            continue
        default = cib.properties.get("default-resource-stickiness", "0")
        stick = sum(score(one.meta.get("resource-stickiness", default)) for one in members)
        scores = [
            location.score
            for location in cib.locations
            if {name, *(one.id for one in members)} & set(location.resources) and not location.id.startswith("cli-")
            if location.certain
        ]
        yield name, stick, max(scores, default=0.0)


@rule(
    "nothing-is-managed",
    "error",
    "pacemaker",
    reason="In maintenance, unmanaged, kept stopped or on a node in standby, Pacemaker gives no protection: nothing is taken over.",
    remedy="maintenance-mode=false; is-managed=true; target-role=Started; crm_standby --delete --node NODE",
    source="https://github.com/ClusterLabs/crmsh/issues/1956",
)
def unmanaged(setup: Setup) -> Iterator[str]:
    cib = setup.pacemaker
    for key in ("maintenance-mode", "stop-all-resources"):
        if is_true(cib.properties.get(key, "false")):
            yield f"cib: {key}=true"
    if not is_true(cib.properties.get("is-managed-default", "true")):
        yield "cib: is-managed-default=false"
    for node, attributes in cib.node_attributes.items():
        for key in ("standby", "maintenance"):
            if is_true(attributes.get(key, "false")):
                yield f"cib: {node} is in {key}"
    for primitive in cib.primitives:
        meta = primitive.meta
        if not is_true(meta.get("is-managed", "true")) or is_true(meta.get("maintenance", "false")):
            yield f"cib: {primitive.id} is not managed"
        promotable = is_true(cib.clones.get(primitive.clone, {}).get("promotable", "false"))
        if meta.get("target-role") == "Stopped" or (promotable and meta.get("target-role") == "Unpromoted"):
            yield f"cib: {primitive.id} has target-role={meta['target-role']}"


@rule(
    "nowhere-to-run",
    "error",
    "pacemaker",
    reason="With symmetric-cluster=false a resource runs only where a location constraint allows it.",
    remedy="symmetric-cluster=true, or a location for every resource on every node that may take over.",
    source=f"{PACEMAKER}/constraints.rst",
)
def opt_in(setup: Setup) -> Iterator[str]:
    cib = setup.pacemaker
    if is_true(cib.properties.get("symmetric-cluster", "true")):
        return
    placed = {name for location in cib.locations if location.score > 0 for name in location.resources}
    for primitive in cib.primitives:
        tied = any(
            {primitive.id, primitive.group, primitive.clone} & {name for name, _ in colocation.resources}
            for colocation in cib.colocations
        )
        if not placed & {primitive.id, primitive.group, primitive.clone} and not tied:
            yield f"cib: symmetric-cluster=false, and no location allows {primitive.id}"


@rule(
    "failure-passed-over",
    "error",
    "pacemaker",
    reason="A failure that is ignored, or only blocks, is never recovered: the service stays dead, or its node is never made sure to be off.",
    remedy="Remove on-fail: a failed stop is fenced, everything else is restarted.",
    source=f"{PACEMAKER}/operations.rst",
)
def passed_over(setup: Setup) -> Iterator[str]:
    cib = setup.pacemaker
    default = cib.operation_defaults.get("on-fail", "")
    if default in ("ignore", "block", "stop"):
        yield f"cib: op_defaults on-fail={default}"
    for primitive in cib.primitives:
        for operation in primitive.operations:
            if operation.on_fail in ("ignore", "block", "stop") and operation.on_fail != default:
                yield f"cib: {operation.name} of {primitive.id} has on-fail={operation.on_fail}"


@rule(
    "started-without-fencing",
    "error",
    "pacemaker",
    reason="With requires=nothing or quorum a service is started although the node that had it is not known to be off.",
    remedy="Remove requires; its default is fencing.",
    source=f"{PACEMAKER}/resources.rst",
)
def requires(setup: Setup) -> Iterator[str]:
    for primitive in setup.pacemaker.services:
        given = primitive.meta.get("requires", "")
        asked = [given, *(one.requires for one in primitive.operations)]
        loose = next((value for value in asked if value in ("nothing", "quorum")), "")
        if loose:
            yield f"cib: {primitive.id} has requires={loose}"


@rule(
    "exported-before-mounted",
    "error",
    "pacemaker",
    reason="What is exported or started before the file system is mounted is the empty directory below the mount point.",
    remedy="Members of the group in this order: file system, server, export, address.",
    source="https://github.com/ClusterLabs/resource-agents/blob/main/heartbeat/exportfs",
)
def exported_early(setup: Setup) -> Iterator[str]:
    for group in setup.pacemaker.groups.values():
        for earlier, later in _together(group):
            if (earlier.agent in _EXPORTS or earlier.standard in ("systemd", "lsb", "service")) and later.is_mount:
                yield f"cib: {earlier.id} starts before {later.id} is mounted"


@rule(
    "address-before-mount",
    "warning",
    "pacemaker",
    reason="Clients that reach the address before the file system is there get errors, or stale handles, instead of waiting.",
    remedy="The address last in its group.",
    source="https://github.com/ClusterLabs/resource-agents/blob/main/heartbeat/exportfs",
)
def address_early(setup: Setup) -> Iterator[str]:
    for group in setup.pacemaker.groups.values():
        for earlier, later in _together(group):
            if earlier.agent in _ADDRESSES and later.is_mount:
                yield f"cib: {earlier.id} is up before {later.id} is mounted"


@rule(
    "service-not-with-its-mount",
    "warning",
    "pacemaker",
    reason="An address or an export that is tied to nothing may run on the node that has not the file system.",
    remedy="One group, or a colocation with score INFINITY.",
    source=f"{PACEMAKER}/constraints.rst",
)
def loose(setup: Setup) -> Iterator[str]:
    cib = setup.pacemaker
    tied = {name for colocation in cib.colocations if colocation.score == _INFINITY for name, _ in colocation.resources}
    mounts = [one for one in cib.services if one.is_mount and not one.clone]
    for primitive in cib.services if mounts else ():
        if primitive.agent not in (*_ADDRESSES, "exportfs") or primitive.clone:
            continue
        mates = cib.groups.get(primitive.group, (primitive,))
        if len(mates) < 2 and not {primitive.id, primitive.group} & tied:
            yield f"cib: {primitive.id} is tied to no other resource"


@rule(
    "one-place-mounted-twice",
    "error",
    "pacemaker",
    reason="Two mounts on one directory hide each other; one device mounted by two resources may be mounted on both nodes.",
    remedy="Give each its own device and its own directory.",
    source="https://github.com/ClusterLabs/resource-agents/blob/main/heartbeat/Filesystem",
)
def mounted_twice(setup: Setup) -> Iterator[str]:
    seen: dict[tuple[str, str], str] = {}
    for primitive in setup.pacemaker.services:
        if not primitive.is_mount:
            continue
        for what, value in (("directory", primitive.mount_point), ("device", primitive.device)):
            bound = "bind" in primitive.values.get("options", "")
            other = seen.setdefault((what, value), primitive.id)
            if other != primitive.id and value and not (what == "device" and bound):
                yield f"cib: {other} and {primitive.id} have the {what} {value}"


@rule(
    "mounted-on-both-nodes",
    "error",
    "pacemaker",
    reason="A clone mounts the same ext4, XFS or ldiskfs on both nodes at once, which destroys it.",
    remedy="No clone; or a cluster file system (gfs2, ocfs2) with fencing.",
    source="https://github.com/ClusterLabs/resource-agents/blob/main/heartbeat/Filesystem",
)
def cloned_mount(setup: Setup) -> Iterator[str]:
    for primitive in setup.pacemaker.services:
        cloned = primitive.clone and (primitive.is_mount or primitive.agent == "ZFS")
        if cloned and primitive.values.get("fstype", "") not in _CLUSTER_FILE_SYSTEMS:
            yield f"cib: {primitive.id} is in the clone {primitive.clone}"


@rule(
    "pool-imported-twice",
    "error",
    "pacemaker",
    reason="Two resources for one pool may import it on both nodes at once, which destroys it.",
    remedy="One resource for each pool; zpool set multihost=on POOL",
    source="https://github.com/ClusterLabs/resource-agents/blob/main/heartbeat/ZFS",
)
def forced_import(setup: Setup) -> Iterator[str]:
    pools: dict[str, str] = {}
    for primitive in setup.pacemaker.services:
        if primitive.agent != "ZFS":
            continue
        other = pools.setdefault(primitive.values.get("pool", ""), primitive.id)
        if other != primitive.id:
            yield f"cib: {other} and {primitive.id} have the pool {primitive.values.get('pool')}"


@rule(
    "acknowledged-before-written",
    "error",
    "pacemaker",
    reason="With async the NFS server acknowledges what is only in its memory: a take-over loses it.",
    remedy="exportfs options=rw,sync",
    source="https://manpages.debian.org/bookworm/nfs-kernel-server/exports.5.en.html",
)
def asynchronous(setup: Setup) -> Iterator[str]:
    for primitive in setup.pacemaker.services:
        options = primitive.values.get("options", "").split(",")
        if primitive.agent == "exportfs" and "async" in options:
            yield f"cib: {primitive.id} exports with async"
        risky = [option for option in options if option in ("nobarrier", "barrier=0", "data=writeback")]
        if primitive.is_mount and risky:
            yield f"cib: {primitive.id} mounts with {', '.join(risky)}"


@rule(
    "exports-collide",
    "error",
    "pacemaker",
    reason="Clients know a file system by its fsid: two with one are one to them. Outside of a mount there is nothing to take over.",
    remedy="fsid=N, another one for each export; the exported directory and nfs_shared_infodir on the mount.",
    source="https://github.com/ClusterLabs/resource-agents/blob/main/heartbeat/exportfs",
)
def exports(setup: Setup) -> Iterator[str]:
    cib = setup.pacemaker
    mounts = [one.mount_point for one in cib.services if one.is_mount and one.mount_point]
    datasets = any(one.agent in ("ZFS", "ZFSexport") for one in cib.services)
    seen: dict[str, tuple[str, str]] = {}
    for primitive in cib.services:
        directory = primitive.values.get("directory", "") if primitive.agent == "exportfs" else ""
        state = primitive.values.get("nfs_shared_infodir", "") if primitive.agent == "nfsserver" else ""
        for place in filter(None, (directory, state)):
            within = any(f"{place}/".startswith(f"{mount}/") for mount in mounts)
            if mounts and not within and not datasets:
                yield f"cib: {primitive.id} has {place}, which is on no mount"
        number = primitive.values.get("fsid", "")
        if directory and number:
            other, exported = seen.setdefault(number, (primitive.id, directory))
            if exported != directory:
                yield f"cib: {other} and {primitive.id} have fsid={number}"


@rule(
    "address-wrong",
    "error",
    "pacemaker",
    reason="An address that two have, or that a node has of its own, answers from both: clients reach one or the other.",
    remedy="An address of its own for each service.",
    source="https://github.com/ClusterLabs/resource-agents/blob/main/heartbeat/IPaddr2",
)
def address(setup: Setup) -> Iterator[str]:
    rings = setup.membership.one("nodelist").all("node") if setup.corosync else []
    taken = {
        value: node.get("name") or "a node" for node in rings for key, value in node.settings if key.endswith("_addr")
    }
    for node in setup.cluster.nodes if setup.cluster else ():
        taken |= dict.fromkeys((*node.addresses.values(), node.bmc.address), node.name)
    for primitive in setup.pacemaker.services:
        ip = primitive.values.get("ip", "") if primitive.agent in _ADDRESSES else ""
        other = taken.get(ip, "")
        if ip and other:
            yield f"cib: {primitive.id} and {other} have the address {ip}"
        if ip and not primitive.clone:
            taken[ip] = primitive.id


@rule(
    "failure-never-forgotten",
    "note",
    "pacemaker",
    reason="After so many failures a node is out of question for ever; months later the last healthy node is refused for an old one.",
    remedy="failure-timeout=600s beside migration-threshold.",
    source="https://github.com/corosync/corosync/issues/455",
)
def forgotten(setup: Setup) -> Iterator[str]:
    for primitive in setup.pacemaker.services:
        if "migration-threshold" in primitive.meta and not seconds(primitive.meta.get("failure-timeout", "")):
            yield f"cib: {primitive.id} has migration-threshold={primitive.meta['migration-threshold']} and no failure-timeout"


@rule(
    "nobody-is-told",
    "note",
    "pacemaker",
    reason="A take-over that nobody notices is followed by weeks without redundancy, and by the second failure.",
    remedy="Alerts by mail or webhook ([alerts] in cluster.toml).",
    source=f"{PACEMAKER}/alerts.rst",
)
def alerts(setup: Setup) -> Iterator[str]:
    if not setup.pacemaker.alerts and not any(
        one.agent in ("ClusterMon", "MailTo") for one in setup.pacemaker.primitives
    ):
        yield "cib: no alert"
