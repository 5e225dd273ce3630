"""Rules about what starts before what: within a group, and between what constraints tie together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from strakes.failover.cib_values import score
from strakes.failover.pacemaker_resources import Order, Primitive
from strakes.failover.rules.layers import bases
from strakes.failover.rules.mounts import ADDRESSES
from strakes.failover.rules.rule import AGENTS, PACEMAKER, rule
from strakes.failover.setup import Setup

_STORAGE = ("LVM-activate", "LVM", "ZFS", "zpool", "mdraid", "Raid1", "crypt", "iscsi", "lvmlockd", "controld", "clvm")
# They serve nobody themselves, and may stand anywhere.
_HELPERS = (
    "portblock",
    "nfsnotify",
    "MailTo",
    "ClusterMon",
    "Delay",
    "Dummy",
    "ping",
    "pingd",
    "ethmonitor",
    "symlink",
)


def _is_storage(one: Primitive) -> bool:
    return one.is_mount or one.agent in _STORAGE


def _serves(one: Primitive) -> bool:
    return not _is_storage(one) and one.agent not in (*ADDRESSES, *_HELPERS)


@rule("pacemaker").error(
    reason="The mount starts after all services of the group: the service that needs it finds an empty directory.",
    remedy="Order the group: disks and mounts first, then services, then addresses.",
    source=f"{PACEMAKER}/resources.rst",
)
def mounted_after_its_users(setup: Setup) -> Iterator[str]:
    """Find mounts that stand in a group behind its services, and that nothing else uses."""
    used = {base.id for _, base in bases(setup.pacemaker)}
    for name, members in setup.pacemaker.groups.items():
        servers = [number for number, one in enumerate(members) if _serves(one)]
        for number, one in enumerate(members):
            if servers and _is_storage(one) and number > servers[-1] and one.id not in used:
                yield f"cib: {one.id} comes after {members[servers[-1]].id} in {name}"


@rule("pacemaker").warning(
    reason="One resource is placed with the other but started before it: Pacemaker chooses the node by the one that "
    "starts last.",
    remedy="Use the same resource for first and with-rsc: the needed one starts first, and the other is placed with "
    "it.",
    source=f"{PACEMAKER}/constraints.rst",
)
def order_against_colocation(setup: Setup) -> Iterator[str]:
    """Find orders that start what is placed with another before that other."""
    cib = setup.pacemaker
    placed = {
        (element["rsc"], element["with-rsc"]): element.get("id", "")
        for element in cib.constraints("rsc_colocation")
        if element.get("rsc") and element.get("with-rsc") and score(element.get("score", "INFINITY")) == float("inf")
    }
    for order in cib.orders:
        other = placed.get((order.first, order.then))
        if other and order.mandatory and order.first_action == order.then_action == "start":
            yield f"cib: {order.id} starts {order.first} before {order.then}, {other} places it with that"


@rule("pacemaker").warning(
    reason="Both start at the same time: the one that needs the other fails, or serves before the other is there.",
    remedy="Add an order: the needed resource first, then the one that is placed with it.",
    source=f"{PACEMAKER}/constraints.rst",
)
def placed_together_in_no_order(setup: Setup) -> Iterator[str]:
    """Find services that are kept with a clone, and that no order ties to it."""
    cib = setup.pacemaker
    for element in cib.constraints("rsc_colocation"):
        near, far = (cib.ties.members(element.get(key, "")) for key in ("rsc", "with-rsc"))
        if score(element.get("score", "INFINITY")) != float("inf") or not near or not far:
            continue
        clones = any(one.clone for one in far) and not any(one.clone for one in near)
        ordered = any(
            cib.ties.starts_after(one, other) or cib.ties.starts_after(other, one) for one in near for other in far
        )
        if clones and not ordered and not _tied_by_any(cib.orders, element) and any(map(_serves, near)):
            yield f"cib: {element.get('id')} places {element.get('rsc')} with {element.get('with-rsc')}"


def _tied_by_any(orders: Iterable[Order], element: Mapping[str, str]) -> bool:
    names = {element.get("rsc"), element.get("with-rsc")}
    return any({order.first, order.then} == names for order in orders)


@rule("pacemaker").error(
    reason="When nfs-server.service starts, it runs exportfs -r, which removes every export that is not in "
    "/etc/exports: clients get stale handles until the next monitor.",
    remedy="Put nfsserver before exportfs, in the group and in orders.",
    source=f"{AGENTS}/nfsserver",
)
def exported_before_its_server(setup: Setup) -> Iterator[str]:
    """Find NFS servers that start after what they export."""
    services = setup.pacemaker.services
    for server in (one for one in services if one.agent == "nfsserver"):
        for export in (one for one in services if one.agent == "exportfs"):
            if setup.pacemaker.ties.starts_after(server, export):
                yield f"cib: {server.id} starts after {export.id}"


@rule("pacemaker").error(
    reason="Clients that are notified of a restart reclaim their locks at once, and only once: if the server or its "
    "address is not there yet, the locks are lost.",
    remedy="Put nfsnotify last in the group.",
    source=f"{AGENTS}/nfsnotify",
)
def clients_notified_too_early(setup: Setup) -> Iterator[str]:
    """Find notifications of NFS clients that are sent before the server and its address are up."""
    services = setup.pacemaker.services
    for notify in (one for one in services if one.agent == "nfsnotify"):
        names = notify.values.get("source_host", "")
        for base in services:
            needed = base.agent == "nfsserver" or (base.agent in ADDRESSES and base.values.get("ip", "-") in names)
            if needed and setup.pacemaker.ties.starts_after(base, notify):
                yield f"cib: {base.id} starts after {notify.id}"


@rule("pacemaker").error(
    reason="A server that listens on one address only cannot start while the node does not have that address.",
    remedy="Put IPaddr2 before nfsserver in the group; or remove host from nfs.conf.",
    source="https://manpages.debian.org/bookworm/nfs-common/nfs.conf.5.en.html",
)
def server_started_before_its_address(setup: Setup) -> Iterator[str]:
    """Find NFS servers that listen on an address which comes up after them."""
    services = setup.pacemaker.services
    section = re.search(r"(?ms)^\[nfsd\]$(.*?)(?=^\[|\Z)", setup.texts.get("etc/nfs.conf", ""))
    hosts = re.findall(r"(?m)^\s*host\s*=\s*(.*?)\s*$", section[1]) if section else []
    listened = {word for host in hosts for word in re.split(r"[,\s]+", host)}
    for server in (one for one in services if one.agent == "nfsserver"):
        for address in (one for one in services if one.agent in ADDRESSES and one.values.get("ip") in listened):
            if setup.pacemaker.ties.starts_after(address, server):
                yield f"cib: {address.id} starts after {server.id}, which listens on it"
