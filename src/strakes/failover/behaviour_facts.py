"""Facts about services from simulations by Pacemaker's policy engine."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.behaviour import Behaviour, Snapshot
from strakes.failover.cib_values import is_true
from strakes.failover.facts import Thing, facts, yes
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.resource_facts import ADDRESSES, needs_one_node
from strakes.failover.rules_stacks import needed_with_role
from strakes.failover.setup import Setup


def _snapshots(seen: Behaviour) -> Iterator[tuple[str, Snapshot]]:
    yield "with all nodes up", seen.steady
    yield from ((f"without {node}", snapshot) for node, snapshot in seen.without.items())
    yield from ((f"with {node} in standby", snapshot) for node, snapshot in seen.emptied.items())
    yield from ((f"after a failure of {name}", snapshot) for name, snapshot in seen.failed.items())


def simulated_services(setup: Setup) -> Iterator[Thing]:
    """Yield the services, with the nodes on which the simulation runs them."""
    cib, seen = setup.pacemaker, setup.simulated
    for one in cib.services:
        unpromoted = one.meta.get("target-role") in ("Unpromoted", "Started")
        role = "Promoted" if cib.promotable(one.clone) and not unpromoted else ""
        nodes = sorted(seen.steady.nodes_of(one.id, role))
        single = bool(role) or not one.clone
        lost = [node for node in nodes if node in seen.without and not seen.without[node].nodes_of(one.id, role)]
        deduced = {
            "the nodes": nodes,
            "is known": yes(one.id in seen.steady.places and one.meta.get("target-role") != "Stopped"),
            "is lost with": lost if single else [],
            "needs one node": yes(_runs_once(one)),
            "number of its nodes": str(len(seen.steady.nodes_of(one.id))),
        }
        yield Thing(f"cib: {one.id}", facts(deduced))


def _runs_once(one: Primitive) -> bool:
    """Return whether two running copies would destroy data or use the same address."""
    mount = needs_one_node(one) and "bind" not in one.values.get("options", "")
    hashed = one.values.get("clusterip_hash") or is_true(one.values.get("lvs_support", "false"))
    return mount or (one.agent in ADDRESSES and not hashed)


def dead_nodes(setup: Setup) -> Iterator[Thing]:
    """Yield the nodes whose death was simulated."""
    seen = setup.simulated
    for node, snapshot in seen.without.items():
        busy = any(node in seen.steady.nodes_of(one.id) for one in setup.services)
        others = [name for name in sorted(snapshot.fenced) if name != node]
        fenced = yes(node in snapshot.fenced)
        deduced = {"runs services": yes(busy), "is powered off": fenced, "powered off instead": others}
        yield Thing(f"cib: {node}", facts(deduced))


def trials(setup: Setup) -> Iterator[Thing]:
    """Yield the simulated events, with the services whose actions wait for each other."""
    for when, snapshot in _snapshots(setup.simulated):
        yield Thing(f"cib: {when}", facts({"services that wait for each other": sorted(snapshot.stuck)}))


def needs(setup: Setup) -> Iterator[Thing]:
    """Yield each pair of a service and a resource that the service needs, such as a mount or a promoted copy."""
    seen = setup.simulated
    alike: dict[tuple[str, str, str], list[Primitive]] = {}
    for user, base, role in needed_with_role(setup):
        alike.setdefault((user.id, base.agent, role), []).append(base)
        deduced = {"the base": base.id, "is started without it": _too_early(setup, user, base, role)}
        yield Thing(f"cib: {user.id}", facts(deduced))
    for (user_id, _, role), bases in alike.items():
        # A service needs only one of several suitable resources.
        apart = [when for when, snapshot in _snapshots(seen) if _apart(snapshot, user_id, bases, role)]
        yield Thing(f"cib: {user_id}", facts({"the base": bases[0].id, "is apart from it": apart[:1]}))


def _apart(snapshot: Snapshot, user: str, bases: list[Primitive], role: str) -> bool:
    return bool(snapshot.nodes_of(user) - frozenset[str]().union(*(snapshot.nodes_of(one.id, role) for one in bases)))


def _too_early(setup: Setup, user: Primitive, base: Primitive, role: str) -> str:
    """Return a node on which ``user`` starts before ``base``, or stops after ``base``; empty if there is none."""
    up, down = ("promote", "demote") if role else ("start", "stop")
    for snapshot in (setup.simulated.steady, *setup.simulated.emptied.values()):
        for node in setup.pacemaker.nodes:
            starts = ((user.id, "start", node), (base.id, up, node))
            stops = ((base.id, down, node), (user.id, "stop", node))
            done = [pair for pair in (starts, stops) if set(pair) <= snapshot.before.keys()]
            if not all(snapshot.waits(*pair) for pair in done):
                return node
    return ""
