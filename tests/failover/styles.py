"""Good configurations as other tools and other people write them: pcs, crmsh, by hand; DRBD 8.4 and 9; sbd, quorum devices, ZFS, SAN."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree as Xml

Files = Mapping[str, str]
COROSYNC, CIB = "etc/corosync/corosync.conf", "pacemaker/cib.xml"
A, B, C = "alpha", "beta", "gamma"
INFINITY = "INFINITY"
_ids = itertools.count()


def element(tag: str, *children: Xml.Element, **attributes: str) -> Xml.Element:
    """``rsc_role`` becomes ``rsc-role``, ``class_`` becomes ``class``."""
    made = Xml.Element(tag, {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()})
    made.extend(children)
    return made


def values(tag: str, pairs: Mapping[str, str]) -> Xml.Element:
    block = element(tag, id=f"set-{next(_ids)}")
    for name, value in pairs.items():
        block.append(element("nvpair", id=f"nv-{next(_ids)}", name=name, value=value))
    return block


def primitive(
    identity: str, kind: str, pairs: Mapping[str, str], *operations: str, meta: Mapping[str, str] | None = None
) -> Xml.Element:
    """Operations such as ``monitor interval=20s timeout=60s role=Master``."""
    *head, agent = kind.split(":")
    made = element("primitive", id=identity)
    made.set("class", head[0])
    if len(head) > 1 and head[0] == "ocf":
        made.set("provider", head[1])
        made.set("type", agent)
    else:
        made.set("type", "".join(kind.partition(":")[2]))
    made.append(values("instance_attributes", pairs))
    if meta:
        made.append(values("meta_attributes", meta))
    made.append(operations_of(identity, operations))
    return made


def operations_of(identity: str, operations: tuple[str, ...]) -> Xml.Element:
    block = element("operations")
    for text in operations:
        name, *words = text.split()
        pairs = dict(word.split("=", 1) for word in words)
        block.append(Xml.Element("op", {"id": f"{identity}-{next(_ids)}", "name": name, "interval": "0s", **pairs}))
    return block


def group(identity: str, *members: Xml.Element, meta: Mapping[str, str] | None = None) -> Xml.Element:
    return element("group", *([values("meta_attributes", meta)] if meta else []), *members, id=identity)


def clone(identity: str, member: Xml.Element, *, tag: str = "clone", **meta: str) -> Xml.Element:
    pairs = {key.replace("_", "-"): value for key, value in meta.items()}
    return element(tag, values("meta_attributes", pairs), member, id=identity)


TIMES = ("monitor interval=20s timeout=40s", "start timeout=60s", "stop timeout=60s")
DRBD_TIMES = (
    "monitor interval=29s timeout=30s role=Promoted",
    "monitor interval=31s timeout=30s role=Unpromoted",
    "start timeout=240s",
    "stop timeout=100s",
    "promote timeout=90s",
    "demote timeout=90s",
)
OLD_DRBD_TIMES = tuple(text.replace("Unpromoted", "Slave").replace("Promoted", "Master") for text in DRBD_TIMES)
LUSTRE_TIMES = ("monitor interval=120s timeout=300s", "start timeout=300s", "stop timeout=300s")


def drbd(name: str = "r0", identity: str = "drbd", times: tuple[str, ...] = DRBD_TIMES) -> Xml.Element:
    return primitive(identity, "ocf:linbit:drbd", {"drbd_resource": name}, *times)


def promotable(member: Xml.Element | None = None, identity: str = "drbd-clone", **meta: str) -> Xml.Element:
    pairs = {"promotable": "true", "promoted_max": "1", "clone_max": "2", "notify": "true"} | meta
    return clone(identity, drbd() if member is None else member, **pairs)


def mount(
    device: str = "/dev/drbd0",
    fstype: str = "xfs",
    identity: str = "fs",
    times: tuple[str, ...] = TIMES,
    directory: str = "/srv/data",
) -> Xml.Element:
    return primitive(
        identity, "ocf:heartbeat:Filesystem", {"device": device, "directory": directory, "fstype": fstype}, *times
    )


def address(ip: str = "192.168.10.50", identity: str = "vip") -> Xml.Element:
    return primitive(
        identity,
        "ocf:heartbeat:IPaddr2",
        {"ip": ip, "cidr_netmask": "24"},
        "monitor interval=10s timeout=20s",
        "start timeout=20s",
        "stop timeout=20s",
    )


def nfs() -> list[Xml.Element]:
    server = primitive(
        "nfsd",
        "ocf:heartbeat:nfsserver",
        {"nfs_shared_infodir": "/srv/data/nfsinfo"},
        "monitor interval=10s timeout=20s",
        "start timeout=40s",
        "stop timeout=20s",
    )
    export = primitive(
        "export",
        "ocf:heartbeat:exportfs",
        {
            "clientspec": "192.168.10.0/24",
            "directory": "/srv/data/home",
            "fsid": "1",
            "options": "rw,sync,no_root_squash",
        },
        "monitor interval=10s timeout=20s",
        "start timeout=40s",
        "stop timeout=120s",
    )
    return [mount(), server, export, address()]


def ipmi(node: str, number: int, **more: str) -> Xml.Element:
    """With the delay that lets alpha survive, unless something else decides."""
    pairs = {
        "ip": f"192.168.30.{number}",
        "username": "admin",
        "password_script": "/etc/cluster/pw",
        "lanplus": "1",
        "pcmk_host_list": node,
    }
    pairs |= {"pcmk_delay_base": "15s"} if node == A else {}
    pairs |= more
    return primitive(
        f"fence_{node}",
        "stonith:fence_ipmilan",
        {key: value for key, value in pairs.items() if value},
        "monitor interval=60s",
    )


def both(**more: str) -> list[Xml.Element]:
    return [ipmi(A, 1, **more), ipmi(B, 2, **more)]


def with_primary(
    what: str = "grp", score: str = INFINITY, role: str = "Promoted", to: str = "drbd-clone"
) -> list[Xml.Element]:
    old = role == "Master"
    return [
        element("rsc_colocation", id="col", rsc=what, with_rsc=to, score=score, with_rsc_role=role),
        element(
            "rsc_order",
            id="ord",
            first=to,
            first_action="promote",
            then=what,
            then_action="start",
            **({"score": INFINITY} if old else {"kind": "Mandatory"}),
        ),
    ]


def cib(
    resources: list[Xml.Element],
    constraints: list[Xml.Element],
    *,
    nodes: tuple[str, ...] = (A, B),
    properties: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
    operations: Mapping[str, str] | None = None,
    others: tuple[Xml.Element, ...] = (),
) -> str:
    basic = {"have-watchdog": "false", "stonith-enabled": "true", "cluster-infrastructure": "corosync"}
    options = element("cluster_property_set", *values("x", basic | dict(properties or {})), id="cib-bootstrap-options")
    named = [element("node", id=str(number), uname=name) for number, name in enumerate(nodes, 1)]
    chosen = {"resource-stickiness": "200"} if defaults is None else defaults
    parts = [
        element("crm_config", options),
        element("nodes", *named),
        element("resources", *resources),
        element("constraints", *constraints),
        *others,
        element("rsc_defaults", values("meta_attributes", chosen)),
        *([element("op_defaults", values("meta_attributes", operations))] if operations else []),
    ]
    root = element("cib", element("configuration", *parts), element("status"), validate_with="pacemaker-3.7")
    root.set("crm_feature_set", "3.7.1")
    for key in ("admin_epoch", "epoch", "num_updates"):
        root.set(key, "0")
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode")


def corosync(
    *extra: str,
    nodes: tuple[str, ...] = (A, B),
    quorum: str = "two_node: 1",
    totem: str = "crypto_cipher: aes256\n crypto_hash: sha256",
    transport: str = "knet",
    rings: tuple[str, ...] = ("192.168.10", "192.168.20"),
) -> str:
    lines = [
        "totem {",
        " version: 2",
        " cluster_name: site",
        f" transport: {transport}",
        f" {totem}",
        "}",
        "nodelist {",
    ]
    for number, node in enumerate(nodes, 1):
        lines += [" node {", f"  name: {node}", f"  nodeid: {number}"]
        lines += [
            f"  ring{ring}_addr: {net}.{number}" if "." in net else f"  ring{ring}_addr: {node}{net}"
            for ring, net in enumerate(rings)
        ]
        lines += [" }"]
    return (
        "\n".join(
            [
                *lines,
                "}",
                "quorum {",
                " provider: corosync_votequorum",
                f" {quorum}",
                "}",
                "logging {",
                " to_syslog: yes",
                "}",
                *extra,
            ]
        )
        + "\n"
    )


QDEVICE = "device {\n  model: net\n  votes: 1\n  net {\n   host: qnetd.example.org\n   algorithm: ffsplit\n   tls: on\n  }\n }"
DRBD84 = """
global { usage-count no; }
common {
  handlers {
    fence-peer "/usr/lib/drbd/crm-fence-peer.sh";
    after-resync-target "/usr/lib/drbd/crm-unfence-peer.sh";
  }
  startup { wfc-timeout 15; degr-wfc-timeout 60; }
  disk { fencing resource-and-stonith; on-io-error detach; }
  net { protocol C; }
}
resource r0 {
  device /dev/drbd0;
  disk /dev/vg0/data;
  meta-disk internal;
  on alpha { address 192.168.20.1:7789; }
  on beta { address 192.168.20.2:7789; }
}
"""
DRBD9 = """
resource "r0" {
  net { protocol C; fencing resource-and-stonith; }
  handlers {
    fence-peer "/usr/lib/drbd/crm-fence-peer.9.sh";
    unfence-peer "/usr/lib/drbd/crm-unfence-peer.9.sh";
  }
  on "alpha" {
    node-id 0;
    volume 0 { device minor 0; disk "/dev/vg0/data"; meta-disk internal; }
    address ipv4 192.168.20.1:7789;
  }
  on "beta" {
    node-id 1;
    volume 0 { device minor 0; disk "/dev/vg0/data"; meta-disk internal; }
    address ipv4 192.168.20.2:7789;
  }
}
"""
DRBD9_MESH = """
resource r0 {
  options { quorum majority; on-no-quorum suspend-io; auto-promote no; }
  net { protocol C; fencing resource-and-stonith; verify-alg crc32c; }
  handlers {
    fence-peer "/usr/lib/drbd/crm-fence-peer.9.sh --timeout 90";
    unfence-peer /usr/lib/drbd/crm-unfence-peer.9.sh;
  }
  volume 0 { device /dev/drbd0 minor 0; disk /dev/vg0/data; meta-disk internal; }
  on alpha { node-id 0; address 192.168.20.1:7789; }
  on beta { node-id 1; address 192.168.20.2:7789; }
  on gamma { node-id 2; address 192.168.20.3:7789; volume 0 { device /dev/drbd0 minor 0; disk none; } }
  connection-mesh { hosts alpha beta gamma; }
}
"""


def files(configuration: str, heart: str | None = None, replication: str = DRBD84, **others: str) -> Files:
    made = {CIB: configuration, COROSYNC: heart if heart is not None else corosync()}
    if replication:
        made |= {"etc/drbd.conf": 'include "drbd.d/*.res";\n', "etc/drbd.d/r0.res": replication}
    return made | {name.replace("__", "/"): text for name, text in others.items()}


def write(style: Files, directory: Path, mode: int = 0o644) -> Path:
    for name, text in style.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
        (directory / name).chmod(mode)
    return directory


def pcs(**more: str) -> Files:
    """As ``pcs`` makes it: no constraints for fencing, a group, op timeouts from the agents."""
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
            "resource_set", *(element("resource_ref", id=name) for name in names), id=f"set-{next(_ids)}", **attributes
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


def zfs_oss() -> Files:
    """Two OSTs on shared SAS shelves, a pool each, at home on different nodes."""
    resources, homes = both(), []
    for number, home in enumerate((A, B)):
        pool = primitive(
            f"pool{number}",
            "ocf:heartbeat:ZFS",
            {"pool": f"ost{number}"},
            "monitor interval=30s timeout=60s",
            "start timeout=120s",
            "stop timeout=120s",
        )
        target = primitive(
            f"ost{number}",
            "ocf:lustre:Lustre",
            {"target": f"ost{number}/ost{number}", "mountpoint": f"/mnt/ost{number}"},
            *LUSTRE_TIMES,
        )
        resources.append(group(f"serve{number}", pool, target))
        homes.append(element("rsc_location", id=f"home{number}", rsc=f"serve{number}", node=home, score="100"))
    return files(cib(resources, homes, defaults={"resource-stickiness": "1000"}), replication="")


def lustre_on_san() -> Files:
    target = primitive(
        "mdt0", "ocf:lustre:Lustre", {"target": "/dev/mapper/mdt0", "mountpoint": "/mnt/mdt0"}, *LUSTRE_TIMES
    )
    health = clone(
        "lnet-clone",
        primitive(
            "lnet",
            "ocf:lustre:healthLNET",
            {"lctl": "true", "multiplier": "1000", "device": "ib0", "host_list": "192.168.20.9@o2ib"},
            "monitor interval=60s timeout=60s",
        ),
    )
    rule = element(
        "rule",
        element("expression", id="e1", attribute="pingd", operation="not_defined"),
        element("expression", id="e2", attribute="pingd", operation="lte", value="0"),
        id="rule",
        score="-INFINITY",
    )
    rule.set("boolean-op", "or")
    return files(
        cib([*both(), health, target], [element("rsc_location", rule, id="connected", rsc="mdt0")]), replication=""
    )


def lustre_by_filesystem() -> Files:
    resources = [*both(), promotable(), mount(fstype="lustre", times=LUSTRE_TIMES, directory="/mnt/mdt0")]
    return files(cib(resources, with_primary("fs")))


def san_with_reservations() -> Files:
    scsi = primitive(
        "scsi",
        "stonith:fence_scsi",
        {
            "devices": "/dev/mapper/lun0",
            "pcmk_host_list": f"{A} {B}",
            "pcmk_monitor_action": "metadata",
            "pcmk_delay_max": "10s",
        },
        "monitor interval=60s",
        meta={"provides": "unfencing"},
    )
    volumes = primitive(
        "lvm",
        "ocf:heartbeat:LVM-activate",
        {"vgname": "shared", "vg_access_mode": "system_id"},
        "monitor interval=30s timeout=90s",
        "start timeout=90s",
        "stop timeout=90s",
    )
    return files(cib([scsi, group("grp", volumes, mount("/dev/shared/data"), address())], []), replication="")


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


def gfs2() -> Files:
    replication = DRBD84.replace("net { protocol C; }", "net { protocol C; allow-two-primaries yes; }")
    lock = clone(
        "dlm-clone",
        primitive(
            "dlm",
            "ocf:pacemaker:controld",
            {},
            "monitor interval=60s timeout=30s",
            "start timeout=90s",
            "stop timeout=100s",
        ),
        interleave="true",
    )
    everywhere = clone("fs-clone", mount(fstype="gfs2"), interleave="true")
    constraints = [
        *with_primary("fs-clone"),
        element("rsc_order", id="dlm-first", first="dlm-clone", then="fs-clone"),
        element("rsc_colocation", id="with-dlm", rsc="fs-clone", with_rsc="dlm-clone", score=INFINITY),
    ]
    return files(
        cib(
            [*both(), lock, promotable(promoted_max="2"), everywhere],
            constraints,
            properties={"no-quorum-policy": "freeze"},
        ),
        replication=replication,
    )


def virtual_machines() -> Files:
    vcenter = primitive(
        "vmfence",
        "stonith:fence_vmware_rest",
        {
            "ip": "vcenter.example.org",
            "username": "ha",
            "password_script": "/etc/cluster/pw",
            "ssl": "1",
            "pcmk_host_map": f"{A}:vm-alpha;{B}:vm-beta",
            "pcmk_delay_max": "15",
        },
        "monitor interval=60s timeout=60s",
    )
    return files(cib([vcenter, promotable(), group("grp", mount(), address())], with_primary()))


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


def iscsi() -> Files:
    block = ("monitor interval=15s timeout=40s", "start timeout=60s", "stop timeout=60s")
    target = primitive("target", "ocf:heartbeat:iSCSITarget", {"iqn": "iqn.2020-01.org.example:data"}, *block)
    unit = primitive(
        "lun",
        "ocf:heartbeat:iSCSILogicalUnit",
        {"target_iqn": "iqn.2020-01.org.example:data", "lun": "0", "path": "/dev/drbd0"},
        *block,
    )
    return files(cib([*both(), promotable(), group("grp", address(), target, unit)], with_primary()))


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


def service_of_systemd() -> Files:
    unit = primitive(
        "db", "systemd:postgresql", {}, "monitor interval=30s timeout=60s", "start timeout=100s", "stop timeout=100s"
    )
    away = [
        element("rsc_location", id=f"not-{node}", rsc=f"fence_{node}", node=node, score="-INFINITY") for node in (A, B)
    ]
    return files(cib([*both(), promotable(), group("grp", mount(), unit, address())], [*with_primary(), *away]))


def active_active() -> Files:
    """Two resources of DRBD, each at home on another node."""
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


STYLES: Mapping[str, Callable[[], Files]] = {
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
    "ZFS pools of OSTs": zfs_oss,
    "Lustre on a SAN": lustre_on_san,
    "Lustre by Filesystem": lustre_by_filesystem,
    "a SAN with reservations": san_with_reservations,
    "opt-in": opt_in,
    "Corosync 2": corosync2,
    "three copies": three_copies,
    "priorities": priorities,
    "random delays": random_delays,
    "kdump before the BMC": kdump_first,
    "two outlet strips": two_outlets,
    "a quorum device for the last man": last_man_device,
    "GFS2 on two primaries": gfs2,
    "virtual machines": virtual_machines,
    "a monitor of the network": network_monitor,
    "other spellings": other_spellings,
    "iSCSI": iscsi,
    "other controllers": other_controllers,
    "a service of systemd": service_of_systemd,
    "active/active": active_active,
}
