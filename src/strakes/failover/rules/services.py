"""Rules about what Pacemaker runs, where, in which order, and whether it may."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.cib import Cib, Primitive, score
from strakes.failover.rules.base import rule
from strakes.failover.setup import Setup

_TRUE = ("true", "yes", "on", "1")
_PROMOTED = ("Promoted", "Master")


def _on_drbd(setup: Setup, cib: Cib) -> Iterator[tuple[Primitive, str]]:
    """Mounts of replicated devices, and the clone of each device."""
    devices = {device: resource.name for resource in setup.drbd for device in resource.devices.values()}
    clones = {one.values.get("drbd_resource", ""): one.clone for one in cib.primitives if one.is_drbd}
    for primitive in cib.primitives:
        device = primitive.values.get("device") or primitive.values.get("target", "")
        if primitive.is_mount and device.startswith("/dev/drbd"):
            yield primitive, clones.get(devices.get(device, ""), "")


@rule(
    "device-not-managed",
    "error",
    "pacemaker",
    "drbd",
    reason="What is mounted is a device that no DRBD resource of Pacemaker makes, and that does not promote itself as DRBD 9 can.",
    remedy="Correct the device, or add the ocf:linbit:drbd resource; with DRBD 9 also auto-promote yes.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc",
)
def not_managed(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    automatic = {
        device
        for resource in setup.drbd
        for device in resource.devices.values()
        if resource.dialect9 and resource.option("options", "auto-promote") != "no"
    }
    for mount, clone in _on_drbd(setup, setup.cib):
        if not clone and (mount.values.get("device") or mount.values.get("target")) not in automatic:
            yield f"cib: {mount.id} mounts {mount.values.get('device') or mount.values.get('target')}, which nothing promotes"


@rule(
    "mount-not-with-the-primary",
    "error",
    "pacemaker",
    "drbd",
    reason="Without the colocation the mount is started on the node that has only the secondary, and fails there.",
    remedy="Colocation of the group with the Promoted role of its DRBD clone, score INFINITY.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc",
)
def colocation(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for mount, clone in _on_drbd(setup, setup.cib):
        together = [
            one
            for one in setup.cib.constraints("rsc_colocation")
            if one.get("rsc") in (mount.id, mount.group) and one.get("with-rsc") == clone and one.get("with-rsc-role") in _PROMOTED
        ]
        if clone and not any(score(one.get("score", "0")) == float("inf") for one in together):
            yield f"cib: {mount.group or mount.id} is not tied to the promoted {clone}"


@rule(
    "mount-before-promotion",
    "error",
    "pacemaker",
    "drbd",
    reason="Without the order the mount is tried before the device can be written to, fails, and is banned from the node.",
    remedy="Order: promote the DRBD clone, then start the group.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc",
)
def order(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for mount, clone in _on_drbd(setup, setup.cib):
        ordered = any(
            one.get("first") == clone
            and one.get("then") in (mount.id, mount.group)
            and one.get("first-action") == "promote"
            and one.get("kind", "Mandatory") == "Mandatory"
            for one in setup.cib.constraints("rsc_order")
        )
        if clone and not ordered:
            yield f"cib: {mount.group or mount.id} is not ordered after the promotion of {clone}"


@rule(
    "drbd-clone-wrong",
    "error",
    "pacemaker",
    reason="DRBD needs one promoted instance, two in all, and to be told what happens to its peer (notify=true).",
    remedy="promoted-max=1 clone-max=2 clone-node-max=1 notify=true",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc",
)
def clone_meta(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for primitive in setup.cib.primitives:
        if not primitive.is_drbd:
            continue
        meta = setup.cib.clones.get(primitive.clone)
        if meta is None or meta.get("promotable", "false").lower() not in _TRUE:
            yield f"cib: {primitive.id} is in no promotable clone"
            continue
        if meta.get("notify", "false").lower() not in _TRUE:
            yield f"cib: {primitive.clone} has no notify=true"
        if meta.get("promoted-max", meta.get("master-max", "1")) != "1":
            yield f"cib: {primitive.clone} promotes {meta.get('promoted-max', meta.get('master-max'))} instances"


@rule(
    "left-over-move",
    "error",
    "pacemaker",
    reason="A move or ban by hand leaves a constraint behind; with it the service never goes to the other node again.",
    remedy="crm_resource --clear --resource RESOURCE",
    source="https://manpages.debian.org/bookworm/pacemaker-cli-utils/crm_resource.8.en.html",
)
def left_over(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for one in setup.cib.constraints("rsc_location"):
        if one.get("id", "").startswith(("cli-ban-", "cli-prefer-", "cli-standby-")):
            yield f"cib: {one['id']}"


@rule(
    "pinned-to-one-node",
    "error",
    "pacemaker",
    reason="A service that must, or must not, run on one node with score INFINITY cannot be taken over.",
    remedy="A finite score, less than the stickiness.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/constraints.rst",
)
def pinned(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    fencing = {device.id for device in setup.cib.devices}
    for one in setup.cib.constraints("rsc_location"):
        if one.get("rsc") not in fencing and one.get("score") == "-INFINITY" and not one.get("id", "").startswith("cli-"):
            yield f"cib: {one.get('id')} keeps {one.get('rsc')} away from {one.get('node')}"


@rule(
    "no-stickiness",
    "warning",
    "pacemaker",
    reason="When the repaired node comes back the service moves home by itself: a second interruption, at a time nobody chose.",
    remedy="rsc_defaults: resource-stickiness=1000, more than any location score.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Clusters_from_Scratch/active-passive.rst",
)
def stickiness(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    stick = score(setup.cib.defaults.get("resource-stickiness", setup.cib.properties.get("default-resource-stickiness", "0")))
    fencing = {device.id for device in setup.cib.devices}
    homes = [one for one in setup.cib.constraints("rsc_location") if one.get("rsc") not in fencing]
    strongest = max((score(one.get("score", "0")) for one in homes), default=0.0)
    if stick <= max(strongest, 0.0):
        yield f"cib: resource-stickiness is {stick:g}, the strongest preference {strongest:g}"


@rule(
    "nothing-is-managed",
    "error",
    "pacemaker",
    reason="In maintenance mode, or unmanaged, Pacemaker gives no protection: nothing is taken over.",
    remedy="maintenance-mode=false; crm_resource --meta --set-parameter is-managed --parameter-value true",
    source="https://github.com/ClusterLabs/crmsh/issues/1956",
)
def unmanaged(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    if setup.cib.properties.get("maintenance-mode", "false").lower() in _TRUE:
        yield "cib: maintenance-mode=true"
    if setup.cib.defaults.get("is-managed", "true").lower() not in _TRUE:
        yield "cib: rsc_defaults is-managed=false"
    for primitive in setup.cib.primitives:
        if primitive.meta.get("is-managed", "true").lower() not in _TRUE or primitive.meta.get("target-role") == "Stopped":
            yield f"cib: {primitive.id} is not managed, or kept stopped"


@rule(
    "failure-never-forgotten",
    "warning",
    "pacemaker",
    reason="After so many failures a node is out of question for ever; months later the last healthy node is refused for an old one.",
    remedy="failure-timeout=600s beside migration-threshold.",
    source="https://github.com/corosync/corosync/issues/455",
)
def forgotten(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for where, meta in [("rsc_defaults", setup.cib.defaults), *((one.id, one.meta) for one in setup.cib.primitives)]:
        if "migration-threshold" in meta and not (meta.get("failure-timeout") or setup.cib.defaults.get("failure-timeout")):
            yield f"cib: {where} has migration-threshold={meta['migration-threshold']} and no failure-timeout"


@rule(
    "nobody-is-told",
    "warning",
    "pacemaker",
    reason="A take-over that nobody notices is followed by weeks without redundancy, and by the second failure.",
    remedy="Alerts by mail or webhook ([alerts] in cluster.toml).",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/alerts.rst",
)
def alerts(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    if not setup.cib.alerts:
        yield "cib: no alert"
