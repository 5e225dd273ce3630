"""NFS: the server and the mount's terms, and what this client counted (/proc/self/mountstats, nfs(5))."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from strakes.targets.description import CLIENT, LOST, NOW, Description, Observation, Server
from strakes.targets.remote import RemoteTarget

_MOUNTSTATS = Path("/proc/self/mountstats")
_CACHING = ("noac", "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax", "lookupcache")
_SETTINGS = ("vers", "proto", "nconnect", "rsize", "wsize", "hard", "soft", "sync", *_CACHING, "sec")
# For so many seconds; 0 for one that holds.
_LEASE_EXPIRED = re.compile(r"\blease_expired=(\d+)")
_OPERATIONS = {
    "md.create": ("CREATE", "MKNOD", "SYMLINK"),
    "md.open": ("OPEN", "OPEN_NOATTR"),
    "md.close": ("CLOSE",),
    "md.getattr": ("GETATTR",),
    "md.setattr": ("SETATTR",),
    "md.unlink": ("REMOVE",),
    "md.mkdir": ("MKDIR",),
    "md.rmdir": ("RMDIR",),
    "md.rename": ("RENAME",),
    "md.lookup": ("LOOKUP",),
    "md.readdir": ("READDIR", "READDIRPLUS"),
    "data.read_requests": ("READ",),
    "data.write_requests": ("WRITE",),
}


class NfsTarget(RemoteTarget):
    """What is behind the server cannot be seen from here."""

    file_systems = ("nfs", "nfs4")
    cannot = (
        ("set the layout of files", "NFS clients cannot ask for one; with pNFS the server decides"),
        ("place directories", "the server decides"),
        ("read counters of servers", "NFS has none; the counters of this client are read"),
        ("drop caches", "the kernel can do so for the whole machine only"),
    )

    def describe(self) -> Description:
        """Return the server, the version of the protocol and the client's settings, as the mount tells them."""
        name = self.mount.source.partition(":/")[0].strip("[]")
        options = dict(option.partition("=")[::2] for option in self.mount.super_options)
        client = {**super().describe().client, **{key: options[key] or "yes" for key in _SETTINGS if key in options}}
        server = Server(name, "nfs server", options.get("addr", ""), "")
        return replace(super().describe(), version=options.get("vers", ""), servers=(server,), client=client)

    def observe(self) -> Observation:
        """Return this client's counters of the mount; empty where the kernel shows none."""
        with suppress(OSError):
            counted = counters(_MOUNTSTATS.read_text(errors="replace"), self.mount.mount_point)
            return {"client": counted} if counted else {}
        return {}


def counters(text: str, mount_point: str) -> dict[str, float]:
    """Return this mount's, under the common names; empty where the text has no such mount.

    A line of an operation has its number first: operations, transmissions, timeouts, bytes sent, bytes received, times,
    errors; one of a connection how often it was made. Timeouts and new connections together are how often it was lost.
    That the lease has expired, with all locks and open files, is a state.
    """
    operations: dict[str, float] = {}
    moved = {"read": 0.0, "write": 0.0}
    lost, expired_s = 0.0, 0.0
    mine = False
    for line in text.splitlines():
        words = line.split()
        if line.startswith("device "):
            mine = f" mounted on {mount_point} with fstype nfs" in line
        elif mine and words[:1] == ["bytes:"] and len(words) > 6:
            moved = {"read": float(words[5]), "write": float(words[6])}
        elif mine and len(words) > 8 and words[0].endswith(":") and words[0][:-1].isupper():
            operations[words[0][:-1]] = float(words[1])
            lost += float(words[3])
        elif mine and words[:1] == ["xprt:"] and words[1].startswith(("tcp", "rdma")):
            lost += float(words[4])
        elif mine and (lease := _LEASE_EXPIRED.search(line)):
            expired_s = float(lease[1])
    if not operations:
        return {}
    common = {
        name: sum(operations.get(operation_name, 0.0) for operation_name in names)
        for name, names in _OPERATIONS.items()
    }
    common |= {"data.read_bytes": moved["read"], "data.write_bytes": moved["write"], LOST: lost}
    return {CLIENT + name: value for name, value in common.items()} | {NOW + LOST: expired_s}
