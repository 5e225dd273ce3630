"""Good configurations of pairs on DRBD, with variants of fencing and quorum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.etree import ElementTree as Xml

from failover.styles import (
    DRBD9,
    DRBD9_MESH,
    DRBD84,
    IDS,
    INFINITY,
    OLD_DRBD_TIMES,
    QDEVICE,
    TIMES,
    A,
    B,
    C,
    Files,
    address,
    all_three,
    banned_where,
    both,
    cib,
    clone,
    corosync,
    drbd,
    files,
    group,
    home,
    ipmi,
    levels,
    mount,
    near,
    nfs,
    operations_of,
    primitive,
    promotable,
    tag,
    times,
    values,
    with_primary,
)

_THREE = corosync(nodes=(A, B, C), quorum="expected_votes: 3")


def _served(*resources: Xml.Element, more: tuple[Xml.Element, ...] = (), properties: str = "") -> str:
    """Return a mount with its address on DRBD; ``resources`` are fencing devices, ``more`` are constraints."""
    served = [*resources, promotable(), group("grp", mount(), address())]
    return cib(served, [*with_primary(), *more], properties=properties)


def _nfs(*devices: Xml.Element) -> str:
    """Return NFS in a group on DRBD, as pcs writes it, without location constraints for fencing."""
    return cib([*devices, promotable(), group("grp", *nfs())], with_primary())


def pcs_one_outlet() -> Files:
    outlet = primitive(
        "pdu stonith:fence_apc_snmp ip=192.168.30.9 snmp_version=2c community=fence 'pcmk_host_map=alpha:1;beta:2' "
        "'pcmk_delay_base=alpha:10s;beta:0s' op monitor interval=60s"
    )
    return files(_served(outlet))


def crmsh_sbd() -> Files:
    sbd = primitive("stonith-sbd stonith:external/sbd pcmk_delay_max=30s")
    meta = "master-max=1 master-node-max=1 clone-max=2 clone-node-max=1 notify=true"
    disk = clone("ms-drbd", drbd(times=OLD_DRBD_TIMES), meta, tag="master")
    configuration = cib(
        [sbd, disk, group("grp", mount(fstype="ext4"), address())],
        with_primary(role="Master", to="ms-drbd"),
        properties="have-watchdog=true stonith-timeout=83s no-quorum-policy=stop",
    )
    sysconfig = (
        "SBD_DEVICE=/dev/disk/by-id/scsi-1\nSBD_PACEMAKER=yes\nSBD_WATCHDOG_DEV=/dev/watchdog\nSBD_WATCHDOG_TIMEOUT=5\n"
    )
    return files(configuration, corosync(totem="secauth: on\n token: 5000\n join: 60"), etc__sysconfig__sbd=sysconfig)


def diskless_sbd(sysconfig: str = "") -> Files:
    configuration = _served(properties="have-watchdog=true stonith-watchdog-timeout=10s")
    more = {"etc__sysconfig__sbd": sysconfig} if sysconfig else {}
    return files(configuration, corosync(quorum=QDEVICE), **more)


def operation_defaults() -> Files:
    disk = drbd(times=("monitor interval=29s role=Promoted", "monitor interval=31s role=Unpromoted"))
    served = group("grp", mount(times=("monitor interval=20s",)), address())
    return files(cib([*both(), promotable(disk), served], with_primary(), operations="timeout=300s"))


def resource_sets() -> Files:
    def refs(*names: str, more: str = "") -> Xml.Element:
        return tag(f"resource_set id=set-{next(IDS)} {more}", *(tag(f"resource_ref id={name}") for name in names))

    copy = refs("drbd-clone", more="role=Promoted")
    together = tag(f"rsc_colocation id=col score={INFINITY}", refs("fs", "vip"), copy)
    first = refs("drbd-clone", more="action=promote")
    ordered = tag("rsc_order id=ord kind=Mandatory", first, refs("fs", "vip", more="action=start"))
    return files(cib([*both(), promotable(), mount(), address()], [together, ordered]))


def drbd9(*, managed: bool = True) -> Files:
    served = group("grp", mount("/dev/drbd/by-res/r0/0"), address())
    copies, ties = ([promotable()], with_primary()) if managed else ([], [])
    return files(cib([*both(), *copies, served], ties), replication=DRBD9)


def third_node(*away: Xml.Element, quorum: str = "expected_votes: 3") -> Files:
    served = [*all_three(), promotable(), group("grp", mount(), address())]
    configuration = cib(served, [*with_primary(), *away], nodes=(A, B, C))
    return files(configuration, corosync(nodes=(A, B, C), quorum=quorum))


def _away(name: str) -> Xml.Element:
    return tag(f"rsc_location id=away-{name} rsc={name} node={C} score=-INFINITY")


def sticky_group() -> Files:
    served = group("grp", mount(), address(), meta="resource-stickiness=100")
    return files(cib([*both(), promotable(), served], [*with_primary(), home("grp", A)], defaults=""))


def templates() -> Files:
    parts = values("instance_attributes", {"fstype": "xfs"}), operations_of("t", TIMES)
    template = tag("template id=disk class=ocf provider=heartbeat type=Filesystem", *parts)
    own = values("instance_attributes", {"device": "/dev/drbd0", "directory": "/srv/data"})
    member = tag("primitive id=fs template=disk", own)
    return files(cib([*both(), promotable(), template, group("grp", member, address())], with_primary()))


def chain_without_group() -> Files:
    more = [
        tag(f"rsc_colocation id=vip-with-fs rsc=vip with-rsc=fs score={INFINITY}"),
        tag("rsc_order id=fs-then-vip first=fs then=vip"),
    ]
    return files(cib([*both(), promotable(), mount(), address()], [*with_primary("fs"), *more]))


def opt_in() -> Files:
    places = [
        tag(f"rsc_location id=on-{name}-{node} rsc={name} node={node} score={score}")
        for name, node, score in (
            *(("drbd-clone", A, 20), ("drbd-clone", B, 10), ("grp", A, 20), ("grp", B, 10)),
            *((f"fence_{A}", B, 10), (f"fence_{B}", A, 10)),
        )
    ]
    return files(_served(*both(), more=tuple(places), properties="symmetric-cluster=false"))


def corosync2() -> Files:
    heart = corosync(transport="udpu", totem="secauth: on\n rrp_mode: passive\n token: 10000")
    return files(_nfs(*both()), heart)


def three_copies() -> Files:
    resources = [*all_three(), promotable(meta="clone-max=3"), group("grp", mount(), address())]
    unpromoted = tag(f"rsc_location id=unpromoted rsc=drbd-clone node={C} score=-INFINITY role=Promoted")
    constraints = [*with_primary(), _away("grp"), unpromoted]
    return files(cib(resources, constraints, nodes=(A, B, C)), _THREE, DRBD9_MESH)


def priorities() -> Files:
    served = group("grp", mount(), address(), meta="priority=10")
    resources = [ipmi(A, 1, "pcmk_delay_base="), ipmi(B, 2), promotable(), served]
    return files(cib(resources, with_primary(), properties="priority-fencing-delay=15s"))


def kdump_first() -> Files:
    kdump = primitive(
        "kdump stonith:fence_kdump 'pcmk_host_list=alpha beta' pcmk_reboot_action=off op monitor interval=3600s"
    )
    resources = [kdump, *both(), promotable(), group("grp", mount(), address())]
    return files(cib(resources, with_primary(), others=(levels("kdump", "fence_{node}"),)), corosync(quorum=QDEVICE))


def two_outlets() -> Files:
    outlets = [
        primitive(
            f"pdu{number} stonith:fence_apc ipaddr=192.168.30.{number} login=apc passwd_script=/etc/cluster/pw "
            "'pcmk_host_map=alpha:1;beta:2' 'pcmk_delay_base=alpha:10s;beta:0s' op monitor interval=60s"
        )
        for number in (8, 9)
    ]
    served = [*outlets, promotable(), group("grp", mount(), address())]
    return files(cib(served, with_primary(), others=(levels("pdu8,pdu9"),)))


def network_monitor() -> Files:
    card = primitive("lan ocf:heartbeat:ethmonitor interface=eno1", *times(10, 60, 60, 20))
    up = banned_where("grp", "attribute=ethmonitor-eno1 operation=ne value=1")
    return files(cib([*both(), clone("lan-clone", card), promotable(), group("grp", *nfs())], [*with_primary(), up]))


def other_spellings() -> Files:
    spelt = ("monitor interval=20000ms timeout=1min", "start timeout=PT1M", "stop timeout=2min")
    resources = [
        *both("lanplus=on"),
        promotable(meta="promotable=yes notify=1"),
        group("grp", mount(times=spelt), address()),
    ]
    properties = "stonith-enabled=yes no-quorum-policy=freeze symmetric-cluster=on stonith-timeout=2m"
    replication = DRBD84.replace('crm-fence-peer.sh"', 'crm-fence-peer.sh -t 150"')
    return files(cib(resources, with_primary(), properties=properties), replication=replication)


def other_controllers() -> Files:
    devices = [
        primitive(
            f"ilo-{node} stonith:fence_ilo5 ip=192.168.30.{number} username=ha password_script=/etc/cluster/pw "
            f"pcmk_host_list={node} delay={delay} op monitor interval=120s"
        )
        for node, number, delay in ((A, 1, 15), (B, 2, 0))
    ]
    served = [*devices, promotable(), group("grp", *nfs())]
    return files(cib(served, with_primary(), properties="stonith-action=reboot"))


def active_active() -> Files:
    """Return two DRBD resources, each with another preferred node."""
    second = DRBD84[DRBD84.index("resource r0") :].replace("r0", "r1", 1).replace("drbd0", "drbd1")
    second = second.replace("vg0/data", "vg0/more").replace(":7789", ":7790")
    more = mount("/dev/drbd1", identity="fs1", directory="/srv/more"), address("192.168.10.51", "vip1")
    other = [
        tag(f"rsc_colocation id=col1 rsc=grp1 with-rsc=clone1 score={INFINITY} with-rsc-role=Promoted"),
        tag("rsc_order id=ord1 first=clone1 first-action=promote then=grp1 then-action=start"),
        home("grp", A, "100"),
        home("grp1", B, "100"),
        near("grp1", "grp", "-50"),
    ]
    groups = [group("grp", mount(), address()), group("grp1", *more)]
    resources = [*both(), promotable(), promotable(drbd("r1", "drbd1"), "clone1"), *groups]
    constraints = [*with_primary(), *other]
    return files(cib(resources, constraints, defaults="resource-stickiness=1000"), replication=DRBD84 + second)


PAIR_STYLES: Mapping[str, Callable[[], Files]] = {
    "pcs": lambda: files(_nfs(*both())),
    "pcs, a password in the CIB": lambda: files(_nfs(*both("password_script= password=secret"))),
    "pcs, one outlet strip for both": pcs_one_outlet,
    "crmsh with sbd": crmsh_sbd,
    "diskless sbd with a quorum device": diskless_sbd,
    "diskless sbd, as its own file says": lambda: diskless_sbd("SBD_DEVICE=\nSBD_WATCHDOG_TIMEOUT=5\n"),
    "op_defaults": operation_defaults,
    "resource sets": resource_sets,
    "DRBD 9 with volumes": drbd9,
    "DRBD 9 that promotes itself": lambda: drbd9(managed=False),
    "a third node for the quorum": lambda: third_node(_away("grp"), _away("drbd-clone")),
    "a third node kept away by a rule": lambda: third_node(
        banned_where("grp", f"attribute=#uname operation=eq value={C}")
    ),
    "a third node kept away by a pattern": lambda: third_node(
        tag(f"rsc_location id=away rsc-pattern='^(grp|drbd-clone)$' node={C} score=-INFINITY"),
        quorum="wait_for_all: 1",
    ),
    "secrets of Pacemaker": lambda: files(_nfs(*both("password_script= passwd=lrm://"))),
    "host names as addresses": lambda: files(_nfs(*both()), corosync(rings=("", "-hb"))),
    "stickiness of the group": sticky_group,
    "templates": templates,
    "a chain without a group": chain_without_group,
    "opt-in": opt_in,
    "Corosync 2": corosync2,
    "three copies": three_copies,
    "priorities": priorities,
    "random delays": lambda: files(_served(*both("pcmk_delay_base= pcmk_delay_max=12s"))),
    "kdump before the BMC": kdump_first,
    "two outlet strips": two_outlets,
    "a quorum device for the last man": lambda: files(
        _served(*both("pcmk_delay_base=")), corosync(quorum=QDEVICE.replace("ffsplit", "lms"))
    ),
    "a monitor of the network": network_monitor,
    "other spellings": other_spellings,
    "other controllers": other_controllers,
    "active/active": active_active,
}
