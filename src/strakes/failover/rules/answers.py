"""Rules about how Pacemaker answers failures and moves: on-fail, live migration, delays, the clock, attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as Xml

from strakes.failover.cib import Cib
from strakes.failover.cib_values import is_true, score, seconds
from strakes.failover.known_options import advised_times
from strakes.failover.rules.fencing_devices import pretends_because
from strakes.failover.rules.rule import PACEMAKER, rule
from strakes.failover.setup import Setup

_WATCHERS = ("ping", "pingd", "ethmonitor", "healthLNET")
_SEEN_BY_CLIENTS = ("ip", "directory", "mountpoint", "drbd_resource", "pool", "fsid", "clientspec", "iqn", "nfs_ip")
_FAILURES = {"select_nodes", "select_fencing", "select_resources"}
_LEAST_ALERT_S = 1.0
_MOST_BYTES = 1 << 16
# A start that waits for longer than this was meant to wait.
_LONG_S = 10.0


@rule("pacemaker").error(
    reason="A BMC, an outlet or a gateway that does not answer is not a failure of the node that asks it: with this "
    "on-fail a healthy node is powered off, or put on standby.",
    remedy="Remove on-fail from the monitors of fencing devices and of network watchers.",
    source=f"{PACEMAKER}/operations.rst",
)
def failed_device_takes_down_a_node(setup: Setup) -> Iterator[str]:
    """Find fencing devices and watchers whose failure is answered by fencing, or emptying, the node that asks."""
    for one in setup.pacemaker.primitives:
        bad = ("fence", "standby") if one.standard == "stonith" else ("fence",) if one.agent in _WATCHERS else ()
        for operation in one.operations:
            if operation.on_fail in bad:
                yield f"cib: {operation.name} of {one.id} has on-fail={operation.on_fail}"


@rule("pacemaker").warning(
    reason="on-fail=demote applies only to promote, and to monitors of the promoted role: for other operations "
    "Pacemaker does something else.",
    remedy="Remove on-fail.",
    source=f"{PACEMAKER}/operations.rst",
)
def on_fail_demote_not_applicable(setup: Setup) -> Iterator[str]:
    """Find failures that are answered by demoting what is never promoted."""
    for one in setup.pacemaker.primitives:
        promotable = setup.pacemaker.promotable(one.clone)
        for operation in one.operations:
            fits = operation.name == "promote" or (operation.name == "monitor" and operation.role == "Promoted")
            if operation.on_fail == "demote" and not (promotable and fits):
                yield f"cib: {operation.name} of {one.id} has on-fail=demote"


@rule("pacemaker").error(
    reason="Only agents that can move a running service have the operation migrate_to: with allow-migrate, all others "
    "fail there and are stopped on both nodes.",
    remedy="Remove allow-migrate.",
    source=f"{PACEMAKER}/resources.rst",
)
def live_migration_not_supported(setup: Setup) -> Iterator[str]:
    """Find services that are to be moved while they run, by agents that cannot."""
    for one in setup.pacemaker.services:
        known = advised_times(f"{one.provider}:{one.agent}")
        fixed = one.is_mount or one.is_drbd or (known and "migrate_to" not in known)
        if is_true(one.meta.get("allow-migrate", "false")) and fixed:
            yield f"cib: {one.id} ({one.agent}) has allow-migrate"


@rule("pacemaker").error(
    reason="The members of the group then run on different nodes, or start all at once: the mount and what needs it "
    "are apart.",
    remedy="Remove ordered and collocated.",
    source=f"{PACEMAKER}/resources.rst",
)
def group_not_ordered_or_not_colocated(setup: Setup) -> Iterator[str]:
    """Find groups that are told not to keep their members together, or in order."""
    for group in setup.pacemaker.root.iter("group"):
        for pair in group.iterfind("./meta_attributes/nvpair"):
            if pair.get("name") in ("ordered", "collocated") and not is_true(pair.get("value", "")):
                yield f"cib: {group.get('id')} has {pair.get('name')}={pair.get('value')}"


@rule("pacemaker").warning(
    reason="Pacemaker waits for start-delay before this operation: nothing is served in this time.",
    remedy="Remove start-delay; use an order for what has to be there first.",
    source=f"{PACEMAKER}/operations.rst",
)
def start_delay_of_a_take_over(setup: Setup) -> Iterator[str]:
    """Find delays before what a take-over consists of."""
    for operation in setup.pacemaker.root.iter("op"):
        delay = operation.get("start-delay", "0")
        if operation.get("name") in ("start", "stop", "promote", "demote") and seconds(delay) > _LONG_S:
            yield f"cib: {operation.get('id')} has start-delay={delay}"


@rule("pacemaker").error(
    reason="At these times no node may run the service, whatever its state is.",
    remedy="Remove the rule, or name the node in it: #uname.",
    source=f"{PACEMAKER}/rules.rst",
)
def stopped_at_certain_times(setup: Setup) -> Iterator[str]:
    """Find services that may run nowhere at some times that come again, or have come."""
    cib = setup.pacemaker
    for constraint in cib.root.iterfind("./configuration/constraints/rsc_location"):
        for one in constraint.iterfind("./rule"):
            serving = any(member.standard != "stonith" for member in cib.ties.members(constraint.get("rsc", "")))
            parts = list(one)
            clocks = [part for part in parts if part.tag == "date_expression" and part.get("operation") != "lt"]
            if serving and parts and clocks == parts and score(one.get("score", "0")) == float("-inf"):
                yield f"cib: {constraint.get('id')} keeps {constraint.get('rsc')} from every node"


@rule("pacemaker").error(
    reason="Nodes with the same value of node-attribute, or without one, count as one place: the service may run on a "
    "different node than what it needs.",
    remedy="Remove node-attribute, or give each node a value of its own.",
    source=f"{PACEMAKER}/constraints.rst",
)
def node_attribute_not_unique(setup: Setup) -> Iterator[str]:
    """Find colocations on any node with the same value of an attribute, where nodes share it."""
    cib = setup.pacemaker
    for constraint in cib.root.iterfind("./configuration/constraints/rsc_colocation[@node-attribute]"):
        name = constraint.get("node-attribute", "")
        values = [cib.node_attributes.get(node, {}).get(name) for node in cib.nodes]
        binding = score(constraint.get("score", "INFINITY")) == float("inf") and not name.startswith("#")
        if binding and len(set(values)) < len(values) and _needs(cib, constraint):
            yield f"cib: {constraint.get('id')} goes by {name}, which does not tell the nodes apart"


def _needs(cib: Cib, constraint: Xml.Element) -> bool:
    """Tell whether a colocation is with something that is on one node, such as a mount or a promoted copy."""
    names = [constraint.get("rsc", ""), constraint.get("with-rsc", "")]
    names += [ref.get("id", "") for ref in constraint.iter("resource_ref")]
    members = [member for name in names for member in cib.ties.members(name)]
    return any(
        member.is_mount or member.is_drbd or member.agent in ("ZFS", "LVM-activate", "LVM") for member in members
    )


@rule("pacemaker").warning(
    reason="The alert is switched off, has no timeout, selects no failures, or has no recipient: the cluster runs "
    "without redundancy until the next failure.",
    remedy="Remove select, enabled and timeout; add a recipient if the program needs one (CRM_alert_recipient).",
    source=f"{PACEMAKER}/alerts.rst",
)
def alerts_that_reach_nobody(setup: Setup) -> Iterator[str]:
    """Find alerts that tell nobody of a failure."""
    alerts = setup.pacemaker.root.findall("./configuration/alerts/alert")
    # Several may share the work.
    heard = [kind.tag for alert in alerts for kind in alert.iterfind("./select/*")]
    deaf = all(alert.find("./select") is not None for alert in alerts) and not _FAILURES & set(heard)
    for alert in alerts:
        meta = {pair.get("name"): pair.get("value", "") for pair in alert.iterfind("./meta_attributes/nvpair")}
        if not is_true(meta.get("enabled", "true")) or seconds(meta.get("timeout", "30s")) < _LEAST_ALERT_S or deaf:
            yield f"cib: {alert.get('id')} is called for no failure"
        program = setup.root / alert.get("path", "").lstrip("/")
        if alert.find("./recipient") is None and program.is_file() and ".." not in program.parts:
            with program.open("rb") as file:
                asks = b"CRM_alert_recipient" in file.read(_MOST_BYTES)
            if asks:
                yield f"cib: {alert.get('id')} has no recipient, and its program asks for one"


@rule("pacemaker").warning(
    reason="A rule gives one node a different value: after a take-over, clients look for the service, or programs for "
    "their data, in the wrong place.",
    remedy="Use one value for all nodes; only parameters for what each node names differently (nic, device) may need a "
    "rule.",
    source=f"{PACEMAKER}/rules.rst",
)
def parameter_differs_between_nodes(setup: Setup) -> Iterator[str]:
    """Find parameters that clients see, with another value on some nodes."""
    cib = setup.pacemaker
    services = {one.id: one for one in cib.services}
    for element in cib.root.iter("primitive"):
        own = services.get(element.get("id", ""))
        for block in element.iterfind("./instance_attributes[rule]"):
            for pair in block.iterfind("./nvpair"):
                name, value = pair.get("name", ""), pair.get("value", "")
                if own and name in _SEEN_BY_CLIENTS and own.values.get(name, value) != value:
                    yield f"cib: {own.id} has {name}={own.values[name]}, and on some nodes {value}"


@rule("pacemaker").error(
    reason="Both resources start and stop the same program: when one of them moves, it stops the program of the other, "
    "and the program may run on both nodes.",
    remedy="Use one resource for a unit, or a clone if it has to run on all nodes.",
    source=f"{PACEMAKER}/resources.rst",
)
def one_unit_in_two_resources(setup: Setup) -> Iterator[str]:
    """Find units of systemd that two resources start."""
    owners: dict[str, str] = {}
    for one in setup.pacemaker.services:
        if one.standard in ("systemd", "service", "lsb", "upstart"):
            other = owners.setdefault(one.agent.removesuffix(".service"), one.id)
            if other != one.id:
                yield f"cib: {other} and {one.id} are both {one.agent}"


@rule("pacemaker").warning(
    reason="The first level has no delay for either node: both nodes power each other off before the delay of a later "
    "level applies.",
    remedy="Set the same pcmk_delay_base on all devices of a node, in all levels.",
    source=f"{PACEMAKER}/fencing.rst",
)
def delay_at_a_later_level(setup: Setup) -> Iterator[str]:
    """Find delays on later levels only."""
    cib = setup.pacemaker
    devices = {device.id: device for device in cib.devices}
    first = dict[str, float]()
    later = dict[str, float]()
    for node in cib.nodes:
        named = [[devices[name] for name in level if name in devices] for level in cib.levels_of(node)]
        # What only waits for a dump powers nobody off.
        levels = [level for level in named if not all(map(pretends_because, level))]
        if len(levels) > 1:
            first[node] = max((cib.delay_s(device, node) for device in levels[0]), default=0.0)
            later[node] = max((cib.delay_s(device, node) for level in levels[1:] for device in level), default=0.0)
    delayed = [node for node, delay in later.items() if delay > 0]
    if len(first) == len(cib.nodes) == 2 and not any(first.values()) and len(delayed) == 1:
        yield f"cib: {delayed[0]} has a delay in later levels only"


@rule("pacemaker").error(
    reason="The reservation is taken only on the disks in devices: a node that has lost it keeps writing to all other "
    "disks.",
    remedy="Set devices to every shared disk that holds data.",
    source="https://github.com/ClusterLabs/fence-agents/blob/main/agents/scsi/fence_scsi.py",
)
def reservation_does_not_cover_all_disks(setup: Setup) -> Iterator[str]:
    """Find shared disks that are mounted and not among those of the reservation."""
    described = {target.device for target in setup.cluster.targets if target.shared} if setup.cluster else set[str]()
    for device in setup.pacemaker.devices:
        disks = [disk for disk in re.split(r"[,\s]+", device.values.get("devices", "")) if disk]
        if device.agent not in ("fence_scsi", "fence_mpath") or not disks:
            continue
        for one in setup.pacemaker.services:
            # Volumes of LVM have a hyphen here: on which disks they are the files do not say.
            certain = one.device in described or re.fullmatch(r"/dev/(mapper/\w+|disk/by-id/\S+)", one.device)
            if one.is_mount and certain and not any(one.device.startswith(disk) for disk in disks):
                yield f"cib: {one.id} is on {one.device}, {device.id} reserves {', '.join(disks)}"
