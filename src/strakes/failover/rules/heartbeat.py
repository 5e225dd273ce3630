"""Rules about the paths over which the nodes see each other."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator

from strakes.failover.blocks import Block
from strakes.failover.rules.base import rule
from strakes.failover.setup import Setup

_MOST_LINKS = 8


def nodes_of(setup: Setup) -> list[Block]:
    return setup.corosync.one("nodelist").all("node") if setup.corosync else []


def links_of(node: Block) -> dict[int, str]:
    """Number of the link -> address."""
    found = {number: node.get(f"ring{number}_addr") for number in range(_MOST_LINKS)}
    return {number: address for number, address in found.items() if address}


@rule(
    "one-heartbeat-path",
    "error",
    "corosync",
    reason="With a single link one cable, card or switch separates the nodes, and each takes the other for dead.",
    remedy="Give every node a second address (ring1_addr) on a network that shares nothing with the first.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc",
)
def one_path(setup: Setup) -> Iterator[str]:
    for node in nodes_of(setup):
        if len(links_of(node)) < 2:
            yield f"corosync.conf: {node.get('name') or 'a node'} has {len(links_of(node))} link"


@rule(
    "heartbeat-links-share-a-subnet",
    "error",
    "corosync",
    reason="Two addresses on the same network are one path: they fail together, and routing may send both through one card.",
    remedy="Put the second link on a network of its own.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc",
)
def same_subnet(setup: Setup) -> Iterator[str]:
    for node in nodes_of(setup):
        nets = []
        for address in links_of(node).values():
            try:
                prefix = 24 if ipaddress.ip_address(address).version == 4 else 64
            except ValueError:
                continue
            nets.append(str(ipaddress.ip_network(f"{address}/{_prefix(setup, address, prefix)}", strict=False)))
        for net, times in Counter(nets).items():
            if times > 1:
                yield f"corosync.conf: {times} links of {node.get('name')} are on {net}"


def _prefix(setup: Setup, address: str, usual: int) -> int:
    """The described length of the network; without a description the usual one."""
    for network in setup.cluster.networks if setup.cluster else ():
        net = ipaddress.ip_network(network.subnet)
        if ipaddress.ip_address(address) in net:
            return net.prefixlen
    return usual


@rule(
    "heartbeat-links-share-a-switch",
    "error",
    "description",
    reason="Links through the same switch are cut together when it fails or is restarted for new firmware.",
    remedy="Use two switches, or a direct cable between the nodes for one of the links.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc",
)
def same_switch(setup: Setup) -> Iterator[str]:
    assert setup.cluster is not None
    switches = Counter(network.switch for network in setup.cluster.heartbeats if network.switch)
    for switch, times in switches.items():
        if times == len(setup.cluster.heartbeats):
            yield f"cluster.toml: every heartbeat goes through {switch}"


@rule(
    "heartbeat-on-loopback",
    "error",
    "corosync",
    reason="A ring address that is, or resolves to, 127.x binds to the node itself: the nodes never form a cluster.",
    remedy="Write the address of the network card; mind the 127.0.1.1 line that installers write into /etc/hosts.",
    source="https://github.com/corosync/corosync/issues/162",
)
def loopback(setup: Setup) -> Iterator[str]:
    for node in nodes_of(setup):
        for number, address in links_of(node).items():
            if address.startswith("127.") or address in ("::1", "localhost"):
                yield f"corosync.conf: ring{number}_addr of {node.get('name')} is {address}"


@rule(
    "links-differ-between-nodes",
    "error",
    "corosync",
    reason="Corosync wants the same number of links on every node; where one lacks, the redundancy that is counted on is not there.",
    remedy="Give every node the same ringN_addr keys.",
    source="https://github.com/corosync/corosync/blob/main/exec/totemconfig.c",
)
def unequal_links(setup: Setup) -> Iterator[str]:
    numbers = {node.get("name"): tuple(links_of(node)) for node in nodes_of(setup)}
    if len(set(numbers.values())) > 1:
        yield "corosync.conf: " + ", ".join(f"{name} has links {list(links)}" for name, links in numbers.items())


@rule(
    "transport-without-redundancy",
    "error",
    "corosync",
    reason="Only knet carries more than one link in Corosync 3: the redundant rings of udp and udpu are gone.",
    remedy="totem: transport: knet",
    source="https://github.com/corosync/corosync/pull/235",
)
def transport(setup: Setup) -> Iterator[str]:
    assert setup.corosync is not None
    chosen = setup.corosync.one("totem").get("transport", "knet")
    if chosen != "knet" and any(len(links_of(node)) > 1 for node in nodes_of(setup)):
        yield f"corosync.conf: transport: {chosen}"


@rule(
    "node-ids",
    "error",
    "corosync",
    reason="Two nodes with one id are one node to Corosync; without ids they follow from addresses and change with them.",
    remedy="Give every node its own nodeid, beginning with 1.",
    source="https://manpages.debian.org/bookworm/corosync/corosync.conf.5.en.html",
)
def node_ids(setup: Setup) -> Iterator[str]:
    ids = [node.get("nodeid") for node in nodes_of(setup)]
    if "" in ids:
        yield "corosync.conf: a node has no nodeid"
    for one in {identity for identity in ids if identity and ids.count(identity) > 1}:
        yield f"corosync.conf: nodeid {one} is given to {ids.count(one)} nodes"


@rule(
    "heartbeat-not-encrypted",
    "warning",
    "corosync",
    reason="Whoever can send to the heartbeat's network can join the cluster, or two clusters with the same address mix.",
    remedy="totem: crypto_cipher: aes256 and crypto_hash: sha256, with a key from corosync-keygen.",
    source="https://manpages.debian.org/bookworm/corosync/corosync.conf.5.en.html",
)
def plain(setup: Setup) -> Iterator[str]:
    assert setup.corosync is not None
    totem = setup.corosync.one("totem")
    if totem.get("crypto_hash", "none") == "none" or totem.get("crypto_cipher", "none") == "none":
        yield "corosync.conf: crypto_cipher or crypto_hash is none"


@rule(
    "names-differ-from-corosync",
    "error",
    "corosync",
    "pacemaker",
    reason="A node that is called differently in two places is two nodes: constraints and fencing devices name one that does not exist.",
    remedy="Use the output of uname -n everywhere.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/nodes.rst",
)
def names(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    known = {node.get("name") for node in nodes_of(setup)}
    for name in setup.cib.nodes:
        if known and name not in known:
            yield f"cib: node {name} is not in corosync.conf ({', '.join(sorted(known))})"
