"""Our own small model of the room: what hangs on what, and so who is alive, who sees whom and who can power off whom.

It knows nothing of time and nothing of half-broken parts: a network is there or it is not, for everybody on it.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal

from strakes.failover.description import Cluster, Node

Kind = Literal["network", "switch", "feed", "supply", "node", "bmc", "outlets", "disk", "service", "stop"]
# Of two failures the one that is less noticed is taken to come first: that is the worse order.
_ORDER: tuple[Kind, ...] = ("bmc", "outlets", "network", "switch", "disk", "service", "stop", "feed", "supply", "node")
_TEXT = {
    "network": "network {0} fails",
    "switch": "switch {0} fails",
    "feed": "power feed {0} fails",
    "supply": "{0} and its BMC lose their power",
    "node": "{0} dies",
    "bmc": "BMC of {0} does not answer",
    "outlets": "power outlets of {0} do not answer",
    "disk": "disk of {1} in {0} fails",
    "service": "{0} fails",
    "stop": "{0} fails and cannot be stopped",
}


@dataclass(frozen=True)
class Part:
    """Something that can fail. ``name`` is a node, network, …; ``target`` only for disks. Services are those of the policy engine."""

    kind: Kind
    name: str
    target: str = ""

    @property
    def text(self) -> str:
        return _TEXT[self.kind].format(self.name, self.target)

    @property
    def modelled(self) -> bool:
        """Whether our model decides about it before the policy engine is asked."""
        return self.kind not in ("service", "stop", "node")

    @property
    def order(self) -> int:
        return _ORDER.index(self.kind)


def parts_of(cluster: Cluster) -> tuple[Part, ...]:
    """Everything in the room, without the services."""
    nodes = cluster.nodes
    switches = dict.fromkeys(network.switch for network in cluster.networks if network.switch)
    feeds = dict.fromkeys(feed for node in nodes for feed in (*node.power_feeds, *(pdu.feed for pdu in node.pdus)))
    return (
        *(Part("node", node.name) for node in nodes),
        *(Part("network", network.name) for network in cluster.networks),
        *(Part("switch", switch) for switch in switches),
        *(Part("feed", feed) for feed in feeds),
        *(Part("supply", node.name) for node in nodes),
        *(Part("bmc", node.name) for node in nodes),
        *(Part("outlets", node.name) for node in nodes if node.pdus),
        *(Part("disk", node.name, target.name) for target in cluster.targets for node in nodes),
    )


@dataclass(frozen=True)
class Room:
    """The room with some parts broken."""

    cluster: Cluster
    broken: frozenset[Part] = frozenset()

    def without(self, part: Part) -> Room:
        return Room(self.cluster, self.broken | {part})

    def is_broken(self, kind: Kind, name: str, target: str = "") -> bool:
        return Part(kind, name, target) in self.broken

    def network_works(self, name: str) -> bool:
        switch = self.cluster.network(name).switch
        return not self.is_broken("network", name) and not (switch and self.is_broken("switch", switch))

    @property
    def heartbeat_works(self) -> bool:
        return any(self.network_works(network.name) for network in self.cluster.heartbeats)

    @property
    def replication_works(self) -> bool:
        """DRBD 9 has the networks of the heartbeat as further paths."""
        paths = [self.cluster.replication, *(self.cluster.heartbeats if self.cluster.drbd == "9" else ())]
        return any(self.network_works(network.name) for network in paths)

    @property
    def quorum_host_answers(self) -> bool:
        host = self.cluster.quorum_host
        if not host:
            return False
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return True
        on = [network.name for network in self.cluster.networks if address in ipaddress.ip_network(network.subnet)]
        return not on or any(self.network_works(name) for name in on)

    @property
    def clients_cut_off(self) -> bool:
        """Whether nobody can reach the service, wherever it runs."""
        on = {self.cluster.file_system.lnet_network} - {""}
        for target in self.cluster.targets:
            if target.address:
                address = ipaddress.ip_interface(target.address).ip
                on |= {network.name for network in self.cluster.networks if address in ipaddress.ip_network(network.subnet)}
        return bool(on) and not any(self.network_works(name) for name in on)

    def powered(self, node: Node) -> bool:
        return not self.is_broken("supply", node.name) and any(not self.is_broken("feed", feed) for feed in node.power_feeds)

    def alive(self, node: Node) -> bool:
        return self.powered(node) and not self.is_broken("node", node.name)

    def can_power_off(self, node: Node) -> bool:
        """Whether somebody can make sure that the node is off."""
        by_bmc = self.powered(node) and not self.is_broken("bmc", node.name) and self.network_works(node.bmc.network)
        by_outlets = (
            bool(node.pdus)
            and not self.is_broken("outlets", node.name)
            and all(self.network_works(pdu.network) and not self.is_broken("feed", pdu.feed) for pdu in node.pdus)
        )
        return by_bmc or by_outlets

    def disk_works(self, node: str, target: str) -> bool:
        return not self.is_broken("disk", node, target)
