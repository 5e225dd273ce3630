"""Rules about constraints that compare them with nodes, resources and other constraints."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.cib_values import is_true
from strakes.failover.pacemaker_resources import WATCHERS
from strakes.failover.rules.resource_facts import ADDRESSES
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
