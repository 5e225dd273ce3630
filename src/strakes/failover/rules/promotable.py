"""Rules about services that promote one of their copies themselves, other than DRBD: databases and the like."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.cib import Cib
from strakes.failover.cib_values import is_true
from strakes.failover.known_options import options_of
from strakes.failover.pacemaker_resources import WATCHERS, Primitive
from strakes.failover.rules.fencing_devices import plug_of
from strakes.failover.rules.mounts import ADDRESSES
from strakes.failover.rules.rule import AGENTS, DRBD_PACEMAKER, PACEMAKER, rule
from strakes.failover.setup import Setup

_AGENTS = "https://github.com/ClusterLabs/resource-agents/tree/main/heartbeat"
# Parameters that hold the names of nodes, whatever stands around them.
_NODE_LISTS = ("node_list", "wsrep_cluster_address", "cluster_host_map")
# Parameters that hold an address which another resource brings up.
_HELD = ("master_ip", "replication_ip", "public_ip", "db_ip", "listen_ip", "bind_ip")
_NUMBERS_OF_PORTS = re.compile(r"(\w*_)?port(no)?|pgport|remote-port")


def _promotable(cib: Cib) -> Iterator[Primitive]:
    for one in cib.services:
        if not one.is_drbd and cib.promotable(one.clone):
            yield one


def _most(cib: Cib, one: Primitive) -> str:
    meta = cib.clones.get(one.clone, {})
    return meta.get("promoted-max") or meta.get("master-max", "1")


@rule("pacemaker").error(
    reason="The agent learns from notifications which copy is promoted on which node; without them no copy is "
    "promoted, or the wrong one.",
    remedy="notify=true on the clone.",
    source="https://clusterlabs.github.io/PAF/configuration.html",
)
def notify_not_set(setup: Setup) -> Iterator[str]:
    """Find clones without notifications whose agent needs them."""
    cib = setup.pacemaker
    for one in cib.services:
        if one.clone not in cib.clones:
            continue
        needs = one.agent in options_of("agents that are notified")
        if needs and not is_true(cib.clones[one.clone].get("notify", "false")):
            yield f"cib: {one.clone} ({one.agent}) has no notify=true"


@rule("pacemaker").error(
    reason="If two copies are promoted at a time, each takes writes that the other never sees; but Galera needs all of "
    "its copies promoted.",
    remedy="promoted-max=1; for Galera the number of nodes.",
    source=_AGENTS,
)
def number_of_promoted_copies_wrong(setup: Setup) -> Iterator[str]:
    """Find clones that promote more, or fewer, copies than their agent can have."""
    cib = setup.pacemaker
    for one in cib.services:
        alone = one.agent in options_of("agents with one promoted copy")
        if alone and one in tuple(_promotable(cib)) and _most(cib, one) != "1":
            yield f"cib: {one.clone} ({one.agent}) promotes {_most(cib, one)} copies"
        if one.agent == "galera" and one.clone and int_of(_most(cib, one)) < len(cib.members_of_corosync):
            yield f"cib: {one.clone} promotes {_most(cib, one)} of {len(cib.members_of_corosync)} copies of Galera"
        modes = one.agent == "pgsqlms" or one.values.get("rep_mode", "none") not in ("none", "slave")
        if modes and alone and not cib.promotable(one.clone):
            yield f"cib: {one.id} ({one.agent}) is a replicated service, but not promotable"
        if one.agent == "pgsql" and not modes and one in tuple(_promotable(cib)):
            yield f"cib: {one.clone} is promotable, {one.id} has no rep_mode"


def int_of(text: str) -> int:
    """Return a number, 0 for what is none."""
    return int(text) if re.fullmatch(r"\d{1,9}", text) else 0


@rule("pacemaker").error(
    reason="Only the promoted copy takes writes. A resource that is colocated with any copy, or ordered after its "
    "start only, may run with a standby.",
    remedy="Use a colocation with the role Promoted, and an order: promote the clone, then start.",
    source="https://github.com/ClusterLabs/PAF/issues/199",
)
def not_tied_to_the_promoted_copy(setup: Setup) -> Iterator[str]:
    """Find addresses and the like that are tied to a promotable clone, and not to its promoted copy."""
    cib = setup.pacemaker
    clones = {one.clone for one in _promotable(cib) if _most(cib, one) == "1"}
    with_promoted: dict[str, set[str]] = {}
    for tie in cib.colocations:
        if tie.resources[1][0] in clones and tie.resources[1][1] == "Promoted" and tie.score > 0:
            with_promoted.setdefault(tie.resources[1][0], set()).add(tie.resources[0][0])
    for tie in cib.colocations:
        (one, _), (clone, role) = tie.resources
        carries = any(member.agent in ADDRESSES for member in cib.ties.members(one))
        if clone in clones and carries and tie.score > 0 and role != "Promoted" and clone not in with_promoted:
            yield f"cib: {tie.id} keeps {one} with {clone}, and not with its promoted copy"
    for order in cib.orders:
        ours = with_promoted.get(order.first, set())
        if order.then in ours and order.mandatory and order.first_action == "start":
            yield f"cib: {order.id} orders {order.then} after the start of {order.first}, not after its promotion"


@rule("pacemaker").error(
    reason="Nothing keeps the address with a service: it may be on one node, and the service on the other.",
    remedy="Put the address into the group of its service, or add a colocation with the service or its promoted copy.",
    source="https://github.com/ClusterLabs/PAF/issues/199",
)
def address_not_tied_to_a_service(setup: Setup) -> Iterator[str]:
    """Find addresses that are kept with nothing, in a cluster with services."""
    cib = setup.pacemaker
    serving = [one for one in cib.services if one.agent not in (*ADDRESSES, *WATCHERS, "SysInfo", "remote")]
    tied = {name for tie in cib.colocations for name, _ in tie.resources if tie.score > 0}
    for one in cib.services if serving else ():
        mates = cib.groups.get(one.group, (one,))
        names = {one.id, one.group, *(mate.id for mate in mates)} - {""}
        only_addresses = all(mate.agent in ADDRESSES for mate in mates)
        if one.agent in ADDRESSES and not one.clone and only_addresses and not names & tied:
            yield f"cib: {one.id} has no colocation"


@rule("pacemaker").error(
    reason="The agent compares this list with the names of the nodes: a node missing from the list is never promoted "
    "or never joins, and a name that is no node is waited for.",
    remedy="List all names as crm_node --list prints them.",
    source="https://github.com/ClusterLabs/resource-agents/issues/1846",
)
def list_of_nodes_differs(setup: Setup) -> Iterator[str]:
    """Find lists of nodes in parameters that are not the nodes on which the service runs."""
    cib = setup.pacemaker
    for one in cib.services:
        for name in _NODE_LISTS:
            words = set(re.split(r"[\s,;]+|\w+://", one.values.get(name, ""))) - {""}
            given = {re.sub(r":\d+$", "", word) for word in words}
            # Addresses and names of another network may be meant.
            mapped = one.values.get("cluster_host_map") or one.values.get("pgconn")
            strange = sorted(word for word in given - set(cib.nodes) if not re.search(r"[.:]", word))
            if strange and not mapped:
                yield f"cib: {one.id} has {', '.join(strange)} in {name}, which are no nodes"
            missing = sorted(set(cib.members_of_corosync) - given)
            if given and not strange and missing and len(given) < int_of(_copies(cib, one)):
                yield f"cib: {one.id} has no {', '.join(missing)} in {name}"


def _copies(cib: Cib, one: Primitive) -> str:
    return cib.clones.get(one.clone, {}).get("clone-max") or str(len(cib.members_of_corosync))


@rule("pacemaker").error(
    reason="The copies look for the promoted one at an address that no resource adds and no node has.",
    remedy="Use the ip of the IPaddr2 resource that is colocated with the promoted copy.",
    source=f"{AGENTS}/pgsql",
)
def promoted_address_without_a_resource(setup: Setup) -> Iterator[str]:
    """Find addresses in parameters that no resource has."""
    cib = setup.pacemaker
    brought = {one.values.get("ip", "") for one in cib.services if one.agent in ADDRESSES}
    for one in cib.services:
        for name in _HELD:
            address = one.values.get(name, "")
            if address and brought and re.fullmatch(r"[\d.]+|[\da-fA-F:]+", address) and address not in brought:
                yield f"cib: {one.id} has {name}={address}"


@rule("pacemaker").error(
    reason="Ports are numbers from 1 to 65535.",
    remedy="Write the port on which the service listens.",
    source=f"{PACEMAKER}/resources.rst",
)
def port_out_of_range(setup: Setup) -> Iterator[str]:
    """Find parameters that are called a port and are none, URLs with such a port, and ports of containers."""
    for one in setup.pacemaker.primitives:
        for name, value in one.values.items():
            # An outlet of a power strip is called a port, too; a list of ports has commas.
            listed = value.split(",") if _NUMBERS_OF_PORTS.fullmatch(name) and one.standard != "stonith" else []
            for word in (*listed, *re.findall(r"://[^/\s]+:(\d+)", value)):
                if _is_no_port(word):
                    yield f"cib: {one.id} has {name}={value}"
    for bundle in setup.pacemaker.root.iter("bundle"):
        for mapping in bundle.iter("port-mapping"):
            for key in ("port", "internal-port"):
                if _is_no_port(mapping.get(key, "1")):
                    yield f"cib: {bundle.get('id')} has {key}={mapping.get(key)}"


def _is_no_port(word: str) -> bool:
    return bool(re.fullmatch(r"\d+", word.strip())) and not 0 < int(word) < 65536


@rule("pacemaker").error(
    reason="A copy of DRBD is promoted so that its device can be used. No resource is colocated with the promoted copy "
    "or ordered after its promotion: what uses the device may run on the other node, or start too early.",
    remedy="Add a colocation with the role Promoted, and an order: promote the clone, then start.",
    source=DRBD_PACEMAKER,
)
def nothing_tied_to_the_promoted_copy(setup: Setup) -> Iterator[str]:
    """Find promotable clones of DRBD with which nothing is kept, or for which nothing waits."""
    cib = setup.pacemaker
    users = [one for one in cib.services if not one.is_drbd and one.agent not in ADDRESSES]
    near = {name for tie in cib.colocations for name, role in tie.resources if role == "Promoted"}
    first = {order.first for order in cib.orders if order.first_action == "promote"}
    for one in cib.services if users else ():
        names = {one.id, one.clone}
        if one.is_drbd and one.clone and _most(cib, one) == "1" and not names & near:
            yield f"cib: no resource is colocated with the promoted copy of {one.clone}"
        if one.is_drbd and one.clone and _most(cib, one) == "1" and not names & first:
            yield f"cib: no resource is ordered after the promotion of {one.clone}"


@rule("pacemaker").error(
    reason="The device powers off the machine that has the name of another node: the healthy node is lost, and the "
    "silent one keeps running.",
    remedy="Set port (plug) to the machine of the node in pcmk_host_list.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_device_names_another_node(setup: Setup) -> Iterator[str]:
    """Find fencing devices for one node with the name of another one as their machine."""
    cib = setup.pacemaker
    for device in cib.devices:
        targets = cib.fences(device)
        for node in targets if len(targets) == 1 or "pcmk_host_map" in device.values else ():
            machine = plug_of(device, node)
            if machine in cib.nodes and machine != node:
                yield f"cib: {device.id} is for {node}, but cuts the power of {machine}"
