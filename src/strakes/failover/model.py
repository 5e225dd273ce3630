"""Model of a cluster and its services. Services are found by their agents and constraints, not by their names."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from strakes.failover.blocks import Resource
from strakes.failover.cib import Cib
from strakes.failover.cluster import Alerts, Bmc, Cluster, FileSystem, Network, Node, Pdu, ServedTarget, read_address
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules_fencing_devices import address_of, devices_for, is_bmc, is_outlet, plug_of
from strakes.failover.setup import Setup, links_of, name_of, nodes_of

_FENCING = "fencing network"


@dataclass(frozen=True)
class Service:
    """A service: resources that run together on one node. ``name``: id of its group or first resource."""

    name: str
    members: tuple[Primitive, ...]
    # Resources with copies on several nodes, such as DRBD. On the node of the service, the copy is promoted.
    copies: tuple[Primitive, ...]
    nodes: tuple[str, ...]  # nodes that may run the service
    replicated: tuple[str, ...]
    pools: tuple[str, ...]
    devices: tuple[str, ...]
    addresses: tuple[str, ...]
    voters: tuple[str, ...] = ()  # DRBD hosts, if DRBD writes only while a majority of them is connected

    @property
    def parts(self) -> tuple[Primitive, ...]:
        """Return all resources of the service."""
        return (*self.members, *self.copies)

    @property
    def mount_points(self) -> tuple[str, ...]:
        """Return the mount points of the service."""
        return tuple(one.mount_point for one in self.members if one.is_mount and one.mount_point)


@dataclass(frozen=True)
class ClusterModel:
    """The cluster and its services. ``assumed``: assumptions made because files are missing, as sentences."""

    cluster: Cluster
    services: tuple[Service, ...]
    assumed: tuple[str, ...] = ()

    def services_by_target(self) -> dict[str, Service]:
        """Return target in cluster.toml -> service with the same name, DRBD resource, pool, mount point or address."""
        found = {}
        for target in self.cluster.targets:
            alike = [one for one in self.services if _is_of(one, target)]
            service = next((one for one in alike if one.name == target.name), next(iter(alike), None))
            if service is not None:
                found[target.name] = service
        return found


def _is_of(service: Service, target: ServedTarget) -> bool:
    return (
        target.name in (service.name, *service.replicated)
        or target.mount.rstrip("/") in service.mount_points
        or (target.pool or None) in service.pools
        or (target.address.partition("/")[0] or None) in service.addresses
    )


def model_of(setup: Setup) -> ClusterModel:
    """Return the nodes, networks and services of a cluster. Parts whose file is missing are empty."""
    nodes = dict(_nodes(setup))
    services = _services(setup.cib, setup.drbd, tuple(nodes)) if setup.cib else ()
    return ClusterModel(setup.cluster or _inferred(setup, nodes, services), services, tuple(_assumed(setup, services)))


def _nodes(setup: Setup) -> Iterator[tuple[str, Mapping[int, str]]]:
    cib, links = setup.cib, [links_of(node) for node in nodes_of(setup)]
    listed = dict(zip(map(name_of, nodes_of(setup)), links, strict=True))
    named = cib.members_of_corosync if cib and cib.members_of_corosync else tuple(filter(None, listed))
    if not listed.keys() - {""} and len(listed) < len(links) <= len(named):
        # If corosync.conf does not name the nodes, take them in the order of the CIB.
        listed = dict(zip(named, links, strict=False))
    for name in named or dict.fromkeys(host.name for one in setup.drbd for host in one.hosts):
        yield name, listed.get(name, {})


def _assumed(setup: Setup, services: tuple[Service, ...]) -> Iterator[str]:
    if setup.cib and setup.nodes_assumed:
        yield f"no file lists the nodes: the cluster is assumed to consist of {' and '.join(setup.cib.nodes)}"
    if not setup.corosync:
        yield "no corosync.conf: two independent links between all nodes and the default quorum are assumed"
    if setup.cib and not setup.drbd and any(one.is_drbd for one in setup.cib.primitives):
        yield "no DRBD files: DRBD is assumed to replicate over the last link, and never to suspend writes"
    if setup.cib and setup.pacemaker.constraints("rsc_ticket"):
        yield "every ticket is assumed to be granted to this site"
    if setup.cib and set(setup.cib.remote_nodes) - {one.id for one in setup.services}:
        yield "guest nodes and replicas of bundles are assumed to work: their failures are not rehearsed"
    served = {part.clone for own in services for part in own.parts}
    if others := {one.clone for one in setup.services if one.clone and not one.watched_attribute} - served:
        yield f"{', '.join(sorted(others))} run on several nodes and are left out"
    if agents := {one.agent for own in services for one in own.copies if not one.is_drbd}:
        yield f"{', '.join(sorted(agents))}: the agent chooses the promoted copy; all copies are assumed to be equal"
    if setup.mounts_on_both_nodes:
        yield "GFS2 or OCFS2 counts as served while one node mounts it; all nodes wait until a dead node is powered off"
    if setup.cluster is None:
        yield "no cluster.toml: each fencing device is assumed to work and to stop the node that it names"
        yield "no cluster.toml: clients are assumed to reach every node, and each node to have its own power feed"


def _services(cib: Cib, drbd: Iterable[Resource], names: tuple[str, ...]) -> tuple[Service, ...]:
    # Without other services, count each clone that mounts a file system as a service.
    started = [one for one in cib.services if one.meta.get("target-role") != "Stopped" and not one.watched_attribute]
    single = [one for one in started if not one.clone or cib.promotable(one.clone)]
    serving = single or [one for one in cib.services if one.clone and one.is_mount]
    # Id of a resource -> ids of all resources of its service.
    joined = {one.id: frozenset({one.id}) for one in serving}

    def join(ids: Iterable[str]) -> None:
        whole = frozenset[str]().union(*(joined[name] for name in ids))
        joined.update(dict.fromkeys(whole, whole))

    for group in cib.groups.values():
        join(one.id for one in group if one.id in joined)
    for colocation in cib.colocations:
        (near, _), (far, role) = colocation.resources
        ends = [[one for one in cib.ties.members(name) if one.id in joined] for name in (near, far)]
        # A colocation with a clone allows every node with a copy, unless the promoted copy is required.
        apart = role != "Promoted" and any(one.clone for one in ends[1])
        if colocation.score == inf and all(ends) and not apart:
            join(one.id for one in (*ends[0], *ends[1]))
    components: dict[frozenset[str], list[Primitive]] = {}
    for one in serving:
        components.setdefault(joined[one.id], []).append(one)
    resources = {one.name: one for one in drbd}
    return tuple(_service(cib, resources, names, parts) for parts in components.values())


def _service(cib: Cib, drbd: Mapping[str, Resource], names: tuple[str, ...], parts: list[Primitive]) -> Service:
    copies = tuple(one for one in parts if one.clone and cib.promotable(one.clone))
    members = tuple(one for one in parts if one not in copies)
    group = next((one.group for one in members if one.group), "")
    replicated = dict.fromkeys(one.values.get("drbd_resource", "") for one in parts if one.is_drbd)
    devices = tuple(one.device for one in members if one.device)
    replicated |= {name: None for name, one in drbd.items() if one.devices & set(devices)}
    if any(cib.is_stacked(one.clone) for one in copies):
        # Ignore floating DRBD: it replicates to another cluster, and all nodes of this cluster use the same disk.
        replicated = {name: None for name in replicated if name not in drbd or not drbd[name].floating}
    near = [drbd[name] for name in replicated if name in drbd and not drbd[name].block.all("stacked-on-top-of")]
    hosts = [{host.name for host in resource.hosts} for resource in near if resource.hosts]
    forbidden = {node for one in parts for node in cib.banned.get(one.id, ())}
    allowed = tuple(node for node in names if node not in forbidden and all(node in each for each in hosts))
    return Service(
        group or (members[0].id if members else copies[0].clone),
        members,
        copies,
        allowed or (names if cib.remote_nodes else ()),
        tuple(name for name in replicated if name),
        tuple(one.values["pool"] for one in members if one.agent == "ZFS" and one.values.get("pool")),
        devices,
        tuple(one.values["ip"] for one in members if one.agent in ("IPaddr2", "IPaddr") and one.values.get("ip")),
        next((tuple(at.name for at in one.hosts) for one in near if one.option("options", "quorum") == "majority"), ()),
    )


def _inferred(setup: Setup, nodes: Mapping[str, Mapping[int, str]], services: tuple[Service, ...]) -> Cluster:
    networks = tuple(_networks(setup, nodes, services))
    return Cluster(
        name="",
        drbd="9" if any(one.dialect9 for one in setup.drbd) else "8.4",
        survivor=next(iter(nodes), ""),
        quorum_host=setup.corosync.one("quorum").one("device").one("net").get("host"),
        networks=networks,
        nodes=tuple(_node(setup, name, addresses, networks) for name, addresses in nodes.items()),
        file_system=FileSystem("service", ""),
        targets=tuple(_target(service) for service in services if service.nodes),
        alerts=Alerts(),
    )


def _networks(setup: Setup, nodes: Mapping[str, Mapping[int, str]], services: tuple[Service, ...]) -> Iterator[Network]:
    given_ends = (text for one in setup.drbd for host in one.hosts for text in host.addresses)
    replication = [re.sub(r":\d+$", "", text).strip("[]") for text in given_ends]
    given: dict[int, list[str]] = {}
    for addresses in nodes.values():
        for number, address in addresses.items():
            given.setdefault(number, []).append(address)
    counts = [len(links_of(node)) for node in nodes_of(setup)]
    number = max(1, len(setup.corosync.one("totem").all("interface")), *counts) if setup.corosync else 2
    rows = sorted((given or {key: list[str]() for key in range(number)}).items())
    links = [Network(f"link {number}", _subnet(ends), heartbeat=True) for number, ends in rows]
    carriers = [link for link in links if any(map(link.holds, replication))]
    if not replication and any(service.replicated for service in services):
        carriers = links[-1:]
    yield from (Network(link.name, link.subnet, heartbeat=True, replication=link in carriers) for link in links)
    if replication and not carriers:
        yield Network("replication network", _subnet(replication), replication=True)
    if any(is_bmc(device) or is_outlet(device) for device in setup.devices):
        yield Network(_FENCING, "")


def _subnet(addresses: list[str]) -> str:
    read = [read_address(address) for address in addresses]
    first = read[0] if read else None
    if first is None:
        return ""
    for bits in range(24 if first.version == 4 else 64, 7, -1):
        network = ipaddress.ip_network(f"{first}/{bits}", strict=False)
        if all(address is not None and address in network for address in read):
            return str(network)
    return ""


def _node(setup: Setup, name: str, links: Mapping[int, str], networks: tuple[Network, ...]) -> Node:
    addresses = {network.name: "" for network in networks if network.name != _FENCING}
    addresses |= {f"link {number}": address for number, address in links.items()}
    devices = devices_for(setup.cib, name) if setup.cib else []
    bmc = next((one for one in devices if is_bmc(one)), None)
    port = bmc.values.get("ipport", "") if bmc else ""
    outlets = [one for one in devices if is_outlet(one)]
    levels = setup.cib.levels_of(name) if setup.cib else []
    # If a fencing level has several outlets, assume that each has a separate power feed.
    together = any(len(set(level) & {one.id for one in outlets}) > 1 for level in levels)
    feeds = [f"{number} of {name}" if together else f"of {name}" for number in range(1, len(outlets) + 1)]
    pdus = tuple(
        Pdu(one.agent, address_of(one), _FENCING, plug_of(one, name), feed)
        for one, feed in zip(outlets, feeds, strict=True)
    )
    controller = Bmc(address_of(bmc) if bmc else "", _FENCING, "", "", int(port) if port.isdecimal() else 623)
    return Node(name, addresses, tuple(dict.fromkeys(feeds)) or (f"of {name}",), controller, pdus)


def _target(service: Service) -> ServedTarget:
    return ServedTarget(
        name=service.name,
        devices=dict.fromkeys(service.nodes, service.devices[0]) if service.devices else {},
        prefers=service.nodes[0],
        mount=next(iter(service.mount_points), ""),
        minor=0,
        port=0,
        nodes=service.nodes,
        shared=not service.replicated,
        voters=service.voters,
        pool=next(iter(service.pools), ""),
    )
