"""NFS: the server, the mount options, and this client's counters (nfs(5), fs/nfs/super.c, net/sunrpc/stats.c)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from strakes.targets.description import CLIENT, LOST, NOW, Description, Observation, Server
from strakes.targets.remote import RemoteTarget, add_up

_MOUNTSTATS = Path("/proc/self/mountstats")
_CACHING = ("noac", "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax", "lookupcache")
_SETTINGS = ("vers", "proto", "nconnect", "rsize", "wsize", "hard", "soft", "sync", *_CACHING, "sec")
# Seconds since the lease expired; 0 for a valid lease.
_LEASE_EXPIRED = re.compile(r"\blease_expired=(\d+)")
_OPERATION = re.compile(r"^\s+([A-Z_]+): (\d+(?: \d+){7,8})$")
# For each transport: the positions of the connection count and of the request count after its name.
_NUMBERS = {"tcp": (2, 5), "rdma": (2, 5), "local": (1, 4), "udp": (None, 2)}


class NfsTarget(RemoteTarget):
    """An NFS mount. The file system behind the server is not visible to the client."""

    file_systems = ("nfs", "nfs4")
    cannot = (
        ("set the layout of files", "NFS clients cannot request a layout; with pNFS the server chooses"),
        ("place directories", "the server decides"),
        ("read counters of servers", "NFS has no such counters; those of this client are read"),
    )

    def describe(self) -> Description:
        name = self.mount.source.partition(":/")[0].strip("[]")
        options = dict(option.partition("=")[::2] for option in self.mount.super_options)
        known, settings = super().describe(), {key: options[key] or "yes" for key in _SETTINGS if key in options}
        server = Server(name, "nfs server", options.get("addr", ""), "")
        client = {**known.client, **settings}
        return replace(known, version=options.get("vers", ""), servers=(server,), client=client)

    def observe(self) -> Observation:
        with suppress(OSError):
            counted = counters(_MOUNTSTATS.read_text(errors="replace"), self.mount.mount_point)
            return {"client": counted} if counted else {}
        return {}


def counters(text: str, mount_point: str) -> dict[str, float]:
    """Return the counters of a mount under the common names, empty if the text has no such mount.

    The number of times the server was lost is the sum of time-outs and new connections. An expired lease, which
    loses all locks and open files, is returned as a state.
    """
    mount = read_mountstats(text, mount_point)
    if mount is None or not mount.operations:
        return {}
    counted = {name: operation.operations for name, operation in mount.operations.items()}
    common = add_up(counted)
    lost = mount.connected + sum(operation.timeouts for operation in mount.operations.values())
    common |= {"data.read_bytes": mount.read_bytes, "data.write_bytes": mount.written_bytes, LOST: lost}
    return {CLIENT + name: value for name, value in common.items()} | {NOW + LOST: mount.lease_expired_s}


@dataclass(frozen=True)
class NfsOperation:
    """Counters of one kind of operation. ``queue_s``: before sending. ``rtt_s``: to the reply. ``execute_s``: total."""

    operations: float
    timeouts: float
    queue_s: float = 0.0
    rtt_s: float = 0.0
    execute_s: float = 0.0


@dataclass(frozen=True)
class NfsMount:
    """Counters of a mount. ``sent``, ``received``: requests and replies. ``connected``: number of connections made."""

    operations: Mapping[str, NfsOperation] = field(default_factory=dict)
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    connected: float = 0.0
    sent: float = 0.0
    received: float = 0.0
    lease_expired_s: float = 0.0


def read_mountstats(text: str, mount_point: str) -> NfsMount | None:
    """Return the counters of the mount, or None if the text has no NFS mount there.

    The numbers of an operation are: operations, transmissions, time-outs, bytes sent, bytes received, milliseconds in
    the queue, milliseconds until the reply, milliseconds in total, and in newer kernels errors.
    """
    # The kernel escapes white space and backslashes in names as octal numbers.
    name = re.sub(r"[ \t\n\\]", lambda match: f"\\{ord(match[0]):03o}", mount_point)
    devices = re.split("^device ", text, flags=re.MULTILINE)
    mine = [device for device in devices if f" mounted on {name} with fstype nfs" in device.partition("\n")[0]]
    if not mine:
        return None
    operations: dict[str, NfsOperation] = {}
    moved = (0.0, 0.0)
    connected = sent = received = expired_s = 0.0
    # Of several mounts at one mount point, only the last one is visible.
    for line in mine[-1].splitlines():
        words = line.split()
        if words[:1] == ["bytes:"] and len(words) > 6:
            moved = (float(words[5]), float(words[6]))
        elif match := _OPERATION.match(line):
            count, _, timeouts, _, _, *times_ms = map(float, match[2].split()[:8])
            operations[match[1]] = NfsOperation(count, timeouts, *(time_ms / 1000 for time_ms in times_ms))
        elif words[:1] == ["xprt:"] and len(words) > 2 and (places := _NUMBERS.get(words[1].rstrip("6"))):
            numbers = [float(word) for word in words[2:]]
            made, asked = places
            if len(numbers) > asked + 1:
                connected += 0.0 if made is None else numbers[made]
                sent, received = sent + numbers[asked], received + numbers[asked + 1]
        elif lease := _LEASE_EXPIRED.search(line):
            expired_s = float(lease[1])
    return NfsMount(operations, *moved, connected, sent, received, expired_s)
