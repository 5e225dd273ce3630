"""Good configurations after public guides of ClusterLabs, LINBIT, SUSE, Red Hat and clouds, retyped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.etree import ElementTree as Xml

from failover.styles import (
    DRBD9,
    DRBD9_MESH,
    DRBD84,
    INFINITY,
    QDEVICE,
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
    values,
    with_primary,
)

LONG = {"timeout": "600", "record-pending": "true"}
PASSWORD = {"username": "ha", "password_script": "/etc/cluster/pw"}


def clusters_from_scratch() -> Files:
    """Return the pair of "Clusters from Scratch": one link, an address, and a web server with its data on DRBD."""
    web = primitive(
        "WebSite",
        "ocf:heartbeat:apache",
        {"configfile": "/etc/httpd/conf/httpd.conf", "statusurl": "http://localhost/server-status"},
        "monitor interval=1min timeout=30s",
        "start timeout=40s",
        "stop timeout=60s",
    )
    resources = [*both(), promotable(drbd(), "WebData-clone"), mount(directory="/var/www/html"), address(), web]
    constraints = [
        *with_primary("fs", to="WebData-clone"),
        element("rsc_colocation", id="web-fs", rsc="WebSite", with_rsc="fs", score=INFINITY),
        element("rsc_order", id="fs-web", first="fs", then="WebSite"),
        element("rsc_colocation", id="web-ip", rsc="WebSite", with_rsc="vip", score=INFINITY),
        element("rsc_order", id="ip-web", first="vip", then="WebSite"),
        element("rsc_location", id="web-home", rsc="WebSite", node=A, score="50"),
    ]
    heart = corosync(rings=("192.168.122",))
    return files(cib(resources, constraints, operations={"timeout": "240s"}), heart)


def red_hat_nfs() -> Files:
    """Return NFS on a shared volume group with several exports and nfsnotify."""
    times = ("monitor interval=30s timeout=90s", "start timeout=90s", "stop timeout=90s")
    volume = primitive(
        "my_lvm", "ocf:heartbeat:LVM-activate", {"vgname": "my_vg", "vg_access_mode": "system_id"}, *times
    )
    server = primitive(
        "nfs-daemon",
        "ocf:heartbeat:nfsserver",
        {"nfs_shared_infodir": "/nfsshare/nfsinfo", "nfs_no_notify": "true"},
        *times,
    )
    exports = [
        primitive(
            f"nfs-export{number}",
            "ocf:heartbeat:exportfs",
            {
                "clientspec": "192.168.10.0/255.255.255.0",
                "options": "rw,sync,no_root_squash",
                "directory": f"/nfsshare/exports{directory}",
                "fsid": str(number),
            },
            "monitor interval=10s timeout=20s",
            "start timeout=40s",
            "stop timeout=120s",
        )
        for number, directory in enumerate(("", "/export1", "/export2"))
    ]
    notify = primitive(
        "nfs-notify",
        "ocf:heartbeat:nfsnotify",
        {"source_host": "192.168.10.50"},
        "monitor interval=30s timeout=90s",
        "start timeout=90s",
        "stop timeout=90s",
    )
    disk = mount("/dev/my_vg/my_lv", "ext4", directory="/nfsshare")
    served = group("nfsgroup", volume, disk, server, *exports, address(), notify)
    return files(cib([*both(), served], []), replication="")


def suse_nfs() -> Files:
    """Return SUSE's NFS by crmsh: a cloned server, an export in a group, sbd, and the defaults of SUSE's bootstrap."""
    server = clone(
        "cl-nfsserver", primitive("nfsserver", "systemd:nfs-server", {}, "monitor interval=30s"), interleave="true"
    )
    export = primitive(
        "exportfs-state",
        "ocf:heartbeat:exportfs",
        {
            "directory": "/srv/data/share",
            "options": "rw,mountpoint",
            "clientspec": "192.168.10.0/24",
            "fsid": "101",
            "wait_for_leasetime_on_stop": "true",
        },
        "monitor interval=30s",
    )
    served = group("g-nfs", mount(times=("monitor interval=30s",)), export, address())
    sbd = primitive("stonith-sbd", "stonith:external/sbd", {"pcmk_delay_max": "30"})
    disk = clone(
        "ms-drbd",
        drbd(times=("monitor interval=15 role=Master", "monitor interval=30 role=Slave")),
        tag="master",
        master_max="1",
        master_node_max="1",
        clone_max="2",
        clone_node_max="1",
        notify="true",
    )
    constraints = [
        *with_primary("g-nfs", role="Master", to="ms-drbd"),
        element("rsc_order", id="o-server", first="cl-nfsserver", then="g-nfs"),
        element("rsc_colocation", id="c-server", rsc="g-nfs", with_rsc="cl-nfsserver", score=INFINITY),
    ]
    properties = {
        "have-watchdog": "true",
        "stonith-timeout": "43",
        "placement-strategy": "balanced",
        "dc-version": "2.1",
    }
    return files(
        cib(
            [sbd, disk, server, served],
            constraints,
            properties=properties,
            defaults={"resource-stickiness": "200", "migration-threshold": "3"},
            operations=LONG,
        ),
        corosync(
            totem="secauth: on\n token: 5000\n join: 60\n max_messages: 20\n token_retransmits_before_loss_const: 10"
        ),
        etc__sysconfig__sbd="SBD_DEVICE=/dev/disk/by-id/scsi-1\nSBD_PACEMAKER=yes\nSBD_STARTMODE=always\nSBD_DELAY_START=no\n"
        "SBD_WATCHDOG_DEV=/dev/watchdog\nSBD_WATCHDOG_TIMEOUT=5\nSBD_TIMEOUT_ACTION=flush,reboot\nSBD_OPTS=\n",
    )


def linbit_nfs() -> Files:
    """Return NFS on DRBD 9 with a diskless tie breaker; portblock closes the port during a move."""
    blocked = [
        primitive(
            f"portblock_{action}",
            "ocf:heartbeat:portblock",
            {"action": action, "ip": "192.168.10.50", "portno": "2049", "protocol": "tcp"}
            | (
                {"tickle_dir": "/srv/data/tickle", "reset_local_on_unblock_stop": "true"} if action == "unblock" else {}
            ),
            "monitor interval=20s timeout=20s",
            "start timeout=20s",
            "stop timeout=20s",
        )
        for action in ("block", "unblock")
    ]
    server = primitive(
        "nfsserver",
        "ocf:heartbeat:nfsserver",
        {"nfs_shared_infodir": "/srv/data/nfs_info", "nfs_ip": "192.168.10.50", "nfs_server_scope": "192.168.10.50"},
        "monitor interval=10s timeout=20s",
        "start timeout=40s",
        "stop timeout=20s",
    )
    export = primitive(
        "export",
        "ocf:heartbeat:exportfs",
        {
            "directory": "/srv/data/exports",
            "fsid": "af1c8f4d-77e9-4e2f-a1a3-3dd1a9b1a0f2",
            "clientspec": "*",
            "options": "rw,all_squash,anonuid=0,anongid=0",
        },
        "monitor interval=15s timeout=40s",
        "start timeout=40s",
        "stop timeout=40s",
    )
    served = group("g_nfs", blocked[0], mount(fstype="ext4"), server, export, address(), blocked[1])
    away = element("rsc_location", id="not-on-gamma", rsc="g_nfs", node=C, score="-INFINITY")
    devices = [ipmi(A, 1, pcmk_delay_base=""), ipmi(B, 2), ipmi(C, 3)]
    disk = promotable(clone_max="3", promoted_node_max="1", clone_node_max="1")
    return files(
        cib([*devices, disk, served], [*with_primary("g_nfs"), away], nodes=(A, B, C)),
        corosync(nodes=(A, B, C), quorum="wait_for_all: 1"),
        replication=DRBD9_MESH,
    )


def azure() -> Files:
    """Return a pair on Azure, with fencing by the platform and a port for its load balancer."""
    fence = primitive(
        "rsc_st_azure",
        "stonith:fence_azure_arm",
        {
            "msi": "true",
            "resourceGroup": "rg",
            "subscriptionId": "00000000-1111",
            "pcmk_monitor_retries": "4",
            "pcmk_action_limit": "3",
            "power_timeout": "240",
            "pcmk_reboot_timeout": "900",
            "pcmk_delay_max": "15",
            "pcmk_host_map": f"{A}:vm-{A};{B}:vm-{B}",
        },
        "monitor interval=3600 timeout=120",
    )
    balancer = primitive(
        "nc",
        "ocf:heartbeat:azure-lb",
        {"port": "61000"},
        "monitor interval=10 timeout=20s",
        "start timeout=20s",
        "stop timeout=20s",
    )
    served = group("grp", mount(), address(), balancer)
    heart = corosync(
        rings=("10.0.0",), totem="crypto_cipher: aes256\n crypto_hash: sha256\n token: 30000\n consensus: 36000"
    )
    return files(
        cib(
            [fence, promotable(), served],
            with_primary(),
            properties={"stonith-timeout": "900", "concurrent-fencing": "true"},
        ),
        heart,
        replication=DRBD84.replace("crm-fence-peer.sh", "crm-fence-peer.sh --timeout 1000"),
    )


def virsh() -> Files:
    """Return a pair of libvirt machines, fenced by ssh with a key."""
    devices = [
        primitive(
            f"fence_{node}",
            "stonith:fence_virsh",
            {
                "ip": "192.168.30.1",
                "username": "root",
                "identity_file": "/etc/cluster/id_rsa",
                "ssh": "1",
                "plug": f"vm-{node}",
                "pcmk_host_list": node,
                "delay": "10" if node == A else "0",
            },
            "monitor interval=60s",
        )
        for node in (A, B)
    ]
    return files(cib([*devices, promotable(), group("grp", mount(), address())], with_primary()))


def redfish() -> Files:
    """Return a pair fenced by Redfish."""
    devices = [
        primitive(
            f"fence_{node}",
            "stonith:fence_redfish",
            {
                "ip": f"192.168.30.{number}",
                **PASSWORD,
                "systems_uri": "/redfish/v1/Systems/1",
                "ssl_insecure": "1",
                "pcmk_host_list": node,
                "pcmk_delay_base": "10s" if node == A else "0s",
            },
            "monitor interval=60s timeout=60s",
        )
        for number, node in enumerate((A, B), 1)
    ]
    return files(cib([*devices, promotable(), group("grp", mount(), address())], with_primary()))


def ipv6() -> Files:
    """Return a pair with IPv6 in Corosync, DRBD and the service address."""
    ip = primitive(
        "vip",
        "ocf:heartbeat:IPaddr2",
        {"ip": "fd00:10::50", "cidr_netmask": "64", "nic": "bond0"},
        "monitor interval=10s timeout=20s",
        "start timeout=20s",
        "stop timeout=20s",
    )
    heart = corosync(totem="crypto_cipher: aes256\n crypto_hash: sha256\n ip_version: ipv6")
    heart = heart.replace("192.168.10.", "fd00:10::").replace("192.168.20.", "fd00:20::")
    replication = DRBD84.replace("address 192.168.20.1:7789", "address ipv6 [fd00:20::1]:7789").replace(
        "address 192.168.20.2:7789", "address ipv6 [fd00:20::2]:7789"
    )
    return files(cib([*both(), promotable(), group("grp", mount(), ip)], with_primary()), heart, replication)


def heuristics() -> Files:
    """Return a pair with a quorum device whose heuristics ping the gateway."""
    device = QDEVICE.replace(
        "  }\n }", "  }\n  heuristics {\n   mode: on\n   exec_ping: /usr/bin/ping -q -c 1 192.168.10.254\n  }\n }"
    )
    return files(
        cib([*both(), promotable(), group("grp", mount(), address())], with_primary()), corosync(quorum=device)
    )


def with_access_and_tags() -> Files:
    """Return a pair with access control lists, a tag, and an alert that selects events."""
    others = (
        element("tags", element("tag", element("obj_ref", id="grp"), id="all")),
        element(
            "acls",
            element("acl_target", element("role", id="watcher"), id="monitor"),
            element("acl_role", element("acl_permission", id="read", kind="read", xpath="/cib"), id="watcher"),
        ),
        element(
            "alerts",
            element(
                "alert",
                element("select", element("select_nodes"), element("select_fencing")),
                element("recipient", id="r", value="root@example.org"),
                id="mail",
                path="/usr/share/pacemaker/alerts/alert_smtp.sh",
            ),
        ),
    )
    return files(
        cib(
            [*both(), promotable(), group("grp", mount(), address())],
            with_primary(),
            properties={"enable-acl": "true", "last-lrm-refresh": "1600000000", "cluster-name": "site"},
            others=others,
        )
    )


def pgsql_in_it() -> Files:
    """Return PostgreSQL by pgsqlms, an agent of another package whose name resembles the known pgsql."""
    database = primitive(
        "pgsqld",
        "ocf:heartbeat:pgsqlms",
        {"bindir": "/usr/lib/postgresql/15/bin", "pgdata": "/srv/data/pg"},
        "start timeout=60s",
        "stop timeout=60s",
        "promote timeout=30s",
        "demote timeout=120s",
        "monitor interval=15s timeout=60s role=Promoted",
        "monitor interval=16s timeout=60s role=Unpromoted",
        "notify timeout=60s",
    )
    other = promotable(database, "pgsql-ha")
    together = element(
        "rsc_colocation", id="ip-db", rsc="vip", with_rsc="pgsql-ha", with_rsc_role="Promoted", score=INFINITY
    )
    ordered = element(
        "rsc_order",
        id="db-ip",
        first="pgsql-ha",
        first_action="promote",
        then="vip",
        then_action="start",
        symmetrical="false",
    )
    return files(cib([*both(), other, address()], [together, ordered]), replication="")


def drbd_of_the_manual() -> Files:
    """Return a pair with the options that DRBD's user guide recommends, in the common section."""
    common = """
global { usage-count yes; minor-count 16; }
common {
  handlers {
    fence-peer "/usr/lib/drbd/crm-fence-peer.9.sh";
    unfence-peer "/usr/lib/drbd/crm-unfence-peer.9.sh";
    split-brain "/usr/lib/drbd/notify-split-brain.sh root";
    local-io-error "/usr/lib/drbd/notify-io-error.sh; echo o > /proc/sysrq-trigger ; halt -f";
  }
  options { auto-promote no; on-no-data-accessible suspend-io; }
  disk { on-io-error detach; al-extents 6007; c-plan-ahead 20; c-fill-target 24M; c-max-rate 720M; c-min-rate 80M; resync-rate 100M; }
  net {
    protocol C; fencing resource-and-stonith; max-buffers 36k; sndbuf-size 1024k; rcvbuf-size 2048k;
    after-sb-0pri discard-zero-changes; after-sb-1pri consensus; after-sb-2pri disconnect;
    verify-alg crc32c; csums-alg sha1; ping-timeout 10; max-epoch-size 20000; rr-conflict retry-connect;
  }
}
"""
    replication = common + DRBD9.replace("net { protocol C; fencing resource-and-stonith; }", "").replace(
        DRBD9[DRBD9.index("  handlers") : DRBD9.index('  on "alpha"')], ""
    )
    return files(
        cib([*both(), promotable(), group("grp", mount("/dev/drbd0"), address())], with_primary()),
        replication=replication,
    )


def stacked_times() -> Files:
    """Return a pair that states every operation, time-out and delay."""
    times = (
        "monitor interval=20s timeout=40s record-pending=true",
        "start interval=0 timeout=60s on-fail=restart",
        "stop interval=0 timeout=60s on-fail=fence",
    )
    return files(
        cib(
            [
                *both(power_wait="5", power_timeout="30", retry_on="1", cipher="3"),
                promotable(),
                group("grp", mount(times=times), address()),
            ],
            with_primary(),
            properties={"stonith-timeout": "180s", "cluster-recheck-interval": "60s", "priority-fencing-delay": "0"},
        ),
        replication=DRBD84.replace("crm-fence-peer.sh", "crm-fence-peer.sh --timeout 240"),
    )


def chosen_by_attribute() -> Files:
    """Return a pair whose nodes may serve only with the attribute ``storage=yes``."""
    rule = element(
        "rule",
        element("expression", id="e", attribute="storage", operation="ne", value="yes"),
        id="rule",
        score="-INFINITY",
    )
    text = cib(
        [*both(), promotable(), group("grp", mount(), address())],
        [*with_primary(), element("rsc_location", rule, id="storage-only", rsc="grp")],
    )
    for number, name in ((1, A), (2, B)):
        block = Xml.tostring(values("instance_attributes", {"storage": "yes"}), encoding="unicode")
        text = text.replace(
            f'<node id="{number}" uname="{name}" />', f'<node id="{number}" uname="{name}">{block}</node>'
        )
    return files(text)


def nfs_by_hand() -> Files:
    """Return NFS with one directory exported to two networks."""
    exports = [
        primitive(
            f"export{number}",
            "ocf:heartbeat:exportfs",
            {
                "clientspec": net,
                "directory": "/srv/data/home",
                "fsid": "1",
                "options": "rw,sync",
                "unlock_on_stop": "1",
            },
            *TIMES,
        )
        for number, net in enumerate(("192.168.10.0/24", "192.168.11.0/24"))
    ]
    server = primitive("nfsd", "ocf:heartbeat:nfsserver", {"nfs_shared_infodir": "/srv/data/.nfs"}, *TIMES)
    return files(cib([*both(), promotable(), group("grp", mount(), server, *exports, address())], with_primary()))


PUBLIC_STYLES: Mapping[str, Callable[[], Files]] = {
    "Clusters from Scratch": clusters_from_scratch,
    "Red Hat: NFS on a volume group": red_hat_nfs,
    "SUSE: NFS on DRBD": suse_nfs,
    "LINBIT: NFS with a tie breaker": linbit_nfs,
    "Azure": azure,
    "virtual machines by ssh": virsh,
    "Redfish": redfish,
    "IPv6": ipv6,
    "a quorum device with heuristics": heuristics,
    "rights, tags and alerts": with_access_and_tags,
    "a promoted database": pgsql_in_it,
    "DRBD's user guide": drbd_of_the_manual,
    "everything spelt out": stacked_times,
    "chosen by an attribute": chosen_by_attribute,
    "one directory for two networks": nfs_by_hand,
}
