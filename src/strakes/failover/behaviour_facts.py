"""Properties of services for the rules, derived from simulations by Pacemaker's policy engine."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.behaviour import Snapshot
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
    unknown = {one.id for name, score in placed_by_agents(cib) if score == -_INFINITY for one in cib.ties.members(name)}
    unknown |= {one.id for one in cib.services if one.meta.get("target-role") == "Stopped" or _makes_way(cib, one)}
    unknown |= _placed_unlike_in_newer_releases(cib)
    for one in cib.services:
        unpromoted = one.meta.get("target-role") in ("Unpromoted", "Started")
        role = "Promoted" if cib.promotable(one.clone) and not unpromoted else ""
        nodes = sorted(seen.steady.nodes_of(one.id, role))
        single = bool(role) or not one.clone
        lost = [node for node in nodes if node in seen.without and not seen.without[node].nodes_of(one.id, role)]
        mount = needs_one_node(one) and "bind" not in one.values.get("options", "")
        shared = ("lvs_support", "unique_clone_address")
        hashed = one.values.get("clusterip_hash") or any(is_true(one.values.get(name, "false")) for name in shared)
        deduced = {
            "is started": "" if nodes else "nowhere",
            "the action": "promoted" if role and seen.steady.nodes_of(one.id) else "started",
            "is known": yes(one.id in seen.steady.places.keys() - unknown),
            "is lost with": lost if single else [],
            "needs one node": yes(mount or (one.agent in ADDRESSES and not hashed)),
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
    bans = [place for place in cib.locations if place.certain and place.score == -_INFINITY]
    banned = {node for place in bans if names & set(place.resources) for node in place.nodes}
    avoids = any(tie.score == -_INFINITY and tie.resources[0][0] in names for tie in cib.colocations)
    return avoids and len(set(cib.nodes) - banned) == 1


def dead_nodes(setup: Setup) -> Iterator[Thing]:
    """Yield the simulated effects of the death of each node, such as whether the other nodes power it off."""
    seen = setup.simulated
    for node, snapshot in seen.without.items():
        busy = any(node in seen.steady.nodes_of(one.id) for one in setup.services)
        others = [name for name in sorted(snapshot.fenced) if name != node]
        fenced = yes(node in snapshot.fenced)
        deduced = {"runs services": yes(busy), "is powered off": fenced, "powered off instead": others}
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
        apart = [when for when, snapshot in snapshots.items() if _apart(snapshot, user_id, bases, role)]
        yield Thing(f"cib: {user_id}", facts({"the base": bases[0].id, "is apart from it": apart[:1]}))


def _apart(snapshot: Snapshot, user: str, bases: list[Primitive], role: str) -> bool:
    return bool(snapshot.nodes_of(user) - frozenset[str]().union(*(snapshot.nodes_of(one.id, role) for one in bases)))
