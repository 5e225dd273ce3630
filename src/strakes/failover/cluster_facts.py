"""Properties of the cluster, its nodes, Corosync, sbd, DRBD and simulated failures. Rules check these properties."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import partial, reduce

from strakes.failover.blocks import Block, Resource
from strakes.failover.cib import Cib
from strakes.failover.facts import Facts, Table, Thing, facts, is_true, yes
from strakes.failover.resource_facts import ADDRESSES, SBD, needs_one_node
from strakes.failover.rules_constraints import placed_by_agents
from strakes.failover.rules_fencing_devices import devices_for, tie_breakers, watchdog_fences
from strakes.failover.rules_nodes import settings_of_nodes
from strakes.failover.setup import Setup, links_of, name_of, nodes_of
from strakes.targets.answers import from_xml

_ELEMENTS = ("nodes/node", "summary/current_dc", "resources//resource", "failures/failure", "fence_history/fence_event")


def cluster(setup: Setup) -> Iterator[Thing]:
    """Yield the properties of the cluster, including derived ones such as the number of nodes."""
    cib = setup.pacemaker
    unknown = "statements" in setup.parts and "have-watchdog" not in cib.properties  # Pacemaker sets have-watchdog.
    deduced: Table = {
        "number of nodes": str(len(setup.members)),
        "keeps data": yes(setup.keeps_data),
        "has devices": yes(cib.devices),
        "alerts events": yes(
            cib.root.find("./configuration/alerts/alert") is not None
            or any(one.agent in ("ClusterMon", "MailTo") for one in cib.primitives)
        ),
        "is reset by watchdogs": yes(watchdog_fences(setup)),
        "is reset by a shared disk": yes(any(one.agent in SBD for one in cib.devices)),
        "has a tie breaker": yes(any(tie_breakers(setup))),
        "uses absent watchdogs": yes(cib.watchdog_s != 0 and not watchdog_fences(setup) and not unknown),
        "mounts a file system on several nodes": yes(setup.mounts_on_both_nodes),
        "statements about unknown resources": setup.undefined,
    }
    yield Thing("cib: the cluster", facts(cib.properties, deduced))


def nodes(setup: Setup) -> Iterator[Thing]:
    """Yield the attributes of each node, and whether a device can fence it."""
    cib = setup.pacemaker
    votes_only = {node.name for node in setup.cluster.nodes if node.quorum_only} if setup.cluster else set()
    fences = cib.properties.get("stonith-enabled", "").lower() not in ("false", "no", "off", "0")
    fences = fences and not setup.is_fragment
    # Guest nodes and replicas of bundles need no fencing device: Pacemaker restarts their container.
    guests = set(cib.remote_nodes) - {one.id for one in setup.services if one.agent == "remote"}
    active = [name for name in setup.members if not is_true(cib.node_attributes.get(name, {}).get("standby", ""))]
    for name in (name for name in setup.node_names if name not in guests):
        deduced = {
            # A node that is only in corosync.conf has a vote but runs no services.
            "is to be fenced": yes(fences and (name in cib.nodes or not cib.nodes)),
            "is fenced": yes(devices_for(cib, name) or watchdog_fences(setup)),
            # A node that is always in standby may exist only for its vote.
            "only votes": yes(name in votes_only or len(active) > 1),
        }
        yield Thing(f"cib: node {name}", facts(cib.node_attributes.get(name, {}), deduced))


def membership(setup: Setup) -> Iterator[Thing]:
    """Yield the settings in corosync.conf, and properties of its nodes and quorum device."""
    nodes, quorum = nodes_of(setup), setup.corosync.one("quorum")
    known, device = len(nodes) or len(setup.members) * (not setup.nodes_assumed), quorum.one("device")
    votes = device.get("votes") or "1" if quorum.all("device") else "0"
    labels = [name_of(node) or links_of(node).get(0, "a node") for node in nodes]
    given = [(label, node.get("quorum_votes", "1")) for label, node in zip(labels, nodes, strict=True)]
    weights = [(name, int(text) if text.isdecimal() else 1) for name, text in given]
    total, uneven = sum(own for _, own in weights), {own for _, own in weights} != {1}
    ignores = setup.cib is not None and setup.cib.properties.get("no-quorum-policy") == "ignore"
    totem = setup.corosync.one("totem")
    interfaces = totem.all("interface")
    rings = len(interfaces) if totem.get("rrp_mode", "none") != "none" else 1
    single = [label for label, node in zip(labels, nodes, strict=True) if max(len(links_of(node)), rings) == 1]
    deduced: Table = {
        "number of nodes": str(known) if known else "",
        "possible votes": {str(known), str(known + int(votes))} if known and votes.isdecimal() else (),
        "all votes": str(total + int(votes)) if votes.isdecimal() else "",
        "has a device": yes(quorum.all("device")),
        "has a node list": yes(nodes),
        "is managed": yes(setup.cib),
        "is for Corosync 2": yes(totem.get("secauth") or any(one.get("bindnetaddr") for one in interfaces)),
        "is a pair alone": yes(known == 2 and quorum.get("expected_votes") != "1" and not device and not ignores),
        "number of links": str(max((len(links_of(node)) for node in nodes), default=0)),
        "nodes with one link": single or ["all nodes"] * (not nodes and len(interfaces) == 1),
        "nodes without an id": [label for label, node in zip(labels, nodes, strict=True) if not node.get("nodeid")],
        "votes of nodes": [text for _, text in given],
        "node that decides alone": [name for name, own in weights if uneven and 2 * (total - own) <= total],
    }
    own, written = facts(deduced), partial(_setting, setup.corosync)
    yield Thing("corosync.conf", lambda name: own(name) or written(name))


def _setting(block: Block, name: str) -> tuple[str, ...]:
    *path, key = name.split(".")
    settings = reduce(Block.one, path, block).settings
    return tuple(value for name, value in reversed(settings) if name == key)[:1]


def sbd(setup: Setup) -> Iterator[Thing]:
    """Yield the settings of sbd, and properties of the disks that it uses."""
    disks = re.findall(r"[^;\s]+", setup.sbd.get("SBD_DEVICE", ""))
    data = {disk for one in setup.drbd for disk in one.disks} | {one.device for one in setup.services}
    devices = [one for one in setup.devices if one.agent in SBD]
    lists = [one.values.get("devices") or one.values.get("sbd_device", "") for one in devices]
    named = [given for text in lists if (given := {*re.findall(r"[^,;\s]+", text)})] if disks else []
    deduced: Table = {
        "has a device in Pacemaker": yes(devices),
        "disks": disks,
        "disks given twice": [disk for disk in disks if disks.count(disk) > 1],
        "disks with data": [disk for disk in disks if disk in data],
        "other disks in Pacemaker": sorted({disk for given in named for disk in given ^ set(disks)}),
        "watchdog of Corosync": setup.corosync.one("resources").get("watchdog_device"),
    }
    yield Thing("sbd", facts(setup.sbd, deduced))


def states(setup: Setup) -> Iterator[Thing]:
    """Yield each element that crm_mon prints, and each line of corosync-cfgtool, drbdsetup and /proc/drbd."""
    devices = {one.id for one in setup.devices}
    root = from_xml(setup.texts["state/crm_mon"], "crm_mon")
    running = {one.get("id") for one in root.iterfind("resources//resource") if one.get("role") != "Stopped"}
    for one in (one for path in _ELEMENTS for one in root.iterfind(path)):
        operation = one.get("op_key", "")
        name = one.get("name") or one.get("id") or operation or one.get("target", "")
        of_device = re.sub(r"_[a-z-]+_\d+$", "", operation) in devices
        deduced = {"the kind": one.tag, "is of a device": yes(of_device), "another copy runs": yes(name in running)}
        yield Thing(f"crm_mon: {one.tag} {name}", facts(one.attrib, deduced))
    for name in ("state/corosync-cfgtool", "state/drbdsetup", "state/cat"):
        for line in map(str.strip, setup.texts.get(name, "").splitlines()):
            yield Thing(f"{name.removeprefix('state/')}: {line}", facts({"the line": line}))


def settings(setup: Setup) -> Iterator[Thing]:
    """Yield each setting in the configuration files of nodes, such as multipath.conf."""
    for given in settings_of_nodes(setup):
        yield Thing(f"{given.file}:", facts({"table": given.table, "setting": given.name, "value": given.value}))


def replicated_resources(setup: Setup) -> Iterator[Thing]:
    """Yield the options and properties of each DRBD resource."""
    names = {one.name for one in setup.drbd}
    for one in setup.drbd:
        program = (one.option("handlers", "fence-peer") or one.option("handlers", "outdate-peer")).split()[:1]
        away = setup.node_names and any(host.name not in setup.node_names for host in one.hosts)  # spans several sites
        copies = [each for each in setup.services if each.is_drbd and each.values.get("drbd_resource") == one.name]
        deduced: Table = {
            "is managed": yes(copies and not away and not one.floating),
            "the protocol": () if one.is_for_a_distance or away or one.floating else one.protocols,
            "the fencing": () if one.block.all("stacked-on-top-of") or one.needs_majority else one.fencing,
            "unknown resync-after": [
                text
                for text in one.all_values("disk", "resync-after")
                if text.partition("/")[0] not in names and not text.lstrip("-").isdigit()
            ],
            "number of hosts": str(len(one.hosts)),
            "half of the hosts": str(len(one.hosts) / 2),
            "is used on both nodes": yes(setup.writes_on_both_nodes),
            "fence-peer program": [path.rpartition("/")[2] for path in program],
            "lifts what fence-peer sets": one.option("handlers", "unfence-peer")
            or one.option("handlers", "after-resync-target"),
            "is of version 9": yes(one.dialect9),
            "dopd runs": yes(re.search(r"(?m)^[ \t]*respawn\s.*/dopd\b", setup.texts.get("etc/ha.d/ha.cf", ""))),
            "disks": sorted(one.disks),
            "startup.become-primary-on": one.option("startup", "become-primary-on"),
        }
        yield Thing(f"drbd: {one.name}", partial(_replicated_fact, one, facts(deduced)))


def _replicated_fact(one: Resource, deduced: Facts, name: str) -> tuple[str, ...]:
    section, _, key = name.partition(".")
    return deduced(name) or (tuple(one.all_values(section, key)) if key else ())


def simulated_services(setup: Setup) -> Iterator[Thing]:
    """Yield the simulated state of each service, such as whether it starts on any node."""
    cib, seen = setup.pacemaker, setup.simulated
    # A simulation does not know the node attributes that agents such as ping set at run time.
    given, parts = [name for name, score in placed_by_agents(cib) if score == -math.inf], cib.ties.members
    unknown = {mate.id for name in given for one in parts(name) for mate in parts(one.group or one.id)}
    stopped = [one for one in cib.services if one.meta.get("target-role") == "Stopped"]
    unknown |= {one.id for base in stopped for one in cib.services if one is base or cib.ties.starts_after(one, base)}
    placed = seen.steady.places.keys() - unknown - _placed_unlike_in_newer_releases(cib)
    guessed = setup.nodes_assumed or any(is_true(own.get("standby", "")) for own in cib.node_attributes.values())
    for one in cib.services if not setup.is_fragment else ():
        unpromoted = one.meta.get("target-role") in ("Unpromoted", "Started")
        role = "Promoted" if cib.promotable(one.clone) and not unpromoted else ""
        nodes = sorted(seen.steady.nodes_of(one.id, role))
        single = bool(role) or not one.clone
        lost = [node for node in nodes if node in seen.without and not seen.without[node].nodes_of(one.id, role)]
        shared = any(is_true(one.values.get(name, "false")) for name in ("lvs_support", "unique_clone_address"))
        shared = shared or is_true(cib.clones.get(one.clone, {}).get("globally-unique", "false"))
        hashed = shared or one.values.get("clusterip_hash") or re.match("lo|dummy", one.values.get("nic", ""))
        names = {one.id, one.group, one.clone} - {""}
        apart = [{name for name, _ in tie.resources} for tie in cib.colocations if tie.score == -math.inf]
        avoids = any(tie.score == -math.inf and tie.resources[0][0] in names for tie in cib.colocations)
        deduced = {
            "is started": "" if nodes else "nowhere",
            "the action": "promoted" if role and seen.steady.nodes_of(one.id) else "started",
            "is known": yes(one.id in placed and not (avoids and cib.only_node(one)) and not (role and shared)),
            "is lost with": lost if single and not cib.is_bound(one) else [],
            "is kept from other nodes": yes(cib.only_node(one) or any(map(names.intersection, apart)) or guessed),
            "nodes are assumed": yes(guessed),
            "is on a shared disk": yes(one.is_on_shared_disk),
            "needs one node": yes(needs_one_node(one) or (one.agent in ADDRESSES and not hashed)),
            "number of its nodes": str(len(seen.steady.nodes_of(one.id))),
        }
        yield Thing(f"cib: {one.id}", facts(deduced))


def _placed_unlike_in_newer_releases(cib: Cib) -> set[str]:
    # Pacemaker after 2.1.5 chooses other nodes than before for bundles, utilization, and colocations of groups.
    if cib.properties.get("placement-strategy", "default") != "default":
        return {one.id for one in cib.services}
    bundles = {one.get("id", "") for one in cib.root.iter("bundle")}
    inner = bundles | {one.id for one in cib.services if one.group}
    ends = [{name for name, _ in tie.resources} for tie in cib.colocations]
    members = [one for names in ends if names & inner for name in names for one in cib.ties.members(name)]
    return {mate.id for one in members for mate in cib.ties.members(one.group or one.id)}


def dead_nodes(setup: Setup) -> Iterator[Thing]:
    """Yield the simulated effect of each node's death, such as whether the other nodes power off the dead node."""
    seen, keeps = setup.simulated, yes(setup.keeps_data)
    for node, snapshot in seen.without.items():
        busy = any(node in seen.steady.nodes_of(one.id) for one in setup.services)
        others = [name for name in sorted(snapshot.fenced) if name != node]
        deduced = {"runs services": yes(busy), "is powered off": yes(node in snapshot.fenced), "keeps data": keeps}
        yield Thing(f"cib: {node}", facts(deduced, {"powered off instead": others}))
