"""Mistakes in what is made of Lustre's targets, and in a few other files."""

from __future__ import annotations

from collections.abc import Mapping

from failover.mistakes import BUSY, CIB, CLIENTS, PAIR, TARGETS, TOML, Row, planted

_ROWS: Mapping[str, Row] = {
    "NIDs of strangers": ("lustre-differs-from-the-description", PAIR, TARGETS, (r"10\.1\.0\.2@tcp", "10.7.0.2@tcp")),
    "another kind of network": ("lustre-differs-from-the-description", PAIR, TARGETS, ("@tcp", "@o2ib")),
    "kinds of networks mixed": (
        "lustre-networks-of-different-kinds",
        BUSY,
        TARGETS,
        (r"--servicenode=10\.30\.0\.2@o2ib", "--servicenode=10.30.0.2@tcp"),
    ),
    "an MGS where it never is": (
        "lustre-networks-of-different-kinds",
        BUSY,
        TARGETS,
        (r"--mgsnode=10\.30\.0\.2@o2ib", "--mgsnode=10.30.0.3@o2ib"),
    ),
    "one index twice": ("index-given-twice", BUSY, TARGETS, ("--index=1", "--index=0")),
    "no index": ("index-given-twice", BUSY, TARGETS, (r"--index=1\b", "")),
    "two MGS": ("index-given-twice", BUSY, TARGETS, (r"--mdt\b", "--mgs --mdt")),
    "another index than described": ("lustre-differs-from-the-description", PAIR, TARGETS, ("--index=0", "--index=3")),
    "made on the disk below DRBD": (
        "target-made-below-drbd",
        PAIR,
        TARGETS,
        (r"(?m)^(\s+)/dev/drbd0$", r"\1/dev/md/mdt0"),
    ),
    "made on no device of DRBD": ("target-made-below-drbd", PAIR, TARGETS, (r"(?m)^(\s+)/dev/drbd0$", r"\1/dev/drbd9")),
    "clients waited for five seconds": (
        "recovery-times-contradict",
        PAIR,
        TARGETS,
        (r"recovery_time_soft=\d+", "recovery_time_soft=5"),
    ),
    "soft longer than hard": (
        "recovery-times-contradict",
        PAIR,
        TARGETS,
        (r"recovery_time_hard=\d+", "recovery_time_hard=100"),
    ),
    "failout": ("clients-not-waited-for", PAIR, TARGETS, ("--mgs", "--param=failover.mode=failout --mgs")),
    "recovery given up": (
        "recovery-aborted",
        "Lustre by Filesystem",
        CIB,
        ('value="lustre"', 'value="lustre"/><nvpair id="p" name="options" value="abort_recov"'),
    ),
    "a client that knows one MGS": ("client-knows-one-mgs", PAIR, CLIENTS, (r":10\.1\.0\.2@tcp", "")),
    "a client of another file system": ("client-knows-one-mgs", PAIR, CLIENTS, (":/th2", ":/th3")),
    "a client that asks strangers": ("client-knows-one-mgs", PAIR, CLIENTS, (r"10\.1\.0\.2@tcp", "10.1.0.9@tcp")),
    "a file system of another name": (
        "lustre-differs-from-the-description",
        PAIR,
        TARGETS,
        ("--fsname=th2", "--fsname=th3"),
    ),
    "no protection against two mounts": (
        "multiple-mount-protection-off",
        BUSY,
        TARGETS,
        ("--backfstype=ldiskfs", '--backfstype=ldiskfs --mkfsoptions="-O ^mmp"'),
    ),
    "the room: BMCs beside the heartbeat": (
        "fencing-shares-the-heartbeat-network",
        BUSY,
        TOML,
        ("management-switch", "lan-switch"),
    ),
    "the room: one feed": ("both-nodes-on-one-feed", PAIR, TOML, ('"feed-1", "feed-2"', '"feed-2"')),
    "booth: expires": (
        "booth-option-misspelt",
        "two sites and tickets",
        "etc/booth/booth.conf",
        ("expire = 600", "expires = 600"),
    ),
}
PLANTED = planted(_ROWS)
