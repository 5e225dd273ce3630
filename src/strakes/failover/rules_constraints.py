"""Rules about constraints, and the facts of constraints and of the home of each service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as Xml

from strakes.failover.cib import Cib
from strakes.failover.cib_values import is_true, score
from strakes.failover.facts import Thing, facts, yes
from strakes.failover.pacemaker_resources import WATCHERS, Colocation, Order, Primitive
from strakes.failover.resource_facts import ADDRESSES
from strakes.failover.setup import Setup

_INFINITY = float("inf")


def pinned_to_one_node(setup: Setup) -> Iterator[str]:
    """Find services that may run on one node at most."""
    cib, nodes = setup.pacemaker, setup.node_names
    opt_in = not is_true(cib.properties.get("symmetric-cluster", "true"))
    for one in cib.services if len(nodes) > 1 else ():
        names = {one.id, one.group, one.clone}
        own = [place for place in cib.locations if names & set(place.resources) and not _passes(place.id)]
        away = {node for place in own if place.score == -_INFINITY and place.certain for node in place.nodes}
        wanted = {node for place in own if place.score >= 0 for node in place.nodes}
        tied = any(names & {name for name, _ in tie.resources} for tie in cib.colocations)
        left = [node for node in nodes if node not in away and (not opt_in or node in wanted or (tied and not wanted))]
        if len(left) < 2:
            yield f"cib: {one.id} may only run on {left[0] if left else 'no node'}"


def _passes(identity: str) -> bool:
    """Return whether a command or a handler set a constraint; other rules report these."""
    return identity.startswith(("cli-", "drbd-fence"))


def address_not_tied_to_a_service(setup: Setup) -> Iterator[str]:
    """Find addresses that are not colocated with any service, in a cluster with services."""
    cib = setup.pacemaker
    serving = [one for one in cib.services if one.agent not in (*ADDRESSES, *WATCHERS, "SysInfo", "remote")]
    tied = {name for tie in cib.colocations for name, _ in tie.resources if tie.score > 0}
    for one in cib.services if serving else ():
        mates = cib.groups.get(one.group, (one,))
        names = {one.id, one.group, *(mate.id for mate in mates)} - {""}
        only_addresses = all(mate.agent in ADDRESSES for mate in mates)
        if one.agent in ADDRESSES and not one.clone and only_addresses and not names & tied:
            yield f"cib: {one.id} has no colocation"


# Attributes that Pacemaker sets itself.
_OWN_ATTRIBUTES = re.compile(
    r"#(uname|id|kind|is_dc|cluster-name|site-name|role|ra-version|node-unfenced|feature-set|digests-.*|health.*)|"
    r"(master|fail-count|last-failure|probe_complete|shutdown|terminate).*"
)
# Agents that set attributes under several names.
_SETS_OTHERS = ("attribute", "SysInfo", "HealthCPU", "HealthSMART", "HealthIOWait", "ClusterMon", "NodeUtilization")
# Comparisons that are true on nodes that reach the network.
_REACHED = (("gt", "0"), ("gte", "0"), ("gte", "1"), ("eq", "1"), ("ne", "0"))
_WATCHED = re.compile(r"pingd|ethmonitor-.*|lustred|lnet.*")


def locations(setup: Setup) -> Iterator[Thing]:
    """Yield the location constraints."""
    cib = setup.pacemaker
    present, nodes = {one.id for one in cib.locations}, {"", *setup.node_names, *cib.remote_nodes}
    for element in cib.root.iterfind("./configuration/constraints/rsc_location"):
        members = cib.ties.members(element.get("rsc", ""))
        named = [element.get("node", "")]
        for rule in element.iter("rule"):
            # A ban of a node that does not exist has no effect.
            asked = [part for part in rule.iterfind("./expression") if part.get("attribute") == "#uname"]
            named += [part.get("value", "") for part in asked if score(rule.get("score", "0")) > 0]
        deduced = {
            "is about a service": yes(any(one.standard != "stonith" for one in members)),
            "names that are no nodes": [name for name in named if name not in nodes],
            "attributes that nobody sets": _unset(cib, element),
            "bans reached nodes": yes(any(map(_bans_reached, element.iter("rule")))),
            "bans all nodes at times": yes(any(map(_bans_at_times, element.iterfind("./rule")))),
            "worth less than the stickiness": _worth(cib, element, members),
        }
        # A rule that has ended is no constraint.
        own = dict(element.attrib) if element.get("id") in present else {}
        yield Thing(f"cib: {element.get('id')}", facts(own, deduced))


def _unset(cib: Cib, element: Xml.Element) -> list[str]:
    """Return the attributes that a constraint tests and that nothing in the configuration sets."""
    if any(one.agent in _SETS_OTHERS for one in cib.primitives):
        return []
    known = {name for attributes in cib.node_attributes.values() for name in attributes}
    for one in cib.primitives:
        known |= {one.watched_attribute, one.values.get("name", ""), one.values.get("attribute", "")}
    known |= {pair.get("name", "") for pair in cib.root.iterfind("./status//transient_attributes//nvpair")}
    asked = [part.get("score-attribute") or "" for part in element.iter("rule")]
    asked += [part.get("attribute", "") for part in element.iter("expression")]
    return [name for name in dict.fromkeys(asked) if name and name not in known and not _OWN_ATTRIBUTES.fullmatch(name)]


def _bans_reached(rule: Xml.Element) -> bool:
    return score(rule.get("score", "0")) == -_INFINITY and any(
        _WATCHED.fullmatch(test.get("attribute", "")) and (test.get("operation"), test.get("value")) in _REACHED
        for test in rule.iterfind("./expression")
    )


def _bans_at_times(rule: Xml.Element) -> bool:
    clocks = [part for part in rule if part.tag == "date_expression" and part.get("operation") != "lt"]
    return bool(clocks) and len(clocks) == len(list(rule)) and score(rule.get("score", "0")) == -_INFINITY


def _worth(cib: Cib, element: Xml.Element, members: tuple[Primitive, ...]) -> str:
    """Return the score for a reachable network if the stickiness of the service is not lower, else an empty text."""
    watchers = {one.watched_attribute: one for one in cib.primitives if one.watched_attribute}
    stick = sum(score(one.meta.get("resource-stickiness", "0")) for one in members)
    for rule in element.iter("rule"):
        if watcher := watchers.get(rule.get("score-attribute", "")):
            gain = len(watcher.values.get("host_list", "x").split()) * score(watcher.values.get("multiplier", "1"))
            return f"{gain:g}" if gain <= stick else ""
    return ""


def orders(setup: Setup) -> Iterator[Thing]:
    """Yield the orders, each pair of a set as one."""
    cib = setup.pacemaker
    for one in cib.orders:
        both = {one.first, one.then}
        clones = one.mandatory and both <= set(cib.clones)
        deduced = {
            "first": one.first,
            "then": one.then,
            "fencing devices": [name for name in sorted(both) if _is_device(cib, name)],
            "promotes what is not promotable": _unpromotable(cib, one),
            "waits for all copies": yes(clones and not is_true(cib.clones[one.then].get("interleave", "false"))),
            "is against its colocation": yes(one.mandatory and _follows(cib, one.first, one.then)),
        }
        yield Thing(f"cib: {one.id}", facts(deduced))


def _is_device(cib: Cib, name: str) -> bool:
    return any(one.id == name and one.standard == "stonith" for one in cib.primitives)


def _unpromotable(cib: Cib, order: Order) -> list[str]:
    named = ((order.first, order.first_action), (order.then, order.then_action))
    asked = [name for name, action in named if action in ("promote", "demote")]
    return [name for name in asked if cib.ties.members(name) and not any(map(cib.promotable, _clones(cib, name)))]


def _clones(cib: Cib, name: str) -> list[str]:
    return [name, *(one.clone for one in cib.ties.members(name))]


def _follows(cib: Cib, follower: str, leader: str) -> bool:
    """Return whether a mandatory colocation places ``follower`` on the node of ``leader``."""
    pairs = [one for one in cib.constraints("rsc_colocation") if score(one.get("score", "INFINITY")) == _INFINITY]
    return any((one.get("rsc"), one.get("with-rsc")) == (follower, leader) for one in pairs)


def colocations(setup: Setup) -> Iterator[Thing]:
    """Yield the colocations, each pair of a set as one."""
    cib = setup.pacemaker
    # In a set, each member is colocated with the one before it.
    pairs = {one.get("id") for one in cib.constraints("rsc_colocation") if "rsc" in one}
    for tie in cib.colocations:
        names = [name for name, _ in tie.resources]
        one, other = (cib.ties.members(name) for name in names)
        devices = [name for name in names if _is_device(cib, name)]
        deduced = {
            "rsc": names[0],
            "with": names[1],
            # Fencing devices on different nodes are harmless.
            "fencing devices": devices if tie.score > 0 else [],
            "keeps apart": yes(tie.score == -_INFINITY and not devices),
            "number of nodes": str(len(setup.node_names)),
            "places a copy": yes(tie.id in pairs and _is_drbd(one) and other and not _is_drbd(other)),
            "has no order": yes(_unordered(cib, tie, one, other)),
        }
        yield Thing(f"cib: {tie.id}", facts(deduced))


def _is_drbd(members: tuple[Primitive, ...]) -> bool:
    return any(one.is_drbd for one in members)


def _unordered(cib: Cib, tie: Colocation, one: tuple[Primitive, ...], other: tuple[Primitive, ...]) -> bool:
    """Return whether two services run together and neither waits for the other."""
    single = one and other and not any(part.clone or part.standard == "stonith" for part in (*one, *other))
    pairs = [pair for a in one for b in other for pair in ((a, b), (b, a))]
    return bool(single) and tie.score == _INFINITY and not any(cib.ties.starts_after(*pair) for pair in pairs)


def tickets(setup: Setup) -> Iterator[Thing]:
    """Yield the tickets that services wait for, with facts from booth's file with the ticket."""
    files = [text for name, text in setup.texts.items() if re.fullmatch(r"etc/booth/[\w.-]+\.conf", name)]
    known: dict[str, list[tuple[str, str]]] = {}
    for text in files:
        pairs = re.findall(r"""(?m)^\s*([\w-]+)\s*=\s*["']?([^"'#\n]*)""", text)
        known |= {value: pairs for key, value in pairs if key == "ticket"}
    for name in dict.fromkeys(one.get("ticket", "") for one in setup.pacemaker.constraints("rsc_ticket")):
        pairs = known.get(name, [])
        deduced = {
            "is in a file of booth": yes(pairs),
            "members": str(sum(key in ("site", "arbitrator") for key, _ in pairs)) if pairs else "",
            "authfile": dict(pairs).get("authfile", ""),
        }
        yield Thing(f"cib: ticket {name}", facts(deduced))


def homes(setup: Setup) -> Iterator[Thing]:
    """Yield each group or single service with its stickiness and its strongest preference for a node."""
    cib = setup.pacemaker
    default = cib.properties.get("default-resource-stickiness", "0")
    for name in dict.fromkeys(one.group or one.clone or one.id for one in cib.services):
        members = cib.ties.members(name)
        if all(one.clone and not cib.promotable(one.clone) for one in members):
            continue
        names = {name, *(one.id for one in members)}
        about = [one for one in cib.locations if names & set(one.resources) and one.certain]
        # An infinite preference comes from a command, and another rule reports it.
        scores = [one.score for one in about if one.score < _INFINITY]
        stick = sum(score(one.meta.get("resource-stickiness", default)) for one in members)
        deduced = {"the stickiness": f"{stick:g}", "the preference": f"{max(scores, default=0.0):g}"}
        yield Thing(f"cib: {name}", facts(deduced))
