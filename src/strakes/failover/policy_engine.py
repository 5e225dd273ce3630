"""Run Pacemaker's policy engine (``crm_simulate``) to predict where resources run after a start or a failure."""

from __future__ import annotations

import itertools
import re
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree as Xml

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.files import read_below, write_kept
from strakes.failover.facts import role_of
from strakes.failover.limits import too_many_copies, too_much_to_ask
from strakes.failover.model import Service
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.setup import Behaviour, Setup, Snapshot
from strakes.failover.validators import installed, with_nodes_online
from strakes.targets.answers import NotUnderstoodError, from_xml
from strakes.targets.command import MOST_OUTPUT_BYTES, CommandTimeout, run

TRANSITIONS = 4  # Maximum number of Pacemaker transitions after an event. Half or double the number changes no test.
_MOST_S = 20.0  # Time limit of one simulation in seconds.
_ANY_INTERVAL_MS = 60_000  # Interval in milliseconds of a failed monitor. Pacemaker ignores its value.
_DRBD_SCORE = "drbd-promotion-score-"  # Prefix of node attributes that drbd-attr sets where DRBD may be promoted.
Watched = frozenset[tuple[str, str, int]]
_Places = dict[str, tuple[tuple[str, str], ...]]  # Resource -> (node, role) pairs.
_Guests = dict[tuple[str, str], tuple[str, str]]  # (resource, host) -> (guest node on the host, its container)


class PolicyEngine:
    """Simulator of one cluster. ``directory``: holds temporary files. ``limit_s``: time for all simulations."""

    def __init__(self, setup: Setup, directory: Path, limit_s: float = 3600.0) -> None:
        if not installed("crm_simulate"):
            remedy = "Install Pacemaker's command line tools (Debian: pacemaker-cli-utils, RHEL: pacemaker-cli)."
            what = "Pacemaker's policy engine is not installed"
            raise EnvironmentLacksError(what, where="crm_simulate", remedy=remedy)
        if why := too_many_copies(setup.pacemaker.root):
            remedy = "Lower clone-max or replicas to the number of copies that the nodes run."
            raise BadInputError("this CIB cannot be simulated", where=setup.where, why=why, remedy=remedy)
        self._setup, self._cib, self._directory = setup, setup.pacemaker, directory
        self._numbers = itertools.count()
        self._limit_s, self._until = limit_s, time.monotonic() + limit_s
        self._hosts = {d.name: [at.name for at in d.hosts] for d in setup.drbd if not d.block.all("stacked-on-top-of")}

    def steady(self) -> Snapshot:
        """Return the state without failures. Raises BadInputError for an invalid CIB."""
        return self.settled(self.written(self._fresh()), self._granted)

    def present(self) -> Snapshot | None:
        """Return the state after one transition from the status in the CIB, or None for a CIB without status."""
        if self._cib.root.find("./status/node_state") is None:
            return None
        return self.settled(self.written(self._cib.readable()), self._granted, most=1)

    @property
    def _granted(self) -> list[str]:
        tickets = dict.fromkeys(one.get("ticket", "") for one in self._cib.constraints("rsc_ticket"))
        return [word for name in tickets if name for word in ("--ticket-grant", name)]

    def settled(self, file: Path, words: Sequence[str], most: int = TRANSITIONS) -> Snapshot:
        """Return the state after the transitions, at most ``most``. ``words``: arguments of the first simulation."""
        fenced: list[str] = []
        restarted: list[str] = []
        document = Xml.Element("none")
        for number in range(most):
            document, file = self._simulate(file, words if number == 0 else ())
            actions = document.findall("./transition/fencing_action")
            fenced += [one.get("target", "") for one in actions if one.get("op") in ("off", "reboot")]
            restarted += [one.get("resource", "") for one in document.iterfind("./actions/*[@action='recover']")]
            # crm_simulate reports an error if actions wait for each other in a circle.
            if document.findall("./status/errors") or not document.findall("./transition/*"):
                break
            _forget_dead_guests(document, file)
        nodes = document.findall("./revised_cluster_status/nodes/node")
        resources = document.findall("./revised_cluster_status/resources//resource")
        places, guests = _places(document)
        return Snapshot(
            places,
            tuple(sorted(set(fenced))),
            unclean=tuple(node.get("name", "") for node in nodes if node.get("unclean") == "true"),
            restarted=tuple(dict.fromkeys(restarted)),
            unmanaged=frozenset(plain_id(one.get("id", "")) for one in resources if one.get("managed") == "false"),
            file=file,
            guests=guests,
        )

    def written(self, root: Xml.Element) -> Path:
        """Write a CIB to a new file and return its path."""
        file = self._directory / f"{next(self._numbers)}.xml"
        write_kept(file, Xml.tostring(root))
        return file

    def tell(self, state: Xml.Element, node: str, stale: Iterable[str] = (), watched: Watched = frozenset()) -> None:
        """Set node attributes as agents do: ``watched``, and the promotion scores of copies that are not ``stale``."""
        identity = state.get("id", "")
        attributes = state.find("./transient_attributes")
        if attributes is None:
            attributes = Xml.SubElement(state, "transient_attributes", id=identity)
        block = attributes.find("./instance_attributes")
        if block is None:
            block = Xml.SubElement(attributes, "instance_attributes", id=f"status-{identity}")
        seen = dict(self._reached) | {name: str(value) for name, at, value in watched if at == node}
        copies = [name for name, copy in self._scores.items() if node in (self._hosts.get(copy) or (node,))]
        given = {name: "10000" for name in copies if name not in stale} | seen
        others = [pair for pair in block if pair.get("name") not in given]
        block[:] = [pair for pair in others if not pair.get("name", "").startswith(("master-", _DRBD_SCORE))]
        for name, value in given.items():
            Xml.SubElement(block, "nvpair", id=f"status-{identity}-{name}", name=name, value=value)

    def _fresh(self) -> Xml.Element:
        root = with_nodes_online(self._cib, self._cib.members_of_corosync or self._setup.node_names)
        for name in self._cib.remote_nodes:
            Xml.SubElement(root[-1], "node_state", id=name, uname=name, remote_node="true", in_ccm="true")
        for state in root[-1]:
            self.tell(state, state.get("uname", ""))
        return root

    @cached_property
    def _scores(self) -> dict[str, str]:
        # Agents such as DRBD's set the attribute master-ID of a node where the resource may be promoted.
        promoted = (one for one in self._cib.primitives if self._cib.promotable(one.clone))
        scores = {f"master-{one.id}": one.values.get("drbd_resource", "") for one in promoted}
        known = any(one.agent == "drbd-attr" for one in self._cib.primitives)
        tested = (test.get("attribute", "") for test in self._cib.root.iter("expression"))
        return scores | {name: name.removeprefix(_DRBD_SCORE) for name in tested if known and _DRBD_SCORE in name}

    @cached_property
    def _reached(self) -> Mapping[str, str]:
        attributes = {"#node-unfenced": "1"}  # Assume that unfencing has given the node access to its disks.
        for one in self._cib.primitives:
            if name := one.watched_attribute:
                hosts = len(one.values.get("host_list", "x").split())
                factor = one.values.get("multiplier", "1")
                reached = str(hosts * int(factor) if factor.isdecimal() else hosts)
                attributes[name] = "normal" if one.agent == "diskd" else reached
        return attributes

    def _simulate(self, file: Path, words: Sequence[str]) -> tuple[Xml.Element, Path]:
        number = next(self._numbers)
        out, graph = self._directory / f"{number}.xml", self._directory / f"{number}.graph"
        argv = ["crm_simulate", "--xml-file", str(file), "--simulate", "--save-output", str(out)]
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise CommandTimeout(f"the simulations did not end within {self._limit_s:g} s")
        limit_s = min(left_s, _MOST_S)
        try:
            done = run([*argv, "--save-graph", str(graph), "--output-as=xml", *words], limit_s)
            document = from_xml(done.stdout, "crm_simulate")
            parts = [one.tag for one in _read(out)] if out.exists() else []
        except CommandTimeout as error:
            what = f"a simulation did not end within {limit_s:.3g} s"
            raise CommandTimeout(what, where=self._setup.where, remedy="Remove resources or copies of them.") from error
        except NotUnderstoodError:
            parts = []
        # If crm_simulate refuses a CIB, it writes no transition graph.
        if not graph.exists() or parts != ["configuration", "status"]:
            crashed = done.status < 0 or "assert" in done.stderr.lower()
            what = f"Pacemaker's policy engine {'crashes' if crashed else 'refuses the configuration'}"
            why = (done.stderr.strip() or done.stdout.strip())[-400:]
            remedy = "Try another release of it." if crashed else "strakes failover check DIR lists the mistakes."
            raise BadInputError(what, where=" ".join(words) or self._setup.where, why=why, remedy=remedy)
        return document, out


def failed_monitor(service: Primitive, node: str, role: str) -> str:
    """Return a failed monitor operation in the notation of crm_simulate, such as ``ip_monitor_10000@n1=1``."""
    monitors = [one for one in service.operations if one.repeats]
    chosen = next((one for one in monitors if one.role == role), monitors[0] if monitors else None)
    return f"{service.id}_monitor_{round(chosen.interval_s * 1000) if chosen else 0}@{node}=1"


def plain_id(identity: str) -> str:
    """Return the id of a resource without its copy number: ``drbd`` for ``drbd:1``."""
    return re.sub(r":\d+$", "", identity)


def _forget_dead_guests(document: Xml.Element, file: Path) -> None:
    # Unlike Pacemaker, crm_simulate keeps the history of a guest node whose host is lost. Erase it.
    guests = document.iterfind("./revised_cluster_status/nodes/node[@id_as_resource][@online='false']")
    if dead := {guest.get("name") for guest in guests}:
        root = _read(file)
        for state in root.findall("./status/node_state"):
            state[:] = [] if state.get("uname") in dead else state
        write_kept(file, Xml.tostring(root))


def _read(file: Path) -> Xml.Element:
    return from_xml(read_below(file.parent, file.name, MOST_OUTPUT_BYTES).decode(errors="replace"), "crm_simulate")


def _places(document: Xml.Element) -> tuple[_Places, _Guests]:
    places, guests = _Places(), _Guests()
    nodes = document.findall("./revised_cluster_status/nodes/node")
    gone = {node.get("name") for node in nodes if node.get("online") != "true" or node.get("unclean") == "true"}
    # Name of a node -> container that runs the node if it is a guest node, or "".
    containers = {node.get("name", ""): node.get("id_as_resource", "") for node in nodes}
    for resource in document.iterfind("./revised_cluster_status//resource"):
        name, role = plain_id(resource.get("id", "")), role_of(resource.get("role", ""))
        on = [node.get("name", "") for node in resource.iterfind("./node") if node.get("name") not in gone]
        working = role in ("Started", "Promoted", "Unpromoted") and resource.get("failed") != "true"
        places[name] = (*places.get(name, ()), *((node, role) for node in on if working))
    for name, own in places.items():
        places[name] = tuple(
            (host, role) for node, role in own for host, _ in places.get(containers.get(node, ""), ((node, role),))
        )
        within = [(node, containers[node]) for node, _ in own if containers.get(node) in places]
        guests |= {(name, host): guest for guest in within for host, _ in places[guest[1]]}
    return places, guests


_LIMIT_S = 20.0  # Time limit in seconds for all simulations of a cluster.


def behaviour_of(setup: Setup) -> Behaviour | None:
    """Return simulated states, or None if simulation is impossible. Raises StrakesError if the first run fails."""
    if setup.cib is None or not installed("crm_simulate") or too_much_to_ask(setup.cib.root):
        return None
    with tempfile.TemporaryDirectory(prefix="strakes-") as name:
        return _behaviour(setup, PolicyEngine(setup, Path(name), _LIMIT_S))


def _behaviour(setup: Setup, engine: PolicyEngine) -> Behaviour:
    steady, without, unanswered = started(setup, engine), dict[str, Snapshot](), 0
    for node in setup.pacemaker.members_of_corosync:
        try:
            without[node] = engine.settled(steady.file, ["--node-fail", node])
        except CommandTimeout:
            unanswered += 1
    return Behaviour(steady, without, unanswered)


def started(setup: Setup, engine: PolicyEngine) -> Snapshot:
    """Return the state with all nodes up. Omit resources that run in the CIB's status, but not in the simulation."""
    cib, steady = setup.pacemaker, engine.steady()
    roles = {one.id: "Promoted" if cib.promotable(one.clone) else "" for one in cib.primitives}
    idle = idle_resources(engine, steady, roles)
    known = {name for name, role in roles.items() if steady.nodes_of(name, role)} | idle
    return replace(steady, places={name: on for name, on in steady.places.items() if name in known})


def idle_resources(engine: PolicyEngine, steady: Snapshot, roles: Mapping[str, str]) -> frozenset[str]:
    """Return the managed resources that run neither after a start of the cluster nor in the status of the CIB."""
    idle = {name for name in roles if not steady.nodes_of(name, roles[name]) and name not in steady.unmanaged}
    present = engine.present() if idle else None
    return frozenset(name for name in idle if present is None or not present.nodes_of(name, roles[name]))


@dataclass(frozen=True)
class Event:
    """Failures to simulate together. Pairs are (target, node) in ``stale`` and ``diskless``, else (resource, node)."""

    dead: frozenset[str] = frozenset()
    monitors: frozenset[tuple[str, str]] = frozenset()
    stops: frozenset[tuple[str, str]] = frozenset()
    stale: frozenset[tuple[str, str]] = frozenset()
    quorum: bool = True
    unfenceable: frozenset[str] = frozenset()
    diskless: frozenset[tuple[str, str]] = frozenset()
    watched: Watched = frozenset()


class FailureEngine:
    """Predicts the effect of failures with Pacemaker's policy engine. ``services``: services by target."""

    def __init__(self, setup: Setup, services: Mapping[str, Service], directory: Path, limit_s: float) -> None:
        self._engine, self._cib = PolicyEngine(setup, directory, limit_s), setup.pacemaker
        self._services = services
        self._known: dict[tuple[Path, Event], Snapshot] = {}

    def steady(self, watched: Watched = frozenset()) -> Snapshot:
        """Return the state without failures. Raises BadInputError if no service runs completely."""
        started, present = self._engine.steady(), self._engine.present()
        served = [self._with_services(one).served.items() for one in (started, present or started)]
        fresh, known = ({name for name, place in rows if place} for rows in served)
        states = {one.get("uname"): one.get("crmd") for one in self._cib.root.iterfind("./status/node_state")}
        up = all(states.get(name) not in (None, "", "0", "offline") for name in self._cib.members_of_corosync)
        if present is not None and (known > fresh or (up and known == fresh)):
            # Some services start only with the transient node attributes in the CIB's status, so use this status.
            started = present
        root = self._prepared(started.file, Event(watched=watched), {})
        state = self._with_services(self._engine.settled(self._engine.written(root), []))
        if not any(state.served.values()):
            what = "no service runs completely, even without a failure"
            where = ", ".join(state.served) or "no target is a service that a node may run"
            why = "in each service, the policy engine leaves a resource stopped, unpromoted or on another node"
            remedy = "strakes failover check DIR lists the mistakes of the configuration."
            raise BadInputError(what, where=where, why=why, remedy=remedy)
        return state

    def after(self, state: Snapshot, event: Event) -> Snapshot:
        """Return the state of the cluster after an event."""
        if (state.file, event) not in self._known:
            found = self._transitions(state, event, fencing=True)
            surviving = event.unfenceable & set(found.fenced)
            self._known[state.file, event] = self._unfenced(state, event, surviving) if surviving else found
        return self._known[state.file, event]

    def _unfenced(self, state: Snapshot, event: Event, surviving: frozenset[str]) -> Snapshot:
        # crm_simulate assumes that fencing succeeds. To simulate failed fencing, remove the fencing devices.
        left = self._transitions(state, event, fencing=False)
        failed = {primitive for primitive, _ in event.stops}
        hit = {name for name, own in self._services.items() if failed & {one.id for one in own.parts}}
        lost = {name: "" for name in hit if state.served[name] in surviving}
        return replace(
            left, served=left.served | lost, unclean=tuple(dict.fromkeys((*left.unclean, *sorted(surviving))))
        )

    def _transitions(self, state: Snapshot, event: Event, *, fencing: bool) -> Snapshot:
        root = self._prepared(state.file, event, state.served)
        lost = [one for one in self._cib.primitives if one.standard == "stonith" and not fencing]
        devices = {name for one in lost for name in (one.id, one.clone, one.group)}
        # Also remove groups and clones without a service, because an empty group or clone is invalid.
        devices -= {"", *(name for one in self._cib.services for name in (one.clone, one.group))}
        for parent in list(root.iter()) if devices else ():
            for child in list(parent):
                named = {child.get(key) for key in ("id", "rsc", "with-rsc", "first", "then")}
                if devices & {*named, *(child.get("devices") or "").split(",")}:
                    parent.remove(child)
        words = [word for node in sorted(event.dead) for word in ("--node-fail", node)]
        for primitive, node in sorted(event.monitors):
            failing = next(one for one in self._cib.primitives if one.id == primitive)
            guest, container = state.guests.get((primitive, node), (node, ""))
            failure = failed_monitor(failing, guest, "Promoted")
            if container and (primitive, node) in event.stops:
                # If a stop fails on a guest node, Pacemaker restarts the container and fences no host.
                failure = f"{container}_monitor_{_ANY_INTERVAL_MS}@{node}=1"
            words += ["--op-inject", failure]
        for primitive, node in sorted(event.stops - state.guests.keys()):
            words += ["--op-fail", f"{primitive}_stop_0@{node}=1"]
        return self._with_services(self._engine.settled(self._engine.written(root), words))

    def _with_services(self, snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, served={name: place_of(own, snapshot) for name, own in self._services.items()})

    def _prepared(self, file: Path, event: Event, served: Mapping[str, str]) -> Xml.Element:
        root = _read(file)
        self._keep_away(root, event.diskless)
        # Set have-quorum, because crm_simulate ignores its option --quorum unless something else changes.
        root.set("have-quorum", "1" if event.quorum else "0")
        for node in root.iterfind("./status/node_state"):
            name = node.get("uname", "")
            stale = [self._services[target] for target, at in event.stale if at == name]
            old = [f"master-{one.id}" for own in stale for one in own.copies]
            old += [_DRBD_SCORE + each for own in stale for each in own.replicated]
            self._engine.tell(node, name, old, event.watched)
            # DRBD gives the serving node a higher promotion score than its peers.
            here = [own for target, own in self._services.items() if served.get(target) == name]
            scores = {_DRBD_SCORE + each for own in here for each in own.replicated}
            for pair in (one for one in node.iter("nvpair") if one.get("name") in scores):
                pair.set("value", "10001")
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
    nodes = [snapshot.nodes_of(one.id) for one in service.members]
    nodes = nodes or [snapshot.nodes_of(one.id, "Promoted") for one in service.copies]
    common = frozenset.intersection(*nodes) if nodes else frozenset()
    return min(common, default="")
