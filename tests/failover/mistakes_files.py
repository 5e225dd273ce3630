"""Mistakes in the files of nodes, and names that differ between files."""

from __future__ import annotations

from collections.abc import Mapping

from failover.mistakes import CIB, HOME, Row, planted, set_to

_MISSPELT, _NOT_TAKEN, _HARMFUL = "node-option-misspelt", "node-option-value-invalid", "node-setting-harmful"
_ALMOST, _VOLUME = "named-almost-like-another", "Red Hat: NFS on a volume group"
_ROWS: Mapping[str, Row] = {
    "a key of nfs.conf": (_MISSPELT, "pcs", "etc/nfs.conf", ("", "[nfsd]\ngrase-time=90\n")),
    "a key of multipath.conf": (_MISSPELT, "pcs", "etc/multipath.conf", ("", "defaults {\n  no_path_rety 5\n}\n")),
    "a key of a drop-in file": (
        _MISSPELT,
        "pcs",
        "etc/systemd/system/corosync.service.d/o.conf",
        ("", "[Unit]\nWatns=network-online.target\n"),
    ),
    "an option of a mount": (
        _MISSPELT,
        "pcs",
        CIB,
        ('value="xfs"', 'value="xfs"/><nvpair id="p" name="options" value="noatme"'),
    ),
    "an option of a module": (
        _MISSPELT,
        "pcs",
        "etc/modprobe.d/x.conf",
        ("", "options zfs zfs_multihost_intervall=1000\n"),
    ),
    "a setting of the kernel": (_MISSPELT, "pcs", "etc/sysctl.d/x.conf", ("", "net.ipv4.conf.all.arp_annouce = 2\n")),
    "a setting of Pacemaker's programs": (
        _MISSPELT,
        "pcs",
        "etc/sysconfig/pacemaker",
        ("", "PCMK_logfle=/var/log/p.log\n"),
    ),
    "a port beyond all ports": (_NOT_TAKEN, "pcs", "etc/nfs.conf", ("", "[mountd]\nport=200480\n")),
    "a journal of no kind": (
        _NOT_TAKEN,
        "iSCSI",
        "etc/fstab",
        ("", "/dev/vg0/root / ext4 defaults,data=jounal 0 1\n"),
    ),
    "the power key": (_HARMFUL, "pcs", "etc/systemd/logind.conf", ("", "[Login]\nHandlePowerKey=poweroff\n")),
    "systemd holds the watchdog": (
        _HARMFUL,
        "crmsh with sbd",
        "etc/systemd/system.conf",
        ("", "[Manager]\nRuntimeWatchdogSec=30\n"),
    ),
    "systemd restarts": (
        _HARMFUL,
        "a service of systemd",
        "etc/systemd/system/postgresql.service.d/r.conf",
        ("", "[Service]\nRestart=always\n"),
    ),
    "a group with two letters changed": (
        _ALMOST,
        _VOLUME,
        "etc/fstab",
        (
            "",
            "/dev/storage/home /home xfs noauto 0 0\n/dev/storage/tmp /tmp xfs noauto 0 0\n/dev/stroage/var /var xfs noauto 0 0\n",
        ),
    ),
    "an alias of another disk": (
        "multipath-alias-unknown",
        "Lustre on a SAN",
        "etc/multipath.conf",
        ("", "multipaths {\n  multipath {\n    wwid 1\n    alias mdt1\n  }\n}\n"),
    ),
    "a quorum of one of three": (
        "replication-quorum-impossible",
        "three copies",
        "etc/drbd.d/r0.res",
        ("quorum majority", "quorum 1"),
    ),
    "a quorum of four of three": (
        "replication-quorum-impossible",
        "three copies",
        "etc/drbd.d/r0.res",
        ("quorum majority", "quorum 4"),
    ),
    "two masks of one network": ("masks-differ", HOME, CIB, set_to("cidr_netmask", "16")),
    "a card that nobody uses": (
        "watched-card-not-the-one-used",
        "a monitor of the network",
        CIB,
        ('name="cidr_netmask"', 'name="nic" value="bond7"/><nvpair id="p" name="cidr_netmask"'),
    ),
}
PLANTED = planted(_ROWS)
