"""The Pacemaker resources of a target, in the order of their start."""

from __future__ import annotations

from strakes.failover.cluster import Cluster, ServedTarget
from strakes.failover.planned.pools import import_options

Operations = list[tuple[str, str, str, str]]
ServiceRow = tuple[str, str, dict[str, str], Operations]

_MOUNTING = [("monitor", "20s", "60s", ""), ("start", "0s", "120s", ""), ("stop", "0s", "120s", "")]
# Mounting a Lustre target after a crash replays its journal first, and waits for multiple-mount protection; so does
# importing a pool.
_PATIENT = [("monitor", "60s", "300s", ""), ("start", "0s", "600s", ""), ("stop", "0s", "300s", "")]


def service_rows(cluster: Cluster, target: ServedTarget) -> list[ServiceRow]:
    """Return rows of id, agent, values and operations."""
    rows: list[ServiceRow] = []
    if target.pool:
        # Forced: a node that was powered off has not exported it. multihost=on prevents an import on two nodes.
        values = {"pool": target.pool, "importforce": "true", "importargs": import_options(target)}
        rows.append((f"pool-{target.name}", "ocf:heartbeat:ZFS", values, _PATIENT))
    if cluster.file_system.kind == "lustre":
        values = {"target": target.device, "mountpoint": target.mount}
        return [*rows, (f"mount-{target.name}", "ocf:lustre:Lustre", values, _PATIENT)]
    if not target.pool:
        values = {"device": target.device, "directory": target.mount, "fstype": target.file_system}
        rows.append((f"mount-{target.name}", "ocf:heartbeat:Filesystem", values, _MOUNTING))
    if cluster.file_system.kind == "nfs":
        rows += _nfs_server(target)
    rows += [
        (f"unit-{target.name}-{number}", f"systemd:{unit}", {}, _MOUNTING)
        for number, unit in enumerate(target.units, 1)
    ]
    address, _, bits = target.address.partition("/")
    rows.append(
        (f"address-{target.name}", "ocf:heartbeat:IPaddr2", {"ip": address, "cidr_netmask": bits or "32"}, _MOUNTING)
    )
    if cluster.file_system.kind == "nfs":
        # Clients reclaim locks only if the notice comes from the address that they mounted.
        rows.append((f"notify-{target.name}", "ocf:heartbeat:nfsnotify", {"source_host": address}, _MOUNTING))
    return rows


def _nfs_server(target: ServedTarget) -> list[ServiceRow]:
    """Return the rows of the NFS server. Its lock state is outside the exported directory."""
    state = {"nfs_shared_infodir": f"{target.mount}/nfs-state", "nfs_no_notify": "true"}
    exported = {
        "clientspec": target.clients,
        "directory": f"{target.mount}/export",
        "fsid": str(target.minor + 1),
        "options": "rw,sync",
    }
    return [
        (f"nfsd-{target.name}", "ocf:heartbeat:nfsserver", state, _MOUNTING),
        (f"export-{target.name}", "ocf:heartbeat:exportfs", exported, _MOUNTING),
    ]
