"""Parts of good configurations as other tools and people write them: CIB elements, corosync.conf, DRBD resources."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
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


def pairs_of(text: str) -> dict[str, str]:
    """Return the settings of ``NAME=VALUE NAME='VALUE WITH SPACES'``."""
    return dict(word.split("=", 1) for word in shlex.split(text))


def tag(text: str, *children: Xml.Element) -> Xml.Element:
    """Return the element of a text such as ``rsc_order id=o first=a then=b``."""
    name, _, rest = text.partition(" ")
    made = Xml.Element(name, pairs_of(rest))
    made.extend(children)
    return made


def primitive(text: str, *operations: str) -> Xml.Element:
    """Return the primitive of ``ID KIND NAME=VALUE... [meta NAME=VALUE...] [op NAME NAME=VALUE...]...``.

    ``operations``, such as ``monitor interval=20s timeout=60s role=Master``, are used if the text has none.
    """
    head, *blocks = re.split(r" (?=(?:op|meta) )", text)
    identity, kind, *words = shlex.split(head)
    standard, _, agent = kind.partition(":")
    provider, _, agent = agent.rpartition(":") if standard == "ocf" else ("", "", agent)
    given = {"id": identity, "class": standard} | ({"provider": provider} if provider else {}) | {"type": agent}
    made = Xml.Element("primitive", given)
    made.append(values("instance_attributes", dict(word.split("=", 1) for word in words)))
    made.extend(values("meta_attributes", pairs_of(block[5:])) for block in blocks if block.startswith("meta "))
    own = [block[3:] for block in blocks if block.startswith("op ")]
    made.append(operations_of(identity, own or operations))
    return made


def primitives(text: str, *operations: str) -> list[Xml.Element]:
    """Return one primitive for each line."""
    return [primitive(line.strip(), *operations) for line in text.strip().splitlines()]


def fence(text: str) -> Xml.Element:
    """Return a fencing device, ``ID AGENT NAME=VALUE...``, with a monitor."""
    return primitive(text.replace(" ", " stonith:", 1), "monitor interval=60s timeout=60s")


def fence_each(text: str, delay: str = "10s", delayed: str = A) -> list[Xml.Element]:
    """Return a fencing device for each node, from a text with {node} and {number}; one of them has a delay."""
    texts = {node: text.format(node=node, number=number) for number, node in ((1, A), (2, B))}
    return [fence(f"{own} pcmk_delay_base={delay}" if node == delayed else own) for node, own in texts.items()]


def operations_of(identity: str, operations: Sequence[str]) -> Xml.Element:
    block = element("operations")
    for text in operations:
        name, _, rest = text.partition(" ")
        given = {"id": f"{identity}-{next(IDS)}", "name": name, "interval": "0s"}
        block.append(Xml.Element("op", given | pairs_of(rest)))
    return block


def group(identity: str, *members: Xml.Element, meta: str = "") -> Xml.Element:
    block = [values("meta_attributes", pairs_of(meta))] if meta else []
    return element("group", *block, *members, id=identity)


def clone(identity: str, member: Xml.Element, meta: str = "", *, tag: str = "clone") -> Xml.Element:
    return element(tag, values("meta_attributes", pairs_of(meta)), member, id=identity)


def times(interval: int, timeout: int, start: int, stop: int) -> tuple[str, str, str]:
    """Return the operations of a resource, from times in seconds."""
    return f"monitor interval={interval}s timeout={timeout}s", f"start timeout={start}s", f"stop timeout={stop}s"


TIMES = times(20, 40, 60, 60)
SERVED = times(20, 60, 120, 120)
LUSTRE = times(60, 300, 600, 600)
DRBD_TIMES = (
    "monitor interval=29s timeout=30s role=Promoted",
    "monitor interval=31s timeout=30s role=Unpromoted",
    "start timeout=240s",
    "stop timeout=100s",
    "promote timeout=90s",
    "demote timeout=90s",
)
OLD_DRBD_TIMES = tuple(text.replace("Unpromoted", "Slave").replace("Promoted", "Master") for text in DRBD_TIMES)
NFS_EXPORT = "clientspec=192.168.10.0/24 directory={} fsid={} options=rw,sync,no_root_squash"


def drbd(name: str = "r0", identity: str = "drbd", times: tuple[str, ...] = DRBD_TIMES) -> Xml.Element:
    return primitive(f"{identity} ocf:linbit:drbd drbd_resource={name}", *times)


def promotable(member: Xml.Element | None = None, identity: str = "drbd-clone", meta: str = "") -> Xml.Element:
    usual = {"promotable": "true", "promoted-max": "1", "clone-max": "2", "notify": "true"}
    block = values("meta_attributes", usual | pairs_of(meta))
    return element("clone", block, drbd() if member is None else member, id=identity)


def mount(
    device: str = "/dev/drbd0",
    fstype: str = "xfs",
    identity: str = "fs",
    times: tuple[str, ...] = TIMES,
    directory: str = "/srv/data",
) -> Xml.Element:
    kind = "ocf:heartbeat:Filesystem"
    return primitive(f"{identity} {kind} device={device} directory={directory} fstype={fstype}", *times)


def address(ip: str = "192.168.10.50", identity: str = "vip", more: str = "") -> Xml.Element:
    return primitive(f"{identity} ocf:heartbeat:IPaddr2 ip={ip} cidr_netmask=24 {more}", *times(10, 20, 20, 20))


def volume(name: str = "my_vg", more: str = "vg_access_mode=system_id") -> Xml.Element:
    return primitive(f"lvm_{name} ocf:heartbeat:LVM-activate vgname={name} {more}", *times(30, 90, 90, 90))


def nfs() -> list[Xml.Element]:
    server = "nfsd ocf:heartbeat:nfsserver nfs_shared_infodir=/srv/data/nfsinfo"
    export = f"export ocf:heartbeat:exportfs {NFS_EXPORT.format('/srv/data/home', 1)}"
    return [
        mount(),
        primitive(server, *times(10, 20, 40, 20)),
        primitive(export, *times(10, 20, 40, 120)),
        address(),
    ]


def ipmi(node: str, number: int, more: str = "") -> Xml.Element:
    """Return an IPMI fencing device; the device for alpha has a delay, unless ``pcmk_delay_base=`` removes it."""
    pairs = pairs_of(
        f"ip=192.168.30.{number} username=admin password_script=/etc/cluster/pw lanplus=1 pcmk_host_list={node} "
        f"{'pcmk_delay_base=15s' if node == A else ''} {more}"
    )
    given = " ".join(f"{name}={value}" for name, value in pairs.items() if value)
    return primitive(f"fence_{node} stonith:fence_ipmilan {given}", "monitor interval=60s")


def both(more: str = "") -> list[Xml.Element]:
    return [ipmi(A, 1, more), ipmi(B, 2, more)]


def all_three() -> list[Xml.Element]:
    return [ipmi(A, 1, "pcmk_delay_base="), ipmi(B, 2), ipmi(C, 3)]


def with_primary(
    what: str = "grp", score: str = INFINITY, role: str = "Promoted", to: str = "drbd-clone"
) -> list[Xml.Element]:
    kind = f"score={INFINITY}" if role == "Master" else "kind=Mandatory"
    return [
        tag(f"rsc_colocation id=col rsc={what} with-rsc={to} score={score} with-rsc-role={role}"),
        tag(f"rsc_order id=ord first={to} first-action=promote then={what} then-action=start {kind}"),
    ]


def near(what: str, base: str, score: str = INFINITY, more: str = "") -> Xml.Element:
    return tag(f"rsc_colocation id=col-{what}-{base} rsc={what} with-rsc={base} score={score} {more}")


def after(first: str, then: str, more: str = "") -> Xml.Element:
    return tag(f"rsc_order id=ord-{first}-{then} first={first} then={then} {more}")


def home(what: str, node: str, score: str = "50") -> Xml.Element:
    return tag(f"rsc_location id=loc-{what}-{node} rsc={what} node={node} score={score}")


def banned_where(what: str, *tests: str) -> Xml.Element:
    """Return a location that bans the nodes for which one of the tests (``attribute=A operation=lt ...``) is true."""
    rows = [tag(f"expression id=e{number}-{what} {test}") for number, test in enumerate(tests, 1)]
    either = "boolean-op=or" if len(tests) > 1 else ""
    return tag(f"rsc_location id=l-{what} rsc={what}", tag(f"rule id=r-{what} score=-INFINITY {either}", *rows))


def levels(*devices: str) -> Xml.Element:
    """Return the fencing levels of both nodes, from the devices of each level; {node} stands for the name."""
    rows = [
        tag(f"fencing-level id=fl-{node}-{index} target={node} index={index} devices={names.format(node=node)}")
        for node in (A, B)
        for index, names in enumerate(devices, 1)
    ]
    return element("fencing-topology", *rows)


def cib(
    resources: list[Xml.Element],
    constraints: list[Xml.Element],
    *,
    nodes: tuple[str, ...] = (A, B),
    properties: str = "",
    defaults: str = "resource-stickiness=200",
    operations: str = "",
    others: tuple[Xml.Element, ...] = (),
) -> str:
    basic = {"have-watchdog": "false", "stonith-enabled": "true", "cluster-infrastructure": "corosync"}
    options = element("cluster_property_set", *values("x", basic | pairs_of(properties)), id="cib-bootstrap-options")
    named = [element("node", id=str(number), uname=name) for number, name in enumerate(nodes, 1)]
    parts = [
        element("crm_config", options),
        element("nodes", *named),
        element("resources", *resources),
        element("constraints", *constraints),
        *others,
        element("rsc_defaults", values("meta_attributes", pairs_of(defaults))),
        *([element("op_defaults", values("meta_attributes", pairs_of(operations)))] if operations else []),
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
    lines += ["}", "quorum {", " provider: corosync_votequorum", f" {quorum}", "}", "logging {", " to_syslog: yes", "}"]
    return "\n".join([*lines, *extra]) + "\n"


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
