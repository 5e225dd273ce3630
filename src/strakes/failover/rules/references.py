"""Rules about references within the configuration: nodes, resources and attributes that do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from xml.etree import ElementTree as Xml

from strakes.failover.blocks import Block
from strakes.failover.cib import Cib
from strakes.failover.pacemaker_resources import WATCHERS
from strakes.failover.replication import Resource
from strakes.failover.rules.heartbeat import hosts_of, links_of, name_of, nodes_of
from strakes.failover.rules.lustre import made_targets, nids_of
from strakes.failover.rules.rule import DRBD_CONF, DRBD_PACEMAKER, OWN, PACEMAKER, PING, QDEVICE, rule
from strakes.failover.setup import Setup

# Watchers that ask others whether they are there.
_ASKING = WATCHERS.keys() - {"ethmonitor"}
# Attributes that nobody in the configuration sets: Pacemaker's own, and those of agents that set them under several
# names.
_OWN_ATTRIBUTES = re.compile(
    r"#(uname|id|kind|is_dc|cluster-name|site-name|role|ra-version|node-unfenced|feature-set|digests-.*|health.*)|"
    r"(master|fail-count|last-failure|probe_complete|shutdown|terminate).*"
)
_SETS_OTHERS = ("attribute", "SysInfo", "HealthCPU", "HealthSMART", "HealthIOWait", "ClusterMon", "NodeUtilization")
_WELL_KNOWN_PORTS = ("22", "80", "111", "443", "623", "2049", "2224", "3121", "5404", "5405", "5406", "21064")


@rule("pacemaker").error(
    reason="A constraint for a node that does not exist has no effect. It was probably meant for a node that now has "
    "none.",
    remedy="Use the name that crm_node -l prints.",
    source=f"{PACEMAKER}/constraints.rst",
)
def constraint_names_unknown_node(setup: Setup) -> Iterator[str]:
    """Find location constraints for nodes that do not exist."""
    known = setup.node_names
    for element in setup.pacemaker.root.iterfind("./configuration/constraints/rsc_location"):
        named = [element.get("node", "")] if element.get("node") else []
        named += [part.get("value", "") for part in element.iter("expression") if part.get("attribute") == "#uname"]
        for name in named:
            if known and name not in known:
                yield f"cib: {element.get('id')} names {name}, which is no node"


def _set_attributes(cib: Cib) -> set[str]:
    """Return the attributes of nodes that something in the configuration sets."""
    found = {name for attributes in cib.node_attributes.values() for name in attributes}
    for primitive in cib.primitives:
        if watched := primitive.watched_attribute:
            found.add(watched)
        elif primitive.values.get("name") or primitive.values.get("attribute"):
            found |= {primitive.values.get("name", ""), primitive.values.get("attribute", "")}
    # The state of the nodes, where it is there.
    found |= {pair.get("name", "") for pair in cib.root.iterfind("./status//transient_attributes//nvpair")}
    return found


def _asked_attributes(element: Xml.Element) -> Iterator[str]:
    for part in element.iter("rule"):
        if part.get("score-attribute"):
            yield part.get("score-attribute", "")
    for part in element.iter("expression"):
        yield part.get("attribute", "")


@rule("pacemaker").warning(
    reason="The rule tests an attribute that no agent sets, so it never does what was meant: the service stays where "
    "it is, or may not run anywhere.",
    remedy="Use the name that the agent sets: its parameter name (ping: pingd; ethmonitor: ethmonitor-INTERFACE).",
    source=PING,
)
def attribute_that_nobody_sets(setup: Setup) -> Iterator[str]:
    """Find location constraints on attributes that nothing sets."""
    cib = setup.pacemaker
    known = _set_attributes(cib)
    if any(primitive.agent in _SETS_OTHERS for primitive in cib.primitives):
        return
    for element in cib.root.iterfind("./configuration/constraints/rsc_location"):
        for name in dict.fromkeys(_asked_attributes(element)):
            if name not in known and not _OWN_ATTRIBUTES.fullmatch(name):
                yield f"cib: {element.get('id')} tests the attribute {name}"


@rule("pacemaker").error(
    reason="The level is for nodes with an attribute that no node has, so it is never used.",
    remedy="target=NODE, or set the attribute on the nodes.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_level_for_unset_attribute(setup: Setup) -> Iterator[str]:
    """Find fencing levels for attributes or names that no node has."""
    cib = setup.pacemaker
    for level in cib.levels:
        name, wanted = level.get("target-attribute", ""), level.get("target-value", "")
        if name and not any(attributes.get(name) == wanted for attributes in cib.node_attributes.values()):
            yield f"cib: level {level.get('id')} is for {name}={wanted}, which no node has"
        pattern = level.get("target-pattern")
        if pattern and setup.node_names and not any(re.search(pattern, node) for node in setup.node_names):
            yield f"cib: level {level.get('id')} is for {pattern}, which no node's name has in it"


@rule("pacemaker").warning(
    reason="A device that waits for a service, or is colocated with it, stops with it, and is not there when it is "
    "needed.",
    remedy="Remove orders and colocations of fencing devices; Pacemaker can use them wherever it runs.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_device_tied_to_a_resource(setup: Setup) -> Iterator[str]:
    """Find orders and colocations of fencing devices."""
    devices = {primitive.id for primitive in setup.pacemaker.primitives if primitive.standard == "stonith"}
    for order in setup.pacemaker.orders:
        for name in sorted({order.first, order.then} & devices):
            yield f"cib: {order.id} orders {name}"
    for colocation in setup.pacemaker.colocations:
        for name in sorted({part[0] for part in colocation.resources} & devices):
            # That the two devices are not on one node does no harm.
            if colocation.score > 0:
                yield f"cib: {colocation.id} places {name}"


@rule("pacemaker", "drbd").error(
    reason="Pacemaker then promotes the copy where the service was placed, instead of placing the service where there "
    "is a good copy: it may choose an outdated copy.",
    remedy="rsc=SERVICE with-rsc=DRBD-CLONE with-rsc-role=Promoted",
    source=DRBD_PACEMAKER,
)
def colocation_reversed(setup: Setup) -> Iterator[str]:
    """Find colocations that place DRBD where its user is, not the user where DRBD is promoted."""
    cib = setup.pacemaker
    clones = {primitive.clone for primitive in cib.primitives if primitive.is_drbd and primitive.clone}
    for element in cib.constraints("rsc_colocation"):
        if element.get("rsc", "") in clones and element.get("with-rsc", "") not in clones | {""}:
            yield f"cib: {element.get('id')} places {element['rsc']} with {element['with-rsc']}"


@rule("pacemaker", "corosync").error(
    reason="Pacemaker identifies nodes by Corosync's ids: an entry with a different id is a second node of that name, "
    "which is never online.",
    remedy="Let Pacemaker write the nodes section itself, or use the nodeid from corosync.conf.",
    source=OWN,
)
def node_id_differs(setup: Setup) -> Iterator[str]:
    """Find nodes with one id in Pacemaker and another in Corosync."""
    ids = {name_of(node): node.get("nodeid") for node in nodes_of(setup) if name_of(node) and node.get("nodeid")}
    for node in setup.pacemaker.root.iterfind("./configuration/nodes/node"):
        name, given = node.get("uname", ""), node.get("id", "")
        if node.get("type", "member") in ("member", "normal") and given.isdecimal() and ids.get(name, given) != given:
            yield f"cib: {name} has the id {given}, nodeid {ids[name]} in corosync.conf"


def _own_addresses(setup: Setup) -> dict[str, str]:
    own = {address: name_of(node) or "a node" for node in nodes_of(setup) for address in links_of(node).values()}
    for node in setup.cluster.nodes if setup.cluster else ():
        own |= dict.fromkeys(node.addresses.values(), node.name)
    for words in made_targets(setup):
        for nid in nids_of(words, "servicenode"):
            own.setdefault(nid.partition("@")[0], "a server of Lustre")
    return own


@rule("pacemaker").error(
    reason="A node always reaches its own address, and the other node's address fails only when that node is off: "
    "neither shows whether clients can be reached.",
    remedy="Set host_list to machines that are always there: the gateway and several clients.",
    source=PING,
)
def watcher_pings_cluster_nodes(setup: Setup) -> Iterator[str]:
    """Find watchers that ask an address of the cluster itself."""
    own = _own_addresses(setup)
    names = hosts_of(setup)
    own |= {
        names[text]: name_of(node) or "a node"
        for node in nodes_of(setup)
        for text in links_of(node).values()
        if text in names
    }
    moving = {primitive.values.get("ip", ""): primitive.id for primitive in setup.pacemaker.services}
    for primitive in setup.pacemaker.services:
        hosts = primitive.values.get("host_list", "").split()
        if primitive.agent not in _ASKING or not hosts:
            continue
        for host in hosts:
            address = host.partition("@")[0]
            other = own.get(address) or moving.get(address) or ("the node" if address.startswith("127.") else "")
            if other or address in setup.node_names:
                yield f"cib: {primitive.id} watches {host}, which is {other or address}"


@rule("pacemaker").error(
    reason="The attribute is the number of hosts that answer times the multiplier: with 0 or less, a connected node is "
    "never better than the others.",
    remedy="Set multiplier above resource-stickiness, for example 20000.",
    source=PING,
)
def ping_multiplier_not_positive(setup: Setup) -> Iterator[str]:
    """Find watchers whose answer counts for nothing."""
    for primitive in setup.pacemaker.services:
        given = primitive.values.get("multiplier", "1")
        if primitive.agent in _ASKING and re.fullmatch(r"-?\d+", given) and int(given) <= 0:
            yield f"cib: {primitive.id} has multiplier={given}"


@rule("corosync").error(
    reason="The tie breaker is no node, or the quorum device is looked for where it cannot be: there is no vote when "
    "it is needed.",
    remedy="tie_breaker: lowest, highest or a nodeid; port: 5403; totem: cluster_name.",
    source=QDEVICE,
)
def quorum_device_reference_wrong(setup: Setup) -> Iterator[str]:
    """Find names, ports and programs of the quorum device that do not fit."""
    ids = {node.get("nodeid") for node in nodes_of(setup)}
    bmcs = {node.bmc.address: node.name for node in setup.cluster.nodes} if setup.cluster else {}
    for device in setup.membership.one("quorum").all("device"):
        net = device.one("net")
        chosen, port = net.get("tie_breaker", "lowest"), net.get("port", "5403")
        if chosen not in ("lowest", "highest", *ids):
            yield f"corosync.conf: tie_breaker: {chosen} is no nodeid"
        if port in _WELL_KNOWN_PORTS:
            yield f"corosync.conf: port: {port} of the device is another service's"
        if net.get("host") in bmcs:
            yield f"corosync.conf: the device is on the BMC of {bmcs[net.get('host')]}"
        if device.get("model") == "net" and not setup.membership.one("totem").get("cluster_name"):
            yield "corosync.conf: a device, and no cluster_name"
        heuristics = device.one("heuristics")
        if heuristics.get("mode") in ("on", "sync") and not any(
            key.startswith("exec_") for key, _ in heuristics.settings
        ):
            yield "corosync.conf: heuristics without exec_NAME"


@rule("drbd").error(
    reason="drbdadm refuses this: both sides of a connection need a node-id of their own, and an on section with their "
    "name.",
    remedy="node-id 0 and node-id 1; write the names of the on sections in host.",
    source=DRBD_CONF,
)
def replication_hosts_contradict(setup: Setup) -> Iterator[str]:
    """Find ids and connections of DRBD hosts that contradict each other."""
    for resource in setup.drbd:
        ids = [block.get("node-id") for block in resource.block.all("on") if block.get("node-id")]
        for number in sorted({number for number in ids if ids.count(number) > 1}):
            yield f"drbd: {resource.name} has node-id {number} twice"
        sides = {word for block in resource.block.all("on") for word in block.words}
        connections = [*resource.block.all("connection"), *resource.block.all("connection-mesh")]
        for block in (part for connection in connections for part in (connection, *connection.all("path"))):
            for key, text in block.settings:
                names = text.split()[:1] if key == "host" else text.split() if key == "hosts" else []
                for name in names:
                    if sides and name not in sides:
                        yield f"drbd: {resource.name} connects {name}, which has no on section"
        if connections:
            yield from _unconnected(resource.name, sorted(sides), connections)


def _unconnected(name: str, sides: list[str], connections: list[Block]) -> Iterator[str]:
    """Find pairs of hosts without a connection between them."""
    joined = list[set[str]]()
    for connection in connections:
        parts = (connection, *connection.all("path"))
        listed = [text.split() for key, text in connection.settings if key == "hosts"]
        joined.append({text.split()[0] for part in parts for key, text in part.settings if key == "host" and text})
        joined += [set(names) for names in listed]
    for one, other in combinations(sides, 2):
        if not any({one, other} <= names for names in joined):
            yield f"drbd: {name} has no connection between {one} and {other}"


@rule("drbd", "pacemaker").error(
    reason="The replicated device has another number on this node, so the device that is mounted does not exist there: "
    "the take-over fails.",
    remedy="Use the same device and minor on both sides; or /dev/drbd/by-res/RESOURCE/VOLUME in the resource.",
    source=DRBD_CONF,
)
def drbd_device_differs_between_nodes(setup: Setup) -> Iterator[str]:
    """Find devices that are mounted by a number that only one side has."""
    used = {one.device: one.id for one in setup.pacemaker.services}
    for resource in setup.drbd:
        for devices in _devices_that_differ(resource):
            for device in devices:
                if device in used:
                    yield f"drbd: {resource.name} is {' and '.join(devices)}, {used[device]} uses {device}"


def _devices_that_differ(resource: Resource) -> Iterator[list[str]]:
    for number in sorted({number for host in resource.hosts for number in host.volumes}):
        given = {host.volumes[number][0] for host in resource.hosts if number in host.volumes} - {""}
        if len(given) > 1:
            yield sorted(given)


@rule("drbd").warning(
    reason="Ports and minors may differ between the sides, but usually one was changed and the other forgotten; "
    "firewall rules may match only one.",
    remedy="Use the same port and minor on both sides.",
    source=DRBD_CONF,
)
def replication_sides_differ(setup: Setup) -> Iterator[str]:
    """Find DRBD resources with different ports or devices on their two sides."""
    used = {one.device for one in setup.services}
    for resource in setup.drbd:
        for devices in _devices_that_differ(resource):
            if not used & set(devices):
                yield f"drbd: {resource.name} is {' and '.join(devices)}"
        ports = [tuple(address.rpartition(":")[2] for address in host.addresses) for host in resource.hosts]
        if len(ports) == 2 and all(ports) and ports[0] != ports[1]:
            yield f"drbd: {resource.name} has the ports {' and '.join(','.join(side) for side in ports)}"
