"""Eight good configurations of various services, later than styles_sites.py, written before the rules were run."""

from __future__ import annotations

from collections.abc import Callable

from failover.styles import (
    DRBD9,
    DRBD84,
    QDEVICE,
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
    mount,
    primitive,
    promotable,
    with_primary,
)
from failover.styles_more import after, home, lock_managers, near, shared_volume, volume
from failover.styles_sites import fence, levels

_SERVED = ("monitor interval=20s timeout=60s", "start timeout=120s", "stop timeout=120s")
_CARD = {"login": "fence", "passwd_script": "/etc/cluster/pw"}


def mail() -> Files:
    """Return Dovecot and Postfix on DRBD 8.4; a node without gateway is left, two WTI outlet strips fence."""
    strips = [
        fence(f"wti-{feed}", "fence_wti", {"ip": f"192.168.30.{20 + number}", **_CARD,
                                           "pcmk_host_map": f"{A}:A1;{B}:A2", "ssh": "1"})
        for number, feed in enumerate(("one", "two"))
    ]  # fmt: skip
    watch = clone(
        "gateway-clone",
        primitive("gateway", "ocf:pacemaker:ping", {"host_list": "192.168.10.254 192.168.10.253", "dampen": "10s",
                                                    "multiplier": "1000", "name": "gateways"},
                  "monitor interval=15s timeout=60s", "start timeout=60s", "stop timeout=20s"),
    )  # fmt: skip
    rule = element(
        "rsc_location",
        element("rule", element("expression", id="e", attribute="gateways", operation="not_defined"),
                element("expression", id="f", attribute="gateways", operation="lt", value="1000", type="number"),
                id="r", score="-INFINITY", boolean_op="or"),
        id="reached",
        rsc="mail",
    )  # fmt: skip
    post = primitive("postfix", "ocf:heartbeat:postfix", {"config_dir": "/etc/postfix"}, *_SERVED)
    boxes = primitive("dovecot", "ocf:heartbeat:dovecot", {"config_file": "/etc/dovecot/dovecot.conf"}, *_SERVED)
    served = group("mail", mount(directory="/srv/mail", fstype="ext4"), address(), boxes, post)
    topology = levels(**dict.fromkeys((A, B), ("wti-one,wti-two",)))
    delays = {"priority-fencing-delay": "20s", "stonith-timeout": "120s"}
    text = cib([*strips, watch, promotable(), served], [*with_primary("mail"), rule], others=(topology,),
               properties=delays, defaults={"resource-stickiness": "200", "priority": "10"})  # fmt: skip
    return files(text, replication=DRBD84.replace("crm-fence-peer.sh", "crm-fence-peer.sh --timeout 150"))


def machines() -> Files:
    """Return virtual machines with live migration on GFS2, fenced by Cisco UCS."""
    blades = fence(
        "ucs",
        "fence_cisco_ucs",
        {"ip": "192.168.30.40", "username": "fence", "password_script": "/etc/cluster/pw", "ssl": "1",
         "suborg": "/org-ha/", "pcmk_host_map": f"{A}:ha-a;{B}:ha-b", "pcmk_delay_base": f"{A}:10s;{B}:0s"},
    )  # fmt: skip
    guests = [
        primitive(
            f"vm{number}",
            "ocf:heartbeat:VirtualDomain",
            {"config": f"/mnt/gfs1/vm{number}.xml", "hypervisor": "qemu:///system", "migration_transport": "ssh"},
            "monitor interval=30s timeout=60s",
            "start timeout=120s",
            "stop timeout=180s",
            "migrate_to timeout=300s",
            "migrate_from timeout=300s",
            meta={"allow-migrate": "true"},
        )
        for number in (1, 2)
    ]
    ties = [
        after("locking-clone", "shared_vg1-clone"),
        near("shared_vg1-clone", "locking-clone"),
        *(after("shared_vg1-clone", f"vm{number}") for number in (1, 2)),
        *(near(f"vm{number}", "shared_vg1-clone") for number in (1, 2)),
        home("vm1", A),
        home("vm2", B),
    ]
    text = cib([blades, *lock_managers(), *shared_volume(), *guests], ties, properties={"no-quorum-policy": "freeze"})
    return files(text, replication="")


def ganesha() -> Files:
    """Return NFS-Ganesha on LVM on DRBD 9, with a quorum device and fencing by libvirt."""
    host = fence(
        "kvm",
        "fence_virsh",
        {"ip": "192.168.30.90", "username": "root", "identity_file": "/etc/cluster/fence_key", "ssh": "1",
         "pcmk_host_map": f"{A}:vm-a;{B}:vm-b"},
    )  # fmt: skip
    served = group(
        "nfs",
        volume("vg_nfs", lvname="lv_nfs"),
        mount("/dev/vg_nfs/lv_nfs", directory="/srv/nfs"),
        primitive("ganesha", "systemd:nfs-ganesha", {}, *_SERVED),
        address("192.168.10.77"),
    )
    heart = corosync(quorum=QDEVICE, totem="crypto_cipher: aes256\n crypto_hash: sha256\n token: 4000")
    return files(cib([host, promotable(), served], with_primary("nfs")), heart, replication=DRBD9)


def scst() -> Files:
    """Return two iSCSI targets, each on its own DRBD resource and with its own preferred node."""
    second = DRBD84[DRBD84.index("resource r0") :].replace("r0", "r1").replace("drbd0", "drbd1")
    second = second.replace("/dev/vg0/data", "/dev/vg0/more").replace("7789", "7790")
    resources = [*both(pcmk_delay_base=""), promotable(), promotable(drbd("r1", "drbd1"), "drbd1-clone")]
    constraints = []
    for number, base in enumerate(("drbd-clone", "drbd1-clone")):
        ip, iqn = f"192.168.10.{80 + number}", f"iqn.2024-03.org.example:disk{number}"
        target = primitive(f"t{number}", "ocf:heartbeat:iSCSITarget",
                           {"iqn": iqn, "implementation": "lio-t", "portals": f"{ip}:3260"}, *_SERVED)  # fmt: skip
        unit = primitive(
            f"u{number}",
            "ocf:heartbeat:iSCSILogicalUnit",
            {"implementation": "lio-t", "target_iqn": iqn, "lun": "1", "path": f"/dev/drbd{number}",
             "scsi_sn": f"deadbee{number}"},
            *_SERVED,
        )  # fmt: skip
        resources.append(group(f"g{number}", address(ip, f"ip{number}"), target, unit,
                               meta={"priority": str(10 - number)}))  # fmt: skip
        constraints += [
            near(f"g{number}", base, with_rsc_role="Promoted"),
            after(base, f"g{number}", first_action="promote", then_action="start"),
            home(f"g{number}", (A, B)[number]),
        ]
    text = cib(resources, constraints, properties={"priority-fencing-delay": "15s"})
    return files(text, replication=DRBD84 + second)


def queue() -> Files:
    """Return RabbitMQ on three nodes, fenced by Amazon EC2."""
    cloud = fence(
        "aws", "fence_aws",
        {"region": "eu-central-1", "pcmk_host_map": f"{A}:i-0aaa;{B}:i-0bbb;{C}:i-0ccc", "power_timeout": "240",
         "pcmk_reboot_timeout": "480", "pcmk_reboot_retries": "4"},
    )  # fmt: skip
    rabbit = primitive(
        "rabbitmq",
        "ocf:heartbeat:rabbitmq-cluster",
        {"set_policy": 'ha-all ^(?!amq\\.).* {"ha-mode":"all"}'},
        "monitor interval=10s timeout=60s",
        "start timeout=100s",
        "stop timeout=90s",
    )
    heart = corosync(nodes=(A, B, C), quorum="expected_votes: 3")
    made = clone("rabbitmq-clone", rabbit, ordered="true", interleave="true", notify="true")
    return files(cib([cloud, made], [], nodes=(A, B, C), properties={"stonith-timeout": "600s"}), heart, replication="")


def db2() -> Files:
    """Return IBM Db2 on three mounts of a SAN, fenced by switches that block ports."""
    switches = [
        primitive(
            f"brocade-{node}",
            "stonith:fence_brocade",
            {"ip": f"192.168.30.{60 + number}", **_CARD, "ssh": "1", "pcmk_host_map": f"{A}:10;{B}:11"},
            "monitor interval=60s timeout=60s",
            meta={"provides": "unfencing"},
        )
        for number, node in enumerate(("east", "west"))
    ]
    mounts = [
        mount(f"/dev/db2vg/{name}", "xfs", f"db2-{name}", _SERVED, f"/db2/{name}") for name in ("home", "data", "log")
    ]
    database = primitive("db2", "ocf:heartbeat:db2", {"instance": "db2inst1", "dblist": "SAMPLE"}, *_SERVED)
    topology = levels(**dict.fromkeys((A, B), ("brocade-east,brocade-west",)))
    served = group("grp", volume("db2vg"), *mounts, address(), database, meta={"priority": "5"})
    text = cib([*switches, served], [], others=(topology,),
               properties={"priority-fencing-delay": "20s", "stonith-timeout": "120s", "stonith-action": "off"})  # fmt: skip
    return files(text, replication="")


def lustre_zfs_oss() -> Files:
    """Return object servers with one ZFS pool per target, fenced by powerman."""
    power = fence("powerman", "fence_powerman", {"ip": "192.168.30.99", "pcmk_host_map": f"{A}:oss1;{B}:oss2",
                                                 "pcmk_delay_base": f"{A}:10s;{B}:0s"})  # fmt: skip
    groups, homes = [], []
    for number, node in enumerate((A, B)):
        pool = primitive(
            f"pool{number}",
            "ocf:heartbeat:ZFS",
            {"pool": f"ost{number}pool"},
            "monitor interval=60s timeout=120s",
            "start timeout=300s",
            "stop timeout=300s",
        )
        target = primitive(
            f"ost{number}",
            "ocf:lustre:Lustre",
            {"target": f"ost{number}pool/ost{number}", "mountpoint": f"/mnt/ost{number}"},
            "monitor interval=60s timeout=300s",
            "start timeout=600s",
            "stop timeout=600s",
        )
        groups.append(group(f"serve{number}", pool, target))
        homes.append(home(f"serve{number}", node, "100"))
    return files(cib([power, *groups], homes, defaults={"resource-stickiness": "500"}), replication="")


def watchdogs() -> Files:
    """Return Redis and a proxy on three nodes with diskless sbd."""
    sysconfig = "SBD_WATCHDOG_DEV=/dev/watchdog\nSBD_WATCHDOG_TIMEOUT=5\nSBD_PACEMAKER=yes\nSBD_STARTMODE=always\n"
    store = primitive(
        "redis",
        "ocf:heartbeat:redis",
        {"config": "/etc/redis/redis.conf", "bin": "/usr/bin/redis-server"},
        "monitor interval=20s timeout=60s role=Promoted",
        "monitor interval=30s timeout=60s role=Unpromoted",
        "start timeout=120s",
        "stop timeout=120s",
        "promote timeout=120s",
        "demote timeout=120s",
        "notify timeout=90s",
    )
    proxy = clone("haproxy-clone", primitive("haproxy", "systemd:haproxy", {}, *_SERVED), interleave="true")
    ties = [
        near("vip", "redis-clone", with_rsc_role="Promoted"),
        after("redis-clone", "vip", first_action="promote", then_action="start"),
    ]
    made = clone("redis-clone", store, promotable="true", notify="true", promoted_max="1")
    text = cib(
        [made, proxy, address()],
        ties,
        nodes=(A, B, C),
        properties={"have-watchdog": "true", "stonith-watchdog-timeout": "10s"},
    )
    heart = corosync(nodes=(A, B, C), quorum="expected_votes: 3")
    return {**files(text, heart, replication=""), "etc/sysconfig/sbd": sysconfig}


OTHER_STYLES: dict[str, Callable[[], Files]] = {
    "mail": mail,
    "virtual machines on GFS2": machines,
    "NFS in user space": ganesha,
    "two iSCSI targets": scst,
    "a message queue": queue,
    "Db2 behind SAN switches": db2,
    "object servers on ZFS": lustre_zfs_oss,
    "three nodes with watchdogs": watchdogs,
}
