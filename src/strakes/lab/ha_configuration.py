"""Cluster configuration of the lab "ha", adapted from a plan of ``strakes failover``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

from strakes.base.toml_file import parse_toml
from strakes.failover.cluster import Cluster
from strakes.failover.description import described
from strakes.failover.plan import pacemaker_file
from strakes.lab.site import rendered

NODES = ("a", "b")
WEBHOOK = "webhook-address"
# Time-out in seconds of Pacemaker's agents on User-mode Linux machines. Pacemaker's default of 20 s is too short for
# the first start of a fence agent there.
_MACHINE_TIMEOUT_S = 300
# Seconds by which one node fences later than the other in a fencing race. Both nodes notice cut links within 1 s.
_NAMESPACE_DELAY_S = 3


def cluster(directory: Path, token_s: float, *, device: str, mount: str, drbd: str) -> Cluster:
    """Return a cluster of two nodes. It has two heartbeat links, and a management network with a BMC for each node."""
    text = rendered("cluster.toml", token_s=token_s, device=device, mount=mount, drbd=drbd)
    found, secret = described(parse_toml(text, "cluster.toml", "cluster")), str(directory / "bmc-password")
    nodes = (replace(node, bmc=replace(node.bmc, password_script=secret)) for node in found.nodes)
    return replace(found, nodes=tuple(nodes), alerts=replace(found.alerts, webhook_url_file=str(directory / WEBHOOK)))


def namespace_cib(planned: Cluster, directory: Path, journal: str) -> str:
    """Return the cluster's CIB for nodes that are namespaces. It has a dummy resource instead of DRBD."""
    root = _planned_cib(planned, directory)
    for primitive in root.iter("primitive"):
        if primitive.get("type") == "drbd":
            primitive.set("provider", "pacemaker")
            primitive.set("type", "Stateful")
            for child in primitive.findall("instance_attributes"):
                primitive.remove(child)
        for pair in primitive.iterfind("./instance_attributes/nvpair[@name='pcmk_delay_base']"):
            pair.set("value", f"{_NAMESPACE_DELAY_S}s")
    group = next(root.iter("group"))
    for member in list(group):
        group.remove(member)
    _add_service(group, directory, journal, "5s")
    # By default, a starting Pacemaker node waits 20 s for the answer of a coordinator (DC).
    _set_properties(root, {"dc-deadtime": "4s"})
    return Xml.tostring(root, encoding="unicode")


def machine_cib(planned: Cluster, directory: Path) -> str:
    """Return the cluster's CIB for nodes that are virtual machines. It has longer time-outs."""
    root = _planned_cib(planned, directory)
    _add_service(next(root.iter("group")), directory, planned.targets[0].mount, "120s")
    for operation in root.iter("op"):
        operation.set("timeout", f"{_MACHINE_TIMEOUT_S}s")
        if operation.get("name") == "monitor":
            operation.set("interval", "121s" if operation.get("role") == "Unpromoted" else "120s")
    configuration = next(root.iter("configuration"))
    alerts = next(configuration.iter("alerts"))
    for alert in list(alerts):
        if alert.get("id") != "alert-webhook":
            alerts.remove(alert)
        alert.insert(0, Xml.fromstring("<select><select_nodes/><select_fencing/></select>"))
    defaults = Xml.SubElement(Xml.SubElement(configuration, "op_defaults"), "meta_attributes", id="lab-operations")
    Xml.SubElement(defaults, "nvpair", id="lab-operations-timeout", name="timeout", value=f"{_MACHINE_TIMEOUT_S}s")
    _set_properties(root, {"dc-deadtime": "5s", "load-threshold": "1000%", "node-action-limit": "6"})
    return Xml.tostring(root, encoding="unicode")


def _planned_cib(planned: Cluster, directory: Path) -> Xml.Element:
    root = Xml.fromstring(pacemaker_file(planned).text)
    for primitive in root.iter("primitive"):
        if primitive.get("class") == "stonith":
            _set(primitive, "cipher", "3")  # ipmi_sim supports no newer cipher suite.
            _set(primitive, "power_wait", "1")
    for alert in root.iter("alert"):
        # In the plan, alert programs are in /etc, where a lab must not write, so use the lab's directory.
        alert.set("path", str(directory / str(alert.get("id"))))
    return root


def _add_service(group: Xml.Element, directory: Path, journal: str, every: str) -> None:
    group.append(Xml.fromstring(rendered("service.xml", lab=directory, journal=journal, every=every)))


def _set_properties(root: Xml.Element, values: Mapping[str, str]) -> None:
    properties = next(root.iter("cluster_property_set"))
    for name, value in values.items():
        Xml.SubElement(properties, "nvpair", id=f"lab-{name}", name=name, value=value)


def _set(primitive: Xml.Element, name: str, value: str) -> None:
    block = primitive.find("instance_attributes")
    assert block is not None
    pair = next((pair for pair in block if pair.get("name") == name), None)
    if pair is None:
        pair = Xml.SubElement(block, "nvpair", id=f"{primitive.get('id')}-{name}", name=name)
    pair.set("value", value)
