"""Corosync: the members, their links, and the members that may continue when the links are cut."""

from __future__ import annotations

from strakes.failover.cluster import Cluster
from strakes.failover.planned.planned_file import Line, PlannedFile, block


def corosync_file(cluster: Cluster) -> PlannedFile:
    """Return corosync.conf for the cluster."""
    totem: tuple[Line | str, ...] = (
        "version: 2",
        f"cluster_name: {cluster.name}",
        Line("transport: knet", "one broken link: knet carries the heartbeat over all of them"),
        Line("link_mode: passive", "one link at a time, the next one takes over when it fails"),
        Line("crypto_cipher: aes256", "messages of other senders or of another cluster on the same network"),
        Line("crypto_hash: sha256", "the same; the key is /etc/corosync/authkey, made by corosync-keygen"),
        Line(f"token: {round(cluster.token_s * 1000)}", "a busy node that pauses briefly and is declared dead"),
        *(
            block("interface", [f"linknumber: {number}", "knet_transport: udp"])
            for number in range(len(cluster.heartbeats))
        ),
    )
    nodes = [
        block(
            "node",
            [
                f"name: {node.name}",
                f"nodeid: {number}",
                *(
                    f"ring{link}_addr: {node.addresses[network.name]}"
                    for link, network in enumerate(cluster.heartbeats)
                ),
            ],
        )
        for number, node in enumerate(cluster.nodes, 1)
    ]
    quorum = _quorum(cluster)
    logging = ("to_syslog: yes", "timestamp: hires")
    sections = [block("totem", totem), block("nodelist", nodes), block("quorum", quorum), block("logging", logging)]
    explained = tuple(line for line in (*totem, *quorum) if isinstance(line, Line))
    return PlannedFile(
        "etc/corosync/corosync.conf", "\n".join(sections) + "\n", "/etc/corosync/corosync.conf", lines=explained
    )


def _quorum(cluster: Cluster) -> tuple[Line | str, ...]:
    if cluster.quorum_host:
        survivor = 1 + [node.name for node in cluster.nodes].index(cluster.survivor)
        tie = f"tie_breaker: {survivor}"
        net = block("net", [f"host: {cluster.quorum_host}", "algorithm: ffsplit", tie, "tls: on"])
        device = block("device", ["model: net", "votes: 1", net])
        return (
            "provider: corosync_votequorum",
            Line(
                device,
                f"split brain: a third machine votes for one side only; if both ask, for that of {cluster.survivor}",
            ),
        )
    if len(cluster.nodes) > 2:
        majority = Line(
            "provider: corosync_votequorum", "split brain: only the side with more than half of the nodes continues"
        )
        if len(cluster.nodes) % 2:
            return (majority,)
        first = f"auto_tie_breaker_node: {1 + [node.name for node in cluster.nodes].index(cluster.survivor)}"
        return (
            majority,
            Line("auto_tie_breaker: 1", f"two halves that both stop: the one with {cluster.survivor} continues"),
            first,
        )
    return (
        "provider: corosync_votequorum",
        Line("two_node: 1", "a survivor that stops because one of two is not a majority; fencing decides instead"),
        Line("wait_for_all: 1", "a fencing loop: a node that starts alone waits, instead of powering the other off"),
    )
