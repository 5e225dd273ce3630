"""Properties of services for the rules, derived from simulations by Pacemaker's policy engine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.cib import Cib
from strakes.failover.cib_values import is_true
from strakes.failover.facts import Thing, facts, yes
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.resource_facts import ADDRESSES, needs_one_node
from strakes.failover.rules_constraints import placed_by_agents
from strakes.failover.rules_stacks import needed_with_role
from strakes.failover.setup import Setup

_INFINITY = float("inf")


def simulated_services(setup: Setup) -> Iterator[Thing]:
    """Yield the simulated properties of each service, such as whether it starts on any node."""
    cib, seen = setup.pacemaker, setup.simulated
    # Agents such as ping set node attributes at run time, which a simulation does not know.
    given, parts = [name for name, score in placed_by_agents(cib) if score == -_INFINITY], cib.ties.members
    unknown = {mate.id for name in given for one in parts(name) for mate in parts(one.group or one.id)}
    unknown |= {one.id for one in cib.services if one.meta.get("target-role") == "Stopped" or _makes_way(cib, one)}
    unknown |= _placed_unlike_in_newer_releases(cib)
    for one in cib.services:
        unpromoted = one.meta.get("target-role") in ("Unpromoted", "Started")
        role = "Promoted" if cib.promotable(one.clone) and not unpromoted else ""
        nodes = sorted(seen.steady.nodes_of(one.id, role))
        single = bool(role) or not one.clone
        lost = [node for node in nodes if node in seen.without and not seen.without[node].nodes_of(one.id, role)]
        # A file system that two nodes mount is destroyed, and so is the service of an address that two nodes announce.
        shared = any(is_true(one.values.get(name, "false")) for name in ("lvs_support", "unique_clone_address"))
        shared = shared or is_true(cib.clones.get(one.clone, {}).get("globally-unique", "false"))
        hashed = shared or one.values.get("clusterip_hash") or re.match("lo|dummy", one.values.get("nic", ""))
        names = {one.id, one.group, one.clone}
        apart = any(tie.score == -_INFINITY and names & {name for name, _ in tie.resources} for tie in cib.colocations)
        deduced = {
            "is started": "" if nodes else "nowhere",
            "the action": "promoted" if role and seen.steady.nodes_of(one.id) else "started",
            "is known": yes(one.id in seen.steady.places.keys() - unknown),
            "is lost with": lost if single and not cib.is_bound(one) else [],
            "is kept from other nodes": yes(cib.only_node(one) or apart or setup.nodes_assumed),
            "is on a shared disk": yes(one.is_on_shared_disk),
            "needs one node": yes(needs_one_node(one) or (one.agent in ADDRESSES and not hashed)),
            "number of its nodes": str(len(seen.steady.nodes_of(one.id))),
        }
        yield Thing(f"cib: {one.id}", facts(deduced))


def _placed_unlike_in_newer_releases(cib: Cib) -> set[str]:
    # Pacemaker releases after 2.1.5 place resources differently if the CIB has utilization, bundles or group
    # colocations.
    if cib.properties.get("placement-strategy", "default") != "default":
        return {one.id for one in cib.services}
    bundles = {one.get("id", "") for one in cib.root.iter("bundle")}
    inner = bundles | {one.id for one in cib.services if one.group}
    ends = [{name for name, _ in tie.resources} for tie in cib.colocations]
    members = [one for names in ends if names & inner for name in names for one in cib.ties.members(name)]
    return {mate.id for one in members for mate in cib.ties.members(one.group or one.id)}


def _makes_way(cib: Cib, one: Primitive) -> bool:
    names = {one.id, one.group, one.clone} - {""}
    avoids = any(tie.score == -_INFINITY and tie.resources[0][0] in names for tie in cib.colocations)
    return avoids and bool(cib.only_node(one))


def dead_nodes(setup: Setup) -> Iterator[Thing]:
    """Yield the simulated effects of the death of each node, such as whether the other nodes power it off."""
    seen = setup.simulated
    for node, snapshot in seen.without.items():
        busy = any(node in seen.steady.nodes_of(one.id) for one in setup.services)
        others = [name for name in sorted(snapshot.fenced) if name != node]
        fenced = yes(node in snapshot.fenced)
        deduced = {"runs services": yes(busy), "is powered off": fenced, "powered off instead": others}
        deduced["keeps data"] = yes(setup.keeps_data)
        yield Thing(f"cib: {node}", facts(deduced))


def needs(setup: Setup) -> Iterator[Thing]:
    """Yield each pair of a service and a resource that the service needs, such as a mount or a promoted copy."""
    seen = setup.simulated
    snapshots = {"with all nodes up": seen.steady}
    snapshots |= {f"without {node}": snapshot for node, snapshot in seen.without.items()}
    snapshots |= {f"after a failure of {name}": snapshot for name, snapshot in seen.failed.items()}
    alike: dict[tuple[str, str, str], list[Primitive]] = {}
    for user, base, role in needed_with_role(setup):
        alike.setdefault((user.id, base.agent, role), []).append(base)
    for (user_id, _, role), bases in alike.items():
        # A service that can use several resources of the same agent needs only one of them.
        apart = list[str]()
        for when, one in snapshots.items():
            there = {node for base in bases for node in one.nodes_of(base.id, role)}
            apart += [when] if one.nodes_of(user_id) - there else []
        yield Thing(f"cib: {user_id}", facts({"the base": bases[0].id, "is apart from it": apart[:1]}))
