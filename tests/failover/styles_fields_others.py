"""More good configurations with node files, written before the rules were run on them."""

from __future__ import annotations

from collections.abc import Callable

from failover.styles import (
    DRBD9,
    DRBD9_MESH,
    INFINITY,
    OLD_DRBD_TIMES,
    A,
    B,
    C,
    Files,
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
from failover.styles_fields import ADDRESS, SERVED, ip
from failover.styles_more import after, home, lock_managers, near, shared_volume


def one_of_two_sites() -> Files:
    """Return one site of two, whose ticket is granted by booth, with DRBD 9 inside the site."""
    booth = group(
        "g-booth",
        ip("booth-address", "192.168.10.201"),
        primitive(
            "booth",
            "ocf:pacemaker:booth-site",
            {"config": "sites"},
            "monitor interval=10s timeout=60s",
            "start timeout=90s",
            "stop timeout=100s",
        ),
    )
    served = group("g-db", mount(), ip("db-address", "192.168.10.60"))
    ticket = element(
        "rsc_ticket", id="db-ticket", ticket="ticket-db", rsc="drbd-clone", rsc_role="Promoted", loss_policy="fence"
    )
    text = cib(
        [*both(), promotable(), served, booth], [*with_primary("g-db"), ticket], properties={"stonith-timeout": "90s"}
    )
    return {
        **files(text, replication=DRBD9),
        "etc/booth/sites.conf": 'transport = UDP\nport = 9929\nauthfile = "/etc/booth/authkey"\nsite = "192.168.10.201"\n'
        'site = "192.168.110.201"\narbitrator = "192.168.210.201"\nticket = "ticket-db"\n  expire = 300\n  timeout = 10\n'
        "  retries = 5\n  acquire-after = 120\n  renewal-freq = 60\n",
    }


def diskless_watchdogs() -> Files:
    """Return two nodes with diskless sbd and a quorum device; the watchdog time-out exceeds the device's."""
    members = group(
        "web",
        ip("web-ip", "192.168.10.55"),
        primitive("web-server", "ocf:heartbeat:nginx", {"configfile": "/etc/nginx/nginx.conf"}, *SERVED),
    )
    quorum = (
        "device {\n  model: net\n  votes: 1\n  net {\n   host: 192.168.40.9\n   algorithm: ffsplit\n   tls: on\n  }\n }"
    )
    text = cib([members], [], properties={"have-watchdog": "true", "stonith-watchdog-timeout": "80s"})
    return {
        **files(text, corosync(quorum=quorum), ""),
        "etc/sysconfig/sbd": "SBD_PACEMAKER=yes\nSBD_STARTMODE=always\nSBD_DELAY_START=no\nSBD_WATCHDOG_DEV=/dev/watchdog\nSBD_WATCHDOG_TIMEOUT=35\n",
        "etc/modprobe.d/watchdog.conf": "options softdog soft_margin=60\n",
    }


def old_pair() -> Files:
    """Return a pair by an old crmsh: two DRBD 8.4 resources, one service per node, Corosync 2 with two rings."""
    replication = "".join(
        f"resource {name} {{\n  protocol C;\n  device /dev/drbd{minor};\n  disk /dev/sysvg/{name};\n  meta-disk internal;\n"
        "  disk { fencing resource-and-stonith; on-io-error detach; resync-rate 100M; c-plan-ahead 0; }\n"
        "  net { verify-alg sha1; max-buffers 8000; after-sb-0pri discard-zero-changes; }\n"
        '  handlers { fence-peer "/usr/lib/drbd/crm-fence-peer.sh"; after-resync-target "/usr/lib/drbd/crm-unfence-peer.sh"; }\n'
        f"  on alpha {{ address 192.168.20.1:{7788 + minor}; }}\n  on beta {{ address 192.168.20.2:{7788 + minor}; }}\n}}\n"
        for minor, name in enumerate(("mail", "wiki"))
    )
    resources, constraints = both(), []
    for minor, (name, node) in enumerate((("mail", A), ("wiki", B))):
        resources += [
            clone(
                f"ms-{name}",
                drbd(name, f"drbd-{name}", OLD_DRBD_TIMES),
                tag="master",
                master_max="1",
                master_node_max="1",
                clone_max="2",
                clone_node_max="1",
                notify="true",
            ),
            group(
                f"g-{name}",
                mount(f"/dev/drbd{minor}", "ext3", f"fs-{name}", SERVED, f"/srv/{name}"),
                ip(f"ip-{name}", f"192.168.10.{40 + minor}"),
            ),
        ]
        constraints += [
            element(
                "rsc_colocation",
                id=f"c-{name}",
                rsc=f"g-{name}",
                with_rsc=f"ms-{name}",
                with_rsc_role="Master",
                score=INFINITY,
            ),
            element(
                "rsc_order",
                id=f"o-{name}",
                first=f"ms-{name}",
                first_action="promote",
                then=f"g-{name}",
                then_action="start",
                score=INFINITY,
            ),
            home(f"g-{name}", node, "50"),
        ]
    heart = corosync(
        totem="crypto_cipher: aes256\n crypto_hash: sha1\n rrp_mode: passive\n token: 5000\n token_retransmits_before_loss_const: 10\n join: 60\n consensus: 6000\n max_messages: 20",
        transport="udpu",
    )
    return files(cib(resources, constraints, defaults={"resource-stickiness": "100"}), heart, replication)


def three_copies_with_quorum() -> Files:
    """Return iSCSI on DRBD 9 with quorum, and a full copy on each of three nodes."""
    replication = DRBD9_MESH.replace("volume 0 { device /dev/drbd0 minor 0; disk none; }", "")
    members = [
        primitive(
            "iqn",
            "ocf:heartbeat:iSCSITarget",
            {"implementation": "lio-t", "iqn": "iqn.2022-05.org.example:store", "portals": "192.168.10.50:3260"},
            *SERVED,
        ),
        primitive(
            "lun",
            "ocf:heartbeat:iSCSILogicalUnit",
            {
                "implementation": "lio-t",
                "target_iqn": "iqn.2022-05.org.example:store",
                "lun": "0",
                "path": "/dev/drbd0",
                "scsi_sn": "a1b2c3d4",
            },
            *SERVED,
        ),
    ]
    before = primitive(
        "block",
        "ocf:heartbeat:portblock",
        {"ip": "192.168.10.50", "portno": "3260", "protocol": "tcp", "action": "block"},
        *ADDRESS,
    )
    behind = primitive(
        "unblock",
        "ocf:heartbeat:portblock",
        {"ip": "192.168.10.50", "portno": "3260", "protocol": "tcp", "action": "unblock"},
        *ADDRESS,
    )
    served = group("iscsi", before, ip("store-ip", "192.168.10.50"), *members, behind)
    nodes = (A, B, C)
    devices = [ipmi(node, number, pcmk_delay_base="") for number, node in enumerate(nodes, 1)]
    text = cib([*devices, promotable(clone_max="3"), served], with_primary("iscsi"), nodes=nodes)
    return files(text, corosync(nodes=nodes, quorum="wait_for_all: 0"), replication)


def guests_on_gfs2() -> Files:
    """Return virtual machines whose definitions are on GFS2, with its lock managers."""
    names = ("mail-server", "web-server")
    machines = [
        primitive(
            name,
            "ocf:heartbeat:VirtualDomain",
            {"config": f"/mnt/gfs1/{name}.xml", "hypervisor": "qemu:///system", "migration_transport": "ssh"},
            "monitor interval=30s timeout=60s",
            "start timeout=120s",
            "stop timeout=240s",
            "migrate_to timeout=300s",
            "migrate_from timeout=300s",
            meta={"allow-migrate": "true"},
        )
        for name in names
    ]
    ties = [after("locking-clone", "shared_vg1-clone"), near("shared_vg1-clone", "locking-clone")]
    ties += [tie for name in names for tie in (near(name, "shared_vg1-clone"), after("shared_vg1-clone", name))]
    text = cib(
        [*both(), *lock_managers(), *shared_volume(), *machines], ties, properties={"no-quorum-policy": "freeze"}
    )
    return files(text, replication="")


MORE_FIELD_STYLES: dict[str, Callable[[], Files]] = {
    "field: one of two sites": one_of_two_sites,
    "field: watchdogs and a device": diskless_watchdogs,
    "field: an old pair": old_pair,
    "field: three copies and iSCSI": three_copies_with_quorum,
    "field: guests on GFS2": guests_on_gfs2,
}
