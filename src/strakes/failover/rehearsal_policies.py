"""Settings that decide splits and waits: quorum, fencing delays, DRBD's fencing, watchers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strakes.failover.blocks import Block
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rehearsal_room import Room
from strakes.failover.rehearsal_times import watches_network
from strakes.failover.rules_fencing_devices import delays_of
from strakes.failover.rules_heartbeat import name_of, nodes_of
from strakes.failover.setup import Setup
from strakes.failover.times import fence_peer_s

_ON = ("1", "yes")


@dataclass(frozen=True)
class Policies:
    """The reaction of the nodes when they lose each other.

    ``device`` says whether a quorum device has a vote; ``first`` is the node that wins a tie, by the device or by
    ``auto_tie_breaker``.
    """

    fencing: bool
    two_node: bool
    device: bool
    breaks_ties: bool
    first: str
    frozen_without_peer: bool
    frozen_s: float
    delays_s: dict[str, float]
    waits_for_all: bool
    names: tuple[str, ...]
    watchers: tuple[Primitive, ...]

    @classmethod
    def of(cls, setup: Setup) -> Policies:
        """Read the policies from the files."""
        cib, quorum = setup.pacemaker, setup.corosync.one("quorum") if setup.corosync else Block("quorum")
        device = quorum.one("device").one("net")
        two_node = quorum.get("two_node") in _ON if setup.corosync else len(setup.node_names) == 2
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
            delays_s=delays_of(setup),
            waits_for_all=quorum.get("wait_for_all", "1" if two_node or breaks_ties else "0") in _ON,
            names=setup.node_names,
            watchers=tuple(filter(watches_network, cib.primitives)),
        )

    def has_quorum(self, room: Room, island: frozenset[str], islands: Sequence[frozenset[str]]) -> bool:
        """Return whether the nodes of an island, which see no other nodes, may continue."""
        if self.two_node:
            return True
        votes = len(island) + (self.device and self._device_votes_for(room, islands) == island)
        everybody = len(self.names) + self.device
        if votes * 2 > everybody:
            return True
        return self.breaks_ties and votes * 2 == everybody and self.first in island

    def _device_votes_for(self, room: Room, islands: Sequence[frozenset[str]]) -> frozenset[str]:
        """Return the largest island that the device sees; if several are equal, the one that wins ties."""
        seen = [island for island in islands if any(map(room.reaches_quorum_host, island))]
        return max(seen, key=lambda island: (len(island), self.first in island), default=frozenset())

    def watched(self, room: Room) -> frozenset[tuple[str, str, int]]:
        """Return (attribute, node, value) for each attribute that network monitors set."""
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
    """Return the node that wins a tie: the one with the lowest or highest id, or the first of a list."""
    ids = {int(node.get("nodeid")): name_of(node) for node in nodes_of(setup) if node.get("nodeid").isdecimal()}
    first = tie_breaker.split(maxsplit=1)[0] if tie_breaker.split() else "lowest"
    if first.isdecimal():
        return ids.get(int(first), "")
    return ids[max(ids) if first == "highest" else min(ids)] if ids else ""
