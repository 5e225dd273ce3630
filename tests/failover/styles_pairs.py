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
    nfs,
    operations_of,
    primitive,
    promotable,
    values,
    with_primary,
)


def pcs(**more: str) -> Files:
    """Return NFS in a group on DRBD 8.4 as pcs writes it, without location constraints for fencing."""
    return files(cib([*both(**more), promotable(), group("grp", *nfs())], with_primary()))


def pcs_one_outlet() -> Files:
    outlet = primitive(
        "pdu",
        "stonith:fence_apc_snmp",
        {
            "ip": "192.168.30.9",
            "snmp_version": "2c",
            "community": "fence",
            "pcmk_host_map": f"{A}:1;{B}:2",
            "pcmk_delay_base": f"{A}:10s;{B}:0s",
        },
        "monitor interval=60s",
    )
    return files(cib([outlet, promotable(), group("grp", mount(), address())], with_primary()))


def crmsh_sbd() -> Files:
    sbd = primitive("stonith-sbd", "stonith:external/sbd", {"pcmk_delay_max": "30s"})
    disk = clone(
        "ms-drbd",
        drbd(times=OLD_DRBD_TIMES),
        tag="master",
        master_max="1",
        master_node_max="1",
        clone_max="2",
        clone_node_max="1",
        notify="true",
    )
    properties = {"have-watchdog": "true", "stonith-timeout": "83s", "no-quorum-policy": "stop"}
    configuration = cib(
        [sbd, disk, group("grp", mount(fstype="ext4"), address())],
        with_primary(role="Master", to="ms-drbd"),
        properties=properties,
    )
    sysconfig = (
        "SBD_DEVICE=/dev/disk/by-id/scsi-1\nSBD_PACEMAKER=yes\nSBD_WATCHDOG_DEV=/dev/watchdog\nSBD_WATCHDOG_TIMEOUT=5\n"
    )
    return files(configuration, corosync(totem="secauth: on\n token: 5000\n join: 60"), etc__sysconfig__sbd=sysconfig)


def diskless_sbd(sysconfig: str = "") -> Files:
    properties = {"have-watchdog": "true", "stonith-watchdog-timeout": "10s"}
    configuration = cib(
        [promotable(), group("grp", mount(), address())],
        with_primary(),
        properties=properties,
    )
    more = {"etc__sysconfig__sbd": sysconfig} if sysconfig else {}
    return files(configuration, corosync(quorum=QDEVICE), **more)


def operation_defaults() -> Files:
    short = ("monitor interval=20s",)
    disk = drbd(times=("monitor interval=29s role=Promoted", "monitor interval=31s role=Unpromoted"))
    return files(
        cib(
            [*both(), promotable(disk), group("grp", mount(times=short), address())],
            with_primary(),
            operations={"timeout": "300s"},
        )
    )


def resource_sets() -> Files:
    def refs(*names: str, **attributes: str) -> Xml.Element:
        return element(
            "resource_set", *(element("resource_ref", id=name) for name in names), id=f"set-{next(IDS)}", **attributes
        )

    together = element(
        "rsc_colocation", refs("fs", "vip"), refs("drbd-clone", role="Promoted"), id="col", score=INFINITY
    )
    ordered = element(
        "rsc_order", refs("drbd-clone", action="promote"), refs("fs", "vip", action="start"), id="ord", kind="Mandatory"
    )
    return files(cib([*both(), promotable(), mount(), address()], [together, ordered]))


def drbd9_volumes() -> Files:
    return files(
        cib([*both(), promotable(), group("grp", mount("/dev/drbd/by-res/r0/0"), address())], with_primary()),
        replication=DRBD9,
    )


def drbd9_promotes_itself() -> Files:
    return files(cib([*both(), group("grp", mount("/dev/drbd/by-res/r0/0"), address())], []), replication=DRBD9)


def third_node(*, by_rule: bool = False) -> Files:
    if by_rule:
        rule = element(
            "rule",
            element("expression", id="e", attribute="#uname", operation="eq", value=C),
            id="rule",
            score="-INFINITY",
        )
        away = [element("rsc_location", rule, id="away", rsc="grp")]
    else:
        away = [
            element("rsc_location", id=f"away-{name}", rsc=name, node=C, score="-INFINITY")
            for name in ("grp", "drbd-clone")
        ]
    resources = [ipmi(A, 1, pcmk_delay_base=""), ipmi(B, 2), ipmi(C, 3), promotable(), group("grp", mount(), address())]
    return files(
        cib(resources, [*with_primary(), *away], nodes=(A, B, C)), corosync(nodes=(A, B, C), quorum="expected_votes: 3")
    )


def secret_in_lrm() -> Files:
    return files(cib([*both(password_script="", passwd="lrm://"), promotable(), group("grp", *nfs())], with_primary()))


def host_names() -> Files:
    return files(cib([*both(), promotable(), group("grp", *nfs())], with_primary()), corosync(rings=("", "-hb")))


def sticky_group() -> Files:
    home = element("rsc_location", id="home", rsc="grp", node=A, score="50")
    served = group("grp", mount(), address(), meta={"resource-stickiness": "100"})
    return files(cib([*both(), promotable(), served], [*with_primary(), home], defaults={}))


def templates() -> Files:
    template = element(
        "template",
        values("instance_attributes", {"fstype": "xfs"}),
        operations_of("t", TIMES),
        id="disk",
        class_="ocf",
        provider="heartbeat",
        type="Filesystem",
    )
    member = element(
        "primitive",
        values("instance_attributes", {"device": "/dev/drbd0", "directory": "/srv/data"}),
        id="fs",
        template="disk",
    )
    return files(cib([*both(), promotable(), template, group("grp", member, address())], with_primary()))


def chain_without_group() -> Files:
    more = [
        element("rsc_colocation", id="vip-with-fs", rsc="vip", with_rsc="fs", score=INFINITY),
        element("rsc_order", id="fs-then-vip", first="fs", then="vip"),
    ]
    return files(cib([*both(), promotable(), mount(), address()], [*with_primary("fs"), *more]))


def opt_in() -> Files:
    homes = [
        element("rsc_location", id=f"on-{name}-{node}", rsc=name, node=node, score=score)
        for name in ("drbd-clone", "grp")
        for node, score in ((A, "20"), (B, "10"))
    ]
    devices = [
        element("rsc_location", id=f"d-{node}", rsc=f"fence_{node}", node=other, score="10")
        for node, other in ((A, B), (B, A))
    ]
    return files(
        cib(
            [*both(), promotable(), group("grp", mount(), address())],
            [*with_primary(), *homes, *devices],
            properties={"symmetric-cluster": "false"},
        )
    )


def corosync2() -> Files:
    return files(
        cib([*both(), promotable(), group("grp", *nfs())], with_primary()),
        corosync(transport="udpu", totem="secauth: on\n rrp_mode: passive\n token: 10000"),
    )


def three_copies() -> Files:
    resources = [
        ipmi(A, 1, pcmk_delay_base=""),
        ipmi(B, 2),
        ipmi(C, 3),
        promotable(clone_max="3"),
        group("grp", mount(), address()),
    ]
    away = [
        element("rsc_location", id="away", rsc="grp", node=C, score="-INFINITY"),
        element("rsc_location", id="unpromoted", rsc="drbd-clone", node=C, score="-INFINITY", role="Promoted"),
    ]
    return files(
        cib(resources, [*with_primary(), *away], nodes=(A, B, C)),
        corosync(nodes=(A, B, C), quorum="expected_votes: 3"),
        DRBD9_MESH,
    )


def priorities() -> Files:
    served = group("grp", mount(), address(), meta={"priority": "10"})
    resources = [ipmi(A, 1, pcmk_delay_base=""), ipmi(B, 2), promotable(), served]
    return files(cib(resources, with_primary(), properties={"priority-fencing-delay": "15s"}))


def random_delays() -> Files:
    return files(
        cib(
            [*both(pcmk_delay_base="", pcmk_delay_max="12s"), promotable(), group("grp", mount(), address())],
            with_primary(),
        )
    )


def kdump_first() -> Files:
    kdump = primitive(
        "kdump",
        "stonith:fence_kdump",
        {"pcmk_host_list": f"{A} {B}", "pcmk_reboot_action": "off"},
        "monitor interval=3600s",
    )
    levels = [
        element("fencing-level", id=f"l-{node}-{index}", target=node, index=str(index), devices=device)
        for node in (A, B)
        for index, device in ((1, "kdump"), (2, f"fence_{node}"))
    ]
    topology = element("fencing-topology", *levels)
    resources = [kdump, ipmi(A, 1), ipmi(B, 2), promotable(), group("grp", mount(), address())]
    return files(cib(resources, with_primary(), others=(topology,)), corosync(quorum=QDEVICE))


def two_outlets() -> Files:
    outlets = [
        primitive(
            f"pdu{number}",
            "stonith:fence_apc",
            {
                "ipaddr": f"192.168.30.{number}",
                "login": "apc",
                "passwd_script": "/etc/cluster/pw",
                "pcmk_host_map": f"{A}:1,{B}:2".replace(",", ";"),
                "pcmk_delay_base": f"{A}:10s;{B}:0s",
            },
            "monitor interval=60s",
        )
        for number in (8, 9)
    ]
    topology = element(
        "fencing-topology",
        *(element("fencing-level", id=f"l-{node}", target=node, index="1", devices="pdu8,pdu9") for node in (A, B)),
    )
    return files(cib([*outlets, promotable(), group("grp", mount(), address())], with_primary(), others=(topology,)))


def last_man_device() -> Files:
    return files(
        cib([*both(pcmk_delay_base=""), promotable(), group("grp", mount(), address())], with_primary()),
        corosync(quorum=QDEVICE.replace("ffsplit", "lms")),
    )


def network_monitor() -> Files:
    monitor = clone(
        "lan-clone",
        primitive(
            "lan",
            "ocf:heartbeat:ethmonitor",
            {"interface": "eno1"},
            "monitor interval=10s timeout=60s",
            "start timeout=60s",
            "stop timeout=20s",
        ),
    )
    rule = element(
        "rule",
        element("expression", id="e", attribute="ethmonitor-eno1", operation="ne", value="1"),
        id="rule",
        score="-INFINITY",
    )
    return files(
        cib(
            [*both(), monitor, promotable(), group("grp", *nfs())],
            [*with_primary(), element("rsc_location", rule, id="lan-up", rsc="grp")],
        )
    )


def other_spellings() -> Files:
    times = ("monitor interval=20000ms timeout=1min", "start timeout=PT1M", "stop timeout=2min")
    properties = {
        "stonith-enabled": "yes",
        "no-quorum-policy": "freeze",
        "symmetric-cluster": "on",
        "stonith-timeout": "2m",
    }
    replication = DRBD84.replace('crm-fence-peer.sh"', 'crm-fence-peer.sh -t 150"')
    return files(
        cib(
            [
                *both(lanplus="on"),
                promotable(promotable="yes", notify="1"),
                group("grp", mount(times=times), address()),
            ],
            with_primary(),
            properties=properties,
        ),
        replication=replication,
    )


def patterns() -> Files:
    away = element("rsc_location", id="away", rsc_pattern="^(grp|drbd-clone)$", node=C, score="-INFINITY")
    resources = [ipmi(A, 1, pcmk_delay_base=""), ipmi(B, 2), ipmi(C, 3), promotable(), group("grp", mount(), address())]
    return files(
        cib(resources, [*with_primary(), away], nodes=(A, B, C)), corosync(nodes=(A, B, C), quorum="wait_for_all: 1")
    )


def other_controllers() -> Files:
    devices = [
        primitive(
            f"ilo-{node}",
            "stonith:fence_ilo5_ssh" if node == "none" else "stonith:fence_ilo5",
            {
                "ip": f"192.168.30.{number}",
                "username": "ha",
                "password_script": "/etc/cluster/pw",
                "pcmk_host_list": node,
                "delay": "15" if node == A else "0",
            },
            "monitor interval=120s",
        )
        for number, node in enumerate((A, B), 1)
    ]
    return files(
        cib([*devices, promotable(), group("grp", *nfs())], with_primary(), properties={"stonith-action": "reboot"})
    )


def active_active() -> Files:
    """Return two DRBD resources, each with another preferred node."""
    second = DRBD84.replace("resource r0", "resource r1").partition("resource r1")[2]
    replication = (
        DRBD84
        + "resource r1"
        + second.replace("drbd0", "drbd1").replace("vg0/data", "vg0/more").replace(":7789", ":7790")
    )
    groups = [
        group("grp", mount(), address()),
        group("grp1", mount("/dev/drbd1", identity="fs1", directory="/srv/more"), address("192.168.10.51", "vip1")),
    ]
    other = [
        element("rsc_colocation", id="col1", rsc="grp1", with_rsc="clone1", score=INFINITY, with_rsc_role="Promoted"),
        element("rsc_order", id="ord1", first="clone1", first_action="promote", then="grp1", then_action="start"),
        element("rsc_location", id="home0", rsc="grp", node=A, score="100"),
        element("rsc_location", id="home1", rsc="grp1", node=B, score="100"),
        element("rsc_colocation", id="rather-apart", rsc="grp1", with_rsc="grp", score="-50"),
    ]
    resources = [*both(), promotable(), promotable(drbd("r1", "drbd1"), "clone1"), *groups]
    return files(
        cib(resources, [*with_primary(), *other], defaults={"resource-stickiness": "1000"}), replication=replication
    )


PAIR_STYLES: Mapping[str, Callable[[], Files]] = {
    "pcs": pcs,
    "pcs, a password in the CIB": lambda: pcs(password_script="", password="secret"),
    "pcs, one outlet strip for both": pcs_one_outlet,
    "crmsh with sbd": crmsh_sbd,
    "diskless sbd with a quorum device": diskless_sbd,
    "diskless sbd, as its own file says": lambda: diskless_sbd("SBD_DEVICE=\nSBD_WATCHDOG_TIMEOUT=5\n"),
    "op_defaults": operation_defaults,
    "resource sets": resource_sets,
    "DRBD 9 with volumes": drbd9_volumes,
    "DRBD 9 that promotes itself": drbd9_promotes_itself,
    "a third node for the quorum": third_node,
    "a third node kept away by a rule": lambda: third_node(by_rule=True),
    "a third node kept away by a pattern": patterns,
    "secrets of Pacemaker": secret_in_lrm,
    "host names as addresses": host_names,
    "stickiness of the group": sticky_group,
    "templates": templates,
    "a chain without a group": chain_without_group,
    "opt-in": opt_in,
    "Corosync 2": corosync2,
    "three copies": three_copies,
    "priorities": priorities,
    "random delays": random_delays,
    "kdump before the BMC": kdump_first,
    "two outlet strips": two_outlets,
    "a quorum device for the last man": last_man_device,
    "a monitor of the network": network_monitor,
    "other spellings": other_spellings,
    "other controllers": other_controllers,
    "active/active": active_active,
}
