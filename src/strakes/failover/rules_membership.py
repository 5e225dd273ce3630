"""Rules about Corosync's links, node ids and quorum device, and about addresses in several files."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from strakes.failover.blocks import Block, Resource
from strakes.failover.cluster import is_address, read_address
from strakes.failover.facts import Doubtful, graded, shared
from strakes.failover.resource_facts import ADDRESSES
from strakes.failover.rules_fencing_devices import address_of, is_bmc
from strakes.failover.rules_storage import never_together
from strakes.failover.setup import LINKS, Setup, hosts_of, links_of, name_of, nodes_of


def _networks(setup: Setup, number: int) -> dict[str, str]:
    described = [ipaddress.ip_network(one.subnet) for one in (setup.cluster.networks if setup.cluster else ())]
    known, found = hosts_of(setup), {}
    for node in nodes_of(setup):
        text = links_of(node).get(number, "")
        if address := read_address(known.get(text, text)):
            usual = ipaddress.ip_network(f"{address}/{24 if address.version == 4 else 64}", strict=False)
            network = next((one for one in described if address in one), usual)
            found[name_of(node) or str(address)] = str(network)
    return found


def links_and_networks_do_not_match(setup: Setup) -> Iterator[str]:
    """Find links between different networks, links that lack a node, and nodes with several links in one network."""
    links = [_networks(setup, number) for number in LINKS]
    for node in dict.fromkeys(name for link in links for name in link):
        for net, times in Counter(link[node] for link in links if node in link).items():
            if times > 1:
                yield f"corosync.conf: {times} links of {node} are in {net}"
    if len({tuple(links_of(node)) for node in nodes_of(setup)}) > 1:
        yield "corosync.conf: the nodes do not have the same links"
    for number, link in enumerate(links):
        nets = sorted(set(link.values()))
        shared_nets = any(set(nets) & set(other.values()) for other in links if other is not link)
        # A link in one network shows that the nodes are at one site, so no other link should join different networks.
        near = any(len(set(other.values())) == 1 for other in links if other is not link)
        one_is_off = len(nets) > 1 and (near or (sum(map(bool, links)) > 1 and len(nets) == 2 and len(link) > 2))
        if (len(nets) > 1 and shared_nets) or one_is_off or any(net.startswith("127.") for net in nets):
            yield f"corosync.conf: ring{number}_addr is in {' and '.join(nets)}"


def hosts_file_wrong(setup: Setup) -> Iterator[str]:
    """Find nodes whose address in /etc/hosts is a loopback address, or contradicts another node or corosync.conf."""
    links = {name_of(node): set(links_of(node).values()) for node in nodes_of(setup)}
    names = {*setup.node_names, *links} - {"", "localhost"}
    rows = [(ip, name) for full, ip in hosts_of(setup).items() if (name := full.partition(".")[0]) in names]
    yield from (f"hosts: {address} is {first} and {name}" for address, first, name in shared(rows))
    for address, name in rows:
        if address == "::1" or address.startswith("127."):
            yield f"hosts: {name} is {address}"
        own = links.get(name, {address})
        near = {link.rpartition(".")[0] for link in own if "." in link and is_address(link)}
        if address not in own and address.rpartition(".")[0] in near:
            yield f"hosts: {name} is {address}, corosync.conf has {', '.join(sorted(own))}"


def _wrong_ids(setup: Setup) -> Iterator[str]:
    ids = [node.get("nodeid") for node in nodes_of(setup)]
    totem = setup.corosync.one("totem")
    if "" in ids and totem.get("transport", "knet") == "knet" and not totem.one("interface").get("bindnetaddr"):
        yield graded(totem.get("transport"), "corosync.conf: a node has no nodeid")
    if "0" in ids:
        yield "corosync.conf: nodeid 0 is reserved"
    for identity in sorted({identity for identity in ids if identity and ids.count(identity) > 1}):
        yield f"corosync.conf: nodeid {identity} is given to {ids.count(identity)} nodes"


def nodes_differ_from_corosync(setup: Setup) -> Iterator[str]:
    """Find nodes with a wrong id, and nodes whose name or id differs between Pacemaker, corosync.conf and DRBD."""
    ids = {name_of(node): node.get("nodeid") for node in nodes_of(setup)}
    for name, hosts in ((one.name, _foreign_hosts(setup, one)) for one in setup.drbd):
        if hosts:
            yield Doubtful(f"drbd: {name} is on {' and '.join(hosts)}, but no node has one of these names")
    yield from _wrong_ids(setup)
    yield from _unlike_pacemaker(setup, ids) if ids and "" not in ids and setup.cib else ()


def _unlike_pacemaker(setup: Setup, ids: Mapping[str, str]) -> Iterator[str]:
    listed, nodes = set(map(_short, ids)), setup.pacemaker.nodes
    for name in setup.pacemaker.members_of_corosync:
        if name not in ids:
            text = f"cib: node {name} is not in corosync.conf ({', '.join(sorted(ids))})"
            yield graded(_short(name) not in listed and all(node.get("name") for node in nodes_of(setup)), text)
    # Only warn, because a node that only votes needs no Pacemaker.
    for name in (name for name in sorted(ids) if nodes and _short(name) not in set(map(_short, nodes))):
        yield Doubtful(f"corosync.conf: node {name} is not in the CIB ({', '.join(sorted(nodes))})")
    for node in setup.pacemaker.root.iterfind("./configuration/nodes/node"):
        name, given = node.get("uname", ""), node.get("id", "")
        if node.get("type", "member") != "remote" and given.isdecimal() and ids.get(name) not in (given, "", None):
            yield f"cib: {name} has the id {given}, nodeid {ids[name]} in corosync.conf"


def _short(name: str) -> str:
    return name if is_address(name) else name.partition(".")[0].lower()


def _foreign_hosts(setup: Setup, one: Resource) -> list[str]:
    known = {_short(name) for name in setup.node_names if not setup.nodes_assumed}
    names = {_short(host.name): host.name for host in one.hosts}
    # A resource whose hosts are all at another site may be part of a stacked resource, which is correct.
    pairs = [(other.name, *block.words) for other in setup.drbd for block in other.block.all("stacked-on-top-of")]
    stacked = any(one.name in pair for pair in pairs)
    return list(names.values()) if known and not stacked and not known & names.keys() else []


def quorum_device_wrong(setup: Setup) -> Iterator[str]:
    """Find a misconfigured quorum device, and a quorum device that runs on a node of the same cluster."""
    if setup.corosync.one("quorum").all("device"):
        device = setup.corosync.one("quorum").one("device")
        own = {text for node in nodes_of(setup) for text in (*links_of(node).values(), name_of(node))}
        alike = own | {one.values.get("ip", "") for one in setup.services}
        for key, command in device.one("heuristics").settings:
            last = (command.split() or ["/bin/true"])[-1]
            same = last in alike or re.fullmatch(r"127\..*|::1|localhost|.*/(true|false)", last)
            if same and key.startswith("exec_"):
                yield Doubtful(f"corosync.conf: {key}: {command} has the same result on both nodes")
        if device.get("model") == "net":
            yield from _wrong_net(setup, device, own)
        elif device.get("model") != "heuristics":
            yield f"corosync.conf: device has model {device.get('model') or '(none)'}"


def _wrong_net(setup: Setup, device: Block, own: set[str]) -> Iterator[str]:
    net, nodes = device.one("net"), nodes_of(setup)
    host, algorithm, tie = net.get("host"), net.get("algorithm", "ffsplit"), net.get("tie_breaker", "lowest")
    if any(links_of(node) and 0 not in links_of(node) for node in nodes):
        yield "corosync.conf: a node has no ring0_addr, which corosync-qdevice needs"
    described = setup.cluster.nodes if setup.cluster else ()
    taken = own | {text for node in described for text in (*node.addresses.values(), node.bmc.address)}
    if not host or host in taken or host.startswith("127.") or host in ("localhost", "::1"):
        yield f"corosync.conf: device is on {host or 'no host'}"
    if tie not in ("lowest", "highest", *(node.get("nodeid") for node in nodes)):
        yield f"corosync.conf: tie_breaker: {tie} is not a nodeid"
    if not setup.corosync.one("totem").get("cluster_name"):
        yield "corosync.conf: totem has no cluster_name, which the device needs"
    votes = {"ffsplit": "1", "2nodelms": "1", "lms": str(max(len(nodes) - 1, 1))}.get(algorithm)
    if votes is None:
        yield f"corosync.conf: device has algorithm {algorithm}"
    elif device.get("votes", votes) != votes:
        text = f"corosync.conf: device has votes: {device.get('votes')}; {algorithm} needs {votes}"
        yield graded(algorithm != "lms", text)


def _owners(setup: Setup) -> Iterator[tuple[str, str, str]]:
    for node in nodes_of(setup):
        name = name_of(node) or f"node {node.get('nodeid')}"
        yield from ((address, name, f"ring{number}_addr of {name}") for number, address in links_of(node).items())
    for resource, host in ((one, side) for one in setup.drbd for side in one.hosts):
        name = f"node {host.name}" if _foreign_hosts(setup, resource) else host.name
        for given in host.addresses:
            address = re.sub(r":\d+$", "", given.split()[-1] if given.split() else "").strip("[]")
            yield address, name, f"the address of {resource.name} on {host.name}"
    for described in setup.cluster.nodes if setup.cluster else ():
        for address in described.addresses.values():
            yield address, described.name, f"{described.name} of cluster.toml"
    # Compare only BMCs, because other fencing devices (such as hypervisors) may share an address with a node.
    yield from ((address_of(device), "power", device.id) for device in setup.devices if is_bmc(device))
    for service in setup.services:
        if service.agent in (*ADDRESSES, "remote"):
            address = service.values.get("ip") or service.values.get("server", "")
            yield address, f"clone {service.clone}" if service.clone else service.id, service.id


def one_address_for_two_things(setup: Setup) -> Iterator[str]:
    """Find addresses that two different nodes, fencing devices or services have."""
    known: dict[str, tuple[str, str]] = {}
    real, services = hosts_of(setup), {one.id for one in setup.services}
    hosts = set(map(_short, (*setup.node_names, *(host.name for one in setup.drbd for host in one.hosts))))
    for given, thing, name in _owners(setup):
        address = real.get(given, given)
        if is_address(address) and not address.startswith("127."):  # With DRBD's proxy, all nodes use loopback.
            own = _short(thing)
            first, other = known.setdefault(address, (own, name))
            pair = {own, first}
            unnamed = any(one.startswith("node ") for one in pair) and pair & hosts
            apart = {name, other} <= services and never_together(setup.pacemaker, name, other)
            if first != own and not unnamed and not apart:
                yield f"{address} is {other}, and {name}"
