"""Rules about the paths over which the nodes see each other."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator

from strakes.failover.blocks import Block
from strakes.failover.rules.rule import COROSYNC_CONF, DRBD_PACEMAKER, PACEMAKER, rule
from strakes.failover.setup import Setup

_MOST_LINKS = 8


def nodes_of(setup: Setup) -> list[Block]:
    """Return the nodes of corosync.conf, none where it was not read."""
    return setup.corosync.one("nodelist").all("node") if setup.corosync else []


def links_of(node: Block) -> dict[int, str]:
    """Return the address of each link by its number."""
    addresses = {number: node.get(f"ring{number}_addr") for number in range(_MOST_LINKS)}
    return {number: address for number, address in addresses.items() if address}


def name_of(node: Block) -> str:
    """Return the name by which Pacemaker knows the node.

    It is the node's name, or the host name that is its first address; empty where only ``uname -n`` says it.
    """
    first = links_of(node).get(0, "")
    return node.get("name") or ("" if read_address(first) else first)


def is_address(text: str) -> bool:
    """Tell whether the text is an address, and not the name of a host."""
    return read_address(text) is not None


def hosts_of(setup: Setup) -> dict[str, str]:
    """Return the addresses of the names in /etc/hosts."""
    found = dict[str, str]()
    for line in setup.texts.get("etc/hosts", "").splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        found |= {name: address for name in names if name not in found}
    return found


def _reached(setup: Setup, node: Block) -> dict[int, str]:
    """Return the links of a node whose addresses are given, or known by /etc/hosts."""
    known = hosts_of(setup)
    found = {number: known.get(text, text) for number, text in links_of(node).items()}
    return {number: text for number, text in found.items() if is_address(text)}


def read_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address, None for the name of a host."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


@rule("corosync").warning(
    reason="With a single link, one broken cable, card or switch separates the nodes, and each believes that the other "
    "is dead.",
    remedy="Give every node a second address (ring1_addr) on a network that shares nothing with the first; a bond "
    "is one network.",
    source=DRBD_PACEMAKER,
)
def one_heartbeat_path(setup: Setup) -> Iterator[str]:
    """Find nodes with fewer than two links."""
    single = [name_of(node) or "a node" for node in nodes_of(setup) if len(links_of(node)) < 2]
    if single:
        yield f"corosync.conf: {' and '.join(single)} with one link"


@rule("corosync").error(
    reason="Two addresses on the same network are one path: they fail together, and both may be routed through one "
    "card.",
    remedy="Put the second link on a network of its own.",
    source=DRBD_PACEMAKER,
)
def heartbeat_links_share_a_subnet(setup: Setup) -> Iterator[str]:
    """Find nodes with several links in one network."""
    for node in nodes_of(setup):
        nets = Counter(network_of(setup, address) for address in _reached(setup, node).values())
        for net, times in nets.items():
            if times > 1:
                yield f"corosync.conf: {times} links of {name_of(node) or 'a node'} are in {net}"


@rule("corosync").error(
    reason="An address can belong to one node only: the other node never receives what is sent to it, so the link does "
    "not work.",
    remedy="Give each node its own address on every link.",
    source=COROSYNC_CONF,
)
def same_address_on_two_nodes(setup: Setup) -> Iterator[str]:
    """Find addresses that several links have."""
    addresses = Counter(address for node in nodes_of(setup) for address in links_of(node).values())
    for address, times in addresses.items():
        if times > 1:
            yield f"corosync.conf: {address} is given {times} times"


@rule("corosync").warning(
    reason="The two ends of the link are in different networks: without a router between them, the link does not work.",
    remedy="Look up the addresses of the network cards of this link.",
    source=COROSYNC_CONF,
)
def link_in_two_subnets(setup: Setup) -> Iterator[str]:
    """Find links whose ends are in different networks."""
    nodes = nodes_of(setup)
    for number in range(_MOST_LINKS):
        nets = {network_of(setup, _reached(setup, node)[number]) for node in nodes if number in _reached(setup, node)}
        if len(nets) > 1:
            yield f"corosync.conf: ring{number}_addr is in {' and '.join(sorted(nets))}"


@rule("corosync", "hosts").error(
    reason="/etc/hosts has the names of other links but not this one: if no other name service knows it, the link does "
    "not work.",
    remedy="Add the name to /etc/hosts on every node, or write addresses into corosync.conf.",
    source=COROSYNC_CONF,
)
def link_name_not_in_hosts_file(setup: Setup) -> Iterator[str]:
    """Find host names of links that /etc/hosts lacks, where it has others."""
    known = hosts_of(setup)
    names = [text for node in nodes_of(setup) for text in links_of(node).values() if not is_address(text)]
    for name in dict.fromkeys(names):
        if name not in known and any(other in known for other in names):
            yield f"corosync.conf: {name} is not in /etc/hosts"


def network_of(setup: Setup, text: str) -> str:
    """Return the network of an address: as described, or of the usual length."""
    address = ipaddress.ip_address(text)
    for network in setup.cluster.networks if setup.cluster else ():
        if address in ipaddress.ip_network(network.subnet):
            return network.subnet
    return str(ipaddress.ip_network(f"{address}/{24 if address.version == 4 else 64}", strict=False))


@rule("description").error(
    reason="Links through the same switch are cut together when it fails or is restarted for a firmware update.",
    remedy="Use two switches, or a direct cable between the nodes for one of the links.",
    source=DRBD_PACEMAKER,
)
def heartbeat_links_share_a_switch(setup: Setup) -> Iterator[str]:
    """Find a switch that every heartbeat goes through."""
    heartbeats = setup.described.heartbeats
    switches = Counter(network.switch for network in heartbeats if network.switch)
    for switch, times in switches.items():
        if times == len(heartbeats):
            yield f"cluster.toml: every heartbeat goes through {switch}"


@rule("corosync").error(
    reason="A ring address that is, or resolves to, 127.x belongs to the node itself: the nodes never form a cluster.",
    remedy="Write the address of the network card; look for the 127.0.1.1 line that installers write into /etc/hosts.",
    source="https://github.com/corosync/corosync/issues/162",
)
def heartbeat_on_loopback(setup: Setup) -> Iterator[str]:
    """Find links with an address of the loopback."""
    for node in nodes_of(setup):
        for number, address in links_of(node).items():
            if address.startswith("127.") or address in ("::1", "localhost"):
                yield f"corosync.conf: ring{number}_addr of {node.get('name')} is {address}"


@rule("corosync").error(
    reason="Corosync needs the same number of links on every node: a node without one of them does not have the "
    "expected redundancy.",
    remedy="Give every node the same ringN_addr keys.",
    source="https://github.com/corosync/corosync/blob/main/exec/totemconfig.c",
)
def links_differ_between_nodes(setup: Setup) -> Iterator[str]:
    """Find nodes that do not have the same links."""
    numbers = {node.get("name"): tuple(links_of(node)) for node in nodes_of(setup)}
    if len(set(numbers.values())) > 1:
        yield "corosync.conf: " + ", ".join(f"{name} has links {list(links)}" for name, links in numbers.items())


@rule("corosync").error(
    reason="In Corosync 3 only knet carries more than one link: the redundant rings of udp and udpu no longer exist.",
    remedy="totem: transport: knet",
    source="https://github.com/corosync/corosync/pull/235",
)
def transport_without_redundancy(setup: Setup) -> Iterator[str]:
    """Find a transport that uses only one of several links."""
    totem = setup.membership.one("totem")
    chosen = totem.get("transport", "knet")
    # Corosync 2 has rings in place of links, and says with rrp_mode how they are used.
    rings = totem.get("rrp_mode") in ("passive", "active")
    if chosen != "knet" and not rings and any(len(links_of(node)) > 1 for node in nodes_of(setup)):
        yield f"corosync.conf: transport: {chosen}"


@rule("corosync").error(
    reason="Corosync takes two nodes with the same id for one node. Without ids, it makes them from the addresses, and "
    "they change with these.",
    remedy="Give every node its own nodeid, starting with 1.",
    source=COROSYNC_CONF,
)
def node_ids_missing_or_repeated(setup: Setup) -> Iterator[str]:
    """Find ids of nodes that are missing, reserved or given twice."""
    ids = [node.get("nodeid") for node in nodes_of(setup)]
    if "" in ids:
        yield "corosync.conf: a node has no nodeid"
    if "0" in ids:
        yield "corosync.conf: nodeid 0 is reserved"
    for identity in sorted({identity for identity in ids if identity and ids.count(identity) > 1}):
        yield f"corosync.conf: nodeid {identity} is given to {ids.count(identity)} nodes"


@rule("corosync").note(
    reason="Anybody who can send packets to the heartbeat network can join the cluster, and two clusters with the same "
    "address mix.",
    remedy="totem: crypto_cipher: aes256 and crypto_hash: sha256, with a key from corosync-keygen.",
    source=COROSYNC_CONF,
)
def heartbeat_not_encrypted(setup: Setup) -> Iterator[str]:
    """Find a heartbeat that is not encrypted."""
    totem = setup.membership.one("totem")
    encrypted = totem.get("crypto_hash", "none") != "none" and totem.get("crypto_cipher", "none") != "none"
    if not encrypted and totem.get("secauth") not in ("on", "yes"):
        yield "corosync.conf: crypto_cipher or crypto_hash is none"


@rule("corosync", "pacemaker").error(
    reason="A node with different names in two files counts as two nodes: constraints and fencing devices refer to a "
    "node that does not exist.",
    remedy="Use the output of uname -n in all files.",
    source=f"{PACEMAKER}/nodes.rst",
)
def names_differ_from_corosync(setup: Setup) -> Iterator[str]:
    """Find nodes of Pacemaker that are not in corosync.conf."""
    known = {name_of(node) for node in nodes_of(setup)}
    for name in setup.pacemaker.members_of_corosync if "" not in known else ():
        if known and name not in known:
            yield f"cib: node {name} is not in corosync.conf ({', '.join(sorted(known))})"


@rule("authkey").error(
    reason="Anybody who can read the key can join the cluster and power off its nodes.",
    remedy="chmod 400 /etc/corosync/authkey, owned by root.",
    source=COROSYNC_CONF,
)
def authkey_readable_by_all(setup: Setup) -> Iterator[str]:
    """Find a key of Corosync that others than its owner may read."""
    mode = setup.modes["etc/corosync/authkey"]
    if mode & 0o077:
        yield f"etc/corosync/authkey has mode {mode:04o}"


@rule("corosync").error(
    reason="Corosync knows only version 2, and does not start with any other.",
    remedy="totem: version: 2",
    source=COROSYNC_CONF,
)
def totem_version_unknown(setup: Setup) -> Iterator[str]:
    """Find a version of corosync.conf other than 2."""
    given = setup.membership.one("totem").get("version", "2")
    if given != "2":
        yield f"corosync.conf: version: {given}"


@rule("heartbeat 2").error(
    reason="Heartbeat starts resources on its own: both managers mount the same device and take the same address.",
    remedy="Remove /etc/ha.d (ha.cf, haresources), and the package heartbeat.",
    source="https://clusterlabs.org/projects/pacemaker/doc/",
)
def two_cluster_managers(setup: Setup) -> Iterator[str]:
    """Find a configuration of Heartbeat beside that of Corosync."""
    if setup.corosync is None and setup.cib is None:
        return
    for name, text in setup.texts.items():
        if name.startswith("etc/ha.d/") and any(line.strip()[:1] not in ("", "#") for line in text.splitlines()):
            yield f"{name} configures Heartbeat beside Corosync"


@rule("heartbeat 2").error(
    reason="crc uses no secret, and a key that others can read is not secret: anybody on the network can join the "
    "cluster.",
    remedy="authkeys: auth 1, 1 sha1 SECRET; chmod 600.",
    source="https://clusterlabs.org/projects/pacemaker/doc/",
)
def heartbeat_key_not_secret(setup: Setup) -> Iterator[str]:
    """Find a key of Heartbeat that is no secret, or that others than its owner may read."""
    text = setup.texts.get("etc/ha.d/authkeys", "")
    if any(line.split()[1:2] == ["crc"] for line in text.splitlines()):
        yield "etc/ha.d/authkeys uses crc"
    if setup.modes.get("etc/ha.d/authkeys", 0) & 0o077:
        yield f"etc/ha.d/authkeys has mode {setup.modes['etc/ha.d/authkeys']:04o}"
