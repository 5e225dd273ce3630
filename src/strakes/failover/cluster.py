"""A cluster as its administrator describes it: nodes, networks, power, fencing, and the served file system."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import cached_property


def read_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an IP address. Return None for a host name, or if the zone index of an IPv6 address is invalid."""
    try:
        return ipaddress.ip_address(text) if re.fullmatch(r"[\w.:%-]+", text, re.ASCII) else None
    except ValueError:
        return None


def is_address(text: str) -> bool:
    """Return whether the text is an IP address; False for a host name."""
    return read_address(text) is not None


@dataclass(frozen=True)
class Network:
    """One network of the cluster. ``interface``: name of the network card to monitor, or empty."""

    name: str
    subnet: str
    switch: str = ""  # name of the switch; empty for a direct cable
    heartbeat: bool = False
    replication: bool = False
    stands_in_for: str = ""
    interface: str = ""

    def holds(self, address: str) -> bool:
        """Return whether an address is one of a host in the subnet of this network. A host name is in no subnet."""
        read = read_address(address) if self.subnet else None
        if read is None or read not in (subnet := ipaddress.ip_network(self.subnet)):
            return False
        ends = (subnet[0], subnet[-1]) if subnet.num_addresses > 2 else ()
        return read not in ends and not (read.is_multicast or read.is_loopback or read.is_unspecified)


@dataclass(frozen=True)
class Bmc:
    """The IPMI management controller (BMC) of a node. ``password_script``: program that prints the password."""

    address: str
    network: str
    user: str
    password_script: str
    port: int = 623


@dataclass(frozen=True)
class Pdu:
    """One outlet of a switched PDU. ``password_script``: program that prints the password."""

    agent: str
    address: str
    network: str
    outlet: str
    feed: str
    user: str = ""
    password_script: str = ""
    snmp_version: str = ""
    community: str = ""  # SNMP community, which only versions 1 and 2c use


@dataclass(frozen=True)
class Node:
    """One server. It needs only one of its ``power_feeds``. A ``quorum_only`` node only votes and runs no services."""

    name: str
    addresses: dict[str, str]
    power_feeds: tuple[str, ...]
    bmc: Bmc
    pdus: tuple[Pdu, ...] = ()
    quorum_only: bool = False


@dataclass(frozen=True)
class ServedTarget:
    """A storage device and the service that uses it, such as a Lustre OST. ``devices``: paths of the disk by node."""

    name: str
    devices: dict[str, str]
    prefers: str
    mount: str
    minor: int
    port: int
    nodes: tuple[str, ...] = ()
    shared: bool = False
    pool: str = ""
    vdevs: tuple[str, ...] = ()
    role: str = ""
    index: int = 0
    file_system: str = "ext4"
    address: str = ""  # IP address that moves with the service, and its prefix length: ADDRESS/BITS
    units: tuple[str, ...] = ()
    clients: str = ""
    voters: tuple[str, ...] = ()  # DRBD writes only while a majority of these hosts is connected

    @property
    def replicated(self) -> bool:
        """Return whether DRBD replicates the target."""
        return not self.shared

    @property
    def on_shared_disks(self) -> bool:
        """Return whether the target uses disks that are attached to several nodes."""
        return self.shared and bool(self.devices or self.pool)

    @property
    def device(self) -> str:
        """Return the path of the device with the target's file system, or the name of its ZFS dataset."""
        if self.pool:
            return f"{self.pool}/{self.name}"
        return self.devices[self.nodes[0]] if self.shared else f"/dev/drbd{self.minor}"

    def disks(self, node: str) -> list[str]:
        """Return the paths of the target's disks on a node."""
        return [path for path in (self.devices.get(node, ""), *self.vdevs) if path.startswith("/dev/")]

    def partners(self, node: str) -> tuple[str, ...]:
        """Return the nodes that can serve the target, except the given node."""
        return tuple(name for name in self.nodes if name != node)


@dataclass(frozen=True)
class FileSystem:
    """The file system that the cluster serves. ``mgs``: NIDs of the Lustre MGS, if another cluster runs it."""

    kind: str
    name: str
    clients: int = 0
    lnet: str = ""
    lnet_network: str = ""
    recovery_soft_s: float = 0.0  # soft limit of Lustre's recovery in seconds; 0: calculated from the number of clients
    recovery_hard_s: float = 0.0
    watch: tuple[str, ...] = ()  # services prefer the node that reaches more of these addresses
    mgs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alerts:
    """Recipients of alerts: a mail address, and a file that holds the URL of a webhook."""

    mail_to: str = ""
    webhook_url_file: str = ""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster. ``quorum_host``: host of the quorum device. ``survivor``: node that should win a fencing race."""

    name: str
    drbd: str = "9"
    survivor: str
    quorum_host: str = ""
    token_s: float = 3.0
    resync_mib_per_s: int = 200
    networks: tuple[Network, ...]
    nodes: tuple[Node, ...]
    file_system: FileSystem
    targets: tuple[ServedTarget, ...]
    alerts: Alerts

    @cached_property
    def heartbeats(self) -> tuple[Network, ...]:
        """Return the networks that carry the heartbeat."""
        return tuple(network for network in self.networks if network.heartbeat)

    @cached_property
    def replication(self) -> Network | None:
        """Return the replication network, or None if no target is replicated."""
        return next((network for network in self.networks if network.replication), None)

    @cached_property
    def servers(self) -> tuple[Node, ...]:
        """Return the nodes that can serve a target."""
        return tuple(node for node in self.nodes if not node.quorum_only)

    @cached_property
    def client_networks(self) -> tuple[Network, ...]:
        """Return the networks through which clients reach the services."""
        addresses = [target.address.partition("/")[0] for target in self.targets]
        return tuple(
            network
            for network in self.networks
            if network.name == self.file_system.lnet_network or any(map(network.holds, addresses))
        )

    def node(self, name: str) -> Node:
        """Return the node of this name. Raises StopIteration for an unknown name."""
        return next(node for node in self.nodes if node.name == name)
