"""Model for simulated failures: hardware, links, fencing devices, and the settings for a lost heartbeat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from strakes.failover import rules_fencing_devices as fencing
from strakes.failover.cluster import Cluster, Network, Node, ServedTarget
from strakes.failover.facts import read_table
from strakes.failover.pacemaker_resources import NETWORK_WATCHERS, Primitive
from strakes.failover.setup import Setup, Snapshot, links_of, name_of, nodes_of
from strakes.failover.times import NO_WAIT, Span, fence_peer_s

_ON = ("1", "yes")


@dataclass(frozen=True)
class Cut:
    """The power that a fencing device cuts. Kind "lost": the device's address is unknown; "surely": it never fails."""

    device: str
    kind: Literal["bmc", "outlet", "pretends", "lost", "surely"]
    node: str = ""  # node that loses power
    feed: str = ""


@dataclass(frozen=True)
class Wiring:
    """Heartbeat links and fencing devices. ``links``: names of the networks that carry a link between all nodes."""

    links: tuple[str, ...]
    quorum_host: str
    levels: Mapping[str, tuple[tuple[Cut, ...], ...]]  # node -> fencing levels; a level is a group of devices

    @classmethod
    def of(cls, setup: Setup, cluster: Cluster) -> Wiring:
        """Return the links and devices that the configuration files contain, even if cluster.toml describes others."""
        host = setup.corosync.one("quorum").one("device").one("net").get("host")
        levels = {node.name: tuple(_levels(setup, cluster, node.name)) for node in cluster.nodes}
        return cls(tuple(_links(setup, cluster)), host, levels)


def _links(setup: Setup, cluster: Cluster) -> Iterator[str]:
    network_of = {
        (node.name, address): network for node in cluster.nodes for network, address in node.addresses.items()
    }
    nodes = nodes_of(setup)
    if not any(map(name_of, nodes)):
        yield from (network.name for network in cluster.heartbeats)
    for number in links_of(nodes[0]) if nodes else ():
        ends = {(name_of(node), links_of(node).get(number, "")) for node in nodes}
        networks = {network_of.get(end, "") for end in ends}
        if len(networks) == 1 and "" not in networks:
            yield networks.pop()


def _levels(setup: Setup, cluster: Cluster, node: str) -> Iterator[tuple[Cut, ...]]:
    # Ignore fence_kdump: it succeeds only for a node that is dumping its memory.
    useful = (device for device in fencing.devices_for(setup.pacemaker, node) if device.agent != "fence_kdump")
    devices = {device.id: device for device in useful}
    cuts = {name: _cut(cluster, device, node) for name, device in devices.items()}
    if fencing.watchdog_fences(setup):
        cuts |= {"watchdog": Cut("watchdog", "surely", node)}  # In fencing levels, "watchdog" names the watchdogs.
    levels = setup.pacemaker.levels_of(node) or [(name,) for name in cuts]
    yield from (tuple(cuts[name] for name in level) for level in levels if set(level) <= cuts.keys())


def _cut(cluster: Cluster, device: Primitive, node: str) -> Cut:
    address, port = fencing.address_of(device), device.values.get("ipport", "")
    if fencing.pretends_because(device):
        return Cut(device.id, "pretends")
    if fencing.is_bmc(device):
        owners = [one.name for one in cluster.nodes if one.bmc.address == address]
        owners = [name for name in owners if port in ("", str(cluster.node(name).bmc.port))]
        if node in owners and any(fencing.place_of_power(device, node)[2:]):
            owners = [node]
        return Cut(device.id, "bmc", owners[0]) if owners else Cut(device.id, "lost")
    if fencing.is_outlet(device):
        plugs = [(one.name, pdu) for one in cluster.nodes for pdu in one.pdus if pdu.address == address]
        # If the device names no outlet, Pacemaker passes the node's name as outlet.
        wanted = fencing.plug_of(device, node) or node
        cut = [(name, pdu.feed) for name, pdu in plugs if (pdu.outlet or name) == wanted]
        return Cut(device.id, "outlet", *cut[0]) if cut else Cut(device.id, "lost")
    return Cut(device.id, "surely", node)


@dataclass(frozen=True)
class RoomPart:
    """A part that can fail, such as a node. ``target``: the target on a disk, or the network of a network card."""

    kind: str
    name: str
    target: str = ""

    @property
    def text(self) -> str:
        """Return a description of the failure, such as "BMC of n1 does not answer"."""
        return str(read_table("options/failures")[self.kind]).format(self.name, self.target)

    @property
    def order(self) -> int:
        """Return a number that orders the failures of a pair: the part with the lower number fails first."""
        return list(read_table("options/failures")).index(self.kind)


def parts_of(cluster: Cluster) -> tuple[RoomPart, ...]:
    """Return all hardware parts of a cluster that can fail."""
    nodes = cluster.nodes
    switches = dict.fromkeys(network.switch for network in cluster.networks if network.switch)
    feeds = dict.fromkeys(feed for node in nodes for feed in (*node.power_feeds, *(pdu.feed for pdu in node.pdus)))
    return (
        *(RoomPart("node", node.name) for node in nodes),
        *(RoomPart("network", network.name) for network in cluster.networks),
        *(RoomPart("switch", switch) for switch in switches),
        *(RoomPart("feed", feed) for feed in feeds),
        *(RoomPart("supply", node.name) for node in nodes if node.bmc.address),
        *(RoomPart("bmc", node.name) for node in nodes if node.bmc.address),
        *(RoomPart("outlets", node.name) for node in nodes if node.pdus),
        *(RoomPart("card", node.name, network.name) for node in nodes for network in _in_use(cluster, node)),
        *(
            RoomPart("disk" if target.replicated else "path", node, target.name)
            for target in cluster.targets
            for node in target.nodes
            if target.replicated or target.on_shared_disks
        ),
        *(RoomPart("shelf", target.name) for target in cluster.targets if target.on_shared_disks),
    )


def _in_use(cluster: Cluster, node: Node) -> list[Network]:
    serving = cluster.client_networks if not node.quorum_only else ()
    return [
        network
        for network in cluster.networks
        if network.name in node.addresses and (network.heartbeat or network.replication or network in serving)
    ]


@dataclass(frozen=True)
class ReportedPowerOff:
    """A power-off that fencing devices report as successful. ``dead``: nodes that really lose power; perhaps none."""

    device: str
    dead: frozenset[str]


@dataclass(frozen=True)
class Room:
    """The hardware of a cluster with some broken parts."""

    cluster: Cluster
    wiring: Wiring
    broken: frozenset[RoomPart] = frozenset()

    def without(self, part: RoomPart) -> Room:
        """Return a copy in which a further part is broken."""
        return replace(self, broken=self.broken | {part})

    def is_broken(self, kind: str, name: str, target: str = "") -> bool:
        """Return whether a part has failed."""
        return RoomPart(kind, name, target) in self.broken

    def network_works(self, name: str) -> bool:
        """Return whether a network and its switch work."""
        switch = next(network.switch for network in self.cluster.networks if network.name == name)
        return not self.is_broken("network", name) and not (switch and self.is_broken("switch", switch))

    def on_network(self, node: str, name: str) -> bool:
        """Return whether a node is on a network: the network works, and so does the card of the node."""
        return self.network_works(name) and not self.is_broken("card", node, name)

    def islands(self, nodes: Iterable[Node]) -> list[frozenset[str]]:
        """Return the partitions, the largest first. Working heartbeat links join the nodes of a partition."""
        left = [node.name for node in nodes]
        islands: list[frozenset[str]] = []
        while left:
            island, edge = {left[0]}, [left[0]]
            while edge:
                here = edge.pop()
                links = [link for link in self.wiring.links if self.on_network(here, link)]
                others = [name for name in left if name not in island]
                near = [name for name in others if any(self.on_network(name, link) for link in links)]
                island.update(near)
                edge += near
            islands.append(frozenset(island))
            left = [name for name in left if name not in island]
        return sorted(islands, key=len, reverse=True)

    def replicates(self, one: str, other: str) -> bool:
        """Return whether DRBD can replicate between two nodes. DRBD 9 may also use the heartbeat networks."""
        also = bool(self.cluster.name) and self.cluster.drbd == "9"
        paths = [path.name for path in self.cluster.networks if path.replication or (also and path.heartbeat)]
        return any(self.on_network(one, path) and self.on_network(other, path) for path in paths)

    def reaches_quorum_host(self, node: str) -> bool:
        """Return whether a node reaches the quorum device. True if the device is in no network of the cluster."""
        host = self.wiring.quorum_host
        on = self._networks_of(host)
        return bool(host) and (not on or any(self.on_network(node, name) for name in on))

    def reached_by_clients(self, node: str) -> bool:
        """Return whether clients reach a node."""
        on = self.cluster.client_networks
        return not on or any(self.on_network(node, network.name) for network in on)

    def reaches(self, node: str, address: str) -> bool:
        """Return whether a node reaches an address. Addresses outside all networks use the network of clients."""
        on = self._networks_of(address)
        return any(self.on_network(node, name) for name in on) if on else self.reached_by_clients(node)

    def _networks_of(self, address: str) -> list[str]:
        return [network.name for network in self.cluster.networks if network.holds(address)]

    def powered(self, node: Node) -> bool:
        """Return whether the node has power from at least one feed."""
        fed = any(not self.is_broken("feed", feed) for feed in node.power_feeds)
        return fed and not self.is_broken("supply", node.name)

    def alive(self, node: Node) -> bool:
        """Return whether the node has power and has not failed."""
        return self.powered(node) and not self.is_broken("node", node.name)

    def power_off(self, node: Node) -> ReportedPowerOff | None:
        """Return the effect of the node's first fencing level that reports success, or None if all levels fail."""
        for level in self.wiring.levels.get(node.name, ()):
            if all(map(self._succeeds, level)):
                dead = {cut.node for cut in level if cut.kind in ("bmc", "surely")}
                for other in self.cluster.nodes:
                    cut_feeds = {cut.feed for cut in level if cut.kind == "outlet" and cut.node == other.name}
                    live = {feed for feed in other.power_feeds if not self.is_broken("feed", feed)}
                    if cut_feeds and live <= cut_feeds:
                        dead.add(other.name)
                return ReportedPowerOff(", ".join(cut.device for cut in level), frozenset(dead))
        return None

    def _succeeds(self, cut: Cut) -> bool:
        if cut.kind in ("pretends", "surely", "lost"):
            return cut.kind != "lost"
        owner = next(node for node in self.cluster.nodes if node.name == cut.node)
        if cut.kind == "bmc":
            works = self.powered(owner) and not self.is_broken("bmc", owner.name)
            return works and self.network_works(owner.bmc.network)
        networks = [pdu.network for pdu in owner.pdus if pdu.feed == cut.feed]
        reached = all(map(self.network_works, networks)) and not self.is_broken("outlets", owner.name)
        return reached and not self.is_broken("feed", cut.feed)


@dataclass(frozen=True)
class Policies:
    """The settings that determine how nodes react to a lost heartbeat."""

    fencing: bool
    two_node: bool
    device: bool  # whether a quorum device has a vote
    breaks_ties: bool
    first: str  # if votes are equal, the partition with this node wins
    frozen_without_peer: bool
    frozen_s: float
    delays_s: dict[str, tuple[float, float]]
    by_priority: bool  # whether the priority of services decides a fencing race
    waits_for_all: bool
    names: tuple[str, ...]  # names of the nodes with a vote
    watchers: tuple[Primitive, ...]

    @classmethod
    def of(cls, setup: Setup) -> Policies:
        """Return the settings in the configuration files of a cluster."""
        cib, quorum = setup.pacemaker, setup.corosync.one("quorum")
        device = quorum.one("device").one("net")
        names = setup.members
        two_node = quorum.get("two_node") in _ON if setup.corosync else len(names) == 2
        breaks_ties = quorum.get("auto_tie_breaker") in _ON
        tie = device.get("tie_breaker", "lowest") if quorum.all("device") else quorum.get("auto_tie_breaker_node")
        enabled = cib.properties.get("stonith-enabled", "true").lower() not in ("false", "no", "off", "0")
        return cls(
            fencing=enabled and (bool(cib.devices) or cib.watchdog_s != 0),
            two_node=two_node,
            device=bool(quorum.all("device")),
            breaks_ties=breaks_ties,
            first=_node_of(setup, tie or "lowest"),
            frozen_without_peer=bool(setup.drbd)
            and all(set(resource.fencing) == {"resource-and-stonith"} for resource in setup.drbd),
            frozen_s=max((fence_peer_s(one)[0] for one in setup.drbd), default=0.0),
            delays_s=fencing.delays_of(setup),
            by_priority=fencing.decides_by_priority(setup),
            # Heartbeat does not wait for all nodes: after the time initdead, a node that is alone starts services.
            waits_for_all=quorum.get("wait_for_all", "1" if two_node or breaks_ties else "0") in _ON
            and cib.properties.get("no-quorum-policy") != "ignore"
            and not setup.is_heartbeat,
            names=names,
            watchers=tuple(one for one in cib.primitives if one.agent in NETWORK_WATCHERS),
        )

    def has_quorum(self, room: Room, island: frozenset[str], islands: Sequence[frozenset[str]]) -> bool:
        """Return whether the partition ``island`` has quorum among all partitions ``islands``."""
        if self.two_node:
            return True
        # Between partitions of equal size, the quorum device chooses the one with its tie-breaker node.
        seen = [group for group in islands if any(map(room.reaches_quorum_host, group))]
        largest = max(seen, key=lambda group: (len(group), self.first in group), default=frozenset[str]())
        votes = len(island) + (self.device and largest == island)
        everybody = len(self.names) + self.device
        if votes * 2 > everybody:
            return True
        return self.breaks_ties and votes * 2 == everybody and self.first in island

    def watched(self, room: Room) -> frozenset[tuple[str, str, int]]:
        """Return (attribute, node, value) of all node attributes that the agents for network monitoring set."""
        return frozenset(
            (watcher.watched_attribute, node.name, _reached(room, watcher, node.name))
            for watcher in self.watchers
            for node in room.cluster.nodes
            if node.name in self.names
        )


def _reached(room: Room, watcher: Primitive, node: str) -> int:
    given = watcher.values.get("multiplier", "1")
    factor = int(given) if given.isdecimal() else 1
    interface = watcher.values.get("interface", "")
    if watcher.agent == "ethmonitor":
        networks = [network.name for network in room.cluster.networks if network.interface == interface]
        up = all(room.on_network(node, name) for name in networks) if networks else room.reached_by_clients(node)
        return factor * up
    hosts = watcher.values.get("host_list", "").split()
    return factor * sum(room.reaches(node, host.partition("@")[0]) for host in hosts)


def _node_of(setup: Setup, tie_breaker: str) -> str:
    ids = {int(node.get("nodeid")): name_of(node) for node in nodes_of(setup) if node.get("nodeid").isdecimal()}
    first = tie_breaker.split(maxsplit=1)[0] if tie_breaker.split() else "lowest"
    if first.isdecimal():
        return ids.get(int(first), "")
    return ids[max(ids) if first == "highest" else min(ids)] if ids else ""


Ending = Literal["nothing", "restart", "take-over", "pause", "hangs", "unreachable", "outage"]
WORST: tuple[Ending, ...] = ("nothing", "restart", "take-over", "pause", "hangs", "unreachable", "outage")


@dataclass(frozen=True)
class World:
    """The state of hardware and cluster after failures. ``stale``: (target, node) pairs of outdated copies."""

    room: Room
    state: Snapshot
    off: frozenset[str] = frozenset()
    stale: frozenset[tuple[str, str]] = frozenset()
    stuck: bool = False  # True if services stay where they are until a person acts.
    apart: bool = False  # True if some live nodes cannot reach each other.
    frozen: bool = False  # True if writes hang, because DRBD has suspended them or locks are not granted.
    paused: bool = False  # True if writes wait until DRBD's fence-peer handler times out.
    quorum: bool = True

    @property
    def places(self) -> dict[str, str]:
        """Return target -> node that serves it from an up-to-date copy, or an empty text."""
        return {target.name: self._place(target) for target in self.room.cluster.targets}

    def _place(self, target: ServedTarget) -> str:
        place = self.state.served.get(target.name, "")
        return place if place and place not in self.off and self._has_copy(target, place) else ""

    def _has_copy(self, target: ServedTarget, place: str) -> bool:
        room = self.room
        if not target.replicated:
            return not room.is_broken("shelf", target.name) and not room.is_broken("path", place, target.name)
        joined = {place, *(one for one in target.voters if one not in self.off and room.replicates(place, one))}
        if target.voters and 2 * len(joined) <= len(target.voters):
            return False
        if not room.is_broken("disk", place, target.name):
            return True
        return any(
            other not in self.off
            and room.replicates(place, other)
            and (target.name, other) not in self.stale
            and not room.is_broken("disk", other, target.name)
            for other in target.partners(place)
        )

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Return the targets that are served, but on nodes that clients do not reach."""
        return tuple(
            target for target, place in self.places.items() if place and not self.room.reached_by_clients(place)
        )


@dataclass(frozen=True)
class Step:
    """The effects of one failure. ``said``: explanations. ``wait``: bounds of the clients' waiting time."""

    fenced: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    split_brain: str = ""
    restarted: bool = False
    wait: Span = NO_WAIT


@dataclass(frozen=True)
class Scene:
    """The predicted effect of one or two failures. ``modelled``: the prediction used the hardware model."""

    failures: tuple[RoomPart, ...]
    ending: Ending
    fenced: tuple[str, ...]
    places: dict[str, str]
    said: tuple[str, ...]
    split_brain: str
    modelled: bool
    cuts_every_heartbeat: bool
    wait: Span

    @property
    def ends_the_service(self) -> bool:
        """Return whether the service stays interrupted until a person acts."""
        return self.ending in ("hangs", "unreachable", "outage")
