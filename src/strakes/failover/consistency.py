"""Checks that the tables of a description fit together."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.base.errors import BadInputError
from strakes.failover.cluster import Cluster


def require_whole(cluster: Cluster, where: str) -> None:
    """Check the tables against each other. Raises BadInputError for the first contradiction."""
    for what, why, remedy in _contradictions(cluster):
        raise BadInputError(what, where=where, why=why, remedy=remedy)


def _contradictions(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong, why, and the remedy."""
    if not cluster.targets:
        yield "no target is described", "", "Add at least one [[target]]."
    yield from _wrong_networks(cluster)
    yield from _repetitions(cluster)
    yield from _wrong_addresses(cluster)
    yield from _wrong_arrangement(cluster)
    managers = sum("mgs" in target.role for target in cluster.targets) + bool(cluster.file_system.mgs)
    if cluster.file_system.kind == "lustre" and managers != 1:
        remedy = (
            'Give one target role = "mgs" or "mgs+mdt", or the NIDs of the cluster that has it: mgs = ["NID", "NID"].'
        )
        yield "a Lustre file system has one MGS", "", remedy
    if cluster.node(cluster.survivor).quorum_only:
        yield "the survivor serves nothing", f"{cluster.survivor} is quorum_only", ""
    for node in cluster.servers:
        if not cluster.targets_of(node.name):
            yield "a node has nothing to serve", node.name, "Name it in a target, or make it quorum_only = true."


def _wrong_networks(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    carrying = sum(network.replication for network in cluster.networks)
    replicated = any(target.replicated for target in cluster.targets)
    if replicated and carrying != 1:
        yield "exactly one network carries the replication", "", "Give one of them: replication = true"
    if carrying and not replicated:
        yield "nothing is replicated", "all targets are on shared disks", "Remove replication = true"
    if not cluster.heartbeats:
        yield "no network carries the heartbeat", "", "Give two of them: heartbeat = true"
    if len(cluster.heartbeats) > 8:
        yield "too many networks carry the heartbeat", "Corosync has at most 8 links", "Remove heartbeat = true"
    for network in cluster.networks:
        serving = network.replication or network.name == cluster.file_system.lnet_network
        for node in cluster.nodes:
            used = network.heartbeat or (serving and not node.quorum_only)
            if used and network.name not in node.addresses:
                yield f"{node.name} has no address on {network.name}", "", ""


def _repetitions(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    targets = cluster.targets
    addresses = [address for node in cluster.nodes for address in (*node.addresses.values(), node.bmc.address)]
    for what, values in (
        ("address", addresses),
        ("target name", [target.name for target in targets]),
        ("DRBD minor", [str(target.minor) for target in targets]),
        ("port", [str(target.port) for target in targets]),
        ("mount point", [target.mount for target in targets]),
        ("index of a metadata target", [str(target.index) for target in targets if "mdt" in target.role]),
        ("index of an OST", [str(target.index) for target in targets if target.role == "ost"]),
        ("pool", [target.pool for target in targets if target.pool]),
        ("disk of a pool", [word for target in targets for word in target.vdevs if word.startswith("/dev/")]),
        *(
            (f"device on {node.name}", [target.devices[node.name] for target in targets if node.name in target.devices])
            for node in cluster.nodes
        ),
    ):
        for value in values:
            if values.count(value) > 1:
                yield f"the same {what} is given twice", value, ""


def _wrong_addresses(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    """Find services and a quorum device with an address of a node, and addresses that cannot be reached."""
    taken = {
        address: node.name
        for node in cluster.nodes
        for address in (*node.addresses.values(), node.bmc.address, node.name, *(pdu.address for pdu in node.pdus))
    }
    host = cluster.quorum_host
    if host in taken:
        why = f"{host} is {taken[host]}"
        yield "the quorum device is on a machine of the pair", why, "Give a third machine as quorum_host."
    for target in cluster.targets:
        address = target.address.partition("/")[0]
        if address and address in (*taken, host):
            yield f"the address of {target.name} is taken", f"{address} is another machine's", ""
        if address and not any(network.holds(address) for network in cluster.networks):
            yield f"the address of {target.name} is on no network", address, ""
        taken[address] = target.name


def _wrong_arrangement(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    homes: dict[frozenset[str], set[str]] = {}
    for target in cluster.targets:
        homes.setdefault(frozenset(target.nodes), set()).add(target.prefers)
    several = [", ".join(sorted(nodes)) for nodes in homes.values() if len(nodes) > 1]
    if cluster.file_system.arrangement == "active/standby" and several:
        yield "active/standby, but the targets prefer different nodes", several[0], ""
    if cluster.file_system.arrangement == "active/active" and not several:
        preferred = ", ".join(sorted({target.prefers for target in cluster.targets}))
        yield "active/active, but all targets prefer the same node", preferred, ""
