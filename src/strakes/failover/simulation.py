"""What Pacemaker's policy engine (``crm_simulate``) does with a configuration: where it puts what, and when."""

from __future__ import annotations

import copy
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TypeVar
from xml.etree import ElementTree as Xml

from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.failover.behaviour import Action, Behaviour, Snapshot
from strakes.failover.cib import Cib
from strakes.failover.limits import too_much_to_ask
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.setup import Setup
from strakes.failover.validators import installed
from strakes.files import write_kept
from strakes.targets.command import CommandTimeout, run

# For all questions together.
_LIMIT_S = 20.0
# Questions that do not depend on each other.
_AT_ONCE = min(8, os.cpu_count() or 1)
T = TypeVar("T")
# One transition may need another, such as a start after a power-off; more than this would be a loop.
_TRANSITIONS = 4
# Old enough for every release: tools refuse what was last changed by a newer release than their own.
_OLD_FEATURES = "3.0.14"
# Each needs a call of its own; clusters of more services have many that are alike.
_MOST_FAILURES = 40


def behaviour_of(setup: Setup) -> Behaviour | None:
    """Return what the policy engine does; None without a CIB or without the engine, and where it refuses the CIB.

    None also for more resources than it can be asked about in a moment. Raises CommandTimeout where even the first
    answer takes too long.
    """
    if setup.cib is None or not installed("crm_simulate") or too_much_to_ask(setup.cib.root):
        return None
    with tempfile.TemporaryDirectory(prefix="strakes-") as name:
        try:
            return _Simulation(setup, setup.cib, Path(name)).behaviour()
        except (BadInputError, EnvironmentLacksError, Xml.ParseError):
            return None


class _Simulation:
    def __init__(self, setup: Setup, cib: Cib, directory: Path) -> None:
        self._setup, self._cib, self._directory = setup, cib, directory
        self._until = time.monotonic() + _LIMIT_S
        self._start = directory / "start.xml"
        write_kept(self._start, Xml.tostring(self._fresh()))

    def behaviour(self) -> Behaviour:
        # A service of two sites is looked at where it is granted.
        tickets = dict.fromkeys(one.get("ticket", "") for one in self._cib.constraints("rsc_ticket"))
        granted = [word for name in tickets if name for word in ("--ticket-grant", name)]
        steady, running = self._settled(self._start, granted)
        members = self._cib.members_of_corosync
        services = [one for one in self._cib.services if _monitors(one) and steady.nodes_of(one.id)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            lost = {node: pool.submit(self._lost, running, node) for node in members}
            emptied = {node: pool.submit(self._emptied, running, node) for node in members}
            failed = {
                one.id: pool.submit(self._failed, running, self._failure(one, steady))
                for one in services[:_MOST_FAILURES]
            }
        fates = _answered(lost)
        return Behaviour(
            steady,
            {node: without for node, (without, _) in fates.items()},
            {node: returned for node, (_, returned) in fates.items()},
            _answered(emptied),
            _answered(failed),
            sum(
                isinstance(one.exception(), CommandTimeout) for part in (lost, emptied, failed) for one in part.values()
            ),
        )

    def _failed(self, running: Path, failure: str) -> Snapshot:
        return self._settled(running, ["--op-inject", failure], most=1)[0]

    def _lost(self, running: Path, node: str) -> tuple[Snapshot, Snapshot]:
        """Return what happens when a node dies, and when it comes back."""
        without, after = self._settled(running, ["--node-fail", node])
        tree = Xml.parse(after)
        # A node that is back is told again what its agents find on it.
        state = next((one for one in tree.iter("node_state") if one.get("uname") == node), None)
        if state is not None:
            for attributes in state.findall("./transient_attributes"):
                state.remove(attributes)
            self._tell(state, node)
        tree.write(after)
        return without, self._settled(after, ["--node-up", node])[0]

    def _failure(self, service: Primitive, steady: Snapshot) -> str:
        role = "Promoted" if steady.nodes_of(service.id, "Promoted") else ""
        monitor = next((one for one in _monitors(service) if one[1] == role), _monitors(service)[0])
        return f"{service.id}_monitor_{monitor[0]}@{min(steady.nodes_of(service.id, role))}=1"

    def _fresh(self) -> Xml.Element:
        """Return the CIB with all nodes up, nothing started, and what agents and watchers say when all is well."""
        root = copy.deepcopy(self._cib.root)
        root.set("crm_feature_set", _OLD_FEATURES)
        root.set("have-quorum", "1")
        for status in root.findall("./status"):
            root.remove(status)
        status = Xml.SubElement(root, "status")
        ids = {node.get("uname", ""): node.get("id", "") for node in root.iterfind("./configuration/nodes/node")}
        for node in self._cib.members_of_corosync:
            state = {"id": ids[node], "uname": node, "in_ccm": "true", "crmd": "online"}
            self._tell(Xml.SubElement(status, "node_state", state | {"join": "member", "expected": "member"}), node)
        return root

    def _tell(self, state: Xml.Element, node: str) -> None:
        """Enter what agents and watchers say on a node when all is well."""
        identity = state.get("id", "")
        attributes = Xml.SubElement(state, "transient_attributes", id=identity)
        block = Xml.SubElement(attributes, "instance_attributes", id=f"status-{identity}")
        for name, value in (*self._promotable(node), *self._watched):
            Xml.SubElement(block, "nvpair", id=f"status-{identity}-{name}", name=name, value=value)

    def _promotable(self, node: str) -> Iterator[tuple[str, str]]:
        """Yield what agents say on a node of the copies that may be promoted there."""
        hosts = {resource.name: [host.name for host in resource.hosts] for resource in self._setup.drbd}
        for one in self._cib.primitives:
            if self._cib.promotable(one.clone) and node in hosts.get(one.values.get("drbd_resource", ""), (node,)):
                yield f"master-{one.id}", "10000"

    @cached_property
    def _watched(self) -> tuple[tuple[str, str], ...]:
        attributes = {}
        for one in self._cib.primitives:
            if name := one.watched_attribute:
                hosts = len(one.values.get("host_list", "x").split())
                factor = one.values.get("multiplier", "1")
                attributes[name] = str(hosts * int(factor) if factor.isdecimal() else hosts)
        return tuple(attributes.items())

    def _emptied(self, running: Path, node: str) -> Snapshot:
        """Return what happens when a node is put into standby."""
        tree = Xml.parse(running)
        for element in tree.iterfind("./configuration/nodes/node"):
            if element.get("uname") == node:
                block = Xml.SubElement(element, "instance_attributes", id="strakes-standby")
                Xml.SubElement(block, "nvpair", id="strakes-standby-on", name="standby", value="on")
        changed = self._new_place() / "standby.xml"
        tree.write(changed)
        return self._settled(changed, [], most=1)[0]

    def _settled(self, file: Path, words: Sequence[str], most: int = _TRANSITIONS) -> tuple[Snapshot, Path]:
        """Return the state after a trial, and its file: when nothing is left to do, or after so many transitions."""
        fenced: set[str] = set()
        before: dict[Action, frozenset[Action]] = {}
        stuck = frozenset[str]()
        document = Xml.Element("none")
        for number in range(most):
            document, graph, file = self._simulate(file, words if number == 0 else ())
            fenced |= {
                action.get("target", "")
                for action in document.findall("./transition/fencing_action")
                if action.get("op") in ("off", "reboot")
            }
            waits = list(_waits(graph))
            for action, earlier in waits:
                before[action] = before.get(action, frozenset()) | earlier
            if document.findall("./status/errors"):
                stuck |= _in_circles(waits)
                break
            if not document.findall("./transition/*"):
                break
        return Snapshot(_places(document), frozenset(fenced), before, stuck), file

    def _new_place(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._directory))

    def _simulate(self, file: Path, words: Sequence[str]) -> tuple[Xml.Element, Xml.Element, Path]:
        place = self._new_place()
        out, graph = place / "out.xml", place / "graph.xml"
        argv = ["crm_simulate", "--xml-file", str(file), "--simulate", "--save-output", str(out)]
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise CommandTimeout(f"its questions were not answered within {_LIMIT_S:g} s")
        done = run([*argv, "--save-graph", str(graph), "--output-as=xml", *words], left_s)
        # Also a plan that cannot be carried out is one; what is refused leaves none.
        if not graph.exists() or not out.exists() or not done.stdout.startswith("<"):
            raise BadInputError("the policy engine refuses the configuration", where=str(file), why=done.stderr[-400:])
        return Xml.fromstring(done.stdout), Xml.parse(graph).getroot(), out


def _answered(trials: Mapping[str, Future[T]]) -> dict[str, T]:
    """Return what came of the trials for which there was time. Raises what else went wrong in one."""
    return {name: one.result() for name, one in trials.items() if not isinstance(one.exception(), CommandTimeout)}


def _monitors(service: Primitive) -> list[tuple[int, str]]:
    """Return the interval in milliseconds and the role of each monitor that is repeated."""
    return [(round(one.interval_s * 1000), one.role) for one in service.operations if one.repeats]


def _plain(identity: str) -> str:
    """Return the id of a resource without the number of its copy."""
    return re.sub(r":\d+$", "", identity)


def _places(document: Xml.Element) -> dict[str, tuple[tuple[str, str], ...]]:
    status = document.find("./revised_cluster_status")
    places: dict[str, tuple[tuple[str, str], ...]] = {}
    if status is None:
        return places
    gone = {
        node.get("name")
        for node in status.iterfind("./nodes/node")
        if node.get("online") != "true" or node.get("unclean") == "true"
    }
    for resource in status.iter("resource"):
        name, role = _plain(resource.get("id", "")), resource.get("role", "")
        role = {"Master": "Promoted", "Slave": "Unpromoted"}.get(role, role)
        on = [node.get("name", "") for node in resource.iterfind("./node") if node.get("name") not in gone]
        working = role in ("Started", "Promoted", "Unpromoted") and resource.get("failed") != "true"
        places[name] = (*places.get(name, ()), *((node, role) for node in on if working))
    return places


def _waits(graph: Xml.Element) -> Iterator[tuple[Action, frozenset[Action]]]:
    """Yield each action of a transition with those that it waits for."""
    actions: dict[str, Action] = {}
    for element in graph.iterfind("./synapse/action_set/*"):
        part = element.find("./primitive")
        name = _plain(part.get("id", "")) if part is not None else ""
        operation = element.get("operation", "") if name else element.get("operation_key", element.get("id", ""))
        # Each pseudo operation is one of its own.
        actions[element.get("id", "")] = (name, operation, element.get("on_node", "") if name else "")
    for synapse in graph.iterfind("./synapse"):
        earlier = frozenset(
            actions[one.get("id", "")] for one in synapse.iterfind("./inputs/trigger/*") if one.get("id") in actions
        )
        for element in synapse.iterfind("./action_set/*"):
            yield actions[element.get("id", "")], earlier


def _in_circles(waits: Iterable[tuple[Action, frozenset[Action]]]) -> frozenset[str]:
    """Return the resources whose actions wait for each other."""
    waiting = {action: set(earlier) for action, earlier in waits}
    while waiting:
        # What waits for nothing, or is waited for by nothing, is in no circle.
        wanted = set[Action]().union(*waiting.values())
        inside = {action: own for action, own in waiting.items() if own & waiting.keys() and action in wanted}
        if len(inside) == len(waiting):
            break
        waiting = inside
    return frozenset(resource for resource, _, _ in waiting if resource)
