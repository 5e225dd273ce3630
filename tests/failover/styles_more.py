"""More good configurations after public guides, retyped, and written before the rules were run on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.etree import ElementTree as Xml

from failover.styles import (
    DRBD9,
    INFINITY,
    TIMES,
    A,
    B,
    C,
    Files,
    address,
    both,
    cib,
    clone,
    corosync,
    drbd,
    element,
    files,
    group,
    ipmi,
    mount,
    primitive,
    promotable,
    with_primary,
)

LONG = ("monitor interval=30s timeout=90s", "start timeout=90s", "stop timeout=90s")
ROLES = (
    "monitor interval=15s timeout=60s role=Promoted",
    "monitor interval=16s timeout=60s role=Unpromoted",
    "start timeout=3600s",
    "stop timeout=3600s",
    "promote timeout=3600s",
    "demote timeout=320s",
)
THREE = (A, B, C)
LUSTRE = ("monitor interval=60s timeout=300s", "start timeout=600s", "stop timeout=600s")


def volume(name: str = "my_vg", **more: str) -> Xml.Element:
    pairs = {"vgname": name, "vg_access_mode": "system_id"} | more
    return primitive(f"lvm_{name}", "ocf:heartbeat:LVM-activate", pairs, *LONG)


def near(what: str, base: str, score: str = INFINITY, **more: str) -> Xml.Element:
    return element("rsc_colocation", id=f"col-{what}-{base}", rsc=what, with_rsc=base, score=score, **more)


def after(first: str, then: str, **more: str) -> Xml.Element:
    return element("rsc_order", id=f"ord-{first}-{then}", first=first, then=then, **more)


def home(what: str, node: str, score: str = "50") -> Xml.Element:
    return element("rsc_location", id=f"loc-{what}-{node}", rsc=what, node=node, score=score)


def lock_managers() -> list[Xml.Element]:
    """Return the clone of dlm and lvmlockd of Red Hat's guide."""
    dlm = primitive("dlm", "ocf:pacemaker:controld", {}, "monitor interval=30s timeout=60s on-fail=fence")
    lvmlockd = primitive("lvmlockd", "ocf:heartbeat:lvmlockd", {}, "monitor interval=30s timeout=60s on-fail=fence")
    return [clone("locking-clone", group("locking", dlm, lvmlockd), interleave="true")]


def shared_volume() -> list[Xml.Element]:
    lv = volume("shared_vg1", lvname="shared_lv1", activation_mode="shared", vg_access_mode="lvmlockd")
    disk = primitive(
        "sharedfs1",
        "ocf:heartbeat:Filesystem",
        {"device": "/dev/shared_vg1/shared_lv1", "directory": "/mnt/gfs1", "fstype": "gfs2", "options": "noatime"},
        "monitor interval=10s timeout=40s on-fail=fence",
        "start timeout=60s",
        "stop timeout=60s",
    )
    return [clone("shared_vg1-clone", group("shared_vg1", lv, disk), interleave="true")]


def red_hat_apache() -> Files:
    web = primitive(
        "Website",
        "ocf:heartbeat:apache",
        {"configfile": "/etc/httpd/conf/httpd.conf", "statusurl": "http://127.0.0.1/server-status"},
        "monitor interval=10s timeout=20s",
        "start timeout=40s",
        "stop timeout=60s",
    )
    outlet = primitive(
        "myapc",
        "stonith:fence_apc_snmp",
        {
            "ip": "192.168.30.9",
            "pcmk_host_map": f"{A}:1;{B}:2",
            "username": "apc",
            "password_script": "/etc/cluster/pw",
            "snmp_version": "3",
            "pcmk_delay_base": f"{A}:15s;{B}:0s",
        },
        "monitor interval=60s",
    )
    served = group("apachegroup", volume(), mount("/dev/my_vg/my_lv", directory="/var/www"), address(), web)
    return files(cib([outlet, served], []), replication="")


def red_hat_gfs2() -> Files:
    constraints = [after("locking-clone", "shared_vg1-clone"), near("shared_vg1-clone", "locking-clone")]
    text = cib([*both(), *lock_managers(), *shared_volume()], constraints, properties={"no-quorum-policy": "freeze"})
    return files(text, replication="")


def red_hat_ctdb() -> Files:
    ctdb = primitive(
        "ctdb",
        "ocf:heartbeat:CTDB",
        {"ctdb_recovery_lock": "/mnt/gfs1/ctdb.lock", "ctdb_manages_winbind": "no"},
        "monitor interval=10s timeout=30s",
        "start timeout=90s",
        "stop timeout=100s",
    )
    smb = primitive("samba", "systemd:smb", {}, "monitor interval=60s timeout=100s", *LONG[1:])
    constraints = [
        after("locking-clone", "shared_vg1-clone"),
        near("shared_vg1-clone", "locking-clone"),
        after("shared_vg1-clone", "samba-clone"),
        near("samba-clone", "shared_vg1-clone"),
    ]
    served = clone("samba-clone", group("samba-group", ctdb, smb), interleave="true")
    resources = [*both(), *lock_managers(), *shared_volume(), served]
    return files(cib(resources, constraints, properties={"no-quorum-policy": "freeze"}), replication="")


def haproxy() -> Files:
    """Return two addresses over a proxy on every node, after OpenStack's guide."""
    proxy = primitive("haproxy", "systemd:haproxy", {}, "monitor interval=10s timeout=100s", *LONG[1:])
    addresses = [address(f"192.168.10.{number}", f"vip{number}") for number in (51, 52)]
    constraints = [
        *(near(f"vip{number}", "haproxy-clone") for number in (51, 52)),
        *(after("haproxy-clone", f"vip{number}") for number in (51, 52)),
        home("vip51", A),
        home("vip52", B),
    ]
    devices = [ipmi(A, 1, pcmk_delay_base=""), ipmi(B, 2), ipmi(C, 3)]
    return files(
        cib([*devices, clone("haproxy-clone", proxy), *addresses], constraints, nodes=THREE),
        corosync(nodes=THREE, quorum="expected_votes: 3"),
        "",
    )


def sap_ascs() -> Files:
    """Return SAP with enqueue replication 2 on simple mounts, after SUSE's guide."""
    instances = [
        group(
            f"grp_{name}",
            address(f"192.168.10.{number}", f"rsc_ip_{name}"),
            primitive(
                f"rsc_sap_{name}",
                "ocf:heartbeat:SAPInstance",
                {
                    "InstanceName": f"HA1_{name}_sapha1{name.lower()}",
                    "START_PROFILE": f"/sapmnt/HA1/profile/HA1_{name}_sapha1{name.lower()}",
                    "AUTOMATIC_RECOVER": "false",
                    "MINIMAL_PROBE": "true",
                }
                | ({"IS_ERS": "true"} if name == "ERS10" else {}),
                "monitor interval=11s timeout=60s",
                "start timeout=180s",
                "stop timeout=240s",
            ),
        )
        for name, number in (("ASCS00", 61), ("ERS10", 62))
    ]
    sbd = primitive("stonith-sbd", "stonith:external/sbd", {"pcmk_delay_max": "30s"})
    constraints = [
        near("grp_ERS10", "grp_ASCS00", "-5000"),
        after(
            "grp_ASCS00", "grp_ERS10", kind="Optional", symmetrical="false", then_action="stop", first_action="start"
        ),
    ]
    return files(
        cib(
            [sbd, *instances],
            constraints,
            properties={"have-watchdog": "true", "stonith-timeout": "150s", "priority-fencing-delay": "0"},
            defaults={"resource-stickiness": "1", "migration-threshold": "3"},
            operations={"timeout": "600"},
        ),
        corosync(totem="crypto_cipher: aes256\n crypto_hash: sha256\n token: 5000\n consensus: 6000\n join: 60"),
        "",
        etc__sysconfig__sbd="SBD_DEVICE=/dev/disk/by-id/scsi-1\nSBD_PACEMAKER=yes\nSBD_STARTMODE=always\nSBD_DELAY_START=yes\n"
        "SBD_WATCHDOG_DEV=/dev/watchdog\nSBD_WATCHDOG_TIMEOUT=15\n",
    )


def sap_hana() -> Files:
    pairs = {"SID": "HA1", "InstanceNumber": "00"}
    topology = primitive(
        "rsc_Topology",
        "ocf:suse:SAPHanaTopology",
        pairs,
        "monitor interval=10s timeout=600s",
        "start timeout=600s",
        "stop timeout=300s",
    )
    hana = primitive(
        "rsc_HANA",
        "ocf:suse:SAPHana",
        pairs | {"PREFER_SITE_TAKEOVER": "true", "AUTOMATED_REGISTER": "false", "DUPLICATE_PRIMARY_TIMEOUT": "7200"},
        *ROLES,
    )
    constraints = [
        near("vip", "msl_HANA", "2000", with_rsc_role="Promoted"),
        after("cln_Topology", "msl_HANA", kind="Optional"),
    ]
    resources = [
        *both(),
        clone("cln_Topology", topology, clone_node_max="1", interleave="true"),
        clone("msl_HANA", hana, clone_max="2", clone_node_max="1", interleave="true", promotable="true"),
        address(),
    ]
    defaults = {"resource-stickiness": "1000", "migration-threshold": "5000"}
    return files(cib(resources, constraints, defaults=defaults), replication="")


def cluster_md() -> Files:
    """Return OCFS2 on a mirror by cluster MD, after SUSE's guide."""
    dlm = primitive("dlm", "ocf:pacemaker:controld", {}, "monitor interval=60s timeout=60s", *LONG[1:])
    raid = primitive(
        "raider",
        "ocf:heartbeat:Raid1",
        {"raidconf": "/etc/mdadm.conf", "raiddev": "/dev/md0", "force_clones": "true"},
        "monitor interval=10s timeout=60s",
        "start timeout=60s",
        "stop timeout=60s",
    )
    disk = mount("/dev/md0", "ocfs2", "shared", TIMES, "/srv/clusterfs")
    base = clone("cl-storage", group("g-storage", dlm, raid, disk), interleave="true")
    return files(cib([*both(), base], [], properties={"no-quorum-policy": "freeze"}), replication="")


def pgsql_on_drbd() -> Files:
    """Return PostgreSQL on DRBD 9, after LINBIT's guide."""
    database = primitive(
        "p_pgsql",
        "ocf:heartbeat:pgsql",
        {
            "pgctl": "/usr/pgsql-15/bin/pg_ctl",
            "psql": "/usr/pgsql-15/bin/psql",
            "pgdata": "/srv/data/pgsql",
            "config": "/srv/data/pgsql/postgresql.conf",
        },
        "monitor interval=15s timeout=30s",
        "start timeout=120s",
        "stop timeout=120s",
    )
    return files(
        cib([*both(), promotable(), group("g_pgsql", mount(), address(), database)], with_primary("g_pgsql")),
        replication=DRBD9,
    )


def pgsql_streaming() -> Files:
    """Return PostgreSQL with replication by the agent pgsql and two addresses, after ClusterLabs' wiki."""
    database = primitive(
        "pgsql",
        "ocf:heartbeat:pgsql",
        {
            "rep_mode": "sync",
            "node_list": f"{A} {B}",
            "restore_command": "cp /var/lib/pgsql/archive/%f %p",
            "primary_conninfo_opt": "keepalives_idle=60 keepalives_interval=5 keepalives_count=5",
            "master_ip": "192.168.20.50",
            "restart_on_promote": "true",
        },
        "monitor interval=4s timeout=60s",
        "monitor interval=3s timeout=60s role=Promoted",
        "start timeout=60s",
        "promote timeout=60s",
        "demote timeout=60s",
        "stop timeout=60s",
        "notify timeout=60s",
    )
    served = group("master-group", address("192.168.10.50", "vip-master"), address("192.168.20.50", "vip-rep"))
    constraints = [
        near("master-group", "pgsql-clone", with_rsc_role="Promoted"),
        after("pgsql-clone", "master-group", first_action="promote", then_action="start", symmetrical="false"),
        element(
            "rsc_order",
            id="demote-first",
            first="pgsql-clone",
            then="master-group",
            first_action="demote",
            then_action="stop",
            symmetrical="false",
            score="0",
        ),
    ]
    resources = [*both(), promotable(database, "pgsql-clone"), served]
    return files(cib(resources, constraints, defaults={"resource-stickiness": INFINITY}), replication="")


def automatic_failover() -> Files:
    """Return PostgreSQL by pgsqlms with an address on the primary, after PAF's quick start."""
    database = primitive(
        "pgsqld",
        "ocf:heartbeat:pgsqlms",
        {"bindir": "/usr/lib/postgresql/15/bin", "pgdata": "/var/lib/postgresql/15/main"},
        "start timeout=60s",
        "stop timeout=60s",
        "promote timeout=30s",
        "demote timeout=120s",
        "monitor interval=15s timeout=10s role=Promoted",
        "monitor interval=16s timeout=10s role=Unpromoted",
        "notify timeout=60s",
    )
    constraints = [
        near("pgsql-master-ip", "pgsqld-clone", with_rsc_role="Promoted"),
        after("pgsqld-clone", "pgsql-master-ip", first_action="promote", then_action="start", symmetrical="false"),
        element(
            "rsc_order",
            id="demote-then-stop",
            first="pgsqld-clone",
            then="pgsql-master-ip",
            first_action="demote",
            then_action="stop",
            symmetrical="false",
        ),
    ]
    resources = [
        *both(),
        clone("pgsqld-clone", database, promotable="true", notify="true"),
        address(identity="pgsql-master-ip"),
    ]
    defaults = {"resource-stickiness": "10", "migration-threshold": "5"}
    return files(cib(resources, constraints, defaults=defaults), replication="")


def galera() -> Files:
    database = primitive(
        "galera",
        "ocf:heartbeat:galera",
        {"wsrep_cluster_address": f"gcomm://{A},{B},{C}", "enable_creation": "true"},
        "monitor interval=20s timeout=30s",
        "monitor interval=10s timeout=30s role=Promoted",
        "monitor interval=30s timeout=30s role=Unpromoted",
        "promote timeout=300s",
        "demote timeout=120s",
        "start timeout=120s",
        "stop timeout=120s",
    )
    devices = [ipmi(A, 1, pcmk_delay_base=""), ipmi(B, 2), ipmi(C, 3)]
    made = clone("galera-clone", database, promotable="true", promoted_max="3")
    text = cib([*devices, made], [], nodes=THREE)
    return files(text, corosync(nodes=THREE, quorum="expected_votes: 3"), "")


def amazon() -> Files:
    fence = primitive(
        "clusterfence",
        "stonith:fence_aws",
        {
            "region": "us-east-1",
            "pcmk_host_map": f"{A}:i-0b02af8927a895137;{B}:i-0cc083e23dbb67778",
            "pcmk_delay_base": f"{A}:15s;{B}:0s",
            "power_timeout": "240",
            "pcmk_reboot_timeout": "480",
            "pcmk_reboot_retries": "4",
        },
        "monitor interval=300s timeout=60s",
    )
    moved = primitive(
        "privip",
        "ocf:heartbeat:aws-vpc-move-ip",
        {"ip": "192.168.10.50", "interface": "eth0", "routing_table": "rtb-0fb3"},
        "monitor interval=60s timeout=30s",
        "start timeout=180s",
        "stop timeout=180s",
    )
    properties = {"stonith-timeout": "600s"}
    text = cib([fence, group("grp", volume(), mount("/dev/my_vg/my_lv"), moved)], [], properties=properties)
    return files(
        text, corosync(totem="token: 30000\n crypto_cipher: aes256\n crypto_hash: sha256", rings=("192.168.10",)), ""
    )


def google() -> Files:
    fence = [
        primitive(
            f"fence-{node}",
            "stonith:fence_gce",
            {"project": "example", "zone": "europe-west1-b", "port": node, "pcmk_host_list": node}
            | {"pcmk_reboot_timeout": "300", "pcmk_monitor_retries": "4", "pcmk_delay_max": "30"},
            "monitor interval=300s timeout=120s",
        )
        for node in (A, B)
    ]
    health = primitive("vip-hc", "ocf:heartbeat:haproxy", {"conffile": "/etc/haproxy/ilb.cfg"}, *LONG)
    served = group("grp", volume(), mount("/dev/my_vg/my_lv"), address(), health)
    properties = {"stonith-timeout": "300s"}
    return files(cib([*fence, served], [], properties=properties), replication="")


def vmware() -> Files:
    fence = primitive(
        "vmfence",
        "stonith:fence_vmware_rest",
        {
            "ip": "vcenter.example.org",
            "username": "ha",
            "password_script": "/etc/cluster/pw",
            "ssl": "1",
            "ssl_insecure": "1",
            "pcmk_host_map": f"{A}:vm-alpha;{B}:vm-beta",
            "pcmk_delay_max": "30s",
        },
        "monitor interval=60s",
    )
    dhcp = primitive("dhcp", "ocf:heartbeat:dhcpd", {"config": "/srv/data/dhcpd.conf"}, *LONG)
    return files(cib([fence, promotable(), group("grp", mount(), address(), dhcp)], with_primary()))


def volumes_on_drbd() -> Files:
    """Return LVM on one DRBD device, after LINBIT's guide."""
    served = group("grp", volume("vg_data"), mount("/dev/vg_data/lv0"), address())
    return files(cib([*both(), promotable(), served], with_primary()))


def redis() -> Files:
    cache = primitive(
        "redis",
        "ocf:heartbeat:redis",
        {"wait_last_known_master": "true"},
        "monitor interval=45s timeout=60s",
        "monitor interval=20s timeout=60s role=Promoted",
        "monitor interval=60s timeout=60s role=Unpromoted",
        "start timeout=120s",
        "stop timeout=120s",
        "promote timeout=120s",
        "demote timeout=120s",
    )
    constraints = [
        near("vip", "redis-clone", with_rsc_role="Promoted"),
        after("redis-clone", "vip", first_action="promote", then_action="start"),
    ]
    made = clone("redis-clone", cache, promotable="true", notify="true", ordered="true", interleave="true")
    devices = [ipmi(A, 1, pcmk_delay_base=""), ipmi(B, 2), ipmi(C, 3)]
    text = cib([*devices, made, address()], constraints, nodes=THREE)
    return files(text, corosync(nodes=THREE, quorum="expected_votes: 3"), "")


def two_drbd_services() -> Files:
    """Return a web server on DRBD 8.4 that starts after its address, by constraints instead of a group."""
    web = primitive("web", "ocf:heartbeat:nginx", {"configfile": "/srv/data/nginx.conf"}, *LONG)
    disk = promotable(drbd(identity="drbd"), "ms_drbd")
    constraints = [
        *with_primary("fs", to="ms_drbd"),
        near("vip", "fs"),
        after("fs", "vip"),
        near("web", "vip"),
        after("vip", "web"),
    ]
    return files(cib([*both(), disk, mount(), address(), web], constraints))


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
}
