"""Good configurations with node files. They were written before the rules were run on them."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree as Xml

from failover.styles import (
    DRBD9,
    INFINITY,
    A,
    B,
    Files,
    both,
    cib,
    clone,
    corosync,
    element,
    files,
    group,
    mount,
    primitive,
    promotable,
    with_primary,
)
from failover.styles_more import after, home, near
from failover.styles_sites import fence

SERVED = ("monitor interval=30s timeout=60s", "start timeout=120s", "stop timeout=120s")
ADDRESS = ("monitor interval=10s timeout=20s", "start timeout=20s", "stop timeout=20s")
_LUSTRE = ("monitor interval=120s timeout=300s", "start timeout=600s", "stop timeout=600s")


def ip(identity: str, ip: str, bits: str = "24", **more: str) -> Xml.Element:
    return primitive(identity, "ocf:heartbeat:IPaddr2", {"ip": ip, "cidr_netmask": bits, **more}, *ADDRESS)


def _export(identity: str, directory: str, fsid: str, **more: str) -> Xml.Element:
    pairs = {"clientspec": "192.168.10.0/24", "directory": directory, "fsid": fsid, "options": "rw,sync,no_root_squash"}
    return primitive(identity, "ocf:heartbeat:exportfs", pairs | more, *SERVED)


def nfs_of_red_hat() -> Files:
    """Return Red Hat's NFS by pcs: an LVM volume group by system ID, three exports, a short lease, multipath."""
    members = [
        primitive("vg", "ocf:heartbeat:LVM-activate", {"vgname": "nfs_vg", "vg_access_mode": "system_id"}, *SERVED),
        mount("/dev/nfs_vg/nfs_lv", "xfs", "nfs_fs", SERVED, "/exports/shared"),
        primitive(
            "nfs_daemon",
            "ocf:heartbeat:nfsserver",
            {"nfs_shared_infodir": "/exports/shared/nfsinfo", "nfs_no_notify": "true"},
            *SERVED,
        ),
        _export("root_export", "/exports/shared/exports", "0"),
        _export("home_export", "/exports/shared/exports/home", "1"),
        _export("soft_export", "/exports/shared/exports/software", "2", wait_for_leasetime_on_stop="true"),
        ip("nfs_ip", "192.168.10.70"),
        primitive("nfs_notify", "ocf:heartbeat:nfsnotify", {"source_host": "192.168.10.70"}, *ADDRESS),
    ]
    text = cib(
        [*both(), group("nfsgroup", *members)], [], defaults={"resource-stickiness": "1", "migration-threshold": "3"}
    )
    return {
        **files(text, replication=""),
        "etc/nfs.conf": "[nfsd]\nthreads=32\nlease-time=45\ngrace-time=60\n[lockd]\nport=32803\nudp-port=32769\n",
        "etc/lvm/lvm.conf": 'global {\n  system_id_source = "uname"\n}\nactivation {\n  auto_activation_volume_list = [ "rootvg" ]\n}\n',
        "etc/multipath.conf": "defaults {\n  user_friendly_names yes\n  find_multipaths yes\n  polling_interval 5\n  no_path_retry 6\n"
        '  fast_io_fail_tmo 5\n  dev_loss_tmo 60\n}\nblacklist {\n  devnode "^sda"\n}\n',
        "etc/systemd/logind.conf": "[Login]\nHandlePowerKey=ignore\n",
    }


def nfs_of_suse() -> Files:
    """Return SUSE's NFS by crmsh: DRBD 9 with two volumes, sbd with three disks, time-outs as SUSE calculates them."""
    sbd = primitive(
        "stonith-sbd", "stonith:external/sbd", {"pcmk_delay_max": "30s"}, "monitor interval=3600s timeout=20s"
    )
    members = [
        mount("/dev/drbd0", "ext4", "fs_state", SERVED, "/var/lib/nfs"),
        mount("/dev/drbd1", "ext4", "fs_work", SERVED, "/srv/nfs/work"),
        _export("exportfs_work", "/srv/nfs/work", "9999", wait_for_leasetime_on_stop="true"),
        ip("vip_nfs", "192.168.10.90", nic="eth0"),
    ]
    server = clone(
        "cl-nfsserver",
        primitive(
            "nfsserver",
            "systemd:nfs-server",
            {},
            "monitor interval=30s timeout=60s",
            "start timeout=100s",
            "stop timeout=100s",
        ),
        interleave="true",
    )
    replication = DRBD9.replace(
        "volume 0 {", 'volume 1 { device minor 1; disk "/dev/vg0/work"; meta-disk internal; }\n    volume 0 {'
    ).replace('crm-fence-peer.9.sh"', 'crm-fence-peer.9.sh --timeout 90"')
    text = cib(
        [sbd, promotable(), server, group("g-nfs", *members)],
        [*with_primary("g-nfs"), near("g-nfs", "cl-nfsserver"), after("cl-nfsserver", "g-nfs")],
        properties={
            "have-watchdog": "true",
            "stonith-timeout": "71",
            "cluster-name": "site",
            "priority-fencing-delay": "0",
        },
        defaults={"resource-stickiness": "200", "migration-threshold": "3", "failure-timeout": "600"},
        operations={"timeout": "600", "record-pending": "true"},
    )
    return {
        **files(
            text,
            corosync(totem="crypto_cipher: aes256\n crypto_hash: sha256\n token: 5000\n consensus: 6000"),
            replication,
        ),
        "etc/sysconfig/sbd": 'SBD_DEVICE="/dev/disk/by-id/scsi-1;/dev/disk/by-id/scsi-2;/dev/disk/by-id/scsi-3"\n'
        "SBD_PACEMAKER=yes\nSBD_STARTMODE=always\nSBD_DELAY_START=yes\nSBD_WATCHDOG_DEV=/dev/watchdog\n"
        "SBD_WATCHDOG_TIMEOUT=15\nSBD_TIMEOUT_ACTION=flush,reboot\nSBD_OPTS=\n",
    }


def lustre_on_multipath() -> Files:
    """Return Lustre metadata servers on multipath disks, with kernel and module options."""
    names = ("mgs", "mdt0", "mdt1")
    targets = [
        primitive(
            name, "ocf:lustre:Lustre", {"target": f"/dev/mapper/{name}", "mountpoint": f"/lustre/{name}"}, *_LUSTRE
        )
        for name in names
    ]
    ping = clone(
        "fabric-clone",
        primitive(
            "fabric",
            "ocf:lustre:healthLNET",
            {"lctl": "true", "multiplier": "1000", "dampen": "5s", "host_list": "10.4.0.201@o2ib 10.4.0.202@o2ib"},
            "monitor interval=30s timeout=120s",
            "start timeout=60s",
            "stop timeout=60s",
        ),
        interleave="true",
    )
    rules = [
        element(
            "rsc_location",
            element(
                "rule",
                element("expression", id=f"e1-{name}", attribute="pingd", operation="not_defined"),
                element("expression", id=f"e2-{name}", attribute="pingd", operation="lte", value="0", type="number"),
                id=f"rule-{name}",
                score="-INFINITY",
                boolean_op="or",
            ),
            id=f"fabric-{name}",
            rsc=name,
        )
        for name in names
    ]
    homes = [home("mgs", A, "100"), home("mdt0", A, "100"), home("mdt1", B, "100")]
    orders = [after("mgs", name, kind="Optional") for name in names[1:]]
    text = cib(
        [*both(), *targets, ping],
        [*rules, *homes, *orders],
        properties={"stonith-timeout": "120s", "stonith-action": "off"},
        defaults={"resource-stickiness": "500"},
    )
    return {
        **files(text, corosync(totem="crypto_cipher: aes256\n crypto_hash: sha256\n token: 10000"), ""),
        "etc/modprobe.d/lustre.conf": 'options lnet networks="o2ib(ib0)" lnet_transaction_timeout=100 lnet_retry_count=3\n'
        "options ko2iblnd peer_credits=32 concurrent_sends=64\noptions ptlrpc at_max=400\n",
        "etc/multipath.conf": "defaults {\n  polling_interval 10\n  no_path_retry 12\n  fast_io_fail_tmo 5\n  dev_loss_tmo 600\n}\n"
        "multipaths {\n"
        + "".join(f"  multipath {{\n    wwid 3600a0b80000{n}\n    alias {name}\n  }}\n" for n, name in enumerate(names))
        + "}\n",
        "etc/sysctl.d/90-lustre.conf": "net.ipv4.conf.all.arp_ignore = 1\nnet.ipv4.conf.all.arp_announce = 2\nkernel.panic = 10\n",
        "etc/hosts": "127.0.0.1 localhost\n192.168.10.1 alpha\n192.168.10.2 beta\n10.4.0.1 alpha-ib\n10.4.0.2 beta-ib\n",
    }


def object_servers_on_zfs() -> Files:
    """Return four ZFS pools on two object servers, with options for multihost."""
    resources, constraints = both(), []
    for number in range(4):
        pool = primitive(
            f"zpool{number}",
            "ocf:heartbeat:ZFS",
            {"pool": f"scratch-ost{number}", "importargs": "-d /dev/mapper"},
            "monitor interval=30s timeout=90s",
            "start timeout=180s",
            "stop timeout=180s",
        )
        target = primitive(
            f"OST{number:04d}",
            "ocf:lustre:Lustre",
            {"target": f"scratch-ost{number}/ost{number}", "mountpoint": f"/mnt/lustre/ost{number}"},
            *_LUSTRE,
        )
        resources += [pool, target]
        constraints += [
            near(f"OST{number:04d}", f"zpool{number}"),
            after(f"zpool{number}", f"OST{number:04d}"),
            home(f"zpool{number}", (A, B)[number % 2], "200"),
        ]
    return {
        **files(cib(resources, constraints, defaults={"resource-stickiness": "1000"}), replication=""),
        "etc/modprobe.d/zfs.conf": "options spl spl_hostid=0x00bab10c\noptions zfs zfs_multihost_interval=2000 "
        "zfs_multihost_fail_intervals=20 zfs_arc_max=68719476736\n",
        "etc/multipath.conf": "defaults {\n  no_path_retry fail\n  polling_interval 5\n}\n",
    }


def object_gateway() -> Files:
    """Return Ceph gateways and proxies on both nodes, with two movable addresses."""
    gateways = clone("rgw-clone", primitive("rgw", "systemd:ceph-radosgw@rgw.gateway", {}, *SERVED), interleave="true")
    proxies = clone("haproxy-clone", primitive("haproxy", "systemd:haproxy", {}, *SERVED), interleave="true")
    addresses = [ip("vip-east", "192.168.10.81"), ip("vip-west", "192.168.10.82")]
    constraints = [
        after("rgw-clone", "haproxy-clone"),
        near("haproxy-clone", "rgw-clone"),
        *(near(name, "haproxy-clone") for name in ("vip-east", "vip-west")),
        *(after("haproxy-clone", name) for name in ("vip-east", "vip-west")),
        home("vip-east", A, "100"),
        home("vip-west", B, "100"),
        near("vip-west", "vip-east", "-100"),
    ]
    return {
        **files(
            cib([*both(), gateways, proxies, *addresses], constraints, defaults={"resource-stickiness": "0"}),
            replication="",
        ),
        "etc/systemd/system/ceph-radosgw@.service.d/wait.conf": "[Service]\nTimeoutStopSec=60\nLimitNOFILE=1048576\n",
        "etc/sysctl.d/80.conf": "net.ipv4.ip_nonlocal_bind = 1\nnet.core.somaxconn = 4096\n",
    }


def database_group() -> Files:
    """Return PostgreSQL on a shared volume group, with a quorum device and fencing by iDRAC."""
    members = [
        primitive("pg-vg", "ocf:heartbeat:LVM-activate", {"vgname": "pgvg", "vg_access_mode": "system_id"}, *SERVED),
        mount("/dev/pgvg/data", "ext4", "pg-data", SERVED, "/var/lib/pgsql/data"),
        mount("/dev/pgvg/wal", "ext4", "pg-wal", SERVED, "/var/lib/pgsql/wal"),
        primitive(
            "postgres",
            "ocf:heartbeat:pgsql",
            {
                "pgctl": "/usr/pgsql-15/bin/pg_ctl",
                "psql": "/usr/pgsql-15/bin/psql",
                "pgdata": "/var/lib/pgsql/data",
                "stop_escalate": "60",
            },
            "monitor interval=30s timeout=60s",
            "start timeout=300s",
            "stop timeout=300s",
        ),
        ip("pg-ip", "192.168.10.60"),
    ]
    devices = [
        fence(
            f"drac-{node}",
            "fence_idrac",
            {
                "ip": f"192.168.30.{number}",
                "username": "fence",
                "password_script": "/etc/cluster/pw",
                "lanplus": "1",
                "pcmk_host_list": node,
                "pcmk_reboot_timeout": "90s",
            },
        )
        for number, node in ((1, A), (2, B))
    ]
    device = "device {\n  model: net\n  votes: 1\n  sync_timeout: 20000\n  timeout: 8000\n  net {\n   host: qnetd.example.org\n   algorithm: lms\n   tls: required\n  }\n  heuristics {\n   mode: sync\n   timeout: 3000\n   exec_gateway: /usr/bin/ping -q -c 1 192.168.10.254\n  }\n }"
    text = cib([*devices, group("pg", *members)], [home("pg", A)], properties={"stonith-timeout": "120s"})
    return files(text, corosync(quorum=device), "")


def streaming_database() -> Files:
    """Return PostgreSQL with synchronous replication, and two addresses that follow the primary."""
    pairs = {
        "pgctl": "/usr/bin/pg_ctl",
        "psql": "/usr/bin/psql",
        "pgdata": "/var/lib/pgsql/data",
        "rep_mode": "sync",
        "node_list": "alpha beta",
        "primary_conninfo_opt": "keepalives_idle=60 keepalives_interval=5 keepalives_count=5",
        "master_ip": "192.168.10.61",
        "restart_on_promote": "true",
    }
    base = primitive(
        "pgsql",
        "ocf:heartbeat:pgsql",
        pairs,
        "start timeout=120s",
        "stop timeout=120s",
        "promote timeout=120s",
        "demote timeout=120s",
        "notify timeout=90s",
        "monitor interval=11s timeout=60s",
        "monitor interval=9s timeout=60s role=Master",
    )
    database = clone("msPostgresql", base, promotable="true", promoted_max="1", clone_max="2", notify="true")
    constraints = [
        element(
            "rsc_colocation",
            id="c1",
            rsc="master-group",
            with_rsc="msPostgresql",
            with_rsc_role="Master",
            score=INFINITY,
        ),
        element(
            "rsc_order",
            id="o1",
            first="msPostgresql",
            first_action="promote",
            then="master-group",
            then_action="start",
            symmetrical="false",
            kind="Mandatory",
        ),
        element(
            "rsc_order",
            id="o2",
            first="msPostgresql",
            first_action="demote",
            then="master-group",
            then_action="stop",
            symmetrical="false",
            kind="Optional",
        ),
    ]
    masters = group("master-group", ip("vip-master", "192.168.10.60"), ip("vip-rep", "192.168.10.61"))
    return files(
        cib(
            [*both(), database, masters],
            constraints,
            defaults={"resource-stickiness": INFINITY, "migration-threshold": "1"},
        ),
        replication="",
    )


FIELD_STYLES: dict[str, Callable[[], Files]] = {
    "field: NFS of Red Hat": nfs_of_red_hat,
    "field: NFS of SUSE": nfs_of_suse,
    "field: Lustre on multipath": lustre_on_multipath,
    "field: OSS on ZFS": object_servers_on_zfs,
    "field: Ceph gateways": object_gateway,
    "field: PostgreSQL on a volume group": database_group,
    "field: PostgreSQL with two roles": streaming_database,
}
