"""One model of a cluster from any source: nodes, services, fencing devices, replicated devices, quorum device.

The files of a cluster become a ``Setup`` (the Pacemaker configuration as ``Cib``, corosync.conf as ``Block``, DRBD's
files as ``Resource``). Readers turn other sources into these forms: ``crm configure`` text, lists of ``pcs`` commands,
``pcs config`` output and haresources become a CIB. ``model_of`` then derives the facts that a rehearsal needs. Roles
follow from resources and constraints, never from names. Settings have their Pacemaker 2 names;
``options/renamed.toml`` is the only table of other names. ``assumed`` lists the facts that no file gives, each with its
assumed value.

Example::

    model = model_of(read_plan(Path("etc-of-the-pair")))
    for service in model.services:
        print(service.name, service.nodes, service.replicated)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from strakes.failover.cib import Cib
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.replication import Resource
from strakes.failover.rules_fencing_devices import address_of
from strakes.failover.rules_heartbeat import links_of, name_of, nodes_of
from strakes.failover.setup import Setup

_INFINITY = float("inf")


@dataclass(frozen=True)
class ModelNode:
    """One member of the cluster. ``addresses`` are given by the number of the Corosync link."""

    name: str
    addresses: Mapping[int, str]


@dataclass(frozen=True)
class Service:
    """Resources that always run on one node together: one thing that the cluster serves.

    ``name`` is the id of their group, or of their first resource. ``copies`` are the copies of promotable clones whose
    promotion they follow, ``members`` are all other resources. ``nodes`` may run them.
    ``replicated`` names the DRBD resources, ``pools`` the ZFS pools; ``addresses`` move with the service.
    """

    name: str
    members: tuple[Primitive, ...]
    copies: tuple[Primitive, ...]
    nodes: tuple[str, ...]
    replicated: tuple[str, ...]
    pools: tuple[str, ...]
    devices: tuple[str, ...]
    addresses: tuple[str, ...]

    @property
    def parts(self) -> tuple[Primitive, ...]:
        """Return the members, or the copies of a service without members."""
        return self.members or self.copies


@dataclass(frozen=True)
class FencingDevice:
    """A fencing device, its address and the nodes that it powers off."""

    resource: Primitive
    address: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class ClusterModel:
    """The cluster. ``levels`` has the fencing levels of each node; ``quorum_host`` is the host of the quorum device."""

    nodes: tuple[ModelNode, ...]
    services: tuple[Service, ...]
    devices: tuple[FencingDevice, ...]
    replicated: tuple[Resource, ...]
    quorum_host: str
    levels: Mapping[str, tuple[tuple[str, ...], ...]]
    assumed: tuple[str, ...] = ()


def model_of(setup: Setup) -> ClusterModel:
    """Return the model of a setup; parts without a file are empty."""
    cib, nodes = setup.cib, tuple(_nodes(setup))
    return ClusterModel(
        nodes,
        services_of(cib, setup.drbd, [node.name for node in nodes]) if cib else (),
        tuple(FencingDevice(one, address_of(one), cib.fences(one)) for one in cib.devices) if cib else (),
        setup.drbd,
        setup.corosync.one("quorum").one("device").one("net").get("host") if setup.corosync else "",
        {node.name: tuple(cib.levels_of(node.name)) for node in nodes} if cib else {},
        tuple(_assumed(setup)),
    )


def _nodes(setup: Setup) -> Iterator[ModelNode]:
    cib = setup.cib
    listed = dict(zip(map(name_of, nodes_of(setup)), map(links_of, nodes_of(setup)), strict=True))
    hosts = [host.name for one in setup.drbd for host in one.hosts]
    named = cib.members_of_corosync if cib and cib.members_of_corosync else tuple(filter(None, listed))
    if not listed.keys() - {""} and len(listed) < len(nodes_of(setup)) <= len(named):
        # Pacemaker knows a node without a name by its host name, so only the order of the ids can match them.
        listed = dict(zip(named, map(links_of, nodes_of(setup)), strict=False))
    for name in named or dict.fromkeys(hosts):
        yield ModelNode(name, listed.get(name, {}))


def _assumed(setup: Setup) -> Iterator[str]:
    if setup.cib and setup.nodes_assumed:
        yield f"no list of nodes: the cluster consists of {' and '.join(setup.cib.nodes)}"
    if setup.corosync is None:
        yield "no corosync.conf: two independent links between all nodes, and quorum as votequorum counts it"
    if setup.cib and not setup.drbd and any(one.is_drbd for one in setup.cib.primitives):
        yield "no DRBD files: replication on the last link, and no pause of writing"
    if setup.cluster is None:
        yield "no cluster.toml: each fencing device works, and cuts the power of the node that it names"
        yield "no cluster.toml: clients reach every node, and each node has its own power feed"


def services_of(cib: Cib, drbd: Iterable[Resource], names: Iterable[str]) -> tuple[Service, ...]:
    """Return the services: resources joined by groups and mandatory colocations.

    Fencing devices, plain clones, agents that only watch, and resources that are kept stopped serve nothing.
    """
    serving = [one for one in cib.services if _serves(cib, one)]
    joined = {one.id: one.id for one in serving}

    def root(name: str) -> str:
        while joined[name] != name:
            name = joined[name]
        return name

    for group in cib.groups.values():
        own = [one.id for one in group if one.id in joined]
        for name in own[1:]:
            joined[root(name)] = root(own[0])
    for colocation in cib.colocations:
        (near, _), (far, role) = colocation.resources
        ends = [[one for one in cib.ties.members(name) if one.id in joined] for name in (near, far)]
        if colocation.score == _INFINITY and all(ends) and not _apart(ends[1], role):
            for one in (*ends[0], *ends[1]):
                joined[root(one.id)] = root(ends[0][0].id)
    components: dict[str, list[Primitive]] = {}
    for one in serving:
        components.setdefault(root(one.id), []).append(one)
    resources = {one.name: one for one in drbd}
    return tuple(_service(cib, resources, tuple(names), parts) for parts in components.values())


def _serves(cib: Cib, one: Primitive) -> bool:
    stopped = one.meta.get("target-role") == "Stopped"
    return not stopped and not one.watched_attribute and (not one.clone or cib.promotable(one.clone))


def _apart(far: list[Primitive], role: str) -> bool:
    """Return whether a colocation is with any copy of a clone, so that the promoted copy may be on another node."""
    return role != "Promoted" and any(one.clone for one in far)


def _service(cib: Cib, drbd: Mapping[str, Resource], names: tuple[str, ...], parts: list[Primitive]) -> Service:
    members = tuple(one for one in parts if not one.clone)
    copies = tuple(one for one in parts if one.clone)
    group = next((one.group for one in members if one.group), "")
    replicated = dict.fromkeys(one.values.get("drbd_resource", "") for one in parts if one.is_drbd)
    devices = tuple(one.device for one in members if one.device)
    replicated |= {name: None for name, one in drbd.items() if one.devices & set(devices)}
    hosts = [{host.name for host in drbd[name].hosts} for name in replicated if name in drbd]
    name = group or (members[0].id if members else copies[0].clone)
    forbidden = {
        node
        for location in cib.locations
        if location.certain and location.score == -_INFINITY and location.role in ("", "Promoted", "Started")
        if {one.id for one in parts} & {each.id for ref in location.resources for each in cib.ties.members(ref)}
        for node in location.nodes
    }
    return Service(
        name,
        members,
        copies,
        tuple(node for node in names if node not in forbidden and all(node in each for each in hosts)),
        tuple(name for name in replicated if name),
        tuple(one.values["pool"] for one in members if one.agent == "ZFS" and one.values.get("pool")),
        devices,
        tuple(one.values["ip"] for one in members if one.agent in ("IPaddr2", "IPaddr") and one.values.get("ip")),
    )
