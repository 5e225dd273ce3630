"""Faults of a Pacemaker cluster: put a node into standby, fence a node, or report a failed resource.

On a machine outside the cluster, the option ``--via`` gives a prefix of all commands, such as ``ssh root@mds-b``.
"""

from __future__ import annotations

import re
import shlex
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.foreign_text import shown_command
from strakes.base.processes import words_of
from strakes.control.drill_undo import RunCommand, answer_of
from strakes.control.fault import Ask, OneCommand, Seen, looks
from strakes.failover.cib import Cib
from strakes.failover.resource_facts import FOR_EVERY_NODE
from strakes.failover.timeline import Moment
from strakes.targets.answers import from_xml
from strakes.targets.calls import mount_of
from strakes.targets.command import Runner, run, through
from strakes.targets.description import TargetRecovery
from strakes.targets.mountinfo import Mount

_LOOK_EVERY_S, _EFFECT_S = 0.3, 30.0
_PLACE = re.compile(r" on [^,;]*")
_TROUBLES = ("unclean", "pending", "standby", "maintenance", "shutdown")
_FLAGS = ("failed", "blocked", "orphaned")
_RUNS = ("Started", "Promoted", "Unpromoted", "Master", "Slave")


@dataclass(frozen=True)
class View:
    """Nodes, resources and completed fencing actions in one output of crm_mon. ``failures``: (node, resource) pairs."""

    nodes: dict[str, str]
    resources: dict[str, str]
    fencing: tuple[str, ...]
    failures: tuple[tuple[str, str], ...] = ()

    def differences(self, before: View) -> Iterator[tuple[str, str]]:
        """Yield (node or resource, new state) for each change since an earlier view."""
        for prefix, then, now in (("node ", before.nodes, self.nodes), ("", before.resources, self.resources)):
            for name in sorted(then.keys() | now.keys()):
                if then.get(name) != now.get(name):
                    yield f"{prefix}{name}", now.get(name, "no longer in the cluster")
        yield from (("fencing", text) for text in self.fencing if text not in before.fencing)

    def unlike(self, before: View) -> list[str]:
        """Return the nodes and resources whose state has changed, apart from the choice of a node."""
        nodes = [name for name, said in self.nodes.items() if said != before.nodes.get(name)]
        resources = before.resources.items()
        return nodes + [name for name, said in resources if _roles(self.resources.get(name, "")) != _roles(said)]

    def unready(self, node: str, resource: str, *, failures: bool) -> list[str]:
        """Return how a node is not healthy, and a resource ("": none) not on it. ``failures``: whether these count."""
        copies = ((name, copy) for name, said in self.resources.items() for copy in said.split("; "))
        here = [(name, copy) for name, copy in copies if f" on {node}," in f"{copy},"]
        found = [f"{node} is {self.nodes[node]}"] if self.nodes[node] != "online" else []
        found += [f"{name} is {copy}" for name, copy in here if _PLACE.sub("", copy) not in _RUNS]
        if resource and not any(name == resource for name, _ in here):
            found.append(f"{resource} is {self.resources[resource]}")
        return found + [f"{name} has failures on {node}" for at, name in self.failures if failures and at == node]


def _roles(copies: str) -> list[str]:
    return sorted(_PLACE.sub("", copies).split("; "))


def view_of(text: str) -> View:
    """Return the contents of an output of crm_mon. Raises MeasurementError for an unknown format."""
    status = from_xml(text, "crm_mon")
    nodes = dict[str, str]()
    for node in status.iterfind("./nodes/node"):
        troubles = [word for word in _TROUBLES if node.get(word) == "true"]
        state = ", ".join(["online" if node.get("online") == "true" else "offline", *troubles])
        name = node.get("name", "?")
        nodes[name] = f"{nodes[name]} and {state}" if name in nodes else state  # two nodes of one name
    resources: dict[str, list[str]] = {}
    for resource in status.iterfind("./resources//resource"):
        place = next((node.get("name", "?") for node in resource.iterfind("./node")), "nowhere")
        flags = [word for word in _FLAGS if resource.get(word) == "true"]
        flags += ["unmanaged"] if resource.get("managed") == "false" else []
        state = ", ".join([f"{resource.get('role', '?')} on {place}", *flags])
        resources.setdefault(resource.get("id", "?"), []).append(state)
    fencing = (
        f"{event.get('action')} of {event.get('target')}: {event.get('status')} at {event.get('completed', '?')}"
        for event in status.iterfind("./fence_history/fence_event")
    )
    failures = (
        (node.get("name", "?"), history.get("id", "?"))
        for node in status.iterfind("./node_history/node")
        for history in node.iterfind("./resource_history")
        if history.get("fail-count", "0") != "0"
    )
    copies = {name: "; ".join(sorted(said)) for name, said in resources.items()}
    return View(nodes, copies, tuple(sorted(fencing)), tuple(failures))


class PacemakerFault(OneCommand):
    """Fault of a node of a Pacemaker cluster. ``cause``, ``remedy``: commands that cause and undo the fault.

    ``clears``: whether the remedy also clears the failures recorded on the node.
    """

    cause: ClassVar[str]
    remedy: ClassVar[str]
    clears: ClassVar[bool] = True

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        self._run, self._ask = run_one, ask
        self._via = words_of("--via", ask.via) if ask.via else ()
        self.before = self._look()
        self._last = self.before
        _require("--node", ask.node, self.before.nodes)
        if "{resource}" in self.cause:
            _require("--resource", ask.resource, self.before.resources)
        if found := self._unready(self.before):
            what = "the cluster is not in the state that this fault needs: undoing the fault would not restore it"
            remedy = "Wait for the work on this node to end, and clean up failures, or choose another --node."
            raise BadInputError(what, where=ask.node, why="; ".join(found), remedy=remedy)
        self._strike, undo = (
            through(self._via, [word.format(node=ask.node, resource=ask.resource) for word in text.split()])
            for text in (self.cause, self.remedy)
        )
        self.undo = RunCommand(undo)
        self.text = f"run: {shown_command(self._strike)}"

    def strike(self) -> tuple[Moment, ...]:
        moments, deadline = super().strike(), time.monotonic() + _EFFECT_S
        with suppress(EnvironmentLacksError):  # The fault may also stop the node that answers.
            while not self._unready(self._look()):
                if time.monotonic() > deadline:
                    raise MeasurementError(f"the command had no effect within {_EFFECT_S:g} s")
                time.sleep(_LOOK_EVERY_S)
        return moments

    def _unready(self, view: View) -> list[str]:
        return view.unready(self._ask.node, self._ask.resource, failures=self.clears)

    def watch(self, seen: Seen, stop: threading.Event) -> None:
        silent = False
        for _ in looks(stop, _LOOK_EVERY_S):
            try:
                now = self._look()
            except StrakesError as error:
                if not silent:
                    seen(Moment(time.time(), "cluster", f"does not answer: {error.why or error.what}"))
                silent = True
            else:
                for source, text in now.differences(self._last):
                    seen(Moment(time.time(), source, text))
                silent, self._last = False, now

    def _cib(self) -> Cib:
        words = through(self._via, ("cibadmin", "--query"))
        return Cib(self._run(words).stdout, shown_command(words))

    def require_serves(self, directory: Path) -> None:
        if not is_served(cib := self._cib(), mount := mount_of(directory)):
            served = ", ".join([*_addresses_of(cib), *(one.mount_point for one in cib.services if one.is_mount)])
            why = f"DIR is on {mount.source} ({mount.file_system}), but the cluster mounts {served or 'nothing'}"
            remedy = "Give a directory on a mount of the cluster, or cause the fault with --fault-command."
            what = "the cluster does not serve this directory"
            raise BadInputError(what, where=str(directory), why=why, remedy=remedy)

    def recoveries(self) -> tuple[TargetRecovery, ...]:
        return tuple(TargetRecovery(name, said) for name, said in self._last.resources.items())

    def lacking(self) -> str:
        away = self._look().unlike(self.before)
        return f"in another state than before the drill: {', '.join(away)}" if away else ""

    def _look(self) -> View:
        words = through(self._via, ("crm_mon", "--one-shot", "--failcounts", "--output-as=xml"))
        try:
            return view_of(answer_of(self._run, words))
        except MeasurementError as error:
            what, why = "Pacemaker does not answer", f"{error.what}: {error.why}"
            remedy = "Reach a node of the cluster with --via 'ssh NODE'"
            raise EnvironmentLacksError(what, where=error.where, why=why, remedy=remedy) from error


def _addresses_of(cib: Cib) -> list[str]:
    return [one.values["ip"] for one in cib.services if one.agent in ("IPaddr2", "IPaddr") and one.values.get("ip")]


def is_served(cib: Cib, mount: Mount) -> bool:
    """Return False if a mount certainly belongs to a server outside the cluster, else True.

    For a Lustre mount, any Lustre resource is enough, because a CIB contains no NIDs.
    """
    if not mount.remote:
        return mount.mount_point in {one.mount_point for one in cib.services if one.is_mount}
    if mount.file_system == "lustre":
        return any(one.is_lustre for one in cib.services)
    head = mount.source.rpartition(":/")[0]
    hosts = [re.sub(r":\d+$", "", host) for host in head.split(",")] if "." in head else [head]
    from_hosts = set().union(*map(_resolved, hosts))
    own = set(_addresses_of(cib)).union(*map(_resolved, cib.nodes))
    return not from_hosts or not _addresses_of(cib) or bool(from_hosts & own)


def _resolved(host: str) -> set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host.strip("[]"), None)}
    except OSError:
        return set()


class StandbyNode(PacemakerFault):
    """Put a node into standby: its services move to other nodes, and no node is fenced."""

    cause = "crm_standby --node {node} --update on"
    # Without --lifetime, crm_standby --delete exits with 0 also if it failed (tools/crm_standby.in of Pacemaker).
    remedy = "crm_standby --node {node} --delete --lifetime forever"
    clears = False


class FenceNode(PacemakerFault):
    """Let the fencing devices of the cluster power a node off within 120 s. Undoing powers it on."""

    cause = "stonith_admin --fence {node} --timeout 120"
    remedy = "stonith_admin --unfence {node} --timeout 120"

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        super().__init__(ask, run_one)
        words = through(self._via, ("crm_node", "--name"))
        unknown = "the node that runs the commands is unknown"
        if not (name := answer_of(self._run, words, unknown).strip()):
            raise MeasurementError(unknown, where=shlex.join(words), why="no name was printed")
        cib = self._cib()
        first = (cib.levels_of(ask.node) or [tuple(one.id for one in cib.devices)])[0]
        # The action "on" of these agents only withdraws a message or a reservation, and succeeds (fence_sbd.py).
        agents = [one.agent for one in cib.devices if one.id in first and one.agent in FOR_EVERY_NODE]
        why = f"{agents[0]} does not switch the power on" if agents else ""
        if any(_is_same(ask.node, host) for host in (name, socket.gethostname())):
            why = "the commands or strakes run on this node"
        if why:
            what, remedy = "the power of this node could not be switched on again", "Use --via, or node-standby."
            raise BadInputError(what, where=ask.node, why=why, remedy=remedy)


def _is_same(one: str, other: str) -> bool:
    """Return whether two names can be of one host: names without a domain fit each domain."""
    short = one.partition(".")[0] == other.partition(".")[0]
    return one == other or (short and not ("." in one and "." in other))


class FailResource(PacemakerFault):
    """Report a failure of a resource, which the cluster then recovers on the same or another node."""

    cause = "crm_resource --fail --resource {resource} --node {node}"
    remedy = "crm_resource --cleanup --resource {resource} --node {node}"


def _require(option: str, name: str, known: Mapping[str, str]) -> None:
    if name not in known:
        what, remedy = f"{option} was not given or is not in the cluster", f"One of: {', '.join(known)}."
        raise BadInputError(what, where=name or option, remedy=remedy)
