"""Rules about the room: power, and what starts beside Pacemaker."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.rules.rule import OWN, rule
from strakes.failover.setup import Setup


@rule(
    "both-nodes-on-one-feed",
    "error",
    "description",
    reason="One fuse takes both nodes; no software makes up for it.",
    remedy="Two feeds for each node, or each node on its own.",
    source=OWN,
)
def one_feed(setup: Setup) -> Iterator[str]:
    """Find a cluster that hangs on one power feed."""
    assert setup.cluster is not None
    feeds = [frozenset(node.power_feeds) for node in setup.cluster.nodes]
    if len(frozenset().union(*feeds)) == 1:
        yield f"cluster.toml: everything hangs on {next(iter(feeds[0]))}"


@rule(
    "mounted-beside-pacemaker",
    "error",
    "fstab",
    reason="What fstab mounts at boot is mounted on a node that was told to wait; DRBD's device is promoted behind "
    "Pacemaker's back.",
    remedy="Remove the line; Pacemaker mounts.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc",
)
def fstab(setup: Setup) -> Iterator[str]:
    """Find what the node mounts when it starts, although it is DRBD's or Pacemaker's."""
    mounts = [one for one in setup.cib.services if one.is_mount] if setup.cib else []
    devices, places = {one.device for one in mounts}, {one.mount_point for one in mounts}
    for line in setup.fstab.splitlines():
        words = line.partition("#")[0].split()
        if len(words) < 4 or "noauto" in words[3].split(","):
            continue
        if words[0].startswith("/dev/drbd") or words[0] in devices - {""} or words[1].rstrip("/") in places - {""}:
            yield f"fstab: {words[0]} on {words[1]}"
