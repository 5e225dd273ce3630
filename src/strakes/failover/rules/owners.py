"""Rules about what belongs to one resource alone, and what it needs to be found by others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from strakes.failover.known_options import options_of
from strakes.failover.pacemaker_resources import WATCHERS, Primitive
from strakes.failover.rules.heartbeat import is_address
from strakes.failover.rules.mounts import ADDRESSES
from strakes.failover.rules.rule import AGENTS, PACEMAKER, PING, rule
from strakes.failover.setup import Setup

_OCF = "https://github.com/ClusterLabs/OCF-spec/blob/main/ra/1.1/resource-agent-api.md"
# What agents without a table call that of which there can be one only.
_UNIQUE = ("pool", "iqn", "dataset", "mountpoint")
# Other rules are about these.
_ELSEWHERE = (*ADDRESSES, "ZFS")
# What is true of the number where the network is reached.
_REACHED = (("gt", "0"), ("gte", "0"), ("gte", "1"), ("eq", "1"), ("ne", "0"))
# What the parts of a bundle take; the one without a name is the program of the containers.
_BUNDLED = {
    "": {"replicas": r"0*[1-9]\d*", "replicas-per-host": r"0*[1-9]\d*", "promoted-max": r"\d+"},
    "network": {"host-netmask": r"\d|[12]\d|3[0-2]", "host-interface": r"[\w.@-]+"},
    "storage-mapping": {"source-dir": "/.*", "source-dir-root": "/.*", "target-dir": "/.*"},
}
_ANY_ADDRESS = ("0.0.0.0", "::", "[::]")


def _unique(primitive: Primitive) -> tuple[str, ...]:
    """Return the parameters that no two resources of this agent may have in common."""
    known = options_of(f"{primitive.provider}:{primitive.agent}")
    return tuple(name for name, option in known.items() if option.unique) if known else _UNIQUE


@rule("pacemaker").error(
    reason="Two resources have the same value for a parameter that must be unique: the second one fails, or both "
    "damage what they share.",
    remedy="Give each resource its own value; the agent's metadata mark the parameter as unique.",
    source=_OCF,
)
def unique_value_used_twice(setup: Setup) -> Iterator[str]:
    """Find values that two resources of one agent share although the agent calls them unique."""
    owners: dict[tuple[str, str, str], str] = {}
    for primitive in setup.pacemaker.services:
        for name in _unique(primitive) if primitive.agent not in _ELSEWHERE else ():
            value = primitive.values.get(name, "").strip()
            other = owners.setdefault((primitive.agent, name, value), primitive.id)
            if value and other != primitive.id:
                yield f"cib: {other} and {primitive.id} have {name}={value}"


@rule("pacemaker").error(
    reason="A volume group can be active on one node only: two resources that may run on two nodes take it from each "
    "other.",
    remedy="Use one LVM-activate for each volume group, in one group with everything that uses it.",
    source=f"{AGENTS}/LVM-activate",
)
def volume_group_activated_twice(setup: Setup) -> Iterator[str]:
    """Find volume groups that several resources activate, and that are not shared by a lock manager."""
    owners: dict[str, Primitive] = {}
    for primitive in setup.pacemaker.services:
        group = primitive.values.get("vgname") or primitive.values.get("volgrpname", "")
        if primitive.agent not in ("LVM-activate", "LVM") or not group:
            continue
        other = owners.setdefault(group, primitive)
        locked = {one.values.get("vg_access_mode") for one in (primitive, other)} <= {"lvmlockd", "clvmd"}
        parts = {one.values.get("lvname", "") for one in (primitive, other)}
        one_place = primitive.group == other.group and bool(primitive.group)
        if other is not primitive and not one_place and not (locked and len(parts) == 2 and "" not in parts):
            yield f"cib: {other.id} and {primitive.id} activate {group}"


@rule("pacemaker").error(
    reason="The target listens, or portblock blocks a port, on an address that no resource brings up: clients find "
    "nothing there.",
    remedy="Use the address of the service (IPaddr2), or remove portals.",
    source=f"{AGENTS}/iSCSITarget",
)
def address_without_a_resource(setup: Setup) -> Iterator[str]:
    """Find addresses of iSCSI targets and of blocked ports that no address resource has."""
    cib = setup.pacemaker
    known = {one.values.get("ip", "") for one in cib.services if one.agent in ADDRESSES}
    for one in cib.services if known else ():
        if one.agent == "portblock":
            given = re.split(r"[,\s]+", one.values.get("ip", ""))
        elif one.agent == "iSCSITarget":
            given = [re.sub(r":\d+$", "", word).strip("[]") for word in one.values.get("portals", "").split()]
        elif one.agent == "IPsrcaddr":
            given = [one.values.get("ipaddress", "")]
        else:
            continue
        for address in given:
            if address and "/" not in address and address not in (*known, *_ANY_ADDRESS):
                yield f"cib: {one.id} has {address}, which no IPaddr2 has"


@rule("pacemaker").error(
    reason="A port that one portblock blocks before the service starts must be opened by another one after it: "
    "otherwise clients wait for ever, or are refused.",
    remedy="Last in the group: portblock with action=unblock, and the same ip, portno and protocol.",
    source=f"{AGENTS}/portblock",
)
def port_stays_blocked(setup: Setup) -> Iterator[str]:
    """Find ports that are blocked and never opened, or opened before the service listens."""
    ports = [one for one in setup.pacemaker.services if one.agent == "portblock"]
    opened = {
        tuple(one.values.get(key, "") for key in ("ip", "portno", "protocol"))
        for one in ports
        if one.values.get("action") == "unblock"
    }
    for one in ports:
        place = tuple(one.values.get(key, "") for key in ("ip", "portno", "protocol"))
        if one.values.get("action") == "block" and place not in opened:
            yield f"cib: {one.id} blocks port {place[1]} ({place[2]}) of {place[0]}, and nothing unblocks it"
    for members in setup.pacemaker.groups.values():
        for earlier, later in combinations(members, 2):
            if earlier.values.get("action") == "unblock" and earlier.agent == "portblock" != later.agent:
                yield f"cib: {earlier.id} unblocks before {later.id} has started"


@rule("pacemaker").error(
    reason="A logical unit is added to a target by the target's name and a number: if there is no such target, or the "
    "number is taken, it cannot start.",
    remedy="Set target_iqn to the iqn of the iSCSITarget, and give each unit its own lun.",
    source=f"{AGENTS}/iSCSILogicalUnit",
)
def lun_without_target(setup: Setup) -> Iterator[str]:
    """Find logical units of a target that no resource or another implementation makes, and two with one number."""
    services = setup.pacemaker.services
    targets = {one.values.get("iqn", ""): one for one in services if one.agent == "iSCSITarget"}
    units: dict[tuple[str, str], str] = {}
    for one in services:
        unit = one.values.get("lun", "") if one.agent == "iSCSILogicalUnit" else ""
        first = units.setdefault((one.values.get("target_iqn", ""), unit), one.id) if unit else one.id
        if first != one.id:
            yield f"cib: {one.id} and {first} are both lun {unit} of {one.values.get('target_iqn', '')}"
    for one in services if targets else ():
        given = one.values.get("target_iqn", "") if one.agent == "iSCSILogicalUnit" else ""
        if given and given not in targets:
            yield f"cib: {one.id} has target_iqn={given}"
        kinds = {part.values.get("implementation", "") for part in (one, targets.get(given, one))}
        if len(kinds) > 1:
            yield f"cib: {one.id} and {targets[given].id} have the implementations {' and '.join(sorted(kinds))}"


@rule("pacemaker").error(
    reason="Watchers set a number above 0 if the network is reached: a rule that bans nodes with a number above 0 bans "
    "the good ones.",
    remedy="attribute lt 1, or not_defined.",
    source=PING,
)
def network_rule_reversed(setup: Setup) -> Iterator[str]:
    """Find rules that ban the nodes on which a watcher reaches the network."""
    for constraint in setup.pacemaker.root.iterfind("./configuration/constraints/rsc_location"):
        for part in constraint.iter("rule"):
            bans = part.get("score", "").upper() == "-INFINITY"
            for test in part.iterfind("./expression") if bans else ():
                watched = re.fullmatch(r"pingd|ethmonitor-.*|lustred|lnet.*", test.get("attribute", ""))
                if watched and (test.get("operation"), test.get("value")) in _REACHED:
                    words = " ".join(test.get(key, "") for key in ("attribute", "operation", "value"))
                    yield f"cib: {constraint.get('id')} bans nodes where {words}"


@rule("pacemaker").error(
    reason="A watcher sets its attribute only on the node where it runs. On the other node the attribute is missing, "
    "and the rule bans that node.",
    remedy="Clone it.",
    source=f"{PACEMAKER}/resources.rst",
)
def network_watcher_on_one_node(setup: Setup) -> Iterator[str]:
    """Find watchers of networks that run on one node only."""
    for one in setup.pacemaker.services:
        if one.agent in WATCHERS and not one.clone:
            yield f"cib: {one.id} ({one.agent}) is in no clone"


@rule("pacemaker").error(
    reason="Two directories of the node are mapped to one directory of the container, and hide each other.",
    remedy="Give each storage-mapping a target-dir of its own.",
    source=f"{PACEMAKER}/collective.rst",
)
def container_directory_mapped_twice(setup: Setup) -> Iterator[str]:
    """Find directories and ports of containers that are given twice."""
    for bundle in setup.pacemaker.root.iter("bundle"):
        for tag, key in (("storage-mapping", "target-dir"), ("port-mapping", "port")):
            given = [one.get(key, "") for one in bundle.iter(tag)]
            for value in sorted({value for value in given if value and given.count(value) > 1}):
                yield f"cib: {bundle.get('id')} has {key}={value} twice"


@rule("pacemaker").error(
    reason="Pacemaker, or the container program, refuses these settings: no copy starts.",
    remedy="Set replicas to at least 1; use an address, a mask and a card that exist, and full paths in "
    "storage-mapping.",
    source=f"{PACEMAKER}/collective.rst",
)
def container_setting_invalid(setup: Setup) -> Iterator[str]:
    """Find bundles with values that no container can have."""
    for bundle in setup.pacemaker.root.iter("bundle"):
        name = bundle.get("id")
        runs = next((part for part in bundle if part.get("image") is not None), None)
        if runs is None or not runs.get("image", "").strip():
            yield f"cib: {name} has no image"
        for tag, keys in _BUNDLED.items():
            for part in bundle.iter(tag) if tag else [runs] if runs is not None else []:
                for key, pattern in keys.items():
                    value = part.get(key)
                    if value is not None and not re.fullmatch(pattern, value):
                        yield f"cib: {name} has {key}={value}"
        network = bundle.find("./network")
        first = network.get("ip-range-start", "") if network is not None else ""
        if first and not is_address(first):
            yield f"cib: {name} has ip-range-start={first}"


@rule("pacemaker").error(
    reason="Pacemaker cannot manage its own components, or what its agents already manage: stopping one ends the "
    "other.",
    remedy="Remove it; systemctl enable corosync pacemaker. For DRBD: ocf:linbit:drbd.",
    source=f"{PACEMAKER}/resources.rst",
)
def cluster_program_as_its_own_resource(setup: Setup) -> Iterator[str]:
    """Find units of the cluster's own programs among the services."""
    for one in setup.pacemaker.services:
        name = one.agent.removesuffix(".service")
        if one.standard in ("systemd", "lsb", "service") and name in ("pacemaker", "corosync", "sbd", "drbd", "pcsd"):
            yield f"cib: {one.id} is {one.standard}:{one.agent}"


@rule("pacemaker").warning(
    reason="With no_root_squash and no restriction of clients, anybody who can reach the server has root access to all "
    "files.",
    remedy="clientspec=NETWORK of the clients; use no_root_squash only for trusted hosts.",
    source="https://manpages.debian.org/bookworm/nfs-kernel-server/exports.5.en.html",
)
def export_gives_root_to_everybody(setup: Setup) -> Iterator[str]:
    """Find exports that give anybody the rights of root."""
    for one in setup.pacemaker.services:
        options = one.values.get("options", "").split(",")
        if (
            one.agent == "exportfs"
            and "no_root_squash" in options
            and one.values.get("clientspec") in ("*", "0.0.0.0/0")
        ):
            yield f"cib: {one.id}"
