"""DRBD: one resource for each target, in the syntax of version 8.4 or 9."""

from __future__ import annotations

from strakes.failover.cluster import Cluster, Network, ServedTarget
from strakes.failover.planned.pacemaker import FENCE_PEER_S
from strakes.failover.planned.planned_file import Line, PlannedFile, block

_SCRIPTS = {"8.4": "/usr/lib/drbd/crm-fence-peer.sh", "9": "/usr/lib/drbd/crm-fence-peer.9.sh"}
_UNFENCE = {"8.4": "/usr/lib/drbd/crm-unfence-peer.sh", "9": "/usr/lib/drbd/crm-unfence-peer.9.sh"}
AUTHENTICATION = "/etc/drbd.d/authentication.secret"


def drbd_files(cluster: Cluster) -> tuple[PlannedFile, ...]:
    """Return the configuration of DRBD; empty if the nodes share their disks."""
    replicated = [target for target in cluster.targets if target.replicated]
    if not replicated:
        return ()
    includes = (
        'include "drbd.d/global_common.conf";\n'
        "# The shared secret, readable by root alone; RUNBOOK.md says how it is made.\n"
        'include "drbd.d/*.secret";\n'
        'include "drbd.d/*.res";\n'
    )
    resources = [_resource(cluster, target) for target in replicated]
    return (
        PlannedFile("etc/drbd.conf", includes, "/etc/drbd.conf"),
        PlannedFile("etc/drbd.d/global_common.conf", "global { usage-count no; }\n", "/etc/drbd.d/global_common.conf"),
        *resources,
    )


def _resource(cluster: Cluster, target: ServedTarget) -> PlannedFile:
    fencing = Line(
        "fencing resource-and-stonith;",
        "split brain: without its peer a node stops writing until the peer is off or outdated, or fence-peer "
        "has given up",
    )
    assert cluster.replication is not None
    network = cluster.replication
    net = (
        Line("protocol C;", "lost writes: a write is done only when it is on the disks of both nodes"),
        Line(
            "after-sb-0pri discard-zero-changes;",
            "lost data: only a side that wrote nothing is overwritten automatically",
        ),
        Line("after-sb-1pri consensus;", "lost data: the same if one side serves; otherwise a person decides"),
        Line("after-sb-2pri disconnect;", "lost data: when both sides served, a person decides"),
        Line("verify-alg sha256;", "silent difference of the two copies: drbdadm verify finds it; run it monthly"),
    )
    disk = (
        Line("on-io-error detach;", "a bad disk: the node continues with the disk of its peer"),
        Line(f"c-max-rate {cluster.resync_mib_per_s}M;", "a resynchronisation that starves the service"),
    )
    handlers = (
        Line(
            f'fence-peer "{_SCRIPTS[cluster.drbd]} --timeout {FENCE_PEER_S}";',
            f"an outdated copy that is promoted; writing waits up to {FENCE_PEER_S} s until the peer is off or "
            "outdated",
        ),
        Line(
            f'{"unfence-peer" if cluster.drbd == "9" else "after-resync-target"} "{_UNFENCE[cluster.drbd]}";',
            "a standby that stays locked out after it has caught up",
        ),
        Line('split-brain "/usr/lib/drbd/notify-split-brain.sh root";', "a split brain that nobody notices"),
    )
    if cluster.drbd == "9":
        parts = [
            block("options", [Line("auto-promote no;", "a mount by hand that bypasses Pacemaker")]),
            block("net", (*net, fencing)),
            block("disk", disk),
            block("handlers", handlers),
            *(_host(cluster, target, network, number) for number in range(2)),
            _connection(cluster, target, network),
        ]
    else:
        parts = [
            block("net", net),
            block("disk", (fencing, *disk)),
            block("handlers", handlers),
            *(_host(cluster, target, network, number) for number in range(2)),
        ]
    text = block(f"resource {target.name}", parts)
    return PlannedFile(
        f"etc/drbd.d/{target.name}.res",
        f"{text}\n",
        f"/etc/drbd.d/{target.name}.res",
        lines=(*net, fencing, *disk, *handlers),
    )


def _host(cluster: Cluster, target: ServedTarget, network: Network, number: int) -> str:
    node = cluster.node(target.nodes[number])
    address = f"{node.addresses[network.name]}:{target.port}"
    return block(
        f"on {node.name}",
        (
            *([f"node-id {number};"] if cluster.drbd == "9" else []),
            f"device /dev/drbd{target.minor} minor {target.minor};",
            f"disk {target.devices[node.name]};",
            *([f"address {address};"] if cluster.drbd == "8.4" else []),
            "meta-disk internal;",
        ),
    )


def _connection(cluster: Cluster, target: ServedTarget, replication: Network) -> str:
    """Return the connection: a path over the replication network, then paths over the heartbeat networks."""
    networks = [replication, *(network for network in cluster.heartbeats if network != replication)]
    paths = [
        block(
            "path",
            [
                f"host {name} address {cluster.node(name).addresses[network.name]}:{target.port};"
                for name in target.nodes
            ],
        )
        for network in networks
    ]
    return block("connection", paths)
