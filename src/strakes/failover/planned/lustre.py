"""Lustre: how the targets are made and mounted so that clients, and targets, find them on either node."""

from __future__ import annotations

import math

from strakes.failover.description import Cluster, MetadataTargetPlan
from strakes.failover.planned.planned_file import Line, PlannedFile

# Published for one site (S2: 420 s with 2,000 clients); nothing more is known before a drill.
PUBLISHED_S_PER_CLIENT = 0.21
# Lustre's own defaults.
_SOFT_S, _HARD_S = 300, 900


def lustre_files(cluster: Cluster) -> tuple[PlannedFile, ...]:
    if cluster.file_system.kind != "lustre":
        return ()
    servers = ":".join(_nids(cluster))
    explained: list[Line] = []
    text = [
        "#!/bin/sh",
        "# Makes the targets. ONCE, on the node where DRBD is primary; it destroys what is on the devices.",
        "set -eu",
        "",
    ]
    for target in cluster.targets:
        text += [_mkfs(cluster, target), ""]
    explained.append(Line("--servicenode for both nodes", "clients that only ever try the first node"))
    explained.append(
        Line("--servicenode (switches multiple-mount protection on)", "two nodes that mount the same ldiskfs")
    )
    soft, hard = recovery_limits(cluster)
    limits = f"lctl set_param -P mdt.*.recovery_time_soft={soft} mdt.*.recovery_time_hard={hard}"
    text += [
        "# After the first start, on the node of the MGS: how long clients are waited for before they are evicted.",
        f"#   {limits}",
        "",
        "# Is multiple-mount protection on? (on the primary)",
        *(f"#   dumpe2fs -h /dev/drbd{target.minor} 2>/dev/null | grep -w mmp" for target in cluster.targets),
    ]
    explained.append(
        Line(
            f"recovery_time_soft={soft}, recovery_time_hard={hard}",
            "clients that are evicted before they could come back",
        )
    )
    mounting = (
        "# On every client; both servers are named, so that a client can also start while one is down.\n"
        f"mount -t lustre {servers}:/{cluster.file_system.name} /mnt/{cluster.file_system.name}\n"
    )
    explained.append(
        Line(
            f"mount -t lustre {servers}:/{cluster.file_system.name}",
            "a client that cannot mount while the first node is down",
        )
    )
    return (
        PlannedFile("lustre/make-targets.sh", "\n".join(text) + "\n", mode=0o755, lines=tuple(explained)),
        PlannedFile("lustre/mount-clients.sh", f"#!/bin/sh\n{mounting}", mode=0o755),
    )


def recovery_limits(cluster: Cluster) -> tuple[int, int]:
    """Soft and hard limit in seconds: twice what was published for so many clients, not less than Lustre's defaults."""
    needed = math.ceil(2 * PUBLISHED_S_PER_CLIENT * cluster.file_system.clients)
    hard = round(cluster.file_system.recovery_hard_s) or max(_HARD_S, needed)
    return round(cluster.file_system.recovery_soft_s) or max(_SOFT_S, hard // 3), hard


def _nids(cluster: Cluster) -> list[str]:
    return [f"{node.addresses[cluster.file_system.lnet_network]}@{cluster.file_system.lnet}" for node in cluster.nodes]


def _mkfs(cluster: Cluster, target: MetadataTargetPlan) -> str:
    words = ["mkfs.lustre", "--backfstype=ldiskfs"]
    if "mgs" in target.role:
        words.append("--mgs")
    if "mdt" in target.role:
        words += ["--mdt", f"--fsname={cluster.file_system.name}", f"--index={target.index}"]
    if target.role == "mdt":
        words += [f"--mgsnode={nid}" for nid in _nids(cluster)]
    words += [f"--servicenode={nid}" for nid in _nids(cluster)]
    return " \\\n    ".join([" ".join(words[:2]), *words[2:], f"/dev/drbd{target.minor}"])
