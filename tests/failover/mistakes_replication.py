"""Mistakes in DRBD."""

from __future__ import annotations

from collections.abc import Mapping

from failover.mistakes import PAIR, TOML, Row, planted

_RES = "etc/drbd.d/r0.res"
_PAIR_RES = "etc/drbd.d/mdt0.res"
_ROWS: Mapping[str, Row] = {
    "dont-care in a connection": (
        "no-replication-fencing",
        "DRBD 9 with volumes",
        _RES,
        (r'on "alpha"', 'connection { host alpha; host beta; net { fencing dont-care; } }\n  on "alpha"'),
    ),
    "protocol A in a connection": (
        "replication-not-synchronous",
        "DRBD 9 with volumes",
        _RES,
        (r'on "alpha"', 'connection { host alpha; host beta; net { protocol A; } }\n  on "alpha"'),
    ),
    "protocol B in common": ("replication-not-synchronous", "pcs", _RES, ("protocol C", "protocol B")),
    "protocol A of the resource": (
        "replication-not-synchronous",
        "pcs",
        _RES,
        ("resource r0 {", "resource r0 {\n net { protocol A; }"),
    ),
    "no fencing at all": ("no-replication-fencing", "pcs", _RES, ("fencing resource-and-stonith;", "")),
    "fencing without a freeze": (
        "replication-fencing-without-freeze",
        "pcs",
        _RES,
        ("resource-and-stonith", "resource-only"),
    ),
    "fence-peer does nothing": ("no-fence-peer-handler", "pcs", _RES, (r'fence-peer ".*"', 'fence-peer "/bin/true"')),
    "fence-peer of cman": (
        "no-fence-peer-handler",
        "pcs",
        _RES,
        (r'fence-peer ".*"', 'fence-peer "/usr/lib/drbd/rhcs_fence"'),
    ),
    "fence-peer of Heartbeat": (
        "no-fence-peer-handler",
        "pcs",
        _RES,
        (r'fence-peer ".*"', 'fence-peer "/usr/lib/heartbeat/drbd-peer-outdater -t 5"'),
    ),
    "no fence-peer": ("no-fence-peer-handler", "DRBD 9 with volumes", _RES, (r"fence-peer .*", "")),
    "no unfence-peer": ("no-fence-peer-handler", "DRBD 9 with volumes", _RES, (r"unfence-peer .*", "")),
    "fence-peer gives up after 5 s": (
        "fence-peer-timeout-below-stonith-timeout",
        "pcs",
        _RES,
        (r'crm-fence-peer\.sh"', 'crm-fence-peer.sh --timeout 5"'),
    ),
    "fence-peer waits its default": ("fence-peer-timeout-not-set", PAIR, _PAIR_RES, (" --timeout 180", "")),
    "handler of 8.4 with 9": (
        "handler-of-the-other-version",
        "DRBD 9 with volumes",
        _RES,
        (r"crm-fence-peer\.9\.sh", "crm-fence-peer.sh"),
    ),
    "unfence handler of 9 with 8.4": (
        "handler-of-the-other-version",
        "pcs",
        _RES,
        (r"crm-unfence-peer\.sh", "crm-unfence-peer.9.sh"),
    ),
    "flushes off in old words": (
        "flushes-off",
        "pcs",
        _RES,
        ("on-io-error detach;", "on-io-error detach; no-disk-flushes;"),
    ),
    "flushes off in a volume": (
        "flushes-off",
        "DRBD 9 with volumes",
        _RES,
        (r"volume 0 \{ device", "volume 0 { disk { md-flushes no; } device"),
    ),
    "drain off": ("writes-not-ordered", "pcs", _RES, ("on-io-error detach;", "on-io-error detach; disk-drain no;")),
    "rr-conflict violently": (
        "split-brain-solved-by-discarding",
        "pcs",
        _RES,
        ("protocol C;", "protocol C; rr-conflict violently;"),
    ),
    "the younger primary is discarded": (
        "split-brain-solved-by-discarding",
        "DRBD 9 with volumes",
        _RES,
        ("protocol C;", "protocol C; after-sb-0pri discard-younger-primary;"),
    ),
    "both primaries at the start": (
        "promoted-beside-pacemaker",
        "pcs",
        _RES,
        ("startup {", "startup { become-primary-on both;"),
    ),
    "one primary at the start": (
        "promoted-beside-pacemaker",
        "pcs",
        _RES,
        ("startup {", "startup { become-primary-on alpha;"),
    ),
    "two primaries": (
        "two-primaries",
        "DRBD 9 with volumes",
        _RES,
        ("protocol C;", "protocol C; allow-two-primaries yes;"),
    ),
    "a host that is none": ("replication-between-other-hosts", "pcs", _RES, ("on beta", "on beta.example.org")),
    "a side on one host": ("replication-between-other-hosts", "pcs", _RES, (r"on beta \{.*\}", "")),
    "an address on no network": (
        "replication-differs-from-the-description",
        PAIR,
        _PAIR_RES,
        (r"10\.2\.0\.2", "172.16.0.2"),
    ),
    "one address for both sides": ("replication-address-wrong", "pcs", _RES, (r"192\.168\.20\.2", "192.168.20.1")),
    "Corosync's port": ("replication-address-wrong", "pcs", _RES, (":7789", ":5405")),
    "metadata in another resource's place": (
        "metadata-of-another-resource",
        "active/active",
        _RES,
        ("meta-disk internal", "meta-disk /dev/vg0/meta"),
    ),
    "metadata on another resource's disk": (
        "metadata-of-another-resource",
        "active/active",
        _RES,
        (r"(?s)(disk /dev/vg0/more;\s*meta-disk) internal", r"\1 /dev/vg0/data"),
    ),
    "one disk for two": ("devices-collide", "active/active", _RES, ("/dev/vg0/more", "/dev/vg0/data")),
    "one port for two": ("devices-collide", "active/active", _RES, (":7790", ":7789")),
    "one minor for two": ("devices-collide", "active/active", _RES, ("/dev/drbd1", "/dev/drbd0")),
    "DRBD on DRBD": ("replicated-device-as-its-own-disk", "pcs", _RES, ("disk /dev/vg0/data", "disk /dev/drbd1")),
    "another disk than described": (
        "replication-differs-from-the-description",
        PAIR,
        _PAIR_RES,
        ("disk /dev/md/mdt0", "disk /dev/md/mdt1"),
    ),
    "another minor than described": (
        "replication-differs-from-the-description",
        PAIR,
        TOML,
        (r"(?m)^\[\[target\]\]$", "[[target]]\nminor = 3"),
    ),
    "quorum of two copies": (
        "replication-quorum-of-two",
        "DRBD 9 with volumes",
        _RES,
        ('resource "r0" {', 'resource "r0" {\n options { quorum majority; }'),
    ),
    "a secret that others can read": (
        "secret-readable-by-all",
        "pcs",
        _RES,
        ("protocol C;", 'protocol C; shared-secret "hunter2";'),
    ),
    "errors of the disk passed on": (
        "disk-error-passed-to-the-file-system",
        "pcs",
        _RES,
        ("on-io-error detach", "on-io-error pass_on"),
    ),
}
PLANTED = planted(_ROWS)
