"""The lab's cluster: planned as any other, with stand-ins for what a namespace cannot have (DRBD's device, and its mount)."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

from strakes.failover.description import Alerts, Bmc, Cluster, FileSystem, Network, Node, Target
from strakes.failover.planned.corosync import corosync_file
from strakes.failover.planned.pacemaker import pacemaker_file

NODES = ("a", "b")
TARGET = "journal"
PASSWORD = "lab"
USER = "fence"


def cluster(directory: Path, token_s: float) -> Cluster:
    """Two nodes, two heartbeat links, a management network with a BMC each."""
    networks = (
        Network("first", "10.1.0.0/24", heartbeat=True),
        Network("second", "10.2.0.0/24", heartbeat=True, replication=True),
        Network("management", "10.9.0.0/24"),
    )
    nodes = tuple(
        Node(
            f"mds-{name}",
            {"first": f"10.1.0.{number}", "second": f"10.2.0.{number}"},
            ("feed-1", "feed-2"),
            Bmc(f"10.9.0.{number}", "management", USER, str(directory / "bmc-password")),
        )
        for number, name in enumerate(NODES, 1)
    )
    target = Target(TARGET, {node.name: "/dev/null" for node in nodes}, nodes[0].name, "/none", minor=0, port=7788, address="10.1.0.10/24")
    return Cluster(
        name="lab",
        drbd="9",
        survivor=nodes[0].name,
        quorum_host="",
        token_s=token_s,
        resync_mib_per_s=1,
        networks=networks,
        nodes=nodes,
        file_system=FileSystem("service", "lab", "active/standby", 0),
        targets=(target,),
        alerts=Alerts(),
    )


def corosync_text(planned: Cluster) -> str:
    return corosync_file(planned).text


def cib_text(planned: Cluster, directory: Path) -> str:
    """The planned CIB; a promotable resource without a device for DRBD, and the journal's writer for mount and address."""
    root = Xml.fromstring(pacemaker_file(planned).text)
    for primitive in root.iter("primitive"):
        if primitive.get("type") == "drbd":
            primitive.set("provider", "pacemaker")
            primitive.set("type", "Stateful")
            _drop(primitive, "instance_attributes")
        elif primitive.get("class") == "stonith":
            _set(primitive, "cipher", "3")  # the software BMC knows no newer one
            _set(primitive, "power_wait", "1")
    group = next(root.iter("group"))
    for member in list(group):
        group.remove(member)
    writer = Xml.SubElement(group, "primitive", {"id": TARGET, "class": "ocf", "provider": "heartbeat", "type": "anything"})
    values = Xml.SubElement(writer, "instance_attributes", id=f"{TARGET}-values")
    for name, value in {"binfile": str(directory / "ha.sh"), "cmdline_options": "serve"}.items():
        Xml.SubElement(values, "nvpair", id=f"{TARGET}-{name}", name=name, value=value)
    operations = Xml.SubElement(writer, "operations")
    for name, interval in (("monitor", "5s"), ("start", "0s"), ("stop", "0s")):
        Xml.SubElement(operations, "op", id=f"{TARGET}-{name}", name=name, interval=interval, timeout="60s")
    properties = next(root.iter("cluster_property_set"))
    # A node that has just started does not wait 20 s for a coordinator that may be there.
    Xml.SubElement(properties, "nvpair", id="lab-dc-deadtime", name="dc-deadtime", value="4s")
    return Xml.tostring(root, encoding="unicode")


def bmc_text(number: int, name: str, script: Path) -> str:
    """Configuration of the software BMC of a node."""
    levels = "".join(f" allowed_auths_{level} none md2 md5 straight\n" for level in ("callback", "user", "operator", "admin"))
    return (
        f'name "mds-{name}"\nset_working_mc 0x20\nstartlan 1\n addr 10.9.0.{number} 623\n priv_limit admin\n{levels}'
        f' guid a123456789abcdefa123456789abcde{number}\nendlan\nchassis_control "{script} power {name}"\n'
        f'user 1 true "" "unused" user 10 none md2 md5 straight\nuser 2 true "{USER}" "{PASSWORD}" admin 10 none md2 md5 straight\n'
    )


BMC_EMULATION = (
    "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nsel_enable 0x20 1000 0x0a\nmc_enable 0x20\n"
)


def _drop(element: Xml.Element, tag: str) -> None:
    for child in element.findall(tag):
        element.remove(child)


def _set(primitive: Xml.Element, name: str, value: str) -> None:
    block = primitive.find("instance_attributes")
    assert block is not None
    pair = next((pair for pair in block if pair.get("name") == name), None)
    if pair is None:
        pair = Xml.SubElement(block, "nvpair", id=f"{primitive.get('id')}-{name}", name=name)
    pair.set("value", value)
