"""ZFS pools on shared disks, with the options that let only one node import them."""

from __future__ import annotations

from strakes.failover.cluster import ServedTarget

# Properties of a pool that can move, with their reasons.
POOL_OPTIONS = (
    (
        "zpool create -o multihost=on",
        "a pool that is imported on both nodes at once and destroyed; each node needs a hostid",
    ),
    (
        "zpool create -o cachefile=none",
        "a pool that a node imports automatically when it starts, although the other node uses it",
    ),
    (
        "zpool create -o failmode=panic",
        "a node that lost its disks and hangs: it panics instead, and the other node takes over",
    ),
)


def pool_lines(target: ServedTarget) -> tuple[str, ...]:
    """Return the commands that make the pool of a target."""
    options = [option.removeprefix("zpool create ") for option, _ in POOL_OPTIONS]
    mounting = "-O canmount=off" if target.file_system == "lustre" else f"-O mountpoint={target.mount}"
    return (" \\\n        ".join(["zpool create", *options, mounting, target.pool, " ".join(target.vdevs)]),)


def import_options(target: ServedTarget) -> str:
    """Return options that make ``zpool import`` search the directories of the disks that the description gives."""
    places = dict.fromkeys(word.rpartition("/")[0] for word in target.vdevs if word.startswith("/dev/"))
    return " ".join(f"-d {place}" for place in places)
