"""Rules about levels of fencing: which devices have to act together, and which come after others."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.rules.fencing_devices import address_of, is_outlet, plug_of
from strakes.failover.rules.rule import OWN, PACEMAKER, rule
from strakes.failover.setup import Setup
from strakes.units import counted


@rule("pacemaker").error(
    reason="A level fails if any of its devices fails. A device that does not exist, or that does not power off this "
    "node, always fails.",
    remedy="Correct the devices of the level.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_level_with_unusable_device(setup: Setup) -> Iterator[str]:
    """Find levels with devices or nodes that do not exist, or that do not belong together."""
    cib = setup.pacemaker
    known = {device.id: device for device in cib.devices}
    for node in setup.node_names:
        for index, names in enumerate(cib.levels_of(node), 1):
            for name in names:
                if name not in known:
                    yield f"cib: level {index} of {node} names {name}, which is no device"
                elif node not in cib.fences(known[name]):
                    yield f"cib: level {index} of {node} names {name}, which does not power it off"
    for level in cib.levels:
        if level.get("target") and setup.node_names and level["target"] not in setup.node_names:
            yield f"cib: a level is for {level['target']}, which is no node"


@rule("pacemaker").error(
    reason="A node without levels is powered off by any one of its devices: switching one of two outlets then counts "
    "as success.",
    remedy="Give every node its own levels.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_level_for_some_nodes(setup: Setup) -> Iterator[str]:
    """Find nodes without a level where other nodes have one."""
    cib = setup.pacemaker
    targeted = all("target" in level or "target-pattern" in level for level in cib.levels)
    for node in setup.node_names:
        if cib.levels and targeted and not cib.levels_of(node):
            yield f"cib: {node} has no level, other nodes have"


@rule("pacemaker").error(
    reason="A node with two power supplies keeps running when one outlet is off; a level with one outlet still reports "
    "it as powered off.",
    remedy="Put all outlets of a node into the same level: devices=outlet-1,outlet-2",
    source=f"{PACEMAKER}/fencing.rst",
)
def outlets_switched_one_by_one(setup: Setup) -> Iterator[str]:
    """Find levels that switch only some of the outlets of a node, or one of them twice."""
    cib = setup.pacemaker
    outlets = {device.id: device for device in filter(is_outlet, cib.devices)}
    for node in setup.node_names:
        its_outlets = {name for name, device in outlets.items() if node in cib.fences(device)}
        if len(its_outlets) < 2:
            continue
        levels = cib.levels_of(node) or [(name,) for name in sorted(its_outlets)]
        for index, names in enumerate(levels, 1):
            in_level = its_outlets & set(names)
            complete = in_level == its_outlets or any(name not in outlets for name in names)
            places = [(address_of(outlets[name]), plug_of(outlets[name], node)) for name in sorted(in_level)]
            for address, plug in sorted({place for place in places if all(place) and places.count(place) > 1}):
                yield f"cib: level {index} of {node} switches outlet {plug} of {address} twice"
            if in_level and not complete:
                yield (
                    f"cib: level {index} of {node} switches {', '.join(sorted(in_level))} of "
                    f"{counted(len(its_outlets), 'outlet')}"
                )


@rule("description").error(
    reason="A node keeps running as long as one of its feeds has power: outlets that are all on one feed, or only on "
    "some of them, do not power it off.",
    remedy="Use one outlet on each feed of the node.",
    source=OWN,
)
def outlets_leave_a_feed_on(setup: Setup) -> Iterator[str]:
    """Find nodes that keep power after their outlets are off, and outlets on feeds of others."""
    for node in setup.described.nodes:
        switched = [pdu.feed for pdu in node.pdus]
        left = [feed for feed in node.power_feeds if feed not in switched]
        if switched and left:
            yield f"cluster.toml: the outlets of {node.name} leave it {', '.join(left)}"
        for feed in sorted({feed for feed in switched if feed not in node.power_feeds}):
            yield f"cluster.toml: an outlet of {node.name} is on {feed}, which does not feed it"
