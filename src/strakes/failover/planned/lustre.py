"""Lustre: commands that make and mount the targets so that clients and other targets find them on either node."""

from __future__ import annotations

import math

from strakes.failover.cluster import Cluster, ServedTarget
from strakes.failover.planned.planned_file import Line, PlannedFile
from strakes.failover.planned.pools import POOL_OPTIONS, pool_lines

# Published for one site (S2: 420 s with 2,000 clients); nothing more is known before a drill.
PUBLISHED_S_PER_CLIENT = 0.21
# Lustre's own defaults.
_SOFT_S, _HARD_S = 300, 900
_HEAD = """\
#!/bin/sh
# Makes all targets, or only those with the given names. Run it only once: it destroys the data on their devices.
#   make-targets.sh [TARGET...]    on the node that the run-book names
set -eu
wanted=" $* "
is_wanted() { [ "$wanted" = "  " ] || case "$wanted" in *" $1 "*) ;; *) false ;; esac; }
"""


def lustre_files(cluster: Cluster) -> tuple[PlannedFile, ...]:
    """Return the commands that make the targets and mount them on clients; empty for other file systems."""
    if cluster.file_system.kind != "lustre":
        return ()
    explained = [
        Line("--servicenode for both nodes", "clients that only ever try the first node"),
    ]
    if any(not target.pool for target in cluster.targets):
        explained.append(
            Line("--servicenode (switches multiple-mount protection on)", "two nodes that mount the same ldiskfs")
        )
    if any(target.pool for target in cluster.targets):
        explained += [Line(text, why) for text, why in POOL_OPTIONS]
    soft, hard = recovery_limits(cluster)
    explained.append(
        Line(
            f"recovery_time_soft={soft}, recovery_time_hard={hard}",
            "clients that are evicted before they could come back",
        )
    )
    servers = ":".join(_managers(cluster))
    explained.append(
        Line(
            f"mount -t lustre {servers}:/{cluster.file_system.name}",
            "a client that cannot mount while the first node is down",
        )
    )
    text = [_HEAD, *(_commands(cluster, target) for target in cluster.targets), *_afterwards(cluster, soft, hard)]
    mounting = (
        "# On every client; both servers are named, so that a client can also start while one is down.\n"
        f"mount -t lustre {servers}:/{cluster.file_system.name} /mnt/{cluster.file_system.name}\n"
    )
    return (
        PlannedFile("lustre/make-targets.sh", "\n".join(text) + "\n", mode=0o755, lines=tuple(explained)),
        PlannedFile("lustre/mount-clients.sh", f"#!/bin/sh\n{mounting}", mode=0o755),
    )


def recovery_limits(cluster: Cluster) -> tuple[int, int]:
    """Return the soft and the hard recovery limit in seconds, from the description or from the number of clients.

    From the number of clients, the hard limit is twice the published recovery time, and the soft limit a third of the
    hard one; neither is below Lustre's default.
    """
    needed = math.ceil(2 * PUBLISHED_S_PER_CLIENT * cluster.file_system.clients)
    hard = round(cluster.file_system.recovery_hard_s) or max(_HARD_S, needed)
    return round(cluster.file_system.recovery_soft_s) or max(_SOFT_S, hard // 3), hard


def nids(cluster: Cluster, target: ServedTarget) -> list[str]:
    """Return the NIDs of the nodes that can serve the target."""
    name, net = cluster.file_system.lnet_network, cluster.file_system.lnet
    return [f"{cluster.node(node).addresses[name]}@{net}" for node in target.nodes]


def _managers(cluster: Cluster) -> list[str]:
    """Return the NIDs of the MGS, on either node."""
    manager = next((target for target in cluster.targets if "mgs" in target.role), None)
    return nids(cluster, manager) if manager else list(cluster.file_system.mgs)


def _afterwards(cluster: Cluster, soft: int, hard: int) -> list[str]:
    kinds = {"mdt": any("mdt" in target.role for target in cluster.targets)}
    kinds["obdfilter"] = any(target.role == "ost" for target in cluster.targets)
    limits = " ".join(
        f"{kind}.*.recovery_time_soft={soft} {kind}.*.recovery_time_hard={hard}"
        for kind, there in kinds.items()
        if there
    )
    lines = [
        "# After the first start, on the node of the MGS: how long clients are waited for before they are evicted.",
        *([f"#   lctl set_param -P {limits}"] if limits else []),
    ]
    protected = [target for target in cluster.targets if not target.pool]
    if protected:
        lines += ["", "# Is multiple-mount protection on? (on the node that serves it)"]
        lines += [f"#   dumpe2fs -h {target.device} 2>/dev/null | grep -w mmp" for target in protected]
    return lines


def _commands(cluster: Cluster, target: ServedTarget) -> str:
    words = ["mkfs.lustre", f"--backfstype={'zfs' if target.pool else 'ldiskfs'}"]
    if "mgs" in target.role:
        words.append("--mgs")
    if target.role != "mgs":
        kind = "--ost" if target.role == "ost" else "--mdt"
        words += [kind, f"--fsname={cluster.file_system.name}", f"--index={target.index}"]
    if "mgs" not in target.role:
        words += [f"--mgsnode={nid}" for nid in _managers(cluster)]
    words += [f"--servicenode={nid}" for nid in nids(cluster, target)]
    made = " \\\n        ".join([" ".join(words[:2]), *words[2:], target.device])
    lines = [*(pool_lines(target) if target.pool else ()), made]
    if target.pool:
        lines.append(f"zpool export {target.pool}")
    return "\n".join([f"if is_wanted {target.name}; then", *(f"    {line}" for line in lines), "fi", ""])
