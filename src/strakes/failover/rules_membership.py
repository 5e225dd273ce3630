"""Rules about Corosync that compare nodes, files and addresses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from strakes.failover.resource_facts import ADDRESSES
from strakes.failover.rules_fencing_devices import address_of
from strakes.failover.rules_heartbeat import hosts_of, is_address, links_of, name_of, network_of, nodes_of
from strakes.failover.setup import Setup

_PORTS_OF_OTHERS = ("22", "80", "111", "443", "623", "2049", "2224", "3121", "5404", "5405", "5406", "21064")


def _reached(setup: Setup, number: int) -> dict[str, str]:
    """Return node -> network of link ``number``, for nodes whose address is given or listed in /etc/hosts."""
    known = hosts_of(setup)
    found = {}
    for node in nodes_of(setup):
        address = links_of(node).get(number, "")
        address = known.get(address, address)
        if is_address(address):
            found[name_of(node) or address] = network_of(setup, address)
    return found


def links_and_networks_do_not_match(setup: Setup) -> Iterator[str]:
    """Find links whose ends are in different networks or missing, and nodes with several links in one network."""
    links = [_reached(setup, number) for number in range(8)]
    for node in dict.fromkeys(name for link in links for name in link):
        for net, times in Counter(link[node] for link in links if node in link).items():
            if times > 1:
                yield f"corosync.conf: {times} links of {node} are in {net}"
    if len({tuple(links_of(node)) for node in nodes_of(setup)}) > 1:
        yield "corosync.conf: the nodes do not have the same links"
    for number, link in enumerate(links):
        nets = sorted(set(link.values()))
        if len(nets) > 1:
            yield f"corosync.conf: ring{number}_addr is in {' and '.join(nets)}"


def _host_lines(setup: Setup) -> Iterator[tuple[str, str]]:
    """Yield the address and the name of each node in /etc/hosts."""
    for line in setup.texts.get("etc/hosts", "").splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        for name in dict.fromkeys(name.partition(".")[0] for name in names):
            if name in setup.node_names and name != "localhost":
                yield address, name


def hosts_file_wrong(setup: Setup) -> Iterator[str]:
    """Find loopback addresses, addresses of two nodes, and addresses that differ from a link's in the same /24."""
    links = {name_of(node): set(links_of(node).values()) for node in nodes_of(setup)}
    owners: dict[str, str] = {}
    for address, name in _host_lines(setup):
        other = owners.setdefault(address, name)
        if address.startswith("127."):
            yield f"hosts: {name} is {address}"
        elif other != name:
            yield f"hosts: {address} is {other} and {name}"
        near = {link.rpartition(".")[0] for link in links.get(name, ()) if "." in link and is_address(link)}
        if address not in links.get(name, (address,)) and address.rpartition(".")[0] in near:
            yield f"hosts: {name} is {address}, corosync.conf has {', '.join(sorted(links[name]))}"


def _wrong_ids(setup: Setup) -> Iterator[str]:
    """Find ids of nodes that are missing, reserved or given twice."""
    ids = [node.get("nodeid") for node in nodes_of(setup)]
    # Corosync 2 derives the ids from IPv4 addresses.
    if "" in ids and setup.membership.one("totem").get("transport", "knet") == "knet":
        yield "corosync.conf: a node has no nodeid"
    if "0" in ids:
        yield "corosync.conf: nodeid 0 is reserved"
    for identity in sorted({identity for identity in ids if identity and ids.count(identity) > 1}):
        yield f"corosync.conf: nodeid {identity} is given to {ids.count(identity)} nodes"


def nodes_differ_from_corosync(setup: Setup) -> Iterator[str]:
    """Find ids that are missing or repeated, and nodes of Pacemaker with another name or id than in corosync.conf."""
    ids = {name_of(node): node.get("nodeid") for node in nodes_of(setup)}
    yield from _wrong_ids(setup)
    if "" in ids or not ids or not setup.cib:
        return
    for name in setup.pacemaker.members_of_corosync:
        if name not in ids:
            yield f"cib: node {name} is not in corosync.conf ({', '.join(sorted(ids))})"
    for name in sorted(set(ids) - set(setup.pacemaker.nodes)) if setup.pacemaker.nodes else ():
        yield f"corosync.conf: node {name} is not in the CIB ({', '.join(sorted(setup.pacemaker.nodes))})"
    for node in setup.pacemaker.root.iterfind("./configuration/nodes/node"):
        name, given = node.get("uname", ""), node.get("id", "")
        if node.get("type", "member") != "remote" and given.isdecimal() and ids.get(name) not in (given, "", None):
            yield f"cib: {name} has the id {given}, nodeid {ids[name]} in corosync.conf"


_VOTES = {"ffsplit": "1", "2nodelms": "1"}


def quorum_device_wrong(setup: Setup) -> Iterator[str]:
    """Find a quorum device that is misconfigured, or on a node of the cluster."""
    nodes, device = nodes_of(setup), setup.membership.one("quorum").one("device")
    if not setup.membership.one("quorum").all("device"):
        return
    net, model = device.one("net"), device.get("model")
    if model not in ("net", "heuristics"):
        yield f"corosync.conf: device has model {model or '(none)'}"
    yield from _useless_heuristics(setup)
    if model == "net":
        yield from _device_host(setup, net.get("host"))
        algorithm = net.get("algorithm", "ffsplit")
        expected = {**_VOTES, "lms": str(max(len(nodes) - 1, 1))}.get(algorithm, "")
        if not expected:
            yield f"corosync.conf: device has algorithm {algorithm}"
        elif device.get("votes", expected) != expected:
            yield f"corosync.conf: device has votes: {device.get('votes')}; {algorithm} needs {expected}"


def _device_host(setup: Setup, host: str) -> Iterator[str]:
    net, totem = setup.membership.one("quorum").one("device").one("net"), setup.membership.one("totem")
    ids = [node.get("nodeid") for node in nodes_of(setup)]
    ours = {text for node in nodes_of(setup) for text in (*links_of(node).values(), name_of(node))}
    if setup.cluster:
        ours |= {text for node in setup.cluster.nodes for text in (*node.addresses.values(), node.bmc.address)}
    if not host or host in ours or host.startswith("127.") or host in ("localhost", "::1"):
        yield f"corosync.conf: device is on {host or 'no host'}"
    if net.get("tie_breaker", "lowest") not in ("lowest", "highest", *ids):
        yield f"corosync.conf: tie_breaker: {net.get('tie_breaker')} is no nodeid"
    if not totem.get("cluster_name") or net.get("port") in _PORTS_OF_OTHERS:
        yield "corosync.conf: the device has no cluster_name, or the port of another service"


def _useless_heuristics(setup: Setup) -> Iterator[str]:
    """Find heuristics of the quorum device that give both sides the same result."""
    own = {text for node in nodes_of(setup) for text in (*links_of(node).values(), name_of(node))}
    own |= {one.values.get("ip", "") for one in setup.services} | {"localhost", "::1"}
    heuristics = setup.membership.one("quorum").one("device").one("heuristics")
    programs = [(key, command) for key, command in heuristics.settings if key.startswith("exec_")]
    if heuristics.get("mode") in ("on", "sync") and not programs:
        yield "corosync.conf: heuristics without exec_NAME"
    for key, command in programs:
        words = command.split() or [""]
        if re.fullmatch(r"(/usr)?/bin/(true|false)", words[0]) or words[-1] in own or words[-1].startswith("127."):
            yield f"corosync.conf: {key}: {command}"


def _owners(setup: Setup) -> Iterator[tuple[str, str, str]]:
    """Yield each address with its owner and the setting that gives it."""
    for node in nodes_of(setup):
        for number, address in links_of(node).items():
            name = name_of(node) or f"node {node.get('nodeid')}"
            yield address, name, f"ring{number}_addr of {name}"
    for resource in setup.drbd:
        for host in resource.hosts:
            for given in host.addresses:
                address = re.sub(r":\d+$", "", given.split()[-1] if given.split() else "").strip("[]")
                yield address, host.name, f"the address of {resource.name} on {host.name}"
    if setup.corosync:
        host_of_device = setup.corosync.one("quorum").one("device").one("net").get("host")
        yield host_of_device, "quorum host", "the quorum device"
    for described in setup.cluster.nodes if setup.cluster else ():
        for address in described.addresses.values():
            yield address, described.name, f"{described.name} of cluster.toml"
    for device in setup.devices:
        yield address_of(device), "power", device.id
    for service in setup.services:
        if service.agent in (*ADDRESSES, "remote"):
            address = service.values.get("ip") or service.values.get("server", "")
            yield address, f"clone {service.clone}" if service.clone else service.id, service.id


def one_address_for_two_things(setup: Setup) -> Iterator[str]:
    """Find addresses that two different things have."""
    known: dict[str, tuple[str, str]] = {}
    real = hosts_of(setup)
    hosts = {*setup.node_names, *(host.name for one in setup.drbd for host in one.hosts)}
    for given, thing, name in _owners(setup):
        address = real.get(given, given)
        if is_address(address):
            other_thing, other = known.setdefault(address, (thing, name))
            if other_thing != thing and not _may_be_one(thing, other_thing, hosts):
                yield f"{address} is {other}, and {name}"


def _may_be_one(one: str, other: str, hosts: set[str]) -> bool:
    """Return whether two owners may be the same host: a fencing device and the quorum host, or an unnamed node."""
    pair = {one, other}
    unnamed = any(name.startswith("node ") for name in pair) and bool(pair & hosts)
    return pair == {"power", "quorum host"} or unnamed
