"""Heartbeat links and fencing devices as the configuration files have them, with all mistakes of these files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from strakes.failover import rules_fencing_devices as fencing
from strakes.failover.cluster import Cluster
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.setup import Setup, links_of, name_of, nodes_of


@dataclass(frozen=True)
class Cut:
    """The effect of a fencing device. Kind ``lost``: unknown address. Kind ``surely``: the device never fails."""

    device: str
    kind: Literal["bmc", "outlet", "pretends", "lost", "surely"]
    node: str = ""  # node that loses power
    feed: str = ""


@dataclass(frozen=True)
class Wiring:
    """Heartbeat links and fencing devices. ``links``: names of networks whose links connect all nodes."""

    links: tuple[str, ...]
    quorum_host: str
    levels: Mapping[str, tuple[tuple[Cut, ...], ...]]  # node -> fencing levels, each with all its devices

    @classmethod
    def of(cls, setup: Setup, cluster: Cluster) -> Wiring:
        """Return the links and devices in the configuration files, not those in cluster.toml."""
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
    # fence_kdump succeeds only for a node that dumps its memory.
    useful = (device for device in fencing.devices_for(setup.pacemaker, node) if device.agent != "fence_kdump")
    devices = {device.id: device for device in useful}
    named = setup.pacemaker.levels_of(node)
    levels = [level for level in named if set(level) <= devices.keys()] if named else [(name,) for name in devices]
    yield from (tuple(_cut(cluster, devices[name], node) for name in level) for level in levels)
    if not named and fencing.watchdog_fences(setup):
        yield (Cut("watchdog", "surely", node),)


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
        cut = [(name, pdu.feed) for name, pdu in plugs if pdu.outlet == fencing.plug_of(device, node)]
        return Cut(device.id, "outlet", *cut[0]) if cut else Cut(device.id, "lost")
    return Cut(device.id, "surely", node)
