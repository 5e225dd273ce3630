"""Rules about what Pacemaker does with a configuration, however that is written: its own policy engine says it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.behaviour import Behaviour, Snapshot
from strakes.failover.cib import Cib
from strakes.failover.cib_values import is_true
from strakes.failover.pacemaker_resources import WATCHERS, Primitive
from strakes.failover.rules.layers import bases, volume_groups, volume_of
from strakes.failover.rules.mounts import ADDRESSES
from strakes.failover.rules.rule import DRBD_PACEMAKER, PACEMAKER, rule
from strakes.failover.rules.services import clone_of, homes_of
from strakes.failover.setup import Setup

# What holds the address that another resource brings up.
_NEEDS_ADDRESS = ("ip", "nfs_ip", "portals", "source_host", "ip_address")
_SHARED = ("gfs2", "ocfs2", "nfs", "nfs4", "cifs", "glusterfs", "lustre", "tmpfs", "ceph")
# Nobody reaches these over an address.
_BESIDE = (*WATCHERS, "SysInfo", "controld", "clvm", "lvmlockd")
_SEEN = f"{PACEMAKER}/constraints.rst"
_ASK = "crm_simulate --simulate --live-check, with --node-fail NODE or --op-inject, shows each step."


def _wanted(cib: Cib) -> Iterator[Primitive]:
    """Yield what is to run: all but what is told to be stopped, and fencing devices."""
    for one in cib.services:
        if one.meta.get("target-role") != "Stopped":
            yield one


def _role(cib: Cib, service: Primitive) -> str:
    """Return the role in which one copy of a promotable clone has to be, empty for others."""
    unpromoted = service.meta.get("target-role") in ("Unpromoted", "Started")
    return "Promoted" if cib.promotable(service.clone) and not unpromoted else ""


def _unfences(cib: Cib) -> bool:
    """Tell whether nodes are let back to their disks: the engine alone does not know that they have been."""
    return any(device.meta.get("provides") == "unfencing" for device in cib.devices)


def _base_of(setup: Setup, service: Primitive) -> Iterator[tuple[Primitive, str, bool]]:
    """Yield what a service needs on its node, the role which that must have, and whether it has to be there first."""
    cib = setup.pacemaker
    for user, base in bases(cib):
        if user is service:
            yield base, "", True
    group, volume = volume_of(service) if service.uses_disk else ("", "")
    for activation, own, part in volume_groups(cib):
        if group and own == group and part in ("", volume):
            yield activation, "", True
    clone = clone_of(setup, service.device) if service.uses_disk and setup.drbd else ""
    for base in cib.services:
        if clone and base.clone == clone:
            yield base, "Promoted", True
        iqn = base.values.get("iqn") if base.agent == "iSCSITarget" else ""
        if iqn and service.values.get("target_iqn") == iqn:
            yield base, "", True
        if base.agent in ADDRESSES and service.agent not in ADDRESSES and base.values.get("ip"):
            words = (word for name in _NEEDS_ADDRESS for word in service.values.get(name, "").split())
            if any(re.sub(r":\d+$", "", word) == base.values["ip"] for word in words):
                yield base, "", False
            # What changes a route, or tells others of an address, fails while the address is not there.
            if service.agent in ("IPsrcaddr", "SendArp") and base.values["ip"] in service.values.values():
                yield base, "", True
        if service.agent == "exportfs" and base.agent == "nfsserver":
            yield base, "", False


def _snapshots(seen: Behaviour) -> Iterator[tuple[str, Snapshot]]:
    yield "with all nodes up", seen.steady
    for node, snapshot in seen.without.items():
        yield f"without {node}", snapshot
    for node, snapshot in seen.emptied.items():
        yield f"with {node} in standby", snapshot
    for name, snapshot in seen.failed.items():
        yield f"after a failure of {name}", snapshot


@rule("pacemaker", "behaviour").error(
    reason="Pacemaker's policy engine leaves it stopped, or promotes no copy, although all nodes are up and nothing "
    "has failed.",
    remedy=f"Look for constraints that contradict each other, and for resources that it waits for. {_ASK}",
    source=_SEEN,
)
def started_nowhere(setup: Setup) -> Iterator[str]:
    """Find services that the policy engine does not start."""
    cib, steady = setup.pacemaker, setup.simulated.steady
    for one in _wanted(cib):
        role = _role(cib, one)
        if one.id in steady.places and not steady.nodes_of(one.id, role):
            yield f"cib: no copy of {one.id} is promoted" if role else f"cib: {one.id} is started nowhere"


@rule("pacemaker", "behaviour").error(
    reason="Pacemaker's policy engine starts it on no other node after its node has died, which is what the cluster is "
    "for.",
    remedy=f"Look for constraints that keep it from the other nodes, and for resources that it waits for. {_ASK}",
    source=_SEEN,
)
def not_taken_over(setup: Setup) -> Iterator[str]:
    """Find services that nobody has after their node died."""
    cib, seen = setup.pacemaker, setup.simulated
    for one in _wanted(cib):
        role = _role(cib, one)
        if one.clone and not role:
            continue
        for node in sorted(seen.steady.nodes_of(one.id, role)):
            if node in seen.without and not seen.without[node].nodes_of(one.id, role):
                yield f"cib: {one.id} runs on {node}, and nowhere when {node} is dead"


@rule("pacemaker", "behaviour").error(
    reason="Pacemaker's policy engine starts the services of a silent node elsewhere without cutting its power: that "
    "node may still be writing.",
    remedy="stonith-enabled=true, a device for each node, and no requires=nothing.",
    source=f"{PACEMAKER}/fencing.rst",
)
def taken_over_without_power_off(setup: Setup) -> Iterator[str]:
    """Find nodes whose services are taken over while they may still run."""
    seen = setup.simulated
    for node, snapshot in seen.without.items():
        if snapshot.fenced != {node} and any(node in seen.steady.nodes_of(one.id) for one in setup.pacemaker.services):
            others = ", ".join(sorted(snapshot.fenced)) or "nobody"
            yield f"cib: when {node} is silent the power of {others} is cut"


@rule("pacemaker", "behaviour").error(
    reason="Pacemaker's policy engine runs it on a different node than the mount, volume, copy, address or server that "
    "its parameters name.",
    remedy=f"Use one group, or a colocation with score INFINITY. {_ASK}",
    source=_SEEN,
)
def on_another_node_than_what_it_needs(setup: Setup) -> Iterator[str]:
    """Find services that are on another node than what they need."""
    cib = setup.pacemaker
    for user in _wanted(cib):
        needs = list(_base_of(setup, user))
        for when, snapshot in _snapshots(setup.simulated):
            # Of several that would do, such as one server for each address, one is enough.
            for base in {(base.agent, role): base for base, role, _ in needs}.values():
                alike = [(other, role) for other, role, _ in needs if other.agent == base.agent]
                there = frozenset[str]().union(*(snapshot.nodes_of(other.id, role) for other, role in alike))
                lost = snapshot.nodes_of(user.id) - there
                if lost:
                    yield f"cib: {when} {user.id} runs on {', '.join(sorted(lost))}, and {base.id} does not"
                    break
            else:
                continue
            break


@rule("pacemaker", "behaviour").error(
    reason="When Pacemaker moves everything to another node, it starts this without waiting for what it needs, or "
    "stops what it needs while this is still running.",
    remedy=f"Use an order (Mandatory, symmetrical), or one group with the needed resource first. {_ASK}",
    source=_SEEN,
)
def started_before_what_it_needs(setup: Setup) -> Iterator[str]:
    """Find services that are started before, or stopped after, what they need."""
    cib, seen = setup.pacemaker, setup.simulated
    for user in _wanted(cib):
        for base, role, first in _base_of(setup, user):
            up, down = ("promote", "demote") if role else ("start", "stop")
            for snapshot in (seen.steady, *seen.emptied.values()) if first else ():
                for node in cib.nodes:
                    begun, ended = (user.id, "start", node), (user.id, "stop", node)
                    made, taken = (base.id, up, node), (base.id, down, node)
                    if begun in snapshot.before and made in snapshot.before and not snapshot.waits(begun, made):
                        yield f"cib: {user.id} is started on {node} without waiting for {base.id}"
                        break
                    if ended in snapshot.before and taken in snapshot.before and not snapshot.waits(taken, ended):
                        yield f"cib: {base.id} is taken away from {node} while {user.id} still uses it"
                        break
                else:
                    continue
                break


@rule("pacemaker", "behaviour").error(
    reason="Pacemaker's policy engine runs it on several nodes at a time: that destroys a disk file system, and two "
    "machines answer for one address.",
    remedy="Remove the clone around it, and set promoted-max=1 (master-max=1).",
    source=_SEEN,
)
def runs_on_several_nodes(setup: Setup) -> Iterator[str]:
    """Find file systems and addresses on several nodes at a time."""
    steady = setup.simulated.steady
    for one in setup.pacemaker.services:
        kind = one.values.get("fstype", "")
        alone = one.agent == "Lustre" or one.agent == "ZFS" or (one.agent == "Filesystem" and kind not in _SHARED)
        alone = alone and "bind" not in one.values.get("options", "")
        hashed = one.values.get("clusterip_hash") or is_true(one.values.get("lvs_support", "false"))
        if (alone or (one.agent in ADDRESSES and not hashed)) and len(steady.nodes_of(one.id)) > 1:
            yield f"cib: {one.id} runs on {' and '.join(sorted(steady.nodes_of(one.id)))}"


@rule("pacemaker", "behaviour").warning(
    reason="Pacemaker's policy engine stops or moves the service because another node died, on which the service did "
    "not run.",
    remedy="Set interleave=true on clones that wait for clones; remove orders and colocations with resources on the "
    f"other node. {_ASK}",
    source=_SEEN,
)
def stopped_when_another_node_dies(setup: Setup) -> Iterator[str]:
    """Find services that are stopped when another node dies than their own."""
    seen = setup.simulated
    if _unfences(setup.pacemaker):
        return
    for one in _wanted(setup.pacemaker):
        for node, snapshot in seen.without.items():
            stopped = {action[2] for action in snapshot.before if action[:2] == (one.id, "stop")}
            if (stopped & seen.steady.nodes_of(one.id)) - {node}:
                yield f"cib: {one.id} is stopped on {', '.join(sorted(stopped - {node}))} when {node} dies"


@rule("pacemaker", "behaviour").warning(
    reason="Pacemaker's policy engine starts the address on a node where no service runs that could answer there.",
    remedy="Put the address into one group with the service that clients reach through it.",
    source=_SEEN,
)
def address_on_another_node_than_its_service(setup: Setup) -> Iterator[str]:
    """Find addresses on nodes without any service."""
    cib = setup.pacemaker
    others = [one for one in cib.services if one.agent not in ADDRESSES and one.agent not in _BESIDE]
    for one in _wanted(cib):
        for when, snapshot in _snapshots(setup.simulated) if one.agent in ADDRESSES and not one.clone else ():
            busy = frozenset[str]().union(*(snapshot.nodes_of(other.id, _role(cib, other)) for other in others))
            if busy and snapshot.nodes_of(one.id) - busy:
                yield f"cib: {when} {one.id} is on {', '.join(snapshot.nodes_of(one.id))}, and no service is"
                break


@rule("pacemaker", "behaviour").error(
    reason="Pacemaker's policy engine makes a plan whose steps wait for each other: none of them is ever carried out, "
    "and these services stay stopped.",
    remedy=f"Look for orders that contradict each other, including optional ones and the order of groups. {_ASK}",
    source=_SEEN,
)
def steps_wait_for_each_other(setup: Setup) -> Iterator[str]:
    """Find plans of the policy engine that cannot be carried out."""
    for when, snapshot in _snapshots(setup.simulated):
        if snapshot.stuck:
            yield f"cib: {when} {', '.join(sorted(snapshot.stuck))} wait for each other"
            break


@rule("pacemaker", "behaviour").warning(
    reason="As soon as the failed node is back, Pacemaker's policy engine moves the service back to it: a second "
    "interruption, at a time nobody chose; and again and again if that node is the broken one.",
    remedy="Set resource-stickiness higher than the scores of locations and colocations.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Clusters_from_Scratch/active-passive.rst",
)
def moves_back_by_itself(setup: Setup) -> Iterator[str]:
    """Find services that leave a healthy node when another one returns."""
    cib, seen = setup.pacemaker, setup.simulated
    told = any(strongest > 0 and stick <= strongest for _, stick, strongest in homes_of(setup))
    if told or _unfences(cib):
        return
    for one in _wanted(cib):
        role = _role(cib, one)
        for node, snapshot in seen.returned.items() if role or not one.clone else ():
            left = seen.without[node].nodes_of(one.id, role)
            if any((one.id, "demote" if role else "stop", other) in snapshot.before for other in left):
                yield f"cib: {one.id} leaves {', '.join(sorted(left))} when {node} is back"
                return


@rule("pacemaker", "drbd", "behaviour").warning(
    reason="Pacemaker's policy engine starts a copy of DRBD on a node that the DRBD files do not name: it fails there, "
    "or takes the place of the second copy.",
    remedy="Add a location constraint with -INFINITY for the clone on this node.",
    source=DRBD_PACEMAKER,
)
def copy_on_a_node_without_its_disk(setup: Setup) -> Iterator[str]:
    """Find copies of DRBD on nodes that its files do not name."""
    hosts = {resource.name: {host.name for host in resource.hosts} for resource in setup.drbd}
    for one in _wanted(setup.pacemaker):
        known = hosts.get(one.values.get("drbd_resource", ""))
        for when, snapshot in _snapshots(setup.simulated) if known else ():
            strangers = snapshot.nodes_of(one.id) - (known or set())
            if strangers:
                yield f"cib: {when} {one.id} is started on {', '.join(sorted(strangers))}"
                break
