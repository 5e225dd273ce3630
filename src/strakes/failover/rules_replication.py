"""Rules about DRBD that compare resources with each other, with the nodes and with Pacemaker."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.cib import Cib
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.replication import Host, Resource
from strakes.failover.resource_facts import ADDRESSES
from strakes.failover.rules_heartbeat import hosts_of, is_address, links_of, name_of, nodes_of
from strakes.failover.rules_stacks import clone_of
from strakes.failover.setup import Setup

_PORTS_OF_OTHERS = frozenset(
    ["22", "111", "988", "2049", "2224", "3121", "5403", "5404", "5405", "5406", "9929", "20048", "21064"]
)


def devices_collide(setup: Setup) -> Iterator[str]:
    """Find devices, disks, metadata and addresses that several volumes use."""
    seen: dict[tuple[str, str, str], str] = {}
    for resource in setup.drbd:
        for host in resource.hosts:
            for what, value, name in _uses(resource, host):
                other = seen.setdefault((host.name, what, value), name)
                if value and other != name:
                    yield f"drbd: {other} and {name} have the same {what} on {host.name}: {value}"


def _uses(resource: Resource, host: Host) -> Iterator[tuple[str, str, str]]:
    """Yield the exclusive settings of one side of a resource: kind, value and name of the volume."""
    yield from (("address", address, resource.name) for address in dict.fromkeys(host.addresses))
    for number, (device, disk, metadata) in host.volumes.items():
        name = f"{resource.name} volume {number}"
        yield "device", device, name
        yield "disk", disk.replace("none", ""), name
        yield "disk", metadata.replace("internal", "").replace(" ", ""), f"{name} metadata"


def replication_address_wrong(setup: Setup) -> Iterator[str]:
    """Find addresses that both sides have, loopback and foreign addresses, and ports of other programs."""
    for resource in setup.drbd:
        seen: dict[str, str] = {}
        for host in resource.hosts:
            for address in host.addresses:
                other = seen.setdefault(address, host.name)
                if other != host.name:
                    yield f"drbd: {other} and {host.name} have the same address in {resource.name}: {address}"
                if address.rpartition(":")[2] in _PORTS_OF_OTHERS:
                    yield f"drbd: {resource.name} uses a port of another program on {host.name}: {address}"
                if address.startswith("127."):
                    yield f"drbd: {resource.name} has the address {address} on {host.name}"
        yield from _foreign_addresses(setup, resource)


def _foreign_addresses(setup: Setup, resource: Resource) -> Iterator[str]:
    """Find addresses that are not links of their node, if most sides of the resource use addresses of links."""
    hosts = hosts_of(setup)
    links = {name_of(node): {hosts.get(text, text) for text in links_of(node).values()} for node in nodes_of(setup)}
    sides = [(host.name, text.rpartition(":")[0].strip("[]")) for host in resource.hosts for text in host.addresses]
    own = [(name, address) for name, address in sides if address in links.get(name, ())]
    for name, address in sides if 2 * len(own) >= len(sides) else ():
        certain = all(map(is_address, links.get(name, ("",)))) and is_address(address)
        if certain and (name, address) not in own:
            yield f"drbd: {resource.name} has the address {address} on {name}, which corosync.conf has not"


def _on_drbd(setup: Setup) -> Iterator[tuple[Primitive, str]]:
    """Yield each user of a replicated device with the clone of the device."""
    for one in setup.services:
        if one.uses_disk and one.device.startswith("/dev/drbd"):
            yield one, clone_of(setup, one.device)


def drbd_device_not_managed(setup: Setup) -> Iterator[str]:
    """Find mounts of a DRBD device that nothing promotes or that has a different name on a node."""
    automatic = [one for one in setup.drbd if one.dialect9 and one.option("options", "auto-promote") != "no"]
    for mount, clone in _on_drbd(setup):
        if not clone and not any(mount.device in one.devices for one in automatic):
            yield f"cib: {mount.id} uses {mount.device}, which nothing promotes"
        for resource in setup.drbd:
            given = {volume[0] for host in resource.hosts for volume in host.volumes.values()}
            if mount.device in given and not all(mount.device in _devices(host) for host in resource.hosts):
                yield f"drbd: {resource.name} is not {mount.device} on all nodes, and {mount.id} uses that"


def _devices(host: Host) -> set[str]:
    return {device for device, _, _ in host.volumes.values()} or {""}


def disk_below_drbd_used(setup: Setup) -> Iterator[str]:
    """Find mounts of a disk below DRBD, and disks that are DRBD devices themselves."""
    disks = {disk: resource.name for resource in setup.drbd for disk in resource.disks | resource.metadata}
    for one in setup.services:
        if one.uses_disk and one.device in disks:
            yield f"cib: {one.id} uses {one.device}, the disk of {disks[one.device]}"
    for resource in setup.drbd:
        for disk in sorted(resource.disks):
            if disk.startswith("/dev/drbd") and not resource.block.all("stacked-on-top-of"):
                yield f"drbd: {resource.name} has disk {disk}"


def mount_not_tied_to_the_primary(setup: Setup) -> Iterator[str]:
    """Find mounts that are not colocated with the promoted copy or do not wait for the promotion."""
    for mount, clone in _on_drbd(setup):
        if clone and not setup.pacemaker.ties.tied(mount, clone):
            yield f"cib: {mount.group or mount.id} is not tied to the promoted {clone}"
        if clone and not setup.pacemaker.ties.waits_for_promotion(mount, clone):
            yield f"cib: {mount.group or mount.id} is not ordered after the promotion of {clone}, or its stop is not"


def _promoting_once(cib: Cib) -> dict[str, bool]:
    """Return for each clone with one promoted copy whether it contains DRBD."""
    most = {name: meta.get("promoted-max") or meta.get("master-max", "1") for name, meta in cib.clones.items()}
    return {one.clone: one.is_drbd for one in cib.services if cib.promotable(one.clone) and most[one.clone] == "1"}


def nothing_tied_to_the_promoted_copy(setup: Setup) -> Iterator[str]:
    """Find promotable clones of DRBD with which nothing is colocated, and addresses colocated with any copy."""
    cib = setup.pacemaker
    users = [one for one in cib.services if not one.is_drbd and one.agent not in ADDRESSES]
    near = {name for tie in cib.colocations for name, role in tie.resources if role == "Promoted"}
    first = {order.first for order in cib.orders if order.first_action == "promote"}
    for clone, is_drbd in _promoting_once(cib).items():
        names = {clone, *(one.id for one in cib.ties.members(clone))}
        if is_drbd and users and not names & near:
            yield f"cib: no resource is colocated with the promoted copy of {clone}"
        if is_drbd and users and not names & first:
            yield f"cib: no resource is ordered after the promotion of {clone}"
        yield from _with_any_copy(cib, clone, is_tied=clone in near)


def _with_any_copy(cib: Cib, clone: str, *, is_tied: bool) -> Iterator[str]:
    for tie in cib.colocations:
        (one, _), (other, role) = tie.resources
        carries = any(member.agent in ADDRESSES for member in cib.ties.members(one))
        if other == clone and carries and tie.score > 0 and role != "Promoted" and not is_tied:
            yield f"cib: {tie.id} keeps {one} with {clone}, and not with its promoted copy"
    for order in cib.orders:
        kept = any(tie.resources == ((order.then, ""), (clone, "Promoted")) for tie in cib.colocations)
        if order.first == clone and order.first_action == "start" and order.mandatory and kept:
            yield f"cib: {order.id} orders {order.then} after the start of {clone}, not after its promotion"
