"""Mistakes in Corosync's links, quorum and quorum device."""

from __future__ import annotations

from collections.abc import Mapping

from failover.mistakes import BUSY, CIB, COROSYNC, PAIR, Row, planted, property_of_cluster

_ROWS: Mapping[str, Row] = {
    "one address on both nodes": ("same-address-on-two-nodes", "pcs", COROSYNC, (r"192\.168\.20\.2", "192.168.20.1")),
    "second link on another subnet": ("link-in-two-subnets", "pcs", COROSYNC, (r"192\.168\.20\.2", "192.168.21.2")),
    "an address that the node does not have": (
        "link-differs-from-the-description",
        PAIR,
        COROSYNC,
        (r"10\.2\.0\.2", "10.2.0.22"),
    ),
    "links crossed": (
        "link-differs-from-the-description",
        PAIR,
        COROSYNC,
        (r"ring0_addr: 10\.1\.0\.2\n(\s*)ring1_addr: 10\.2\.0\.2", r"ring0_addr: 10.2.0.2\n\1ring1_addr: 10.1.0.2"),
    ),
    "both rings on one subnet": (
        "heartbeat-links-share-a-subnet",
        "pcs",
        COROSYNC,
        (r"192\.168\.20\.(\d)", r"192.168.10.10\1"),
    ),
    "one ring only": ("one-heartbeat-path", "pcs", COROSYNC, (r".*ring1_addr.*\n", "")),
    "auto_tie_breaker in place of two_node": (
        "quorum-by-lowest-node",
        "pcs",
        COROSYNC,
        ("two_node: 1", "auto_tie_breaker: 1"),
    ),
    "neither two_node nor device": (
        "two-nodes-without-tie-breaker",
        "pcs",
        COROSYNC,
        ("two_node: 1", "expected_votes: 2"),
    ),
    "a node without a vote": ("votes-not-equal", "pcs", COROSYNC, ("nodeid: 2", "nodeid: 2\n  quorum_votes: 0")),
    "a node with two votes": (
        "votes-not-equal",
        "a third node for the quorum",
        COROSYNC,
        ("nodeid: 1", "nodeid: 1\n  quorum_votes: 2"),
    ),
    "a device without a vote": (
        "quorum-device-wrong",
        "diskless sbd with a quorum device",
        COROSYNC,
        ("votes: 1", "votes: 0"),
    ),
    "a device with three votes": ("quorum-device-wrong", BUSY, COROSYNC, ("votes: 1", "votes: 3")),
    "the device on a node": ("quorum-device-wrong", BUSY, COROSYNC, (r"host: 10\.20\.0\.9", "host: 10.20.0.1")),
    "the device on a node, by name": (
        "quorum-device-wrong",
        "diskless sbd with a quorum device",
        COROSYNC,
        (r"qnetd\.example\.org", "alpha"),
    ),
    "a device without a host": (
        "quorum-device-wrong",
        "diskless sbd with a quorum device",
        COROSYNC,
        (r"host: .*", ""),
    ),
    "a device with the test algorithm": (
        "quorum-device-wrong",
        "diskless sbd with a quorum device",
        COROSYNC,
        ("ffsplit", "test"),
    ),
    "a device elsewhere than described": (
        "link-differs-from-the-description",
        BUSY,
        COROSYNC,
        (r"host: 10\.20\.0\.9", "host: 10.20.0.8"),
    ),
    "a device without encryption": ("quorum-device-without-tls", BUSY, COROSYNC, ("tls: on", "tls: off")),
    "the last man of two": (
        "last-man-standing",
        "a third node for the quorum",
        COROSYNC,
        ("expected_votes: 3", "last_man_standing: 1"),
    ),
    "consensus below the token": (
        "consensus-too-short",
        PAIR,
        COROSYNC,
        ("token: 3000", "token: 3000\n  consensus: 3000"),
    ),
    "token of 300 ms": ("token-too-short", "Corosync 2", COROSYNC, ("token: 10000", "token: 300")),
    "wait_for_all off": (
        "wait-for-all-switched-off",
        "pcs",
        COROSYNC,
        ("two_node: 1", "two_node: 1\n wait_for_all: 0"),
    ),
    "two_node with three": (
        "two-node-with-more-nodes",
        "a third node for the quorum",
        COROSYNC,
        ("expected_votes: 3", "two_node: 1"),
    ),
    "expected_votes of four": (
        "two-node-with-more-nodes",
        "a third node for the quorum",
        COROSYNC,
        ("expected_votes: 3", "expected_votes: 5"),
    ),
    "udpu with two rings and no rrp_mode": (
        "transport-without-redundancy",
        "Corosync 2",
        COROSYNC,
        ("rrp_mode: passive", "rrp_mode: none"),
    ),
    "version 1": ("totem-version-unknown", "pcs", COROSYNC, ("version: 2", "version: 1")),
    "nodeid 0": ("node-ids-missing-or-repeated", "pcs", COROSYNC, ("nodeid: 1", "nodeid: 0")),
    "a node that Corosync calls otherwise": (
        "names-differ-from-corosync",
        "pcs",
        COROSYNC,
        ("name: beta", "name: beta2"),
    ),
    "quorum ignored": ("loss-of-quorum-ignored", "pcs", CIB, property_of_cluster("no-quorum-policy", "ignore")),
    "a policy that is none": ("quorum-policy-unknown", "pcs", CIB, property_of_cluster("no-quorum-policy", "stopp")),
    "a cluster of another name": (
        "nodes-differ-from-the-description",
        PAIR,
        COROSYNC,
        ("cluster_name: .*", "cluster_name: other"),
    ),
    "a key that others can read": ("authkey-readable-by-all", "pcs", "etc/corosync/authkey", ("", "secret")),
    "haresources beside Corosync": (
        "two-cluster-managers",
        "pcs",
        "etc/ha.d/haresources",
        ("", "alpha drbddisk::r0 Filesystem::/dev/drbd0::/srv::xfs\n"),
    ),
    "ha.cf beside Corosync": (
        "two-cluster-managers",
        "pcs",
        "etc/ha.d/ha.cf",
        ("", "bcast eth0\nnode alpha beta\nauto_failback on\n"),
    ),
    "authkeys with crc": ("heartbeat-key-not-secret", "pcs", "etc/ha.d/authkeys", ("", "auth 1\n1 crc\n")),
}
PLANTED = planted(_ROWS)
