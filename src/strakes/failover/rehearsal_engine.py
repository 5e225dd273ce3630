"""Simulate failures with Pacemaker's policy engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as Xml

from strakes.base.errors import BadInputError
from strakes.failover.behaviour import Snapshot
from strakes.failover.model import Service
from strakes.failover.policy_engine import PolicyEngine, Watched, failed_monitor
from strakes.failover.setup import Setup


@dataclass(frozen=True)
class Event:
    """An event to simulate. ``stale`` and ``diskless`` are (target, node) pairs. Other pairs are (resource, node)."""

    dead: frozenset[str] = frozenset()
    monitors: frozenset[tuple[str, str]] = frozenset()
    stops: frozenset[tuple[str, str]] = frozenset()
    stale: frozenset[tuple[str, str]] = frozenset()
    quorum: bool = True
    unfenceable: frozenset[str] = frozenset()
    diskless: frozenset[tuple[str, str]] = frozenset()
    watched: Watched = frozenset()


@dataclass(frozen=True)
class ClusterState:
    """The cluster after an event. ``places``: target -> node that serves it, or an empty text."""

    file: Path
    places: dict[str, str]
    fenced: tuple[str, ...] = ()
    unclean: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()


class FailureEngine:
    """Simulates failures with Pacemaker's policy engine. ``services``: target -> service."""

    def __init__(self, setup: Setup, services: Mapping[str, Service], directory: Path, limit_s: float) -> None:
        self._engine, self._cib = PolicyEngine(setup, directory, limit_s), setup.pacemaker
        self._services = services
        self._known: dict[tuple[Path, Event], ClusterState] = {}

    def steady(self, watched: Watched = frozenset()) -> ClusterState:
        """Return the state without failures. Raises BadInputError if no service runs completely."""
        started, present = self._engine.steady(), self._engine.present()
        if present is not None and self._idle(present) < self._idle(started):
            # The status in the CIB contains transient attributes, without which some services do not run.
            started = present
        root = self._prepared(started.file, Event(watched=watched))
        snapshot = self._engine.settled(self._engine.written(root), [])
        state = ClusterState(snapshot.file, self._places(snapshot))
        if not any(state.places.values()):
            what, where = "no service runs completely, even without a failure", ", ".join(state.places)
            why = "in each service, the policy engine leaves a resource stopped, unpromoted or on another node"
            remedy = "strakes failover check DIR lists the mistakes of the configuration."
            raise BadInputError(
                what, where=where or "no target is a service that a node may run", why=why, remedy=remedy
            )
        return state

    def after(self, state: ClusterState, event: Event) -> ClusterState:
        """Return the cluster after an event."""
        if (state.file, event) not in self._known:
            found = self._transitions(state, event, fencing=True)
            surviving = event.unfenceable & set(found.fenced)
            self._known[state.file, event] = self._unfenced(state, event, surviving) if surviving else found
        return self._known[state.file, event]

    def _unfenced(self, state: ClusterState, event: Event, surviving: frozenset[str]) -> ClusterState:
        # crm_simulate assumes that fencing succeeds, so failed fencing is simulated without fencing devices.
        left = self._transitions(state, event, fencing=False)
        failed = {primitive for primitive, _ in event.stops}
        hit = {name for name, own in self._services.items() if failed & {one.id for one in own.parts}}
        places = {
            name: "" if name in hit and state.places[name] in surviving else place
            for name, place in left.places.items()
        }
        return replace(left, places=places, unclean=tuple(dict.fromkeys((*left.unclean, *sorted(surviving)))))

    def _transitions(self, state: ClusterState, event: Event, *, fencing: bool) -> ClusterState:
        root = self._prepared(state.file, event)
        lost = () if fencing else self._cib.devices
        devices = {name for one in lost for name in (one.id, one.clone, one.group)}
        # A CIB must not contain an empty clone or group.
        devices -= {"", *(name for one in self._cib.services for name in (one.clone, one.group))}
        for parent in list(root.iter()) if devices else ():
            for child in list(parent):
                named = {child.get(key) for key in ("id", "rsc", "with-rsc", "first", "then")}
                if devices & {*named, *(child.get("devices") or "").split(",")}:
                    parent.remove(child)
        words = [word for node in sorted(event.dead) for word in ("--node-fail", node)]
        for primitive, node in sorted(event.monitors):
            failing = next(one for one in self._cib.primitives if one.id == primitive)
            words += ["--op-inject", failed_monitor(failing, node, "Promoted")]
        for primitive, node in sorted(event.stops):
            words += ["--op-fail", f"{primitive}_stop_0@{node}=1"]
        snapshot = self._engine.settled(self._engine.written(root), words)
        fenced = tuple(sorted(snapshot.fenced))
        return ClusterState(snapshot.file, self._places(snapshot), fenced, snapshot.unclean, snapshot.restarted)

    def _idle(self, snapshot: Snapshot) -> set[str]:
        return {name for name, place in self._places(snapshot).items() if not place}

    def _places(self, snapshot: Snapshot) -> dict[str, str]:
        return {name: place_of(service, snapshot) for name, service in self._services.items()}

    def _prepared(self, file: Path, event: Event) -> Xml.Element:
        root = Xml.parse(file).getroot()
        self._keep_away(root, event.diskless)
        # Without another change, crm_simulate ignores its option --quorum.
        root.set("have-quorum", "1" if event.quorum else "0")
        for node in root.iterfind("./status/node_state"):
            name = node.get("uname", "")
            old = [
                f"master-{one.id}" for target, at in event.stale if at == name for one in self._services[target].copies
            ]
            self._engine.tell(node, name, old, event.watched)
        return root

    def _keep_away(self, cib: Xml.Element, diskless: frozenset[tuple[str, str]]) -> None:
        constraints = cib.find("./configuration/constraints")
        assert constraints is not None
        present = {constraint.get("id") for constraint in constraints}
        for target, node in sorted(diskless):
            for name in dict.fromkeys(one.group or one.id for one in self._services[target].members):
                identity = f"strakes-{name}-lost-on-{node.strip('<>${}')}"
                if identity not in present:
                    away = {"rsc": name, "node": node, "score": "-INFINITY"}
                    Xml.SubElement(constraints, "rsc_location", {"id": identity, **away})


def place_of(service: Service, snapshot: Snapshot) -> str:
    """Return the node that runs the whole service, or an empty text."""
    nodes = [snapshot.nodes_of(one.id) for one in service.members] or [
        snapshot.nodes_of(one.id, "Promoted") for one in service.copies
    ]
    common = frozenset.intersection(*nodes) if nodes else frozenset()
    return min(common, default="")
