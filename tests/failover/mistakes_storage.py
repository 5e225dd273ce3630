"""Clear mistakes in plans of shared disks, ZFS pools, OSTs, and clusters of more than two nodes."""

from __future__ import annotations

from failover.mistakes import CIB, CLIENTS, COROSYNC, TARGETS, TOML, Planted, set_to

ZFS, SAN, FOUR, THREE, HOME = "oss-pair-zfs", "oss-pair-san", "two-pairs", "three-nodes", "nfs-san"
DESCRIBED = "service-differs-from-the-description"
LUSTRE = "lustre-differs-from-the-description"

_ROWS: dict[str, tuple[str, str, str, tuple[str, str]]] = {
    "a pool without multihost": ("pool-without-multihost", ZFS, TARGETS, ("-o multihost=on", "-o multihost=off")),
    "a pool that nobody imports": (DESCRIBED, ZFS, CIB, set_to("pool", "tank", "ost1pool")),
    "one pool imported twice": ("pool-imported-twice", ZFS, CIB, set_to("pool", "ost0pool", "ost1pool")),
    "another dataset than described": (DESCRIBED, ZFS, CIB, set_to("target", "ost1pool/ost0", "ost1pool/ost1")),
    "another volume than described": (DESCRIBED, SAN, CIB, set_to("target", "/dev/mapper/ost7", "/dev/mapper/ost1")),
    "another volume of homes": (DESCRIBED, HOME, CIB, set_to("device", "/dev/mapper/root", "/dev/mapper/home")),
    "an OST made as an MDT": (LUSTRE, ZFS, TARGETS, ("--ost", "--mdt")),
    "another index of an OST": (LUSTRE, SAN, TARGETS, ("--index=1", "--index=4")),
    "a pool made as ldiskfs": (LUSTRE, ZFS, TARGETS, ("--backfstype=zfs", "--backfstype=ldiskfs")),
    "a server of the other pair": (LUSTRE, FOUR, TARGETS, (r"--servicenode=10\.30\.0\.4@", "--servicenode=10.30.0.2@")),
    "one server of an OST": (
        "clients-know-one-server",
        SAN,
        TARGETS,
        (r" \\\n\s+--servicenode=10\.30\.0\.2@o2ib", ""),
    ),
    "an MGS of strangers": (LUSTRE, SAN, TARGETS, (r"10\.30\.0\.22@o2ib", "10.30.0.23@o2ib")),
    "a client of strangers": (LUSTRE, SAN, CLIENTS, (r"10\.30\.0\.22@o2ib", "10.30.0.23@o2ib")),
    "a target on a node without its disks": (
        DESCRIBED,
        FOUR,
        CIB,
        (r'<rsc_location id="serve-ost0-not-mds1"[^>]*/>', ""),
    ),
    "a copy on the node that only has a vote": (
        DESCRIBED,
        THREE,
        CIB,
        (r'<rsc_location id="serve-mdt0-not-login1"[^>]*/>', ""),
    ),
    "three nodes as a pair": ("two-node-with-more-nodes", THREE, COROSYNC, (r"(provider: \S+)", r"\1\n  two_node: 1")),
    "a quorum device on a node": ("quorum-device-wrong", FOUR, COROSYNC, (r"10\.20\.0\.9", "10.20.0.3")),
    "four nodes, one feed": ("both-nodes-on-one-feed", FOUR, TOML, ('"feed-1", "feed-2"', '"feed-1"')),
    "the BMC of a neighbour": (
        "fencing-differs-from-the-description",
        FOUR,
        CIB,
        set_to("ip", "10.40.0.4", "10.40.0.3"),
    ),
    "a node nobody powers off": ("node-without-fencing-device", FOUR, CIB, set_to("pcmk_host_list", "oss1", "oss2")),
    "a node that is not described": ("nodes-differ-from-the-description", THREE, COROSYNC, ("login1", "login2")),
    "a pool that is stopped at once": (
        "stop-timeout-too-short",
        ZFS,
        CIB,
        (r'(id="pool-ost0-stop-0s" name="stop" interval="0s" timeout=)"300s"', r'\1"5s"'),
    ),
    "cluster file systems that wait for the lock managers of all nodes": (
        "clone-waits-for-all-nodes",
        "gfs2-three-guests",
        CIB,
        set_to("interleave", "false"),
    ),
}
PLANTED = {name: Planted(rule, base, file, *change) for name, (rule, base, file, change) in _ROWS.items()}
