"""Parts of good configurations as other tools and people write them: CIB elements, corosync.conf, DRBD resources."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as Xml

Files = Mapping[str, str]
COROSYNC, CIB = "etc/corosync/corosync.conf", "pacemaker/cib.xml"
A, B, C = "alpha", "beta", "gamma"
INFINITY = "INFINITY"
IDS = itertools.count()


def element(tag: str, *children: Xml.Element, **attributes: str) -> Xml.Element:
    """Return an element; in names of attributes ``rsc_role`` becomes ``rsc-role``, and ``class_`` becomes ``class``."""
    made = Xml.Element(tag, {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()})
    made.extend(children)
    return made


def values(tag: str, pairs: Mapping[str, str]) -> Xml.Element:
    block = element(tag, id=f"set-{next(IDS)}")
    for name, value in pairs.items():
        block.append(element("nvpair", id=f"nv-{next(IDS)}", name=name, value=value))
    return block


def primitive(
    identity: str, kind: str, pairs: Mapping[str, str], *operations: str, meta: Mapping[str, str] | None = None
) -> Xml.Element:
    """Return a primitive; an operation is a text such as ``monitor interval=20s timeout=60s role=Master``."""
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
        block.append(Xml.Element("op", {"id": f"{identity}-{next(IDS)}", "name": name, "interval": "0s", **pairs}))
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
    """Return an IPMI fencing device; the device for alpha has a delay, unless ``pcmk_delay_base=""`` removes it."""
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


def write(style: Files, directory: Path) -> Path:
    for name, text in style.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory
