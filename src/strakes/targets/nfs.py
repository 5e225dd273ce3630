"""NFS: the server, the mount options, and this client's counters (/proc/self/mountstats, nfs(5))."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from strakes.targets.description import CLIENT, LOST, NOW, Description, Observation, Server
from strakes.targets.mountstats import read_mountstats
from strakes.targets.remote import RemoteTarget, add_up

_MOUNTSTATS = Path("/proc/self/mountstats")
_CACHING = ("noac", "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax", "lookupcache")
_SETTINGS = ("vers", "proto", "nconnect", "rsize", "wsize", "hard", "soft", "sync", *_CACHING, "sec")
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
    """An NFS mount. The file system behind the server is not visible to the client."""

    file_systems = ("nfs", "nfs4")
    cannot = (
        ("set the layout of files", "NFS clients cannot ask for one; with pNFS the server decides"),
        ("place directories", "the server decides"),
        ("read counters of servers", "NFS has none; the counters of this client are read"),
    )

    def describe(self) -> Description:
        """Return the server, the protocol version and the client's settings, from the mount options."""
        name = self.mount.source.partition(":/")[0].strip("[]")
        options = dict(option.partition("=")[::2] for option in self.mount.super_options)
        client = {**super().describe().client, **{key: options[key] or "yes" for key in _SETTINGS if key in options}}
        server = Server(name, "nfs server", options.get("addr", ""), "")
        return replace(super().describe(), version=options.get("vers", ""), servers=(server,), client=client)

    def observe(self) -> Observation:
        """Return this client's counters of the mount, empty if the kernel has none."""
        with suppress(OSError):
            counted = counters(_MOUNTSTATS.read_text(errors="replace"), self.mount.mount_point)
            return {"client": counted} if counted else {}
        return {}


def counters(text: str, mount_point: str) -> dict[str, float]:
    """Return the counters of a mount under the common names, empty if the text has no such mount.

    The number of times the server was lost is the sum of time-outs and new connections. An expired lease, with which
    all locks and open files are lost, is a state.
    """
    mount = read_mountstats(text, mount_point)
    if mount is None or not mount.operations:
        return {}
    counted = {name: operation.operations for name, operation in mount.operations.items()}
    common = add_up(counted, _OPERATIONS)
    lost = mount.connected + sum(operation.timeouts for operation in mount.operations.values())
    common |= {"data.read_bytes": mount.read_bytes, "data.write_bytes": mount.written_bytes, LOST: lost}
    return {CLIENT + name: value for name, value in common.items()} | {NOW + LOST: mount.lease_expired_s}
