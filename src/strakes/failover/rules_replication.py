"""Rules about DRBD resources, their nodes and Pacemaker."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.blocks import Host, Resource
from strakes.failover.cib import Cib
from strakes.failover.facts import Doubtful, graded, shared
from strakes.failover.known_options import options_of
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.resource_facts import ADDRESSES
from strakes.failover.rules_possessions import clone_of, one_name, provided_by
from strakes.failover.setup import Setup

_DEVICE = re.compile(r"/dev/drbd(\d+|_[^/]+|/by-.+)")


def devices_collide(setup: Setup) -> Iterator[str]:
    """Find devices, disks and addresses that several DRBD volumes share."""
    hosts = [(resource, host) for resource in setup.drbd for host in resource.hosts]
    rows = [((host.name, what, value), name) for one, host in hosts for what, value, name in _uses(one, host) if value]
    for (host_name, what, value), first, name in shared(rows):
        yield f"drbd: {first} and {name} have the same {what} on {host_name}: {value}"


def _uses(resource: Resource, host: Host) -> Iterator[tuple[str, str, str]]:
    yield from (("address", address, resource.name) for address in host.addresses)
    for number, (device, disk, metadata) in host.volumes.items():
        name = f"{resource.name} volume {number}"
        yield "device", device, name
        yield "disk", disk.replace("none", ""), name
        yield "disk", metadata.replace("internal", "").replace(" ", ""), f"{name} metadata"


def _on_drbd(setup: Setup) -> Iterator[tuple[Primitive, str]]:
    for one in setup.services:
        if one.uses_disk and _DEVICE.fullmatch(one.device):
            yield one, clone_of(setup, one.device)


def drbd_device_not_managed(setup: Setup) -> Iterator[str]:
    """Find mounted DRBD devices that Pacemaker does not promote, or whose paths differ between nodes."""
    automatic = [one for one in setup.drbd if one.dialect9 and one.option("options", "auto-promote") != "no"]
    for mount, clone in _on_drbd(setup):
        if not clone and not any(mount.device in one.devices for one in automatic):
            named = {one.values.get("drbd_resource", "") for one in setup.services if one.is_drbd}
            sure = named and named <= {one.name for one in setup.drbd}  # If a DRBD file may be missing, only warn.
            yield graded(sure, f"cib: {mount.id} uses {mount.device}, which nothing promotes")
        for resource in setup.drbd:
            given = [{device for device, _, _ in host.volumes.values()} or {""} for host in resource.hosts]
            if any(mount.device in devices for devices in given) and not all(mount.device in each for each in given):
                yield f"drbd: {resource.name} is not {mount.device} on all nodes, but {mount.id} uses that device"


def disk_below_drbd_used(setup: Setup) -> Iterator[str]:
    """Find services on a DRBD device's backing disk or volume group, and backing disks that are DRBD devices."""
    disks = {disk: resource for resource in setup.drbd for disk in resource.disks | resource.metadata}
    for one in setup.services:
        if one.uses_disk and one.device in disks:
            yield f"cib: {one.id} uses {one.device}, the disk of {disks[one.device].name}"
        groups = provided_by(one) if one.agent in ("LVM", "LVM-activate") else ()
        for resource in [resource for disk, resource in disks.items() if f"{one_name(disk)}/".startswith(groups)]:
            clone = clone_of(setup, min(resource.devices, default=""))
            if clone and setup.pacemaker.ties.waits_for_promotion(one, clone):
                yield f"cib: {one.id} activates the volume group below {resource.name} after the promotion"
    for resource in setup.drbd:
        for disk in sorted(resource.disks):
            if _DEVICE.fullmatch(disk) and not resource.block.all("stacked-on-top-of"):
                yield Doubtful(f"drbd: {resource.name} has disk {disk}")


def mount_not_tied_to_the_primary(setup: Setup) -> Iterator[str]:
    """Find mounts of DRBD devices that lack a colocation or an order with the promoted copy."""
    for mount, clone in _on_drbd(setup):
        names = {mount.id, mount.group}
        ends = [one.resources for one in setup.pacemaker.colocations if one.score > 0]
        loosely = any(near in names and far == (clone, "Promoted") for (near, _), far in ends)
        if clone and not setup.pacemaker.ties.tied(mount, clone):
            yield graded(not loosely, f"cib: {mount.group or mount.id} is not tied to the promoted {clone}")
        if clone and not setup.pacemaker.ties.waits_for_promotion(mount, clone):
            text = f"cib: {mount.group or mount.id} has no order of start or stop with the promotion of {clone}"
            orders = {(one.first, one.first_action, one.then) for one in setup.pacemaker.orders}
            yield graded(not orders & {(clone, "promote", name) for name in names}, text)


def nothing_tied_to_the_promoted_copy(setup: Setup) -> Iterator[str]:
    """Find promotable clones without a constraint on the promoted copy."""
    cib = setup.pacemaker
    users = [one for one in cib.services if not one.is_drbd and one.agent not in ADDRESSES]
    near = {name for tie in cib.colocations for name, role in tie.resources if role == "Promoted"}
    first = {order.first for order in cib.orders if order.first_action == "promote"}
    for copy in cib.services:
        meta = cib.clones.get(copy.clone, {})
        if cib.promotable(copy.clone) and (meta.get("promoted-max") or meta.get("master-max", "1")) == "1":
            names = {copy.clone, *(one.id for one in cib.ties.members(copy.clone))}
            grade = str if any(_DEVICE.fullmatch(one.device) for one in users) else Doubtful
            if copy.is_drbd and users and not names & near:
                yield grade(f"cib: no resource is colocated with the promoted copy of {copy.clone}")
            if copy.is_drbd and users and not names & first:
                yield grade(f"cib: no resource is ordered after the promotion of {copy.clone}")
            yield from _with_any_copy(cib, copy, is_tied=copy.clone in near)
    yield from _without_promotion(cib)


def _with_any_copy(cib: Cib, copy: Primitive, *, is_tied: bool) -> Iterator[str]:
    single = copy.is_drbd or copy.agent in options_of("agents with one promoted copy")
    for tie in cib.colocations:
        (one, _), (other, role) = tie.resources
        carries = any(member.agent in ADDRESSES for member in cib.ties.members(one))
        if other == copy.clone and carries and tie.score > 0 and role != "Promoted" and not is_tied:
            yield graded(single and not role, f"cib: {tie.id} keeps {one} with {other}, not with the promoted copy")


def _without_promotion(cib: Cib) -> Iterator[str]:
    promoted = {(order.first, order.then) for order in cib.orders if order.first_action == "promote"}
    ends = [(tie.resources[1], tie.resources[0][0]) for tie in cib.colocations]
    promoted |= {(clone, one) for (clone, role), one in ends if role == "Unpromoted"}
    for order in cib.orders:
        starts = order.mandatory and (order.first_action, order.then_action) == ("start", "start")
        starts = starts and order.then not in cib.clones
        if starts and cib.promotable(order.first) and (order.first, order.then) not in promoted:
            text = f"orders {order.then} after the start of {order.first}, not after its promotion"
            yield Doubtful(f"cib: {order.id} {text}")
