"""Twenty good configurations of various services and fencing devices, written before the rules were run on them."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree as Xml

from failover.styles import (
    DRBD9,
    DRBD84,
    LUSTRE,
    QDEVICE,
    SERVED,
    TIMES,
    A,
    B,
    C,
    Files,
    address,
    after,
    banned_where,
    both,
    cib,
    clone,
    corosync,
    drbd,
    fence,
    fence_each,
    files,
    group,
    home,
    levels,
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
from failover.styles_more import lock_managers, shared_volume

_SHORT = times(10, 30, 60, 60)
_LOGIN = "username=fence password_script=/etc/cluster/pw"
_CARD = "login=fence passwd_script=/etc/cluster/pw"
_FIRST_LATER = "'pcmk_delay_base=alpha:10s;beta:0s'"
_THREE = corosync(nodes=(A, B, C), quorum="expected_votes: 3")
_PROMOTED = "with-rsc-role=Promoted"
_AFTER_PROMOTION = "first-action=promote then-action=start"


def samba_on_drbd() -> Files:
    """Return Samba with winbind on DRBD 9, fenced by iLO."""
    servers = primitives("winbind systemd:winbind\nnmb systemd:nmbd\nsmb systemd:smbd", *SERVED)
    served = group("samba", mount(directory="/srv/samba"), address(), *servers)
    devices = fence_each(
        f"ilo-{{node}} fence_ilo5 ip=192.168.30.{{number}} {_LOGIN} pcmk_host_list={{node}} privlvl=operator"
    )
    return files(cib([*devices, promotable(), served], with_primary("samba")), replication=DRBD9)


def iscsi_on_zfs() -> Files:
    """Return iSCSI on a shared ZFS pool; portblock closes the portal during a move."""
    iqn, block = "iqn.2024-01.org.example:vm", "ocf:heartbeat:portblock ip=192.168.10.60 portno=3260 protocol=tcp"
    blocked, *served = primitives(
        f"""
        block {block} action=block
        target ocf:heartbeat:iSCSITarget iqn={iqn} implementation=lio-t portals=192.168.10.60:3260
        lun0 ocf:heartbeat:iSCSILogicalUnit implementation=lio-t target_iqn={iqn} lun=0 path=/dev/zvol/tank/vm0
        unblock {block} action=unblock
        """,
        *_SHORT,
    )
    pool = primitive("pool ocf:heartbeat:ZFS pool=tank 'importargs=-d /dev/disk/by-id'", *SERVED)
    drac = fence_each(
        f"drac-{{node}} fence_idrac ip=192.168.30.{{number}} {_LOGIN} lanplus=1 pcmk_host_list={{node}}", "12s", B
    )
    text = cib([*drac, group("iscsi", pool, blocked, address("192.168.10.60"), *served)], [])
    return files(text, replication="")


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
    site = primitive("booth-site ocf:pacemaker:booth-site config=booth", *SERVED)
    constraints = [
        *with_primary(),
        tag("rsc_order id=booth-first first=g-booth then=drbd-clone kind=Optional"),
        tag("rsc_ticket id=ticket-db ticket=db rsc=drbd-clone rsc-role=Promoted loss-policy=fence"),
    ]
    database = primitive("mariadb ocf:heartbeat:mysql datadir=/srv/data/mysql config=/etc/my.cnf", *SERVED)
    booth = group("g-booth", address("192.168.10.70", "booth-ip"), site)
    resources = [*both(), booth, promotable(), group("grp", mount(), database, address())]
    return {**files(cib(resources, constraints)), "etc/booth/booth.conf": BOOTH}


def bundle() -> Files:
    """Return a bundle: a web server in a container on each node, with its own address."""
    log = "id=web-log source-dir=/var/log/pacemaker/bundles target-dir=/etc/httpd/logs options=rw"
    made = tag(
        "bundle id=web",
        tag("podman image=registry.example.org/httpd:2.4 replicas=2 options=--log-driver=journald"),
        tag(
            "network ip-range-start=192.168.10.131 host-interface=eth0 host-netmask=24",
            tag("port-mapping id=web-port port=80"),
        ),
        tag(
            "storage",
            tag("storage-mapping id=web-root source-dir=/srv/html target-dir=/var/www/html options=ro"),
            tag(f"storage-mapping {log}"),
        ),
        primitive("httpd ocf:heartbeat:apache configfile=/etc/httpd/conf/httpd.conf", *SERVED),
    )
    return files(cib([*both(), made], []), replication="")


def redfish_and_outlets() -> Files:
    """Return NFS on a volume group, fenced by Redfish first and by the outlets of both feeds second."""
    controllers = fence_each(
        f"redfish-{{node}} fence_redfish ip=192.168.30.{{number}} {_LOGIN} ssl_insecure=1 "
        "systems_uri=/redfish/v1/Systems/1 pcmk_host_list={node}"
    )
    outlets = [
        fence(f"pdu-{feed} fence_raritan_px3 ip=192.168.30.{number} {_LOGIN} 'pcmk_host_map=alpha:3;beta:4'")
        for number, feed in ((10, "left"), (11, "right"))
    ]
    members = primitives(
        """
        nfsd ocf:heartbeat:nfsserver nfs_shared_infodir=/srv/data/nfsinfo nfs_ip=192.168.10.50
        export ocf:heartbeat:exportfs clientspec=192.168.10.0/24 directory=/srv/data/home fsid=7 options=rw,sync
        """,
        *SERVED,
    )
    served = group("grp", volume(), mount("/dev/my_vg/home"), *members, address())
    topology = levels("redfish-{node}", "pdu-left,pdu-right")
    text = cib([*controllers, *outlets, served], [], others=(topology,), properties="stonith-timeout=150s")
    return files(text, replication="")


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
    database = primitive("pgsql ocf:heartbeat:pgsql pgdata=/srv/data/pg pgport=5432 rep_mode=none", *SERVED)
    served = group("grp", volume("vgdb"), mount("/dev/vgdb/pg", "ext4"), address(), database)
    heart = corosync(
        quorum=QDEVICE,
        rings=("192.168.10", "192.168.20", "192.168.25"),
        totem=f"crypto_cipher: aes256\n crypto_hash: sha256\n token: 5000\n link_mode: passive\n{LINKS}",
    )
    replication = DRBD9.replace("protocol C;", "protocol C; ping-timeout 10; max-buffers 8000;")
    return files(cib([*both("pcmk_delay_base="), promotable(), served], with_primary()), heart, replication)


def three_disks() -> Files:
    """Return MySQL on multipath, with sbd on three disks and a watchdog."""
    disks = ";".join(f"/dev/disk/by-id/scsi-36001405{number}" for number in range(3))
    sysconfig = (
        f'SBD_DEVICE="{disks}"\nSBD_WATCHDOG_DEV=/dev/watchdog\nSBD_WATCHDOG_TIMEOUT=15\nSBD_PACEMAKER=yes\n'
        "SBD_STARTMODE=always\nSBD_DELAY_START=no\n"
    )
    database = primitive(
        "mysql ocf:heartbeat:mysql datadir=/var/lib/mysql socket=/run/mysqld/mysqld.sock user=mysql group=mysql",
        *SERVED,
    )
    served = group("grp", mount("/dev/mapper/mysql", directory="/var/lib/mysql"), database, address())
    sbd = fence(f"sbd fence_sbd devices={disks.replace(';', ',')} pcmk_delay_max=30s")
    text = cib([sbd, served], [], properties="stonith-timeout=83s have-watchdog=true")
    return {**files(text, replication=""), "etc/sysconfig/sbd": sysconfig}


def reservations() -> Files:
    """Return NFS on two volumes, fenced by persistent reservations on multipath devices."""
    key = fence(
        "mpath fence_mpath 'pcmk_host_map=alpha:1;beta:2' pcmk_host_argument=key "
        "devices=/dev/mapper/mpatha,/dev/mapper/mpathb pcmk_monitor_action=metadata pcmk_reboot_action=off "
        "meta provides=unfencing"
    )
    disks = [mount(f"/dev/nfsvg/{name}", "xfs", f"fs-{name}", TIMES, f"/export/{name}") for name in ("state", "home")]
    export = "clientspec=192.168.10.0/255.255.255.0 directory=/export/home fsid=11 options=rw,sync,no_subtree_check"
    server, export_home, notify = primitives(
        f"""
        nfsd ocf:heartbeat:nfsserver nfs_shared_infodir=/export/state/nfs nfs_no_notify=true
        export ocf:heartbeat:exportfs {export}
        notify ocf:heartbeat:nfsnotify source_host=192.168.10.50
        """,
        *SERVED,
    )
    served = group("grp", volume("nfsvg"), *disks, server, export_home, address(), notify)
    return files(cib([key, served], []), replication="")


def lustre_servers() -> Files:
    """Return metadata and object targets on one pair, with healthLNET that bans nodes where LNet is down."""
    places = {"mgs": A, "mdt0": A, "ost0": B}
    targets = [
        primitive(f"{name} ocf:lustre:Lustre target=/dev/mapper/{name} mountpoint=/mnt/{name}", *LUSTRE)
        for name in places
    ]
    lnet = primitive(
        "lnet ocf:lustre:healthLNET lctl=true multiplier=1001 'host_list=10.4.1.1@o2ib1 10.4.1.2@o2ib1' name=lnet-score",
        *times(30, 90, 90, 90),
    )
    down = "attribute=lnet-score operation=lt value=1 type=number", "attribute=lnet-score operation=not_defined"
    constraints = [
        *(banned_where(name, *down) for name in places),
        *(home(name, node, "100") for name, node in places.items()),
        *(after("mgs", name, "kind=Optional") for name in ("mdt0", "ost0")),
    ]
    resources = [*both(), *targets, clone("lnet-clone", lnet)]
    text = cib(resources, constraints, defaults="resource-stickiness=500")
    return {**files(text, replication=""), "etc/modprobe.d/lustre.conf": 'options lnet networks="o2ib1(ib0)"\n'}


def guests() -> Files:
    """Return a proxy with its address and Tomcat, on three virtual machines of one host."""
    xvm = fence(
        "xvm fence_xvm 'pcmk_host_map=alpha:guest1;beta:guest2;gamma:guest3' multicast_address=225.0.0.12 "
        "key_file=/etc/cluster/fence_xvm.key"
    )
    nginx, tomcat = primitives(
        """
        nginx ocf:heartbeat:nginx configfile=/etc/nginx/nginx.conf
        tomcat ocf:heartbeat:tomcat java_home=/usr/lib/jvm/default catalina_home=/opt/tomcat tomcat_user=tomcat statusurl=http://127.0.0.1:8080
        """,
        *SERVED,
    )
    constraints = [near("vip", "nginx-clone"), after("nginx-clone", "vip"), near("tomcat", "vip", "50")]
    resources = [xvm, clone("nginx-clone", nginx, "interleave=true"), address(), tomcat]
    return files(cib(resources, constraints, nodes=(A, B, C)), _THREE, replication="")


def oracle() -> Files:
    """Return Oracle and its listener on a volume group, fenced by VMware."""
    machines = fence(
        "vcenter fence_vmware_rest ip=192.168.30.80 username=fence@example.org password_script=/etc/cluster/pw ssl=1 "
        f"'pcmk_host_map=alpha:db-alpha;beta:db-beta' {_FIRST_LATER}"
    )
    programs = primitives(
        """
        listener ocf:heartbeat:oralsnr sid=PROD listener=LISTENER
        database ocf:heartbeat:oracle sid=PROD home=/u01/app/oracle
        """,
        *SERVED,
    )
    disk = mount("/dev/oravg/data", "xfs", "ora-fs", TIMES, "/u02")
    return files(cib([machines, group("ora", volume("oravg"), disk, address(), *programs)], []), replication="")


def name_servers() -> Files:
    """Return a name server and a proxy on an encrypted RAID, with a source address and a monitored interface."""
    card = primitive("card ocf:heartbeat:ethmonitor interface=eth1 name=eth1-works", *times(10, 60, 60, 20))
    raid, secret, named, squid = primitives(
        """
        array ocf:heartbeat:mdraid mdadm_conf=/etc/mdadm/mdadm.conf md_dev=/dev/md/data
        secret ocf:heartbeat:crypt encrypted_dev=/dev/md/data crypt_dev=plain key_file=/etc/cluster/luks.key crypt_type=luks2
        named ocf:heartbeat:named named_config=/srv/data/named.conf named_user=bind
        squid ocf:heartbeat:Squid squid_exe=/usr/sbin/squid squid_conf=/etc/squid/squid.conf squid_pidfile=/run/squid.pid squid_port=3128
        """,
        *SERVED,
    )
    source = primitive("source ocf:heartbeat:IPsrcaddr ipaddress=192.168.10.50 cidr_netmask=24", *_SHORT)
    served = group("grp", raid, secret, mount("/dev/mapper/plain"), address(), source, named, squid)
    eaton = fence(
        "eaton fence_eaton_snmp ip=192.168.30.70 snmp_version=1 community=private "
        f"'pcmk_host_map=alpha:1;beta:2' {_FIRST_LATER}"
    )
    works = banned_where("grp", "attribute=eth1-works operation=ne value=1")
    return files(cib([eaton, clone("card-clone", card), served], [works]), replication="")


def mail() -> Files:
    """Return Dovecot and Postfix on DRBD 8.4; a node without gateway is left, two WTI outlet strips fence."""
    strips = [
        fence(f"wti-{feed} fence_wti ip=192.168.30.{number} {_CARD} 'pcmk_host_map=alpha:A1;beta:A2' ssh=1")
        for number, feed in ((20, "one"), (21, "two"))
    ]
    watch = primitive(
        "gateway ocf:pacemaker:ping 'host_list=192.168.10.254 192.168.10.253' dampen=10s multiplier=1000 name=gateways",
        *times(15, 60, 60, 20),
    )
    lost = "attribute=gateways operation=not_defined", "attribute=gateways operation=lt value=1000 type=number"
    servers = primitives(
        """
        dovecot ocf:heartbeat:dovecot config_file=/etc/dovecot/dovecot.conf
        postfix ocf:heartbeat:postfix config_dir=/etc/postfix
        """,
        *SERVED,
    )
    served = group("mail", mount(directory="/srv/mail", fstype="ext4"), address(), *servers)
    text = cib(
        [*strips, clone("gateway-clone", watch), promotable(), served],
        [*with_primary("mail"), banned_where("mail", *lost)],
        others=(levels("wti-one,wti-two"),),
        properties="priority-fencing-delay=20s stonith-timeout=120s",
        defaults="resource-stickiness=200 priority=10",
    )
    return files(text, replication=DRBD84.replace("crm-fence-peer.sh", "crm-fence-peer.sh --timeout 150"))


def machines() -> Files:
    """Return virtual machines with live migration on GFS2, fenced by Cisco UCS."""
    blades = fence(
        "ucs fence_cisco_ucs ip=192.168.30.40 username=fence password_script=/etc/cluster/pw ssl=1 suborg=/org-ha/ "
        f"'pcmk_host_map=alpha:ha-a;beta:ha-b' {_FIRST_LATER}"
    )
    guests = [
        primitive(
            f"vm{number} ocf:heartbeat:VirtualDomain config=/mnt/gfs1/vm{number}.xml hypervisor=qemu:///system "
            "migration_transport=ssh meta allow-migrate=true",
            *times(30, 60, 120, 180),
            "migrate_to timeout=300s",
            "migrate_from timeout=300s",
        )
        for number in (1, 2)
    ]
    ties = [
        after("locking-clone", "shared_vg1-clone"),
        near("shared_vg1-clone", "locking-clone"),
        *(after("shared_vg1-clone", name) for name in ("vm1", "vm2")),
        *(near(name, "shared_vg1-clone") for name in ("vm1", "vm2")),
        home("vm1", A),
        home("vm2", B),
    ]
    resources = [blades, *lock_managers(), *shared_volume(), *guests]
    return files(cib(resources, ties, properties="no-quorum-policy=freeze"), replication="")


def ganesha() -> Files:
    """Return NFS-Ganesha on LVM on DRBD 9, with a quorum device and fencing by libvirt."""
    host = fence(
        "kvm fence_virsh ip=192.168.30.90 username=root identity_file=/etc/cluster/fence_key ssh=1 "
        "'pcmk_host_map=alpha:vm-a;beta:vm-b'"
    )
    served = group(
        "nfs",
        volume("vg_nfs", "vg_access_mode=system_id lvname=lv_nfs"),
        mount("/dev/vg_nfs/lv_nfs", directory="/srv/nfs"),
        primitive("ganesha systemd:nfs-ganesha", *SERVED),
        address("192.168.10.77"),
    )
    heart = corosync(quorum=QDEVICE, totem="crypto_cipher: aes256\n crypto_hash: sha256\n token: 4000")
    return files(cib([host, promotable(), served], with_primary("nfs")), heart, replication=DRBD9)


def scst() -> Files:
    """Return two iSCSI targets, each on its own DRBD resource and with its own preferred node."""
    second = DRBD84[DRBD84.index("resource r0") :].replace("r0", "r1").replace("drbd0", "drbd1")
    second = second.replace("/dev/vg0/data", "/dev/vg0/more").replace("7789", "7790")
    resources = [*both("pcmk_delay_base="), promotable(), promotable(drbd("r1", "drbd1"), "drbd1-clone")]
    constraints = []
    for number, base in enumerate(("drbd-clone", "drbd1-clone")):
        ip, iqn = f"192.168.10.{80 + number}", f"iqn.2024-03.org.example:disk{number}"
        unit = f"implementation=lio-t target_iqn={iqn} lun=1 path=/dev/drbd{number} scsi_sn=deadbee{number}"
        parts = primitives(
            f"""
            t{number} ocf:heartbeat:iSCSITarget iqn={iqn} implementation=lio-t portals={ip}:3260
            u{number} ocf:heartbeat:iSCSILogicalUnit {unit}
            """,
            *SERVED,
        )
        resources.append(group(f"g{number}", address(ip, f"ip{number}"), *parts, meta=f"priority={10 - number}"))
        constraints += [
            near(f"g{number}", base, more=_PROMOTED),
            after(base, f"g{number}", _AFTER_PROMOTION),
            home(f"g{number}", (A, B)[number]),
        ]
    text = cib(resources, constraints, properties="priority-fencing-delay=15s")
    return files(text, replication=DRBD84 + second)


def queue() -> Files:
    """Return RabbitMQ on three nodes, fenced by Amazon EC2."""
    cloud = fence(
        "aws fence_aws region=eu-central-1 'pcmk_host_map=alpha:i-0aaa;beta:i-0bbb;gamma:i-0ccc' power_timeout=240 "
        "pcmk_reboot_timeout=480 pcmk_reboot_retries=4"
    )
    policy = """'set_policy=ha-all ^(?!amq\\.).* {"ha-mode":"all"}'"""
    rabbit = primitive(f"rabbitmq ocf:heartbeat:rabbitmq-cluster {policy}", *times(10, 60, 100, 90))
    made = clone("rabbitmq-clone", rabbit, "ordered=true interleave=true notify=true")
    return files(cib([cloud, made], [], nodes=(A, B, C), properties="stonith-timeout=600s"), _THREE, replication="")


def db2() -> Files:
    """Return IBM Db2 on three mounts of a SAN, fenced by switches that block ports."""
    switches = [
        fence(
            f"brocade-{node} fence_brocade ip=192.168.30.{number} {_CARD} ssh=1 'pcmk_host_map=alpha:10;beta:11' "
            "meta provides=unfencing"
        )
        for number, node in ((60, "east"), (61, "west"))
    ]
    mounts = [
        mount(f"/dev/db2vg/{name}", "xfs", f"db2-{name}", SERVED, f"/db2/{name}") for name in ("home", "data", "log")
    ]
    database = primitive("db2 ocf:heartbeat:db2 instance=db2inst1 dblist=SAMPLE", *SERVED)
    served = group("grp", volume("db2vg"), *mounts, address(), database, meta="priority=5")
    properties = "priority-fencing-delay=20s stonith-timeout=120s stonith-action=off"
    text = cib([*switches, served], [], others=(levels("brocade-east,brocade-west"),), properties=properties)
    return files(text, replication="")


def lustre_zfs_oss() -> Files:
    """Return object servers with one ZFS pool per target, fenced by powerman."""
    power = fence(f"powerman fence_powerman ip=192.168.30.99 'pcmk_host_map=alpha:oss1;beta:oss2' {_FIRST_LATER}")
    groups, homes = list[Xml.Element](), []
    for number, node in enumerate((A, B)):
        pool = primitive(f"pool{number} ocf:heartbeat:ZFS pool=ost{number}pool", *times(60, 120, 300, 300))
        made = f"ost{number} ocf:lustre:Lustre target=ost{number}pool/ost{number} mountpoint=/mnt/ost{number}"
        groups.append(group(f"serve{number}", pool, primitive(made, *LUSTRE)))
        homes.append(home(f"serve{number}", node, "100"))
    return files(cib([power, *groups], homes, defaults="resource-stickiness=500"), replication="")


def watchdogs() -> Files:
    """Return Redis and a proxy on three nodes with diskless sbd."""
    sysconfig = "SBD_WATCHDOG_DEV=/dev/watchdog\nSBD_WATCHDOG_TIMEOUT=5\nSBD_PACEMAKER=yes\nSBD_STARTMODE=always\n"
    store = primitive(
        "redis ocf:heartbeat:redis config=/etc/redis/redis.conf bin=/usr/bin/redis-server "
        "op monitor interval=20s timeout=60s role=Promoted op monitor interval=30s timeout=60s role=Unpromoted "
        "op start timeout=120s op stop timeout=120s op promote timeout=120s op demote timeout=120s op notify timeout=90s"
    )
    proxy = clone("haproxy-clone", primitive("haproxy systemd:haproxy", *SERVED), "interleave=true")
    ties = [near("vip", "redis-clone", more=_PROMOTED), after("redis-clone", "vip", _AFTER_PROMOTION)]
    made = clone("redis-clone", store, "promotable=true notify=true promoted-max=1")
    properties = "have-watchdog=true stonith-watchdog-timeout=10s"
    text = cib([made, proxy, address()], ties, nodes=(A, B, C), properties=properties)
    return {**files(text, _THREE, replication=""), "etc/sysconfig/sbd": sysconfig}


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
    "mail": mail,
    "virtual machines on GFS2": machines,
    "NFS in user space": ganesha,
    "two iSCSI targets": scst,
    "a message queue": queue,
    "Db2 behind SAN switches": db2,
    "object servers on ZFS": lustre_zfs_oss,
    "three nodes with watchdogs": watchdogs,
}
