"""Rules about constraints, and properties of constraints and preferred nodes that rules in TOML files check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import inf

from strakes.failover.cib import Cib
from strakes.failover.facts import Thing, facts, is_true, score, yes
from strakes.failover.pacemaker_resources import WATCHERS, Colocation, Order, Primitive
from strakes.failover.resource_facts import ADDRESSES
from strakes.failover.setup import Setup


def address_not_tied_to_a_service(setup: Setup) -> Iterator[str]:
    """Find movable addresses without a colocation with a service."""
    cib = setup.pacemaker
    serving = [one for one in cib.services if one.agent not in (*ADDRESSES, *WATCHERS, "SysInfo", "remote")]
    tied = {name for tie in cib.colocations for name, _ in tie.resources if tie.score > 0}
    tied |= {name for name, _ in placed_by_agents(cib)}
    for one in cib.services if serving else ():
        mates = cib.groups.get(one.group, (one,))
        only_addresses = not one.clone and all(mate.agent in ADDRESSES for mate in mates)
        if only_addresses and not tied & {one.group, *(mate.id for mate in mates)}:
            yield f"cib: {one.id} has no colocation"


# Operator and value of expressions such as "pingd gt 0", which are true on nodes that reach the network.
_REACHED = {("gt", "0"), ("gte", "0"), ("gte", "1"), ("eq", "1"), ("ne", "0")}
_WATCHED = re.compile(r"pingd|ethmonitor-.*|lustred|lnet.*")


def placed_by_agents(cib: Cib) -> Iterator[tuple[str, float]]:
    """Yield (resource, score) for each location rule that tests a node attribute set by an agent at run time."""
    given = {one.watched_attribute for one in cib.services}.union(*cib.node_attributes.values())
    opt_in = not is_true(cib.properties.get("symmetric-cluster", "true"))
    for element in cib.root.iterfind("./configuration/constraints/rsc_location"):
        only = opt_in or element.get("resource-discovery") == "exclusive"  # Nodes not in the constraint are forbidden.
        for rule in element.iterfind("./rule"):
            tested = {test.get("attribute", "") for test in rule.iter("expression")} - given
            if any(not name.startswith("#") and not _WATCHED.fullmatch(name) for name in tested):
                value = -inf if only else score(rule.get("score", "0"))
                yield from ((name, value) for name in cib.resources_of(element))


def locations(setup: Setup) -> Iterator[Thing]:
    """Yield the properties of each location constraint."""
    cib = setup.pacemaker
    present, nodes = {one.id for one in cib.locations}, {"", *setup.node_names, *cib.remote_nodes}
    elements = cib.root.findall("./configuration/constraints/rsc_location")
    exclusive = [one for one in elements if one.get("resource-discovery") == "exclusive"]
    for element in elements:
        members = [one for name in cib.resources_of(element) for one in cib.ties.members(name)]
        rules = list(element.iter("rule"))
        tests = [part for rule in rules if score(rule.get("score", "0")) > 0 for part in rule.iterfind("./expression")]
        named = [part.get("value", "") for part in tests if part.get("attribute") == "#uname"]
        named += [element.get("node", "")] * (score(element.get("score", "0")) >= 0)
        bans = [rule for rule in element.iterfind("./rule") if score(rule.get("score", "0")) == -inf]
        banned = [element.get("node", "")] * (score(element.get("score", "0")) < 0)
        ends = (part for rule in bans for part in rule.iterfind("./expression[@attribute='#uname'][@operation='eq']"))
        unknown = {*banned, *(part.get("value", "") for part in ends)} - nodes
        watched = [part for rule in bans for part in rule if _WATCHED.fullmatch(part.get("attribute", ""))]
        of_times = [[one.tag == "date_expression" and one.get("operation") != "lt" for one in rule] for rule in bans]
        deduced = {
            "is about a service": yes(any(one.standard != "stonith" for one in members)),
            "names that are no nodes": [name for name in named if name not in nodes],
            "bans no node": sorted(unknown) * (not setup.nodes_assumed),
            "bans a node": [name for name in banned if name not in unknown],
            "is the only exclusive location": yes(
                element.get("node") and [one for one in exclusive if one.get("rsc") == element.get("rsc")] == [element]
            ),
            "members of clones": sorted(cib.inside_clones & {element.get("rsc", "")}),
            "number of nodes": str(len(cib.members_of_corosync)),
            "bans reached nodes": yes(_REACHED & {(test.get("operation"), test.get("value")) for test in watched}),
            "bans all nodes at times": "bans all nodes at certain times" * any(rule and all(rule) for rule in of_times),
        }
        own = dict(element.attrib) if element.get("id") in present else {}  # Pacemaker ignores expired constraints.
        yield Thing(f"cib: {element.get('id')}", facts(own, deduced))


def orders(setup: Setup) -> Iterator[Thing]:
    """Yield the properties of each order of two actions."""
    cib = setup.pacemaker
    pairs = [one for one in cib.constraints("rsc_colocation") if score(one.get("score", "INFINITY")) == inf]
    follows = {(one.get("rsc"), one.get("with-rsc")) for one in pairs}
    for one in cib.orders:
        clones = one.mandatory and {one.first, one.then} <= set(cib.clones)
        clones = clones and cib.clones[one.then].get("clone-max") != "1"
        ends = (one.first, one.first_action), (one.then, one.then_action)
        deduced = {
            "first": one.first,
            "then": one.then,
            "members of clones": sorted(cib.inside_clones & {one.first, one.then}),
            "promotes what is not promotable": _unpromotable(cib, *ends),
            "waits for all copies": yes(clones and not is_true(cib.clones[one.then].get("interleave", "false"))),
            "what is reversed": _reversed(cib, one, against=one.mandatory and (one.first, one.then) in follows),
        }
        yield Thing(f"cib: {one.id}", facts(deduced))


def _reversed(cib: Cib, one: Order, *, against: bool) -> Iterator[str]:
    if against:
        yield f"starts {one.first} before {one.then}, but places {one.first} on the node of {one.then}"
    first, then = (cib.ties.members(name) for name in (one.first, one.then))
    ends = [[part.values for part in parts] for parts in (first, then)]
    names = [[values["InstanceName"] for values in end if "InstanceName" in values] for end in ends]
    replicates = [any("_ERS" in name for name in end) for end in names]
    # A second order "start ASCS then stop ERS" keeps the ERS running long enough.
    stops = ((each.first, each.then, each.then_action) == (one.first, one.then, "stop") for each in cib.orders)
    if names[0] and replicates == [False, True] and one.then_action == "start" and not any(stops):
        yield f"starts {one.then} after {one.first}, which can take over its locks only while {one.then} still runs"


def _unpromotable(cib: Cib, *ends: tuple[str, str]) -> Iterator[str]:
    for name, what in ends:
        clones = [one.clone for one in cib.ties.members(name)]
        if what in ("promote", "demote", "Promoted") and clones and not any(map(cib.promotable, (name, *clones))):
            yield name


def colocations(setup: Setup) -> Iterator[Thing]:
    """Yield the properties of each colocation of two resources."""
    cib = setup.pacemaker
    pairs = {one.get("id") for one in cib.constraints("rsc_colocation") if "rsc" in one}
    for tie in cib.colocations:
        names = [name for name, _ in tie.resources]
        one, other = ends = [cib.ties.members(name) for name in names]
        drbd, other_drbd = (any(part.is_drbd and not cib.is_stacked(part.clone) for part in end) for end in ends)
        stays, follows = _stickiness(cib, one), tie.resources[1][1] == "Promoted" and 0 < tie.score < inf
        weak = f"follows the promoted copy with {tie.score:g} and stays with {stays:g}"
        texts = ("\n".join(part.values.get("InstanceName", "") for part in end) for end in ends)
        kinds = [re.findall(r"(?m)^(\w{3})_(ERS|A?SCS)\d", text) for text in texts]
        near, far = ({(sid, kind == "ERS") for sid, kind in found} for found in kinds)
        locks = tie.score > 0 and any((sid, not copies) in far for sid, copies in near)
        deduced = {
            "places a copy": yes(tie.id in pairs and drbd and other and not other_drbd),
            "members of clones": sorted(cib.inside_clones & set(names)),
            "promotes what is not promotable": _unpromotable(cib, *tie.resources),
            "what is reversed": _misplaced(cib, tie, one, other),
            "what is wrong": [weak] * (follows and tie.score <= stays)
            + ["keeps an ERS beside the locks it copies"] * locks,
        }
        yield Thing(f"cib: {tie.id}", facts(deduced))


# Agents of kernel services, such as an NFS server, which must start before other services on the node.
_OF_KERNEL = re.compile("kernel|nfsserver|nfs-(kernel-)?server|iscsi|controld|lvmlockd")


def _misplaced(cib: Cib, tie: Colocation, one: tuple[Primitive, ...], other: tuple[Primitive, ...]) -> Iterator[str]:
    (near, _), (far, _) = tie.resources
    copies = [] if tie.resources[1][1] == "Promoted" else [one for one in other if not _OF_KERNEL.search(one.agent)]
    single = one and other and not any(part.clone or part.standard == "stonith" for part in (*one, *copies))
    pairs = [pair for a in one for b in other for pair in ((a, b), (b, a))]
    asked = cib.orders if any(part.clone for part in other) else ()  # An optional order after a clone suffices.
    ordered = any({o.first, o.then} == {near, far} for o in asked) or any(cib.ties.starts_after(*two) for two in pairs)
    if single and tie.score == inf and not ordered:
        moved = f", so that failures of {near} move {far}" if tie.resources[1][1] == "Promoted" else ""
        yield f"places {near} with {far}, without an order{moved}"
    copied = [part for part in one if part.clone and cib.clones[part.clone].get("clone-max") != "1"]
    address = other and all(part.agent in ADDRESSES and not part.clone for part in other)
    if copied and address and tie.score == inf and not any(cib.promotable(part.clone) for part in copied):
        yield f"places all copies of {near} with the address {far}, so that only one starts"


def tickets(setup: Setup) -> Iterator[Thing]:
    """Yield each ticket that ticket constraints name, with its settings in booth's configuration."""
    files = [text for name, text in setup.texts.items() if re.fullmatch(r"etc/booth/[\w.-]+\.conf", name)]
    known: dict[str, list[tuple[str, str]]] = {}
    for text in files:
        pairs = re.findall(r"""(?m)^[ \t]*([\w-]+)\s*=\s*["']?([^"'#\n]*)""", text)
        known |= {value: pairs for key, value in pairs if key == "ticket"}
    groups = [setup.pacemaker.groups.get(one.group, ()) for one in setup.services if one.agent.startswith("booth")]
    own = {one.values.get("ip", "") for group in groups for one in group} - {""}
    for one in setup.pacemaker.constraints("rsc_ticket"):
        name = one.get("ticket", "")
        pairs = known.get(name, [])
        deduced = {
            "is in a file of booth": yes(pairs),
            "members": str(sum(key in ("site", "arbitrator") for key, _ in pairs)) if pairs else "",
            "authfile": dict(pairs).get("authfile", ""),
            "loss-policy": one.get("loss-policy", ""),
            "addresses of no site": sorted(own - {value.strip() for _, value in pairs}) if pairs else (),
        }
        yield Thing(f"cib: ticket {name}", facts(deduced))


def _stickiness(cib: Cib, members: Iterable[Primitive]) -> float:
    default = cib.properties.get("default-resource-stickiness", "0")
    return sum(score(one.meta.get("resource-stickiness", default)) for one in members)


def homes(setup: Setup) -> Iterator[Thing]:
    """Yield the stickiness of each group or other resource, and the highest score of its location constraints."""
    cib = setup.pacemaker
    for name in dict.fromkeys(one.group or one.clone or one.id for one in cib.services):
        members = cib.ties.members(name)
        if all(one.clone and not cib.promotable(one.clone) for one in members):
            continue
        names = {name, *(one.id for one in members)}
        about = [one for one in cib.locations if names & set(one.resources) and one.certain]
        scores = [one.score for one in about if not one.id.startswith("cli-")]
        stays = _stickiness(cib, members)
        deduced = {"the stickiness": f"{stays:g}", "the preference": f"{max(scores, default=0.0):g}"}
        yield Thing(f"cib: {name}", facts(deduced))
