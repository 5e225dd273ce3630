"""More good configurations after public guides, retyped, and written before the rules were run on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.etree import ElementTree as Xml

from failover.styles import (
    DRBD9,
    INFINITY,
    NFS_EXPORT,
    TIMES,
    A,
    B,
    C,
    Files,
    address,
    after,
    all_three,
    banned_where,
    both,
    cib,
    clone,
    corosync,
    fence_each,
    files,
    group,
    home,
    mount,
    near,
    primitive,
    primitives,
    promotable,
    tag,
    times,
    volume,
    with_primary,
)

LONG = times(30, 90, 90, 90)
_SLOW = times(30, 60, 120, 120)
_ADDRESS = times(10, 20, 20, 20)
_THREE = corosync(nodes=(A, B, C), quorum="expected_votes: 3")
_ENCRYPTED = "crypto_cipher: aes256\n crypto_hash: sha256"


def lock_managers() -> list[Xml.Element]:
    """Return the clone of dlm and lvmlockd of Red Hat's guide."""
    managers = primitives(
        """
        dlm ocf:pacemaker:controld
        lvmlockd ocf:heartbeat:lvmlockd
        """,
        "monitor interval=30s timeout=60s on-fail=fence",
    )
    return [clone("locking-clone", group("locking", *managers), "interleave=true")]


def shared_volume() -> list[Xml.Element]:
    lv = volume("shared_vg1", "vg_access_mode=lvmlockd lvname=shared_lv1 activation_mode=shared")
    disk = primitive(
        "sharedfs1 ocf:heartbeat:Filesystem device=/dev/shared_vg1/shared_lv1 directory=/mnt/gfs1 fstype=gfs2 "
        "options=noatime op monitor interval=10s timeout=40s on-fail=fence op start timeout=60s op stop timeout=60s"
    )
    return [clone("shared_vg1-clone", group("shared_vg1", lv, disk), "interleave=true")]


def red_hat_apache() -> Files:
    web = "Website ocf:heartbeat:apache configfile=/etc/httpd/conf/httpd.conf statusurl=http://127.0.0.1/server-status"
    outlet = primitive(
        "myapc stonith:fence_apc_snmp ip=192.168.30.9 'pcmk_host_map=alpha:1;beta:2' username=apc snmp_version=3 "
        "password_script=/etc/cluster/pw 'pcmk_delay_base=alpha:15s;beta:0s' op monitor interval=60s"
    )
    disk = mount("/dev/my_vg/my_lv", directory="/var/www")
    served = group("apachegroup", volume(), disk, address(), primitive(web, *times(10, 20, 40, 60)))
    return files(cib([outlet, served], []), replication="")


def red_hat_gfs2() -> Files:
    constraints = [after("locking-clone", "shared_vg1-clone"), near("shared_vg1-clone", "locking-clone")]
    text = cib([*both(), *lock_managers(), *shared_volume()], constraints, properties="no-quorum-policy=freeze")
    return files(text, replication="")


def red_hat_ctdb() -> Files:
    ctdb = "ctdb ocf:heartbeat:CTDB ctdb_recovery_lock=/mnt/gfs1/ctdb.lock ctdb_manages_winbind=no"
    members = primitive(ctdb, *times(10, 30, 90, 100)), primitive("samba systemd:smb", *times(60, 100, 90, 90))
    constraints = [
        after("locking-clone", "shared_vg1-clone"),
        near("shared_vg1-clone", "locking-clone"),
        after("shared_vg1-clone", "samba-clone"),
        near("samba-clone", "shared_vg1-clone"),
    ]
    served = clone("samba-clone", group("samba-group", *members), "interleave=true")
    resources = [*both(), *lock_managers(), *shared_volume(), served]
    return files(cib(resources, constraints, properties="no-quorum-policy=freeze"), replication="")


def haproxy() -> Files:
    """Return two addresses over a proxy on every node, after OpenStack's guide."""
    proxy = clone("haproxy-clone", primitive("haproxy systemd:haproxy", *times(10, 100, 90, 90)))
    addresses = [address(f"192.168.10.{number}", f"vip{number}") for number in (51, 52)]
    constraints = [
        *(near(f"vip{number}", "haproxy-clone") for number in (51, 52)),
        *(after("haproxy-clone", f"vip{number}") for number in (51, 52)),
        home("vip51", A),
        home("vip52", B),
    ]
    return files(cib([*all_three(), proxy, *addresses], constraints, nodes=(A, B, C)), _THREE, "")


def sap_ascs() -> Files:
    """Return SAP with enqueue replication 2 on simple mounts, after SUSE's guide."""
    instances = [
        group(
            f"grp_{name}",
            address(f"192.168.10.{number}", f"rsc_ip_{name}"),
            primitive(
                f"rsc_sap_{name} ocf:heartbeat:SAPInstance InstanceName=HA1_{name}_sapha1{name.lower()} "
                f"START_PROFILE=/sapmnt/HA1/profile/HA1_{name}_sapha1{name.lower()} AUTOMATIC_RECOVER=false "
                f"MINIMAL_PROBE=true{more}",
                *times(11, 60, 180, 240),
            ),
        )
        for name, number, more in (("ASCS00", 61, ""), ("ERS10", 62, " IS_ERS=true"))
    ]
    sbd = primitive("stonith-sbd stonith:external/sbd pcmk_delay_max=30s")
    optional = "kind=Optional symmetrical=false then-action=stop first-action=start"
    constraints = [near("grp_ERS10", "grp_ASCS00", "-5000"), after("grp_ASCS00", "grp_ERS10", optional)]
    return files(
        cib(
            [sbd, *instances],
            constraints,
            properties="have-watchdog=true stonith-timeout=150s priority-fencing-delay=0",
            defaults="resource-stickiness=1 migration-threshold=3",
            operations="timeout=600",
        ),
        corosync(totem=f"{_ENCRYPTED}\n token: 5000\n consensus: 6000\n join: 60"),
        "",
        etc__sysconfig__sbd="SBD_DEVICE=/dev/disk/by-id/scsi-1\nSBD_PACEMAKER=yes\nSBD_STARTMODE=always\nSBD_DELAY_START=yes\n"
        "SBD_WATCHDOG_DEV=/dev/watchdog\nSBD_WATCHDOG_TIMEOUT=15\n",
    )


def sap_hana() -> Files:
    topology = primitive("rsc_Topology ocf:suse:SAPHanaTopology SID=HA1 InstanceNumber=00", *times(10, 600, 600, 300))
    hana = primitive(
        "rsc_HANA ocf:suse:SAPHana SID=HA1 InstanceNumber=00 PREFER_SITE_TAKEOVER=true AUTOMATED_REGISTER=false "
        "DUPLICATE_PRIMARY_TIMEOUT=7200 op monitor interval=15s timeout=60s role=Promoted "
        "op monitor interval=16s timeout=60s role=Unpromoted op start timeout=3600s op stop timeout=3600s "
        "op promote timeout=3600s op demote timeout=320s"
    )
    constraints = [
        near("vip", "msl_HANA", "2000", "with-rsc-role=Promoted"),
        after("cln_Topology", "msl_HANA", "kind=Optional"),
    ]
    resources = [
        *both(),
        clone("cln_Topology", topology, "clone-node-max=1 interleave=true"),
        clone("msl_HANA", hana, "clone-max=2 clone-node-max=1 interleave=true promotable=true"),
        address(),
    ]
    defaults = "resource-stickiness=1000 migration-threshold=5000"
    return files(cib(resources, constraints, defaults=defaults), replication="")


def cluster_md() -> Files:
    """Return OCFS2 on a mirror by cluster MD, after SUSE's guide."""
    dlm = primitive("dlm ocf:pacemaker:controld", *times(60, 60, 90, 90))
    raid = "raider ocf:heartbeat:Raid1 raidconf=/etc/mdadm.conf raiddev=/dev/md0 force_clones=true"
    disk = mount("/dev/md0", "ocfs2", "shared", TIMES, "/srv/clusterfs")
    storage = group("g-storage", dlm, primitive(raid, *times(10, 60, 60, 60)), disk)
    base = clone("cl-storage", storage, "interleave=true")
    return files(cib([*both(), base], [], properties="no-quorum-policy=freeze"), replication="")


def pgsql_on_drbd() -> Files:
    """Return PostgreSQL on DRBD 9, after LINBIT's guide."""
    database = primitive(
        "p_pgsql ocf:heartbeat:pgsql pgctl=/usr/pgsql-15/bin/pg_ctl psql=/usr/pgsql-15/bin/psql "
        "pgdata=/srv/data/pgsql config=/srv/data/pgsql/postgresql.conf",
        *times(15, 30, 120, 120),
    )
    served = group("g_pgsql", mount(), address(), database)
    return files(cib([*both(), promotable(), served], with_primary("g_pgsql")), replication=DRBD9)


def pgsql_streaming() -> Files:
    """Return PostgreSQL with replication by the agent pgsql and two addresses, after ClusterLabs' wiki."""
    database = primitive(
        "pgsql ocf:heartbeat:pgsql rep_mode=sync 'node_list=alpha beta' "
        "'restore_command=cp /var/lib/pgsql/archive/%f %p' "
        "'primary_conninfo_opt=keepalives_idle=60 keepalives_interval=5 keepalives_count=5' master_ip=192.168.20.50 "
        "restart_on_promote=true op monitor interval=4s timeout=60s op monitor interval=3s timeout=60s role=Promoted "
        "op start timeout=60s op promote timeout=60s op demote timeout=60s op stop timeout=60s op notify timeout=60s"
    )
    served = group("master-group", address("192.168.10.50", "vip-master"), address("192.168.20.50", "vip-rep"))
    constraints = [
        near("master-group", "pgsql-clone", more="with-rsc-role=Promoted"),
        after("pgsql-clone", "master-group", "first-action=promote then-action=start symmetrical=false"),
        tag(
            "rsc_order id=demote-first first=pgsql-clone then=master-group first-action=demote then-action=stop "
            "symmetrical=false score=0"
        ),
    ]
    resources = [*both(), promotable(database, "pgsql-clone"), served]
    return files(cib(resources, constraints, defaults=f"resource-stickiness={INFINITY}"), replication="")


def automatic_failover() -> Files:
    """Return PostgreSQL by pgsqlms with an address on the primary, after PAF's quick start."""
    database = primitive(
        "pgsqld ocf:heartbeat:pgsqlms bindir=/usr/lib/postgresql/15/bin pgdata=/var/lib/postgresql/15/main "
        "op start timeout=60s op stop timeout=60s op promote timeout=30s op demote timeout=120s "
        "op monitor interval=15s timeout=10s role=Promoted op monitor interval=16s timeout=10s role=Unpromoted "
        "op notify timeout=60s"
    )
    constraints = [
        near("pgsql-master-ip", "pgsqld-clone", more="with-rsc-role=Promoted"),
        after("pgsqld-clone", "pgsql-master-ip", "first-action=promote then-action=start symmetrical=false"),
        tag(
            "rsc_order id=demote-then-stop first=pgsqld-clone then=pgsql-master-ip first-action=demote "
            "then-action=stop symmetrical=false"
        ),
    ]
    copies = clone("pgsqld-clone", database, "promotable=true notify=true")
    resources = [*both(), copies, address(identity="pgsql-master-ip")]
    defaults = "resource-stickiness=10 migration-threshold=5"
    return files(cib(resources, constraints, defaults=defaults), replication="")


def galera() -> Files:
    database = primitive(
        "galera ocf:heartbeat:galera wsrep_cluster_address=gcomm://alpha,beta,gamma enable_creation=true "
        "op monitor interval=20s timeout=30s op monitor interval=10s timeout=30s role=Promoted "
        "op monitor interval=30s timeout=30s role=Unpromoted op promote timeout=300s op demote timeout=120s "
        "op start timeout=120s op stop timeout=120s"
    )
    made = clone("galera-clone", database, "promotable=true promoted-max=3")
    return files(cib([*all_three(), made], [], nodes=(A, B, C)), _THREE, "")


def amazon() -> Files:
    fence = primitive(
        "clusterfence stonith:fence_aws region=us-east-1 "
        "'pcmk_host_map=alpha:i-0b02af8927a895137;beta:i-0cc083e23dbb67778' 'pcmk_delay_base=alpha:15s;beta:0s' "
        "power_timeout=240 pcmk_reboot_timeout=480 pcmk_reboot_retries=4 op monitor interval=300s timeout=60s"
    )
    moved = "privip ocf:heartbeat:aws-vpc-move-ip ip=192.168.10.50 interface=eth0 routing_table=rtb-0fb3"
    served = group("grp", volume(), mount("/dev/my_vg/my_lv"), primitive(moved, *times(60, 30, 180, 180)))
    text = cib([fence, served], [], properties="stonith-timeout=600s")
    return files(text, corosync(totem=f"token: 30000\n {_ENCRYPTED}", rings=("192.168.10",)), "")


def google() -> Files:
    fence = [
        primitive(
            f"fence-{node} stonith:fence_gce project=example zone=europe-west1-b port={node} pcmk_host_list={node} "
            "pcmk_reboot_timeout=300 pcmk_monitor_retries=4 pcmk_delay_max=30 op monitor interval=300s timeout=120s"
        )
        for node in (A, B)
    ]
    health = primitive("vip-hc ocf:heartbeat:haproxy conffile=/etc/haproxy/ilb.cfg", *LONG)
    served = group("grp", volume(), mount("/dev/my_vg/my_lv"), address(), health)
    return files(cib([*fence, served], [], properties="stonith-timeout=300s"), replication="")


def vmware() -> Files:
    fence = primitive(
        "vmfence stonith:fence_vmware_rest ip=vcenter.example.org username=ha password_script=/etc/cluster/pw ssl=1 "
        "ssl_insecure=1 'pcmk_host_map=alpha:vm-alpha;beta:vm-beta' pcmk_delay_max=30s op monitor interval=60s"
    )
    dhcp = primitive("dhcp ocf:heartbeat:dhcpd config=/srv/data/dhcpd.conf", *LONG)
    return files(cib([fence, promotable(), group("grp", mount(), address(), dhcp)], with_primary()))


def volumes_on_drbd() -> Files:
    """Return LVM on one DRBD device, after LINBIT's guide."""
    served = group("grp", volume("vg_data"), mount("/dev/vg_data/lv0"), address())
    return files(cib([*both(), promotable(), served], with_primary()))


def redis() -> Files:
    cache = primitive(
        "redis ocf:heartbeat:redis wait_last_known_master=true op monitor interval=45s timeout=60s "
        "op monitor interval=20s timeout=60s role=Promoted op monitor interval=60s timeout=60s role=Unpromoted "
        "op start timeout=120s op stop timeout=120s op promote timeout=120s op demote timeout=120s"
    )
    constraints = [
        near("vip", "redis-clone", more="with-rsc-role=Promoted"),
        after("redis-clone", "vip", "first-action=promote then-action=start"),
    ]
    made = clone("redis-clone", cache, "promotable=true notify=true ordered=true interleave=true")
    return files(cib([*all_three(), made, address()], constraints, nodes=(A, B, C)), _THREE, "")


def two_drbd_services() -> Files:
    """Return a web server on DRBD 8.4 that starts after its address, by constraints instead of a group."""
    web = primitive("web ocf:heartbeat:nginx configfile=/srv/data/nginx.conf", *LONG)
    ties = [near("vip", "fs"), after("fs", "vip"), near("web", "vip"), after("vip", "web")]
    resources = [*both(), promotable(identity="ms_drbd"), mount(), address(), web]
    return files(cib(resources, [*with_primary("fs", to="ms_drbd"), *ties]))


def nfs_of_red_hat() -> Files:
    """Return Red Hat's NFS by pcs: an LVM volume group by system ID, three exports, a short lease, multipath."""
    shared = "/exports/shared"
    members = primitives(
        f"""
        vg ocf:heartbeat:LVM-activate vgname=nfs_vg vg_access_mode=system_id
        nfs_fs ocf:heartbeat:Filesystem device=/dev/nfs_vg/nfs_lv directory={shared} fstype=xfs
        nfs_daemon ocf:heartbeat:nfsserver nfs_shared_infodir={shared}/nfsinfo nfs_no_notify=true
        root_export ocf:heartbeat:exportfs {NFS_EXPORT.format(f"{shared}/exports", 0)}
        home_export ocf:heartbeat:exportfs {NFS_EXPORT.format(f"{shared}/exports/home", 1)}
        soft_export ocf:heartbeat:exportfs {NFS_EXPORT.format(f"{shared}/exports/software", 2)} wait_for_leasetime_on_stop=true
        """,
        *_SLOW,
    )
    members.append(address("192.168.10.70", "nfs_ip"))
    members.append(primitive("nfs_notify ocf:heartbeat:nfsnotify source_host=192.168.10.70", *_ADDRESS))
    text = cib([*both(), group("nfsgroup", *members)], [], defaults="resource-stickiness=1 migration-threshold=3")
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
    sbd = primitive("stonith-sbd stonith:external/sbd pcmk_delay_max=30s op monitor interval=3600s timeout=20s")
    export = f"{NFS_EXPORT.format('/srv/nfs/work', 9999)} wait_for_leasetime_on_stop=true"
    members = [
        mount("/dev/drbd0", "ext4", "fs_state", _SLOW, "/var/lib/nfs"),
        mount("/dev/drbd1", "ext4", "fs_work", _SLOW, "/srv/nfs/work"),
        primitive(f"exportfs_work ocf:heartbeat:exportfs {export}", *_SLOW),
        address("192.168.10.90", "vip_nfs", "nic=eth0"),
    ]
    server = primitive("nfsserver systemd:nfs-server", *times(30, 60, 100, 100))
    replication = DRBD9.replace(
        "volume 0 {", 'volume 1 { device minor 1; disk "/dev/vg0/work"; meta-disk internal; }\n    volume 0 {'
    ).replace('crm-fence-peer.9.sh"', 'crm-fence-peer.9.sh --timeout 90"')
    text = cib(
        [sbd, promotable(), clone("cl-nfsserver", server, "interleave=true"), group("g-nfs", *members)],
        [*with_primary("g-nfs"), near("g-nfs", "cl-nfsserver"), after("cl-nfsserver", "g-nfs")],
        properties="have-watchdog=true stonith-timeout=71 cluster-name=site priority-fencing-delay=0",
        defaults="resource-stickiness=200 migration-threshold=3 failure-timeout=600",
        operations="timeout=600 record-pending=true",
    )
    return {
        **files(text, corosync(totem=f"{_ENCRYPTED}\n token: 5000\n consensus: 6000"), replication),
        "etc/sysconfig/sbd": 'SBD_DEVICE="/dev/disk/by-id/scsi-1;/dev/disk/by-id/scsi-2;/dev/disk/by-id/scsi-3"\n'
        "SBD_PACEMAKER=yes\nSBD_STARTMODE=always\nSBD_DELAY_START=yes\nSBD_WATCHDOG_DEV=/dev/watchdog\n"
        "SBD_WATCHDOG_TIMEOUT=15\nSBD_TIMEOUT_ACTION=flush,reboot\nSBD_OPTS=\n",
    }


def lustre_on_multipath() -> Files:
    """Return Lustre metadata servers on multipath disks, with kernel and module options."""
    names = ("mgs", "mdt0", "mdt1")
    targets = [
        primitive(
            f"{name} ocf:lustre:Lustre target=/dev/mapper/{name} mountpoint=/lustre/{name}", *times(120, 300, 600, 600)
        )
        for name in names
    ]
    ping = primitive(
        "fabric ocf:lustre:healthLNET lctl=true multiplier=1000 dampen=5s 'host_list=10.4.0.201@o2ib 10.4.0.202@o2ib'",
        *times(30, 120, 60, 60),
    )
    lost = "attribute=pingd operation=not_defined", "attribute=pingd operation=lte value=0 type=number"
    constraints = [
        *(banned_where(name, *lost) for name in names),
        *(home(name, node, "100") for name, node in zip(names, (A, A, B), strict=True)),
        *(after("mgs", name, "kind=Optional") for name in names[1:]),
    ]
    text = cib(
        [*both(), *targets, clone("fabric-clone", ping, "interleave=true")],
        constraints,
        properties="stonith-timeout=120s stonith-action=off",
        defaults="resource-stickiness=500",
    )
    return {
        **files(text, corosync(totem=f"{_ENCRYPTED}\n token: 10000"), ""),
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
        pool, name = f"zpool{number}", f"OST{number:04d}"
        target = f"target=scratch-ost{number}/ost{number} mountpoint=/mnt/lustre/ost{number}"
        made = f"{pool} ocf:heartbeat:ZFS pool=scratch-ost{number} 'importargs=-d /dev/mapper'"
        resources.append(primitive(made, *times(30, 90, 180, 180)))
        resources.append(primitive(f"{name} ocf:lustre:Lustre {target}", *times(120, 300, 600, 600)))
        constraints += [near(name, pool), after(pool, name), home(pool, (A, B)[number % 2], "200")]
    return {
        **files(cib(resources, constraints, defaults="resource-stickiness=1000"), replication=""),
        "etc/modprobe.d/zfs.conf": "options spl spl_hostid=0x00bab10c\noptions zfs zfs_multihost_interval=2000 "
        "zfs_multihost_fail_intervals=20 zfs_arc_max=68719476736\n",
        "etc/multipath.conf": "defaults {\n  no_path_retry fail\n  polling_interval 5\n}\n",
    }


def object_gateway() -> Files:
    """Return Ceph gateways and proxies on both nodes, with two movable addresses."""
    gateways = clone("rgw-clone", primitive("rgw systemd:ceph-radosgw@rgw.gateway", *_SLOW), "interleave=true")
    proxies = clone("haproxy-clone", primitive("haproxy systemd:haproxy", *_SLOW), "interleave=true")
    addresses = [address("192.168.10.81", "vip-east"), address("192.168.10.82", "vip-west")]
    constraints = [
        after("rgw-clone", "haproxy-clone"),
        near("haproxy-clone", "rgw-clone"),
        *(near(name, "haproxy-clone") for name in ("vip-east", "vip-west")),
        *(after("haproxy-clone", name) for name in ("vip-east", "vip-west")),
        home("vip-east", A, "100"),
        home("vip-west", B, "100"),
        near("vip-west", "vip-east", "-100"),
    ]
    resources = [*both(), gateways, proxies, *addresses]
    return {
        **files(cib(resources, constraints, defaults="resource-stickiness=0"), replication=""),
        "etc/systemd/system/ceph-radosgw@.service.d/wait.conf": "[Service]\nTimeoutStopSec=60\nLimitNOFILE=1048576\n",
        "etc/sysctl.d/80.conf": "net.ipv4.ip_nonlocal_bind = 1\nnet.core.somaxconn = 4096\n",
    }


def database_group() -> Files:
    """Return PostgreSQL on a shared volume group, with a quorum device and fencing by iDRAC."""
    database = primitive(
        "postgres ocf:heartbeat:pgsql pgctl=/usr/pgsql-15/bin/pg_ctl psql=/usr/pgsql-15/bin/psql "
        "pgdata=/var/lib/pgsql/data stop_escalate=60",
        *times(30, 60, 300, 300),
    )
    members = [
        primitive("pg-vg ocf:heartbeat:LVM-activate vgname=pgvg vg_access_mode=system_id", *_SLOW),
        mount("/dev/pgvg/data", "ext4", "pg-data", _SLOW, "/var/lib/pgsql/data"),
        mount("/dev/pgvg/wal", "ext4", "pg-wal", _SLOW, "/var/lib/pgsql/wal"),
        database,
        address("192.168.10.60", "pg-ip"),
    ]
    devices = fence_each(
        "drac-{node} fence_idrac ip=192.168.30.{number} username=fence password_script=/etc/cluster/pw lanplus=1 "
        "pcmk_host_list={node} pcmk_reboot_timeout=90s",
        delayed="",
    )
    device = "device {\n  model: net\n  votes: 1\n  sync_timeout: 20000\n  timeout: 8000\n  net {\n   host: qnetd.example.org\n   algorithm: lms\n   tls: required\n  }\n  heuristics {\n   mode: sync\n   timeout: 3000\n   exec_gateway: /usr/bin/ping -q -c 1 192.168.10.254\n  }\n }"
    text = cib([*devices, group("pg", *members)], [home("pg", A)], properties="stonith-timeout=120s")
    return files(text, corosync(quorum=device), "")


def streaming_database() -> Files:
    """Return PostgreSQL with synchronous replication, and two addresses that follow the primary."""
    base = primitive(
        "pgsql ocf:heartbeat:pgsql pgctl=/usr/bin/pg_ctl psql=/usr/bin/psql pgdata=/var/lib/pgsql/data rep_mode=sync "
        "'node_list=alpha beta' "
        "'primary_conninfo_opt=keepalives_idle=60 keepalives_interval=5 keepalives_count=5' master_ip=192.168.10.61 "
        "restart_on_promote=true op start timeout=120s op stop timeout=120s op promote timeout=120s "
        "op demote timeout=120s op notify timeout=90s op monitor interval=11s timeout=60s "
        "op monitor interval=9s timeout=60s role=Master"
    )
    database = clone("msPostgresql", base, "promotable=true promoted-max=1 clone-max=2 notify=true")
    order = "first=msPostgresql first-action={} then=master-group then-action={} symmetrical=false kind={}"
    constraints = [
        tag(f"rsc_colocation id=c1 rsc=master-group with-rsc=msPostgresql with-rsc-role=Master score={INFINITY}"),
        tag(f"rsc_order id=o1 {order.format('promote', 'start', 'Mandatory')}"),
        tag(f"rsc_order id=o2 {order.format('demote', 'stop', 'Optional')}"),
    ]
    masters = group("master-group", address("192.168.10.60", "vip-master"), address("192.168.10.61", "vip-rep"))
    defaults = f"resource-stickiness={INFINITY} migration-threshold=1"
    return files(cib([*both(), database, masters], constraints, defaults=defaults), replication="")


MORE_STYLES: Mapping[str, Callable[[], Files]] = {
    "Red Hat: a web server on a volume group": red_hat_apache,
    "Red Hat: GFS2 on shared volumes": red_hat_gfs2,
    "Red Hat: Samba with CTDB": red_hat_ctdb,
    "OpenStack: a proxy on each node": haproxy,
    "SUSE: SAP with enqueue replication": sap_ascs,
    "SUSE: HANA": sap_hana,
    "SUSE: cluster MD and OCFS2": cluster_md,
    "LINBIT: PostgreSQL on DRBD 9": pgsql_on_drbd,
    "ClusterLabs: PostgreSQL replicates itself": pgsql_streaming,
    "PAF": automatic_failover,
    "Galera": galera,
    "Amazon": amazon,
    "Google": google,
    "VMware": vmware,
    "LINBIT: volumes on DRBD": volumes_on_drbd,
    "Redis": redis,
    "a web server after its address": two_drbd_services,
    "field: NFS of Red Hat": nfs_of_red_hat,
    "field: NFS of SUSE": nfs_of_suse,
    "field: Lustre on multipath": lustre_on_multipath,
    "field: OSS on ZFS": object_servers_on_zfs,
    "field: Ceph gateways": object_gateway,
    "field: PostgreSQL on a volume group": database_group,
    "field: PostgreSQL with two roles": streaming_database,
}
