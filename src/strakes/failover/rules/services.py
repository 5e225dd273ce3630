"""Rules about what Pacemaker runs, where, in which order, and whether it may."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.cib_values import is_true, score, seconds
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules.replication import mounts_on_both
from strakes.failover.rules.rule import DRBD_PACEMAKER, PACEMAKER, rule
from strakes.failover.setup import Setup

_INFINITY = float("inf")


def clone_of(setup: Setup, device: str) -> str:
    """Return the clone that promotes the resource of a replicated device; empty where there is none."""
    clones = {one.values.get("drbd_resource", ""): one.clone for one in setup.pacemaker.primitives if one.is_drbd}
    names = [resource.name for resource in setup.drbd if device in resource.devices]
    return next((clones[name] for name in names if name in clones), "")


def _on_drbd(setup: Setup) -> Iterator[tuple[Primitive, str]]:
    """Yield what uses replicated devices, each with the clone of its device."""
    for primitive in setup.pacemaker.services:
        if primitive.uses_disk and primitive.device.startswith("/dev/drbd"):
            yield primitive, clone_of(setup, primitive.device)


@rule("pacemaker", "drbd").error(
    reason="The mounted device belongs to no DRBD resource in Pacemaker, and does not promote itself, as a device of "
    "DRBD 9 can.",
    remedy="Correct the device, or add the ocf:linbit:drbd resource; with DRBD 9 also auto-promote yes.",
    source=DRBD_PACEMAKER,
)
def drbd_device_not_managed(setup: Setup) -> Iterator[str]:
    """Find mounts of a DRBD device that nothing promotes."""
    automatic = {
        device
        for resource in setup.drbd
        for device in resource.devices
        if resource.dialect9 and resource.option("options", "auto-promote") != "no"
    }
    for mount, clone in _on_drbd(setup):
        if not clone and mount.device not in automatic:
            yield f"cib: {mount.id} uses {mount.device}, which nothing promotes"


@rule("pacemaker", "drbd").error(
    reason="What is written to the disk below DRBD is not replicated, and DRBD does not know about it: the copies "
    "differ.",
    remedy="Mount the DRBD device.",
    source=DRBD_PACEMAKER,
)
def disk_below_drbd_mounted(setup: Setup) -> Iterator[str]:
    """Find mounts of a disk below DRBD."""
    disks = {disk: resource.name for resource in setup.drbd for disk in resource.disks | resource.metadata}
    for primitive in setup.pacemaker.services:
        if primitive.uses_disk and primitive.device in disks:
            yield f"cib: {primitive.id} uses {primitive.device}, the disk of {disks[primitive.device]}"


@rule("pacemaker", "drbd").error(
    reason="No DRBD file has a resource of this name: the agent fails on both nodes.",
    remedy="drbd_resource=NAME as in drbd.d.",
    source=DRBD_PACEMAKER,
)
def drbd_resource_unknown(setup: Setup) -> Iterator[str]:
    """Find DRBD resources that do not exist, or that are managed twice."""
    known = {resource.name for resource in setup.drbd}
    seen: dict[str, str] = {}
    for primitive in filter(lambda one: one.is_drbd, setup.pacemaker.services):
        name = primitive.values.get("drbd_resource", "")
        if name not in known:
            yield f"cib: {primitive.id} has drbd_resource={name or '(none)'}"
        other = seen.setdefault(name, primitive.id)
        if other != primitive.id:
            yield f"cib: {other} and {primitive.id} both are {name}"


@rule("pacemaker", "drbd").error(
    reason="Without the colocation, Pacemaker may start the mount on the node whose copy is secondary, where it fails.",
    remedy="Colocation of the group with the Promoted role of its DRBD clone, score INFINITY.",
    source=DRBD_PACEMAKER,
)
def mount_not_with_the_primary(setup: Setup) -> Iterator[str]:
    """Find mounts that are not kept with the promoted copy."""
    for mount, clone in _on_drbd(setup):
        if clone and not setup.pacemaker.ties.tied(mount, clone):
            yield f"cib: {mount.group or mount.id} is not tied to the promoted {clone}"


@rule("pacemaker", "drbd").error(
    reason="Without the order, Pacemaker tries the mount before the device is writable. The mount fails and is banned "
    "from the node.",
    remedy="Order: promote the DRBD clone, then start the group.",
    source=DRBD_PACEMAKER,
)
def mount_before_promotion(setup: Setup) -> Iterator[str]:
    """Find mounts that do not wait for the promotion."""
    for mount, clone in _on_drbd(setup):
        if clone and setup.pacemaker.ties.ordered_after_promotion(mount, clone) is None:
            yield f"cib: {mount.group or mount.id} is not ordered after the promotion of {clone}"


@rule("pacemaker", "drbd").error(
    reason="With symmetrical=false, nothing makes Pacemaker unmount before it demotes: the demotion fails, and the "
    "node is powered off.",
    remedy="Remove symmetrical=false.",
    source=f"{PACEMAKER}/constraints.rst",
)
def demotion_before_unmount(setup: Setup) -> Iterator[str]:
    """Find orders that hold for starts only."""
    for mount, clone in _on_drbd(setup):
        for order in setup.pacemaker.ties.ordered_after_promotion(mount, clone) or ():
            if not order.symmetrical:
                yield f"cib: {order.id} has symmetrical=false"


@rule("pacemaker").error(
    reason="The DRBD clone needs one promoted instance, two in all, and notifications about its peer (notify=true).",
    remedy="promoted-max=1 clone-max=2 clone-node-max=1 notify=true",
    source=DRBD_PACEMAKER,
)
def drbd_clone_wrong(setup: Setup) -> Iterator[str]:
    """Find DRBD resources whose clone lacks what DRBD needs."""
    cib = setup.pacemaker
    for primitive in cib.primitives:
        if not primitive.is_drbd:
            continue
        if not cib.promotable(primitive.clone):
            yield f"cib: {primitive.id} is in no promotable clone"
            continue
        meta = cib.clones[primitive.clone]
        if not is_true(meta.get("notify", "false")):
            yield f"cib: {primitive.clone} has no notify=true"
        for keys, good in (
            (("promoted-max", "master-max"), ("1", "2") if mounts_on_both(setup) else ("1",)),
            (("promoted-node-max", "master-node-max"), ("1",)),
            (("clone-node-max",), ("1",)),
        ):
            given = next((meta[key] for key in keys if key in meta), "1")
            if given not in good:
                yield f"cib: {primitive.clone} has {keys[0]}={given}"
        if meta.get("clone-max", "2") in ("0", "1"):
            yield f"cib: {primitive.clone} has clone-max={meta['clone-max']}: there is no second copy"


@rule("pacemaker").error(
    reason="A manual move or ban leaves a constraint behind; as long as it exists, the service never moves to the "
    "other node.",
    remedy="crm_resource --clear --resource RESOURCE",
    source="https://manpages.debian.org/bookworm/pacemaker-cli-utils/crm_resource.8.en.html",
)
def leftover_move_constraint(setup: Setup) -> Iterator[str]:
    """Find constraints left over from commands that moved a resource."""
    for location in setup.pacemaker.locations:
        if location.id.startswith(("cli-ban-", "cli-prefer-", "cli-standby-")):
            yield f"cib: {location.id}"


@rule("pacemaker").error(
    reason="DRBD's handler has found the other copy outdated; until that copy is up to date again, its node cannot "
    "take over.",
    remedy="Repair the replication: the handler removes the constraint once the copy is up to date.",
    source=DRBD_PACEMAKER,
)
def outdated_copy_locked_out(setup: Setup) -> Iterator[str]:
    """Find copies that the DRBD handler keeps from being promoted."""
    for identity in dict.fromkeys(location.id for location in setup.pacemaker.locations):
        if identity.startswith("drbd-fence-by-handler"):
            yield f"cib: {identity}"


@rule("pacemaker").error(
    reason="A service that may run on one node only cannot be taken over.",
    remedy="Use a finite score below the stickiness; use -INFINITY only for nodes outside the pair.",
    source=f"{PACEMAKER}/constraints.rst",
)
def pinned_to_one_node(setup: Setup) -> Iterator[str]:
    """Find services that may run on one node at most."""
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


@rule("pacemaker").error(
    reason="When only one node is left, one of the two services does not run: neither node can take over for the "
    "other.",
    remedy="A finite negative score, such as -100.",
    source=f"{PACEMAKER}/constraints.rst",
)
def services_keep_each_other_away(setup: Setup) -> Iterator[str]:
    """Find resources that two nodes must keep apart."""
    cib = setup.pacemaker
    for colocation in cib.colocations:
        members = [cib.ties.members(name) for name, _ in colocation.resources]
        fencing = any(one.standard == "stonith" for group in members for one in group)
        if colocation.score == -_INFINITY and len(setup.node_names) < 3 and not fencing:
            yield f"cib: {colocation.id} keeps {' and '.join(name for name, _ in colocation.resources)} apart"


@rule("pacemaker").warning(
    reason="When the repaired node comes back, the service moves back by itself: a second interruption, at a time "
    "nobody chose.",
    remedy="rsc_defaults: resource-stickiness=1000, higher than any location score.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Clusters_from_Scratch/active-passive.rst",
)
def no_stickiness(setup: Setup) -> Iterator[str]:
    """Find services that move home as soon as their node comes back."""
    for name, stick, strongest in homes_of(setup):
        if strongest > 0 and stick <= strongest:
            yield f"cib: {name} has stickiness {stick:g}, its preference is {strongest:g}"
            return


@rule("pacemaker").note(
    reason="Without stickiness, Pacemaker may move a service to balance the load when a node comes back.",
    remedy="rsc_defaults: resource-stickiness=1000",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Clusters_from_Scratch/active-passive.rst",
)
def stickiness_not_set(setup: Setup) -> Iterator[str]:
    """Find services that may move without need."""
    loose = [name for name, stick, strongest in homes_of(setup) if strongest <= 0 and stick <= 0]
    if loose:
        yield f"cib: {', '.join(loose)}"


def homes_of(setup: Setup) -> Iterator[tuple[str, float, float]]:
    """Yield each group or single service with its stickiness and its strongest preference for a node.

    The stickiness of a group is the sum over its members.
    """
    cib = setup.pacemaker
    names = dict.fromkeys(one.group or one.clone or one.id for one in cib.services)
    for name in names:
        members = cib.ties.members(name)
        if all(one.clone and not cib.promotable(one.clone) for one in members):
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


@rule("pacemaker").error(
    reason="Pacemaker does not protect a service that is in maintenance, unmanaged, kept stopped, or on a node in "
    "standby: nothing is taken over.",
    remedy="maintenance-mode=false; is-managed=true; target-role=Started; crm_standby --delete --node NODE",
    source="https://github.com/ClusterLabs/crmsh/issues/1956",
)
def nothing_is_managed(setup: Setup) -> Iterator[str]:
    """Find settings by which Pacemaker does not act."""
    cib = setup.pacemaker
    for key in ("maintenance-mode", "stop-all-resources"):
        if is_true(cib.properties.get(key, "false")):
            yield f"cib: {key}=true"
    if not is_true(cib.properties.get("is-managed-default", "true")):
        yield "cib: is-managed-default=false"
    votes_only = {node.name for node in setup.cluster.nodes if node.quorum_only} if setup.cluster else set()
    for node, attributes in cib.node_attributes.items():
        for key in ("standby", "maintenance"):
            if is_true(attributes.get(key, "false")) and not (key == "standby" and node in votes_only):
                yield f"cib: {node} is in {key}"
    for primitive in cib.primitives:
        meta = primitive.meta
        if not is_true(meta.get("is-managed", "true")) or is_true(meta.get("maintenance", "false")):
            yield f"cib: {primitive.id} is not managed"
        unpromoted = cib.promotable(primitive.clone) and meta.get("target-role") == "Unpromoted"
        if meta.get("target-role") == "Stopped" or unpromoted:
            yield f"cib: {primitive.id} has target-role={meta['target-role']}"


@rule("pacemaker").error(
    reason="With symmetric-cluster=false a resource runs only where a location constraint allows it.",
    remedy="symmetric-cluster=true, or a location constraint for every resource on every node that may take it over.",
    source=f"{PACEMAKER}/constraints.rst",
)
def nowhere_to_run(setup: Setup) -> Iterator[str]:
    """Find resources that no node is allowed to run."""
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


@rule("pacemaker").error(
    reason="A failure with on-fail ignore or block is never recovered: the service stays dead, or its node is never "
    "powered off.",
    remedy="Remove on-fail: the default fences a node after a failed stop, and restarts the service after anything "
    "else.",
    source=f"{PACEMAKER}/operations.rst",
)
def failure_ignored(setup: Setup) -> Iterator[str]:
    """Find operations whose failure does not lead to recovery."""
    cib = setup.pacemaker
    default = cib.operation_defaults.get("on-fail", "")
    if default in ("ignore", "block", "stop"):
        yield f"cib: op_defaults on-fail={default}"
    for primitive in cib.primitives:
        for operation in primitive.operations:
            if operation.on_fail in ("ignore", "block", "stop") and operation.on_fail != default:
                yield f"cib: {operation.name} of {primitive.id} has on-fail={operation.on_fail}"


@rule("pacemaker").error(
    reason="With requires=nothing or requires=quorum, a service is started although the node that ran it may still be "
    "on.",
    remedy="Remove requires; the default is fencing.",
    source=f"{PACEMAKER}/resources.rst",
)
def started_without_fencing(setup: Setup) -> Iterator[str]:
    """Find services that start before a lost node is fenced."""
    for primitive in setup.pacemaker.services:
        given = primitive.meta.get("requires", "")
        asked = [given, *(one.requires for one in primitive.operations)]
        loose = next((value for value in asked if value in ("nothing", "quorum")), "")
        if loose:
            yield f"cib: {primitive.id} has requires={loose}"


@rule("pacemaker").note(
    reason="After that many failures the node may never run the service again; months later, the last healthy node is "
    "refused because of an old failure.",
    remedy="failure-timeout=600s together with migration-threshold.",
    source="https://github.com/corosync/corosync/issues/455",
)
def failure_never_forgotten(setup: Setup) -> Iterator[str]:
    """Find failure limits that are never reset."""
    for primitive in setup.pacemaker.services:
        if "migration-threshold" in primitive.meta and not seconds(primitive.meta.get("failure-timeout", "")):
            yield (
                f"cib: {primitive.id} has migration-threshold={primitive.meta['migration-threshold']} and no "
                "failure-timeout"
            )


@rule("pacemaker").note(
    reason="If nobody notices a take-over, the cluster runs without redundancy for weeks, until the second failure.",
    remedy="Alerts by mail or webhook ([alerts] in cluster.toml).",
    source=f"{PACEMAKER}/alerts.rst",
)
def nobody_is_alerted(setup: Setup) -> Iterator[str]:
    """Find a cluster that tells nobody of events."""
    if not setup.pacemaker.alerts and not any(
        one.agent in ("ClusterMon", "MailTo") for one in setup.pacemaker.primitives
    ):
        yield "cib: no alert"
