"""Rules about fencing devices and fencing levels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover import rules_fencing_devices as power
from strakes.failover.cluster import is_address
from strakes.failover.facts import Doubtful, graded, shared
from strakes.failover.limits import matches
from strakes.failover.resource_facts import FOR_EVERY_NODE
from strakes.failover.setup import Setup

_LEAST_DELAY_S = 3.0  # Minimum difference between two fencing delays, in seconds, to decide a fencing race.
_WORLDWIDE = ("fence_ibm_powervs", "fence_ibm_vpc", "fence_aws", "fence_aliyun")  # Agents with unique machine ids.


def outlet_not_named(setup: Setup) -> Iterator[str]:
    """Find nodes without an outlet, outlets of more than one node, and outlets named after another node."""
    for device in setup.pacemaker.devices:
        plugs = {node: power.plug_of(device, node) for node in setup.pacemaker.fences(device)}
        lacking = [node for node, plug in plugs.items() if not plug]
        if lacking and power.is_outlet(device) and not device.agent.startswith("external/"):
            yield Doubtful(f"cib: {device.id} names no outlet of {' and '.join(lacking)}")
        mapped = power.is_outlet(device) or device.values.get("pcmk_host_map")
        alike = [node for node, plug in plugs.items() if mapped and list(plugs.values()).count(plug) > 1]
        if alike and not lacking:
            yield f"cib: {device.id} has the same outlet for {' and '.join(alike)}"
        for node, plug in plugs.items() if len(plugs) == 1 or "pcmk_host_map" in device.values else ():
            named = [name for name in setup.node_names if re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", plug)]
            if node in setup.pacemaker.members_of_corosync and named and node not in named:
                yield graded(plug in named, f"cib: {device.id} is for {node}, but cuts the power of {plug}")


def one_bmc_for_two_nodes(setup: Setup) -> Iterator[str]:
    """Find power outlets, BMCs and virtual machines that are configured for more than one node."""
    rows = list[tuple[tuple[str, frozenset[tuple[str, str]]], str]]()
    for device in setup.devices:
        everybody = power.is_bmc(device) and setup.pacemaker.fences_everybody(device)
        nodes = (device.id,) if everybody else setup.pacemaker.fences(device)
        own = {(key, value) for key, value in device.values.items() if not re.match("pcmk_|plug$|port$|delay$", key)}
        for node in nodes:
            place = power.place_of_power(device, node)
            if not power.is_bmc(device) and not power.is_outlet(device):
                place = (device.agent, "" if setup.pacemaker.fences_everybody(device) else power.plug_of(device, node))
            if place[0] and (place[-1] or (power.is_bmc(device) and len(nodes) == 1)):
                local = len(place) == 2 and (place[0] not in _WORLDWIDE or re.search("[<${]", place[1]))
                rows.append(((" ".join(filter(None, place)), frozenset(own if local else [])), node))
    for (key, _), first, node in shared(rows):
        # If the key begins with neither an IP address nor an agent, it may be a placeholder, so only warn.
        sure = is_address(key.partition(" ")[0]) or key.startswith("fence_")
        yield graded(sure, f"cib: {first} and {node} have the same BMC, outlet or machine: {key}")


def fencing_race(setup: Setup) -> Iterator[str]:
    """Find clusters of two nodes that may fence each other at the same time: their fencing delays are too similar."""
    delays = {node: least_s for node, (least_s, most_s) in power.delays_of(setup).items() if least_s == most_s}
    if len(delays) == 2 and abs(max(delays.values()) - min(delays.values())) < _LEAST_DELAY_S:
        each = ", ".join(f"{node} after {delay:g} s" for node, delay in delays.items())
        yield f"cib: both nodes are fenced at the same moment ({each})"


def fencing_device_forbidden_where_needed(setup: Setup) -> Iterator[str]:
    """Find fencing devices that may run only on the node that they power off."""
    cib = setup.pacemaker
    for device in cib.devices:
        banned = set(setup.node_names) - set(power.runners_of(setup, device))
        # Skip a device without a host list, because it does not say which node it powers off.
        known = device.agent in FOR_EVERY_NODE or not cib.fences_everybody(device) or banned >= set(setup.node_names)
        for victim in cib.fences(device) if known else ():
            others = set(setup.node_names) - {victim}
            if others and others <= banned:
                text = f"cib: {device.id} may run only on {victim}, the node that it powers off"
                yield graded(len(power.devices_for(cib, victim)) == 1, text)


def fencing_level_with_unusable_device(setup: Setup) -> Iterator[str]:
    """Find fencing levels with an unusable device, and nodes without levels if other nodes have levels."""
    cib = setup.pacemaker
    known = {device.id: device for device in cib.devices}
    for node in setup.node_names:
        for index, names in enumerate(cib.levels_of(node), 1):
            for name in (name for name in names if name != "watchdog"):  # Pacemaker itself provides "watchdog".
                if name not in known:
                    yield f"cib: level {index} of {node} names {name}, which is not a device"
                elif node not in cib.fences(known[name]):
                    yield f"cib: level {index} of {node} names {name}, which does not power off this node"
        if not cib.levels_of(node) and len(power.devices_for(cib, node)) > 1 and any(map(cib.levels_of, setup.members)):
            yield Doubtful(f"cib: node {node} has no fencing level, but other nodes have levels")
    yield from _levels_of_nobody(setup)


def _levels_of_nobody(setup: Setup) -> Iterator[str]:
    cib = setup.pacemaker
    names = (*setup.node_names, *cib.remote_nodes)
    for level in cib.levels if setup.node_names else ():
        target, pattern, attribute = (level.get(key, "") for key in ("target", "target-pattern", "target-attribute"))
        with_value = [own.get(attribute) == level.get("target-value", "") for own in cib.node_attributes.values()]
        matched = any(matches(pattern, node) for node in names) if pattern else bool(attribute) and any(with_value)
        if target not in names and not matched:
            yield Doubtful(f"cib: level {level.get('id')} is for {target or pattern or attribute}, which no node has")
        if not re.fullmatch(r"[1-9]", level.get("index", "")) or not level.get("devices", "").strip(", "):
            yield f"cib: level {level.get('id')} has index={level.get('index')} and devices={level.get('devices')}"


def outlets_switched_one_by_one(setup: Setup) -> Iterator[str]:
    """Find fencing levels that switch off only some outlets of a node, or one outlet twice."""
    cib = setup.pacemaker
    outlets = {device.id: device for device in filter(power.is_outlet, cib.devices)}
    for node in setup.node_names:
        own = {name for name, device in outlets.items() if node in cib.fences(device)}
        for index, names in enumerate(cib.levels_of(node) or [(name,) for name in sorted(own)], 1):
            present = own & set(names)
            if len(own) > 1 and present and present != own and all(name in outlets for name in names):
                yield f"cib: level {index} of {node} switches {', '.join(sorted(present))} of {len(own)} outlets"
            places = [power.place_of_power(outlets[name], node) for name in sorted(present)]
            for place in sorted({one for one in places if one[0] and one[-1] and places.count(one) > 1}):
                yield Doubtful(f"cib: level {index} of {node} switches outlet {place[-1]} of {place[0]} twice")
