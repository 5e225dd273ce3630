"""Checks that the tables of a description fit together."""

from __future__ import annotations

import ipaddress

from strakes.errors import BadInputError
from strakes.failover.cluster import Cluster


def require_whole(cluster: Cluster, where: str) -> None:
    """Check the tables against each other. Raises BadInputError for a contradiction."""
    if not cluster.targets:
        raise BadInputError("no target is described", where=where, remedy="Add at least one [[target]].")
    carrying = sum(network.replication for network in cluster.networks)
    if any(target.replicated for target in cluster.targets) and carrying != 1:
        raise BadInputError(
            "exactly one network carries the replication", where=where, remedy="Give one of them: replication = true"
        )
    if not any(target.replicated for target in cluster.targets) and carrying:
        raise BadInputError(
            "nothing is replicated",
            where=where,
            why="all targets are on shared disks",
            remedy="Remove replication = true",
        )
    if not 0 < len(cluster.heartbeats) <= 8:
        many = len(cluster.heartbeats)
        raise BadInputError(
            "too many networks carry the heartbeat" if many else "no network carries the heartbeat",
            where=where,
            why="Corosync has at most 8 links" if many else "",
            remedy="Give two of them: heartbeat = true",
        )
    for network in cluster.networks:
        serving = network.replication or network.name == cluster.file_system.lnet_network
        for node in cluster.nodes:
            used = network.heartbeat or (serving and not node.quorum_only)
            if used and network.name not in node.addresses:
                raise BadInputError(f"{node.name} has no address on {network.name}", where=where)
    _require_unique(cluster, where)
    _require_own_addresses(cluster, where)
    _require_arrangement(cluster, where)
    managers = sum("mgs" in target.role for target in cluster.targets) + bool(cluster.file_system.mgs)
    if cluster.file_system.kind == "lustre" and managers != 1:
        raise BadInputError(
            "a Lustre file system has one MGS",
            where=where,
            remedy='Give one target role = "mgs" or "mgs+mdt", or the NIDs of another cluster that has it: '
            'mgs = ["NID", "NID"].',
        )
    if cluster.node(cluster.survivor).quorum_only:
        raise BadInputError("the survivor serves nothing", where=where, why=f"{cluster.survivor} is quorum_only")
    idle = [node.name for node in cluster.servers if not cluster.targets_of(node.name)]
    if idle:
        raise BadInputError(
            "a node has nothing to serve",
            where=where,
            why=", ".join(idle),
            remedy="Name it in a target, or make it quorum_only = true.",
        )


def _require_unique(cluster: Cluster, where: str) -> None:
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
        twice = [value for value in values if values.count(value) > 1]
        if twice:
            raise BadInputError(f"the same {what} is given twice", where=where, why=twice[0])


def _require_own_addresses(cluster: Cluster, where: str) -> None:
    """Check that the services and the quorum device have addresses that no node has, and that can be reached."""
    taken = {
        address: node.name
        for node in cluster.nodes
        for address in (
            *node.addresses.values(),
            node.bmc.address,
            node.name,
            *(pdu.address for pdu in node.pdus),
        )
    }
    if cluster.quorum_host in taken:
        raise BadInputError(
            "the quorum device is on a machine of the pair",
            where=where,
            why=f"{cluster.quorum_host} is {taken[cluster.quorum_host]}",
            remedy="Give a third machine as quorum_host.",
        )
    for target in cluster.targets:
        if not target.address:
            continue
        address = ipaddress.ip_interface(target.address).ip
        if str(address) in (*taken, cluster.quorum_host):
            raise BadInputError(
                f"the address of {target.name} is taken", where=where, why=f"{address} is another machine's"
            )
        if not any(address in ipaddress.ip_network(network.subnet) for network in cluster.networks):
            raise BadInputError(f"the address of {target.name} is on no network", where=where, why=str(address))
        taken[str(address)] = target.name


def _require_arrangement(cluster: Cluster, where: str) -> None:
    homes: dict[frozenset[str], set[str]] = {}
    for target in cluster.targets:
        homes.setdefault(frozenset(target.nodes), set()).add(target.prefers)
    for nodes in homes.values():
        if cluster.file_system.arrangement == "active/standby" and len(nodes) > 1:
            raise BadInputError(
                "active/standby, but the targets prefer different nodes", where=where, why=", ".join(sorted(nodes))
            )
    if cluster.file_system.arrangement == "active/active" and max(map(len, homes.values())) < 2:
        raise BadInputError(
            "active/active, but all targets prefer the same node",
            where=where,
            why=", ".join(sorted({target.prefers for target in cluster.targets})),
        )
