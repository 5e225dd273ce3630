"""NFS: server, mount options, and counters of this client (nfs(5), fs/nfs/super.c, net/sunrpc/stats.c)."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from strakes.targets.description import CLIENT, LOST, NOW, Description, Observation, Server
from strakes.targets.remote import RemoteTarget, add_up

_MOUNTSTATS = Path("/proc/self/mountstats")
_CACHING = ("noac", "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax", "lookupcache")
_SETTINGS = ("vers", "proto", "nconnect", "rsize", "wsize", "hard", "soft", "sync", *_CACHING, "sec")
# Seconds since the client's NFS lease expired, or 0 for a valid lease.
_LEASE_EXPIRED = re.compile(r"\blease_expired=(\d+)")
_OPERATION = re.compile(r"^\s+([A-Z_]+): (\d+(?: \d+){7,8})$")
# Transport with connections -> position of the seconds of connecting in a line "xprt:", counted from its name.
_CONNECTING_S = {"tcp": 4, "rdma": 4, "local": 3}


class NfsTarget(RemoteTarget):
    """An NFS mount. The type of the file system that the server exports is unknown."""

    cannot = (
        ("set the layout of files", "NFS clients cannot request a layout; with pNFS the server chooses"),
        ("place directories", "the server decides"),
        ("read counters of servers", "NFS has no counters of servers; strakes reads the counters of this client"),
    )

    def describe(self) -> Description:
        name = self.mount.source.partition(":/")[0].strip("[]")
        options = dict(option.partition("=")[::2] for option in self.mount.super_options)
        known, settings = super().describe(), {key: options[key] or "yes" for key in _SETTINGS if key in options}
        server = Server(name, "nfs server", options.get("addr", ""), "")
        return replace(known, version=options.get("vers", ""), servers=(server,), client={**known.client, **settings})

    def observe(self) -> Observation:
        with suppress(OSError):
            if counted := counters(_MOUNTSTATS.read_text(errors="replace"), self.mount.mount_point):
                return {"client": counted}
        return {}


def counters(text: str, mount_point: str) -> dict[str, float]:
    """Return the counters (``md.open``, ...) of an NFS mount from the text of mountstats, or {} for an unknown mount.

    ``times_lost``: time-outs, requests sent again over connections, and seconds of connecting. A new connection is no
    loss, because clients close idle ones (XS_IDLE_DISC_TO). ``now.times_lost``: seconds since the lease expired.
    """
    # In mountstats, white space and backslashes in names are octal escapes.
    name = re.sub(r"[ \t\n\\]", lambda match: f"\\{ord(match[0]):03o}", mount_point)
    devices = re.split("^device ", text, flags=re.MULTILINE)
    mine = [device for device in devices if f" mounted on {name} with fstype nfs" in device.partition("\n")[0]]
    operations: dict[str, float] = {}
    read_bytes = written_bytes = lost = expired_s = connected = 0.0
    # If several mounts have the same mount point, processes access only the last one.
    for line in mine[-1].splitlines() if mine else ():
        words = line.split()
        if words[:1] == ["bytes:"] and len(words) > 6:
            read_bytes, written_bytes = float(words[5]), float(words[6])
        # The first three numbers of an operation's line: operations, transmissions and time-outs.
        elif match := _OPERATION.match(line):
            numbers = [float(number) for number in match[2].split()]
            operations[match[1]] = numbers[0]
            lost += numbers[2] + connected * max(0.0, numbers[1] - numbers[0])
        elif words[:1] == ["xprt:"] and len(words) > 2 and (place := _CONNECTING_S.get(words[1].rstrip("6"))):
            connected, lost = 1.0, lost + sum(map(float, words[place + 1 : place + 2]))
        elif lease := _LEASE_EXPIRED.search(line):
            expired_s = float(lease[1])
    if not operations:
        return {}
    common = add_up(operations) | {"data.read_bytes": read_bytes, "data.write_bytes": written_bytes, LOST: lost}
    return {CLIENT + counter: value for counter, value in common.items()} | {NOW + LOST: expired_s}
