"""Twelve good configurations of various services and fencing devices, written before the rules were run on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.etree import ElementTree as Xml

from failover.styles import (
    DRBD9,
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
    element,
    files,
    group,
    mount,
    primitive,
    promotable,
    with_primary,
)
from failover.styles_more import LUSTRE, after, home, near, volume

_CHECKED = ("monitor interval=60s timeout=60s",)
_SHORT = ("monitor interval=10s timeout=30s", "start timeout=60s", "stop timeout=60s")
_SERVED = ("monitor interval=20s timeout=60s", "start timeout=120s", "stop timeout=120s")


def fence(name: str, agent: str, pairs: Mapping[str, str], meta: Mapping[str, str] | None = None) -> Xml.Element:
    return primitive(name, f"stonith:{agent}", pairs, *_CHECKED, meta=meta)


def levels(**devices: tuple[str, ...]) -> Xml.Element:
    """Return a fencing topology; the devices of a node are listed in the order of its levels."""
    rows = [
        element("fencing-level", id=f"fl-{node}-{index}", target=node, index=str(index), devices=names)
        for node, listed in devices.items()
        for index, names in enumerate(listed, 1)
    ]
    return element("fencing-topology", *rows)


def samba_on_drbd() -> Files:
    """Return Samba with winbind on DRBD 9, fenced by iLO."""
    smb = primitive("smb", "systemd:smbd", {}, *_SERVED)
    names = primitive("nmb", "systemd:nmbd", {}, *_SERVED)
    domain = primitive("winbind", "systemd:winbind", {}, *_SERVED)
    served = group("samba", mount(directory="/srv/samba"), address(), domain, names, smb)
    devices = [
        fence(
            f"ilo-{node}",
            "fence_ilo5",
            {"ip": f"192.168.30.{number}", "username": "fence", "password_script": "/etc/cluster/pw",
             "pcmk_host_list": node, "privlvl": "operator",
             **({"pcmk_delay_base": "10s"} if node == A else {})},
        )
        for number, node in ((1, A), (2, B))
    ]  # fmt: skip
    return files(cib([*devices, promotable(), served], with_primary("samba")), replication=DRBD9)


def iscsi_on_zfs() -> Files:
    """Return iSCSI on a shared ZFS pool; portblock closes the portal during a move."""
    pool = primitive("pool", "ocf:heartbeat:ZFS", {"pool": "tank", "importargs": "-d /dev/disk/by-id"}, *_SERVED)
    block = {"ip": "192.168.10.60", "portno": "3260", "protocol": "tcp"}
    target = primitive(
        "target",
        "ocf:heartbeat:iSCSITarget",
        {"iqn": "iqn.2024-01.org.example:vm", "implementation": "lio-t", "portals": "192.168.10.60:3260"},
        *_SHORT,
    )
    unit = primitive(
        "lun0",
        "ocf:heartbeat:iSCSILogicalUnit",
        {"implementation": "lio-t", "target_iqn": "iqn.2024-01.org.example:vm", "lun": "0",
         "path": "/dev/zvol/tank/vm0"},
        *_SHORT,
    )  # fmt: skip
    served = group(
        "iscsi",
        pool,
        primitive("block", "ocf:heartbeat:portblock", {**block, "action": "block"}, *_SHORT),
        address("192.168.10.60"),
        target,
        unit,
        primitive("unblock", "ocf:heartbeat:portblock", {**block, "action": "unblock"}, *_SHORT),
    )
    drac = [
        fence(
            f"drac-{node}",
            "fence_idrac",
            {"ip": f"192.168.30.{number}", "username": "fence", "password_script": "/etc/cluster/pw", "lanplus": "1",
             "pcmk_host_list": node, **({"pcmk_delay_base": "12s"} if node == B else {})},
        )
        for number, node in ((1, A), (2, B))
    ]  # fmt: skip
    return files(cib([*drac, served], []), replication="")


BOOTH = """\
transport = "UDP"
port = "9929"
site = "192.168.10.70"
site = "192.168.40.70"
arbitrator = "192.168.50.70"
authfile = "/etc/booth/booth.key"
ticket = "db"
    expire = 600
    timeout = 10
    retries = 5
    acquire-after = 60
"""


def two_sites() -> Files:
    """Return one of two pairs on DRBD, between which booth decides."""
    booth = group(
        "g-booth", address("192.168.10.70", "booth-ip"),
        primitive("booth-site", "ocf:pacemaker:booth-site", {"config": "booth"}, *_SERVED),
    )  # fmt: skip
    ticket = element(
        "rsc_ticket", id="ticket-db", ticket="db", rsc="drbd-clone", rsc_role="Promoted", loss_policy="fence"
    )
    constraints = [*with_primary(), element("rsc_order", id="booth-first", first="g-booth", then="drbd-clone",
                                            kind="Optional"), ticket]  # fmt: skip
    database = primitive("mariadb", "ocf:heartbeat:mysql", {"datadir": "/srv/data/mysql", "config": "/etc/my.cnf"},
                         *_SERVED)  # fmt: skip
    resources = [*both(), booth, promotable(), group("grp", mount(), database, address())]
    return {**files(cib(resources, constraints)), "etc/booth/booth.conf": BOOTH}


def bundle() -> Files:
    """Return a bundle: a web server in a container on each node, with its own address."""
    made = element(
        "bundle",
        element("podman", image="registry.example.org/httpd:2.4", replicas="2", options="--log-driver=journald"),
        element(
            "network",
            element("port-mapping", id="web-port", port="80"),
            ip_range_start="192.168.10.131",
            host_interface="eth0",
            host_netmask="24",
        ),
        element(
            "storage",
            element("storage-mapping", id="web-root", source_dir="/srv/html", target_dir="/var/www/html", options="ro"),
            element("storage-mapping", id="web-log", source_dir="/var/log/pacemaker/bundles",
                    target_dir="/etc/httpd/logs", options="rw"),
        ),
        primitive("httpd", "ocf:heartbeat:apache", {"configfile": "/etc/httpd/conf/httpd.conf"}, *_SERVED),
        id="web",
    )  # fmt: skip
    return files(cib([*both(), made], []), replication="")


def redfish_and_outlets() -> Files:
    """Return NFS on a volume group, fenced by Redfish first and by the outlets of both feeds second."""
    controllers = [
        fence(
            f"redfish-{node}",
            "fence_redfish",
            {"ip": f"192.168.30.{number}", "username": "fence", "password_script": "/etc/cluster/pw",
             "ssl_insecure": "1", "systems_uri": "/redfish/v1/Systems/1", "pcmk_host_list": node,
             **({"pcmk_delay_base": "10s"} if node == A else {})},
        )
        for number, node in ((1, A), (2, B))
    ]  # fmt: skip
    outlets = [
        fence(
            f"pdu-{feed}",
            "fence_raritan_px3",
            {"ip": f"192.168.30.{10 + number}", "username": "fence", "password_script": "/etc/cluster/pw",
             "pcmk_host_map": f"{A}:3;{B}:4"},
        )
        for number, feed in enumerate(("left", "right"))
    ]  # fmt: skip
    server = primitive(
        "nfsd",
        "ocf:heartbeat:nfsserver",
        {"nfs_shared_infodir": "/srv/data/nfsinfo", "nfs_ip": "192.168.10.50"},
        *_SERVED,
    )
    export = primitive(
        "export",
        "ocf:heartbeat:exportfs",
        {"clientspec": "192.168.10.0/24", "directory": "/srv/data/home", "fsid": "7", "options": "rw,sync"},
        *_SERVED,
    )
    served = group("grp", volume(), mount("/dev/my_vg/home"), server, export, address())
    topology = levels(**{node: (f"redfish-{node}", "pdu-left,pdu-right") for node in (A, B)})
    return files(
        cib([*controllers, *outlets, served], [], others=(topology,), properties={"stonith-timeout": "150s"}),
        replication="",
    )


LINKS = """\
 interface {
  linknumber: 0
  knet_link_priority: 10
  knet_ping_interval: 500
  knet_ping_timeout: 2000
 }
 interface {
  linknumber: 1
  knet_link_priority: 5
 }"""


def three_links() -> Files:
    """Return PostgreSQL on LVM on DRBD 9, with three prioritised links and a quorum device."""
    database = primitive(
        "pgsql",
        "ocf:heartbeat:pgsql",
        {"pgdata": "/srv/data/pg", "pgport": "5432", "rep_mode": "none"},
        *_SERVED,
    )
    served = group("grp", volume("vgdb"), mount("/dev/vgdb/pg", "ext4"), address(), database)
    heart = corosync(
        quorum=QDEVICE,
        rings=("192.168.10", "192.168.20", "192.168.25"),
        totem=f"crypto_cipher: aes256\n crypto_hash: sha256\n token: 5000\n link_mode: passive\n{LINKS}",
    )
    return files(
        cib([*both(pcmk_delay_base=""), promotable(), served], with_primary()),
        heart,
        replication=DRBD9.replace("protocol C;", "protocol C; ping-timeout 10; max-buffers 8000;"),
    )


def three_disks() -> Files:
    """Return MySQL on multipath, with sbd on three disks and a watchdog."""
    disks = ";".join(f"/dev/disk/by-id/scsi-36001405{number}" for number in range(3))
    sysconfig = (
        f'SBD_DEVICE="{disks}"\nSBD_WATCHDOG_DEV=/dev/watchdog\nSBD_WATCHDOG_TIMEOUT=15\nSBD_PACEMAKER=yes\n'
        "SBD_STARTMODE=always\nSBD_DELAY_START=no\n"
    )
    database = primitive(
        "mysql",
        "ocf:heartbeat:mysql",
        {"datadir": "/var/lib/mysql", "socket": "/run/mysqld/mysqld.sock", "user": "mysql", "group": "mysql"},
        *_SERVED,
    )
    served = group("grp", mount("/dev/mapper/mysql", directory="/var/lib/mysql"), database, address())
    text = cib(
        [fence("sbd", "fence_sbd", {"devices": disks.replace(";", ","), "pcmk_delay_max": "30s"}), served],
        [],
        properties={"stonith-timeout": "83s", "have-watchdog": "true"},
    )
    return {**files(text, replication=""), "etc/sysconfig/sbd": sysconfig}


def reservations() -> Files:
    """Return NFS on two volumes, fenced by persistent reservations on multipath devices."""
    key = primitive(
        "mpath",
        "stonith:fence_mpath",
        {"pcmk_host_map": f"{A}:1;{B}:2", "pcmk_host_argument": "key", "devices": "/dev/mapper/mpatha,/dev/mapper/mpathb",
         "pcmk_monitor_action": "metadata", "pcmk_reboot_action": "off"},
        *_CHECKED,
        meta={"provides": "unfencing"},
    )  # fmt: skip
    disks = [mount(f"/dev/nfsvg/{name}", "xfs", f"fs-{name}", TIMES, f"/export/{name}") for name in ("state", "home")]
    server = primitive(
        "nfsd",
        "ocf:heartbeat:nfsserver",
        {"nfs_shared_infodir": "/export/state/nfs", "nfs_no_notify": "true"},
        *_SERVED,
    )
    export = primitive(
        "export",
        "ocf:heartbeat:exportfs",
        {"clientspec": "192.168.10.0/255.255.255.0", "directory": "/export/home", "fsid": "11",
         "options": "rw,sync,no_subtree_check"},
        *_SERVED,
    )  # fmt: skip
    notify = primitive("notify", "ocf:heartbeat:nfsnotify", {"source_host": "192.168.10.50"}, *_SERVED)
    served = group("grp", volume("nfsvg"), *disks, server, export, address(), notify)
    return files(cib([key, served], []), replication="")


def lustre_servers() -> Files:
    """Return metadata and object targets on one pair, with healthLNET that bans nodes where LNet is down."""
    targets = [
        primitive(name, "ocf:lustre:Lustre", {"target": device, "mountpoint": f"/mnt/{name}"}, *LUSTRE)
        for name, device in (("mgs", "/dev/mapper/mgs"), ("mdt0", "/dev/mapper/mdt0"), ("ost0", "/dev/mapper/ost0"))
    ]
    lnet = clone(
        "lnet-clone",
        primitive(
            "lnet",
            "ocf:lustre:healthLNET",
            {"lctl": "true", "multiplier": "1001", "host_list": "10.4.1.1@o2ib1 10.4.1.2@o2ib1", "name": "lnet-score"},
            "monitor interval=30s timeout=90s",
            "start timeout=90s",
            "stop timeout=90s",
        ),
    )
    rules = [
        element(
            "rsc_location",
            element(
                "rule",
                element("expression", id=f"x-{name}", attribute="lnet-score", operation="lt", value="1", type="number"),
                element("expression", id=f"y-{name}", attribute="lnet-score", operation="not_defined"),
                id=f"r-{name}",
                score="-INFINITY",
                boolean_op="or",
            ),
            id=f"l-{name}",
            rsc=name,
        )
        for name in ("mgs", "mdt0", "ost0")
    ]
    homes = [home(name, node, "100") for name, node in (("mgs", A), ("mdt0", A), ("ost0", B))]
    first = [after("mgs", name, kind="Optional") for name in ("mdt0", "ost0")]
    modules = 'options lnet networks="o2ib1(ib0)"\n'
    text = cib([*both(), *targets, lnet], [*rules, *homes, *first], defaults={"resource-stickiness": "500"})
    return {**files(text, replication=""), "etc/modprobe.d/lustre.conf": modules}


def guests() -> Files:
    """Return a proxy with its address and Tomcat, on three virtual machines of one host."""
    xvm = fence(
        "xvm",
        "fence_xvm",
        {"pcmk_host_map": f"{A}:guest1;{B}:guest2;{C}:guest3", "multicast_address": "225.0.0.12",
         "key_file": "/etc/cluster/fence_xvm.key"},
    )  # fmt: skip
    proxy = clone("nginx-clone", primitive("nginx", "ocf:heartbeat:nginx", {"configfile": "/etc/nginx/nginx.conf"},
                                           *_SERVED), interleave="true")  # fmt: skip
    tomcat = primitive(
        "tomcat",
        "ocf:heartbeat:tomcat",
        {"java_home": "/usr/lib/jvm/default", "catalina_home": "/opt/tomcat", "tomcat_user": "tomcat",
         "statusurl": "http://127.0.0.1:8080"},
        *_SERVED,
    )  # fmt: skip
    constraints = [near("vip", "nginx-clone"), after("nginx-clone", "vip"), near("tomcat", "vip", "50")]
    heart = corosync(nodes=(A, B, C), quorum="expected_votes: 3")
    return files(cib([xvm, proxy, address(), tomcat], constraints, nodes=(A, B, C)), heart, replication="")


def oracle() -> Files:
    """Return Oracle and its listener on a volume group, fenced by VMware."""
    machines = fence(
        "vcenter",
        "fence_vmware_rest",
        {"ip": "192.168.30.80", "username": "fence@example.org", "password_script": "/etc/cluster/pw",
         "ssl": "1", "pcmk_host_map": f"{A}:db-alpha;{B}:db-beta", "pcmk_delay_base": f"{A}:10s;{B}:0s"},
    )  # fmt: skip
    served = group(
        "ora",
        volume("oravg"),
        mount("/dev/oravg/data", "xfs", "ora-fs", TIMES, "/u02"),
        address(),
        primitive("listener", "ocf:heartbeat:oralsnr", {"sid": "PROD", "listener": "LISTENER"}, *_SERVED),
        primitive("database", "ocf:heartbeat:oracle", {"sid": "PROD", "home": "/u01/app/oracle"}, *_SERVED),
    )
    return files(cib([machines, served], []), replication="")


def name_servers() -> Files:
    """Return a name server and a proxy on an encrypted RAID, with a source address and a monitored interface."""
    card = clone(
        "card-clone",
        primitive("card", "ocf:heartbeat:ethmonitor", {"interface": "eth1", "name": "eth1-works"},
                  "monitor interval=10s timeout=60s", "start timeout=60s", "stop timeout=20s"),
    )  # fmt: skip
    works = element(
        "rsc_location",
        element(
            "rule",
            element("expression", id="e1", attribute="eth1-works", operation="ne", value="1"),
            id="r1",
            score="-INFINITY",
        ),
        id="l1",
        rsc="grp",
    )
    raid = primitive(
        "array",
        "ocf:heartbeat:mdraid",
        {"mdadm_conf": "/etc/mdadm/mdadm.conf", "md_dev": "/dev/md/data"},
        *_SERVED,
    )
    secret = primitive(
        "secret",
        "ocf:heartbeat:crypt",
        {
            "encrypted_dev": "/dev/md/data",
            "crypt_dev": "plain",
            "key_file": "/etc/cluster/luks.key",
            "crypt_type": "luks2",
        },
        *_SERVED,
    )
    named = primitive("named", "ocf:heartbeat:named", {"named_config": "/srv/data/named.conf", "named_user": "bind"},
                      *_SERVED)  # fmt: skip
    squid = primitive(
        "squid",
        "ocf:heartbeat:Squid",
        {"squid_exe": "/usr/sbin/squid", "squid_conf": "/etc/squid/squid.conf", "squid_pidfile": "/run/squid.pid",
         "squid_port": "3128"},
        *_SERVED,
    )  # fmt: skip
    source = primitive("source", "ocf:heartbeat:IPsrcaddr", {"ipaddress": "192.168.10.50", "cidr_netmask": "24"},
                       *_SHORT)  # fmt: skip
    served = group("grp", raid, secret, mount("/dev/mapper/plain"), address(), source, named, squid)
    eaton = fence(
        "eaton",
        "fence_eaton_snmp",
        {"ip": "192.168.30.70", "snmp_version": "1", "community": "private", "pcmk_host_map": f"{A}:1;{B}:2",
         "pcmk_delay_base": f"{A}:10s;{B}:0s"},
    )  # fmt: skip
    return files(cib([eaton, card, served], [works]), replication="")


SITE_STYLES: dict[str, Callable[[], Files]] = {
    "Samba on DRBD 9": samba_on_drbd,
    "iSCSI on ZFS": iscsi_on_zfs,
    "two sites and tickets": two_sites,
    "containers": bundle,
    "Redfish and outlets": redfish_and_outlets,
    "three links": three_links,
    "three disks of sbd": three_disks,
    "reservations of multipath": reservations,
    "Lustre with watched networks": lustre_servers,
    "guests of one host": guests,
    "Oracle": oracle,
    "name servers on an encrypted array": name_servers,
}
