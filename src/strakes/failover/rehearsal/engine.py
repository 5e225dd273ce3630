"""Pacemaker's policy engine (``crm_simulate``) on a planned configuration: what it would do with each failure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as Xml

from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.failover.cib import Cib
from strakes.failover.validators import installed
from strakes.files import write_kept
from strakes.targets.command import run

_LIMIT_S = 60.0
# A failed stop needs a second transition, in which the node is fenced; more would be a loop.
_TRANSITIONS = 4


@dataclass(frozen=True)
class Event:
    """What the policy engine is told; ``monitors`` and ``stops`` are (primitive, node) whose operation fails."""

    dead: frozenset[str] = frozenset()
    monitors: frozenset[tuple[str, str]] = frozenset()
    stops: frozenset[tuple[str, str]] = frozenset()
    # Nodes whose copy of a target must not be promoted: (target, node).
    stale: frozenset[tuple[str, str]] = frozenset()
    quorum: bool = True
    # Nodes that nobody can make sure to be off.
    unfenceable: frozenset[str] = frozenset()
    # Nodes that lack the disks of a target: (target, node).
    diskless: frozenset[tuple[str, str]] = frozenset()
    # Nodes that are switched on, and join.
    back: frozenset[str] = frozenset()
    # What the agents that watch networks say: (attribute, node, value).
    watched: frozenset[tuple[str, str, int]] = frozenset()


@dataclass(frozen=True)
class ClusterState:
    """The cluster after a transition.

    ``places`` gives the node on which the whole of each group runs.
    """

    file: Path
    places: dict[str, str]
    fenced: tuple[str, ...] = ()
    unclean: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()


class PolicyEngine:
    """The policy engine, which keeps its files in ``directory``; the caller removes that.

    Raises EnvironmentLacksError where crm_simulate is not installed.
    """

    def __init__(self, cib: Cib, text: str, directory: Path) -> None:
        if not installed("crm_simulate"):
            raise EnvironmentLacksError(
                "the policy engine is not installed",
                where="crm_simulate",
                remedy="Install Pacemaker's command line tools: apt-get install pacemaker-cli-utils",
            )
        self._cib = cib
        self._directory = directory
        self._numbers = itertools.count()
        self._known: dict[tuple[Path, Event], ClusterState] = {}
        self._same: dict[str, Path] = {}
        self._drbd = {
            one.values.get("drbd_resource", one.id): one.id
            for one in cib.primitives
            if one.is_drbd or cib.promotable(one.clone)
        }
        self._planned = self._new_file()
        write_kept(self._planned, text)

    def steady(self, watched: frozenset[tuple[str, str, int]] = frozenset()) -> ClusterState:
        """Return the state with all nodes up and all copies the same. Raises BadInputError when nothing runs then."""
        up = [word for node in self._cib.nodes for word in ("--node-up", node)]
        well = Event(watched=watched)
        self._prepare(self._planned, well)
        started, _ = self._simulate(self._planned, up)
        self._prepare(started, well)
        running, document = self._simulate(started, [])
        state = ClusterState(running, _places(document))
        if not all(state.places.values()):
            stopped = ", ".join(name for name, place in state.places.items() if not place)
            raise BadInputError(
                "even without any failure the policy engine does not start everything",
                where=stopped,
                remedy="strakes failover check DIR says what is wrong with the configuration.",
            )
        return state

    def after(self, state: ClusterState, event: Event) -> ClusterState:
        """Return what comes of an event in a state; asked once for each."""
        key = (state.file, event)
        if key not in self._known:
            self._known[key] = self._after(state, event)
        return self._known[key]

    def _after(self, state: ClusterState, event: Event) -> ClusterState:
        found = self._transitions(state, event, fencing=True)
        surviving = event.unfenceable & set(found.fenced)
        if not surviving:
            return found
        # The engine takes every fencing for a success. Where one would fail, it is asked again without any device:
        # what could not be stopped on such a node is then in nobody's hands.
        left = self._transitions(state, event, fencing=False)
        failed = {one.group for one in self._cib.primitives if one.id in {primitive for primitive, _ in event.stops}}
        places = {
            group: "" if group in failed and state.places[group] in surviving else place
            for group, place in left.places.items()
        }
        return replace(left, places=places, unclean=tuple(dict.fromkeys((*left.unclean, *sorted(surviving)))))

    def _transitions(self, state: ClusterState, event: Event, *, fencing: bool) -> ClusterState:
        start = self._new_file()
        write_kept(start, state.file.read_bytes())
        self._prepare(start, event)
        if not fencing:
            self._remove(start, {device.id for device in self._cib.devices})
        words = [word for node in sorted(event.dead) for word in ("--node-fail", node)]
        words += [word for node in sorted(event.back) for word in ("--node-up", node)]
        words += [
            word
            for primitive, node in sorted(event.monitors)
            for word in ("--op-inject", f"{self._monitor(primitive)}@{node}=1")
        ]
        words += [
            word for primitive, node in sorted(event.stops) for word in ("--op-fail", f"{primitive}_stop_0@{node}=1")
        ]
        fenced: list[str] = []
        restarted: list[str] = []
        file = start
        for number in range(_TRANSITIONS):
            file, document = self._simulate(file, words if number == 0 else [])
            done = document.findall("./transition/fencing_action")
            fenced += [action.get("target", "") for action in done if action.get("op") in ("off", "reboot")]
            restarted += [
                one.get("resource", "")
                for one in document.findall("./actions/rsc_action")
                if one.get("action") == "recover"
            ]
            if number and not document.findall("./transition/*"):
                break
        file = self._same.setdefault(_meaning(file, document), file)
        unclean = tuple(
            node.get("name", "")
            for node in document.findall("./revised_cluster_status/nodes/node")
            if node.get("unclean") == "true"
        )
        return ClusterState(
            file, _places(document), tuple(dict.fromkeys(fenced)), unclean, tuple(dict.fromkeys(restarted))
        )

    def _monitor(self, primitive: str) -> str:
        found = next(one for one in self._cib.primitives if one.id == primitive)
        monitors = [one for one in found.operations if one.repeats]
        chosen = next((one for one in monitors if one.role == "Promoted"), monitors[0] if monitors else None)
        return f"{primitive}_monitor_{round(chosen.interval_s * 1000) if chosen else 0}"

    def _simulate(self, file: Path, words: Iterable[str]) -> tuple[Path, Xml.Element]:
        out = self._new_file()
        argv = [
            "crm_simulate",
            "--xml-file",
            str(file),
            "--simulate",
            "--save-output",
            str(out),
            "--output-as=xml",
            *words,
        ]
        done = run(argv, _LIMIT_S)
        if done.status != 0 or not out.exists():
            raise BadInputError(
                "the policy engine refuses the configuration",
                where=" ".join(words) or str(file),
                why=(done.stderr.strip() or done.stdout.strip())[-400:],
                remedy="strakes failover check DIR says what is wrong with it.",
            )
        return out, Xml.fromstring(done.stdout)

    def _prepare(self, file: Path, event: Event) -> None:
        """Write what other programs would say into the file.

        Corosync says whether there is quorum, DRBD's agent which copy may be promoted, and the watchers what they
        reach.
        """
        tree = Xml.parse(file)
        self._keep_away(tree.getroot(), event.diskless)
        # In the file, for crm_simulate heeds its own --quorum only beside other changes.
        tree.getroot().set("have-quorum", "1" if event.quorum else "0")
        for node in tree.iterfind("./status/node_state"):
            identity = node.get("id", "")
            attributes = node.find("./transient_attributes")
            if attributes is None:
                attributes = Xml.SubElement(node, "transient_attributes", id=identity)
            block = attributes.find("./instance_attributes")
            if block is None:
                block = Xml.SubElement(attributes, "instance_attributes", id=f"status-{identity}")
            for target, drbd in self._drbd.items():
                name = f"master-{drbd}"
                for pair in [pair for pair in block if pair.get("name") == name]:
                    block.remove(pair)
                if (target, node.get("uname", "")) not in event.stale:
                    Xml.SubElement(block, "nvpair", id=f"status-{identity}-{name}", name=name, value="10000")
            for name, at, value in sorted(event.watched):
                if at == node.get("uname", ""):
                    for pair in [pair for pair in block if pair.get("name") == name]:
                        block.remove(pair)
                    Xml.SubElement(block, "nvpair", id=f"status-{identity}-{name}", name=name, value=str(value))
        tree.write(file)

    @staticmethod
    def _keep_away(cib: Xml.Element, diskless: frozenset[tuple[str, str]]) -> None:
        """Let a target not start where its disks are not: it would fail there."""
        constraints = cib.find("./configuration/constraints")
        assert constraints is not None
        there = {constraint.get("id") for constraint in constraints}
        for target, node in sorted(diskless):
            identity = f"strakes-{target}-lost-on-{node}"
            if identity not in there:
                away = {"rsc": f"serve-{target}", "node": node, "score": "-INFINITY"}
                Xml.SubElement(constraints, "rsc_location", {"id": identity, **away})

    def _remove(self, file: Path, identities: set[str]) -> None:
        tree = Xml.parse(file)
        for parent in list(tree.iter()):
            for child in list(parent):
                named = {child.get("id"), child.get("rsc"), *(child.get("devices") or "").split(",")}
                if named & identities:
                    parent.remove(child)
        tree.write(file)

    def _new_file(self) -> Path:
        return self._directory / f"{next(self._numbers)}.xml"


def _meaning(file: Path, document: Xml.Element) -> str:
    """Return what two files of the same state have in common: who is up, what runs where, what has failed how often."""
    status = document.find("./revised_cluster_status")
    assert status is not None
    nodes = [
        tuple(node.get(key) for key in ("name", "online", "unclean", "pending"))
        for node in status.iterfind("./nodes/node")
    ]
    resources = [
        (resource.get("id"), resource.get("role"), resource.get("failed"), *(on.get("name") for on in resource))
        for resource in status.iter("resource")
    ]
    root = Xml.parse(file).getroot()
    failures = [
        (pair.get("id"), pair.get("value")) for pair in root.iter("nvpair") if "fail-count" in pair.get("id", "")
    ]
    kept_away = [place.get("id") for place in root.iter("rsc_location")]
    return repr((sorted(map(repr, nodes)), sorted(map(repr, resources)), sorted(failures), sorted(map(str, kept_away))))


def _places(document: Xml.Element) -> dict[str, str]:
    """Return the node on which the whole of each group runs, empty where it does not.

    On an unclean node nothing is sure to run, so it does not count.
    """
    status = document.find("./revised_cluster_status")
    assert status is not None
    gone = {
        node.get("name")
        for node in status.iterfind("./nodes/node")
        if node.get("online") != "true" or node.get("unclean") == "true"
    }
    places = {}
    for group in status.iterfind("./resources/group"):
        on = set()
        for resource in group.iterfind("./resource"):
            node = resource.find("./node")
            running = resource.get("role") == "Started" and resource.get("failed") != "true" and node is not None
            on.add(node.get("name") if running and node is not None and node.get("name") not in gone else "")
        places[group.get("id", "")] = (on.pop() or "") if len(on) == 1 else ""
    return places
