"""Predict the effect of every single failure and of every pair of failures, by simulation."""

from __future__ import annotations

import json
import math
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.failover.cluster import Node
from strakes.failover.facts import score
from strakes.failover.model import model_of
from strakes.failover.policy_engine import Event, FailureEngine
from strakes.failover.rehearsal_room import (
    WORST,
    Ending,
    Policies,
    ReportedPowerOff,
    Room,
    RoomPart,
    Scene,
    Step,
    Wiring,
    World,
    parts_of,
)
from strakes.failover.rules_constraints import placed_by_agents
from strakes.failover.rules_fencing_devices import devices_for
from strakes.failover.setup import Setup
from strakes.failover.times import NO_WAIT, Span, Times
from strakes.targets.command import CommandTimeout


class Story:
    """Predicts the effect of failures in one cluster."""

    def __init__(self, setup: Setup, directory: Path, limit_s: float = 3600.0) -> None:
        model = model_of(setup)
        self.setup, self.cluster, self.services = setup, model.cluster, model.services_by_target()
        self.engine = FailureEngine(setup, self.services, directory, limit_s)
        self.policies, self.times = Policies.of(setup), Times.of(setup, self.services)
        room = Room(self.cluster, Wiring.of(setup, self.cluster))
        state = self.engine.steady(self.policies.watched(room))
        bound = [name for name, own in self.services.items() if all(map(setup.pacemaker.is_bound, own.parts))]
        placed = {name for name, value in placed_by_agents(setup.pacemaker) if math.isinf(value)}
        moved = [name for name, own in self.services.items() if placed & {name, *(one.id for one in own.parts)}]
        reasons = dict.fromkeys(bound, "it is bound to one node") | dict.fromkeys(moved, "its agent decides its place")
        left = reasons if len(reasons) < len(self.services) else {}
        idle = [name for name, place in state.served.items() if not place]
        left |= dict.fromkeys(idle, "it does not work completely even without a failure")
        self.services = {name: own for name, own in self.services.items() if name not in left}
        self.failing = tuple(one.id for own in self.services.values() for one in own.parts)
        # A remote connection is a resource that serves no client. Its failure is a failure of the remote node.
        self.remote = {one.id for one in setup.services if one.agent == "remote"}
        links = {name for name, own in self.services.items() if self.remote.issuperset(one.id for one in own.parts)}
        targets = tuple(one for one in self.cluster.targets if one.name not in left.keys() | links)
        self.cluster = replace(self.cluster, targets=targets)
        self.first = World(replace(room, cluster=self.cluster), state)
        self.assumed = (*model.assumed, *(f"{name} is left out: {why}" for name, why in left.items()))

    def play(self, failures: tuple[RoomPart, ...]) -> Scene:
        """Return the effect of successive failures. The cluster reacts to each before the next one happens."""
        ordered = tuple(sorted(failures, key=lambda part: part.order))
        world, steps = self.first, list[Step]()
        for part in ordered:
            world, step = self.fail(world, part)
            steps.append(step)
        said = [text for step in steps for text in step.said]
        if world.unreachable:
            said.append("clients reach no server over their network")
        voted = {one.name for one in world.room.cluster.targets if one.voters and not world.places[one.name]}
        alive = {name for name, place in world.state.served.items() if place and place not in world.off}
        said += [f"DRBD has no quorum for {name}" for name in sorted(voted & alive)]
        return Scene(
            failures=ordered,
            ending=ending(self.first, world, steps),
            fenced=tuple(dict.fromkeys(node for step in steps for node in step.fenced)),
            places=world.places,
            said=tuple(dict.fromkeys(said)),
            split_brain="; ".join(dict.fromkeys(step.split_brain for step in steps if step.split_brain)),
            modelled=any(part.kind not in ("service", "stop", "node") for part in failures),
            cuts_every_heartbeat=len(world.room.islands(world.room.cluster.nodes)) > 1,
            wait=max(steps, key=lambda step: step.wait.most_s).wait if steps else NO_WAIT,
        )

    def fail(self, world: World, part: RoomPart) -> tuple[World, Step]:
        """Simulate one more failure and the cluster's reaction. Return the new state and the effects."""
        world, step = self._failed(world, part)
        places = world.places  # While a node is off, its copy of the data becomes outdated.
        alone = {
            (target.name, other)
            for target in world.room.cluster.targets
            if target.replicated and places[target.name]
            for other in target.partners(places[target.name])
        }
        return replace(world, stale=world.stale | {copy for copy in alone if copy[1] in world.off}), step

    def _failed(self, world: World, part: RoomPart) -> tuple[World, Step]:
        if part.kind == "cold":
            return self._cold_start(world, part.name)
        world = replace(world, room=world.room.without(part))
        room = world.room
        died = [node for node in room.cluster.nodes if node.name not in world.off and not room.alive(node)]
        if died:
            return self._died(world, died)
        if part.kind in ("service", "stop"):
            return self._service(world, part.name, stops=part.kind == "service")
        if part.kind == "path":
            return self._path(world, part)
        if part.kind == "shelf":
            return world, Step(said=(f"{part.name} has no second copy",))
        if part.kind == "disk" and part.name not in world.off:
            serves = world.state.served.get(part.target, "") == part.name
            text = f"{part.target} {'continues with the disk of another node' if serves else 'has one copy less'}"
            return replace(world, stale=world.stale | {(part.target, part.name)}), Step(said=(text,))
        return self._looked_around(world, part)

    def _standing(self, world: World) -> list[Node]:
        return [node for node in world.room.cluster.nodes if node.name not in world.off and world.room.alive(node)]

    def _event(self, world: World, **changes: object) -> Event:
        diskless = frozenset((part.target, part.name) for part in world.room.broken if part.kind == "path")
        watched = self.policies.watched(world.room)
        known = Event(stale=world.stale, quorum=world.quorum, diskless=diskless, watched=watched)
        return replace(known, **changes)  # type: ignore[arg-type]

    def _looked_around(self, world: World, part: RoomPart) -> tuple[World, Step]:
        standing = self._standing(world)
        room = world.room
        islands = room.islands(standing)
        if len(islands) > 1 and not world.stuck:
            return self._split(world, standing, islands)
        world, old = self._grown_old(world, standing)
        world, step = self._watched(world)
        said = (*old, *step.said)
        if part.kind in ("bmc", "outlets") or not all(room.power_off(node) for node in standing):
            said += tuple(f"{node.name} could not be powered off now" for node in standing if not room.power_off(node))
        return world, replace(step, said=said)

    def _watched(self, world: World) -> tuple[World, Step]:
        if world.stuck or self.policies.watched(world.room) == self.policies.watched(self.first.room):
            return world, Step()
        before = world.places
        state = self.engine.after(world.state, self._event(world))
        world = replace(world, state=state, off=world.off | set(state.fenced))
        moved = [name for name, place in world.places.items() if place != before[name]]
        wait = self.times.watch + self.times.start(moved, stop=True) if moved else NO_WAIT
        return world, Step(fenced=state.fenced, wait=wait)

    def _died(self, world: World, died: list[Node]) -> tuple[World, Step]:
        names = frozenset(node.name for node in died)
        world = replace(world, off=world.off | names)
        standing, room = self._standing(world), world.room
        if not standing:
            return replace(world, stuck=True), Step(said=("no node is left",))
        if world.stuck:
            return world, Step(said=("a person must act because of an earlier failure",))
        islands = room.islands(standing)
        if len(islands) > 1:
            return self._split(world, standing, islands)
        sure = all(room.power_off(node) for node in died)
        quorum = self.policies.has_quorum(room, islands[0], islands)
        unfenceable = frozenset() if sure else names
        state = self.engine.after(world.state, self._event(world, dead=names, quorum=quorum, unfenceable=unfenceable))
        said = []
        if not quorum:
            said.append("the survivor has no quorum" if len(standing) == 1 else "the survivors have no quorum")
        elif self.policies.fencing and not sure:
            said.append(f"{', '.join(sorted(names))} may still be on: a person must confirm that it is off")
        said += self._old_copies(world, {node.name for node in standing})
        unproven = f"{', '.join(sorted(names))} is not powered off before its services are taken over"
        silent = {node.name for node in died if room.powered(node)}  # A node without power does not write.
        taken = any(state.served[name] for name, place in world.state.served.items() if place in silent)
        hit = {node.name for node in standing if any(node.name in off.dead for off in map(room.power_off, died) if off)}
        if sure and hit and self.policies.fencing:
            said.append(f"the power of {', '.join(sorted(hit))} is cut instead")
            gone = replace(state, served=_without(state.served, hit), fenced=tuple(sorted(hit)))
            return replace(world, state=gone, off=world.off | hit, stuck=True), Step(gone.fenced, tuple(said))
        # GFS2 and OCFS2 get no locks until the cluster knows that the dead node is off.
        locked = self.policies.fencing and self.setup.mounts_on_both_nodes
        paused = self.policies.fencing and not sure and self._waits_for_peer(world, names)
        if paused:
            said.append(f"DRBD stops writing until fence-peer gives up after {self.policies.frozen_s:g} s")
        moved = [name for name, place in world.places.items() if not place]
        wait = NO_WAIT
        if sure and quorum and (moved or locked or self._waits_for_peer(world, names)):
            wait = self.times.silence + max(map(self.times.fencing, names)) + self.times.start(moved)
        elif paused:
            wait = Span(0.0, self.policies.frozen_s)
        frozen = world.frozen or (locked and not sure)
        return replace(
            world, state=state, stuck=not sure or not quorum, quorum=quorum, paused=paused, frozen=frozen
        ), Step(state.fenced, tuple(said), unproven if taken and not self.policies.fencing else "", wait=wait)

    def _waits_for_peer(self, world: World, gone: frozenset[str]) -> bool:
        return self.policies.frozen_without_peer and any(
            target.replicated and place and set(target.partners(place)) & gone
            for target in world.room.cluster.targets
            if (place := world.state.served.get(target.name, "")) not in world.off
        )

    def _old_copies(self, world: World, nodes: set[str]) -> list[str]:
        return [
            f"{target} on {node} is stale and not promoted" for target, node in sorted(world.stale) if node in nodes
        ]

    def _split(self, world: World, standing: list[Node], islands: list[frozenset[str]]) -> tuple[World, Step]:
        room = world.room
        apart = [
            target
            for target in room.cluster.targets
            if target.replicated and not set(target.nodes) & world.off
            if not all(room.replicates(*pair) for pair in combinations(target.nodes, 2))
        ]
        quorate = [island for island in islands if self.policies.has_quorum(room, island, islands)]
        able = islands if self.setup.pacemaker.properties.get("no-quorum-policy") == "ignore" else quorate
        if able and not self.policies.fencing:
            disks = any(own.devices or own.pools for own in self.services.values())
            text = "both partitions mount the same disks" if disks else "both partitions run the same services"
            if self.setup.drbd:
                text = "both partitions try to serve, but DRBD allows only one primary"
            if apart:
                text = "both partitions serve, each from its own DRBD copy"
            places, stopped = world.places, {node.name for node in standing} - frozenset[str]().union(*able)
            homes = [(island, set(one.nodes), places[one.name]) for island in able for one in room.cluster.targets]
            taken = any(place and place not in island and nodes & island for island, nodes, place in homes)
            state = replace(world.state, served=_without(world.state.served, set() if taken else stopped))
            step = Step(said=("nobody is powered off",), split_brain=text if taken else "")
            return replace(world, state=state, stuck=True, apart=True), step
        if not quorate:
            state = self.engine.after(world.state, self._event(world, quorum=False))
            world = replace(world, state=state, stuck=True, apart=True, quorum=False)
            return world, Step(said=("no partition has quorum",))
        if len(quorate) > 1:
            return self._race(world, standing, frozen=bool(apart))
        losers = [node for node in standing if node.name not in quorate[0]]
        if not all(map(room.power_off, losers)):
            return self._held_up(world, losers, frozen=bool(apart))
        return self._outvoted(world, quorate[0], losers)

    def _race(self, world: World, standing: list[Node], *, frozen: bool) -> tuple[World, Step]:
        winners, told = self._winners(world, standing)
        if len(winners) > 1:
            off = frozenset(node.name for node in standing)
            return replace(world, off=off, stuck=True), Step(tuple(sorted(off)), ("both nodes power each other off",))
        if not winners:
            return self._held_up(world, standing, frozen=frozen)
        losers = [node for node in standing if node is not winners[0]]
        world, step = self._outvoted(world, frozenset({winners[0].name}), losers)
        return world, replace(step, said=(*told, *step.said))

    def _held_up(self, world: World, losers: list[Node], *, frozen: bool) -> tuple[World, Step]:
        waits = frozen and self.policies.frozen_without_peer
        locked = self.setup.mounts_on_both_nodes
        if len(world.room.cluster.nodes) == 2:
            text = "neither node can power the other off"
        else:
            text = f"{', '.join(node.name for node in losers)} cannot be powered off"
        text += ": DRBD stops all writing until a person acts" if waits else ": locks wait until a person acts" * locked
        if not self.policies.two_node:
            off = {node.name for node in losers}
            world = replace(world, state=replace(world.state, served=_without(world.state.served, off)))
        return replace(world, stuck=True, apart=True, frozen=waits or locked), Step(said=(text,))

    def _outvoted(self, world: World, winners: frozenset[str], losers: list[Node]) -> tuple[World, Step]:
        names = frozenset(node.name for node in losers)
        for loser in losers:
            done = world.room.power_off(loser)
            assert done is not None
            if loser.name not in done.dead:
                return self._pretended(world, winners, loser, done)
        before = world.places
        state = self.engine.after(world.state, self._event(world, dead=names, quorum=True))
        world = replace(world, state=state, off=world.off | names, quorum=True)
        moved = [name for name, place in world.places.items() if place != before[name]]
        # With fencing resource-and-stonith, DRBD suspends writes until the cluster knows that its peer is off.
        frozen = self.policies.frozen_without_peer and any(target.replicated for target in world.room.cluster.targets)
        wait = NO_WAIT
        if moved or frozen:
            wait = self.times.silence + max(map(self.times.fencing, names)) + self.times.start(moved)
        if not frozen:
            wait = replace(wait, least_s=self.times.start(moved).least_s)
        survivors = f"{', '.join(sorted(winners))} survive{'s' if len(winners) == 1 else ''}"
        return world, Step(tuple(sorted(names)), (survivors, *self._old_copies(world, set(winners))), wait=wait)

    def _winners(self, world: World, standing: list[Node]) -> tuple[list[Node], tuple[str, ...]]:
        room = world.room
        able = [node for node in standing if room.power_off(next(other for other in standing if other is not node))]
        if len(able) < 2:
            return able, ()
        busy = [node for node in standing if node.name in self.first.state.served.values()]
        one, other = (self._weight(node.name, world) for node in standing[:2])
        if self.policies.by_priority and (one != other or len(busy) == 1):
            return busy if one == other else [standing[0 if one > other else 1]], ()
        first, second = (self.policies.delays_s.get(node.name, (0.0, math.inf)) for node in standing[:2])
        if first == second and first[0] == first[1]:
            return standing, ()
        if first[0] >= second[1] or second[0] >= first[1]:
            return [standing[0 if first[0] >= second[1] else 1]], ()
        return ([node for node in standing if node not in busy] or able)[:1], ("either node may win, at random",)

    def _weight(self, node: str, world: World) -> float:
        here = [own for name, own in self.services.items() if world.state.served.get(name) == node]
        # In a fencing race, a promoted copy with a priority adds 1 to the weight of its node, whatever the priority.
        rows = [(score(part.meta.get("priority", "0")), part in own.copies) for own in here for part in own.parts]
        return sum(float(priority != 0) if copied else priority for priority, copied in rows)

    def _pretended(
        self, world: World, winners: frozenset[str], loser: Node, done: ReportedPowerOff
    ) -> tuple[World, Step]:
        said = [f"{done.device} reports that {loser.name} is off although it is on"]
        off = world.off | done.dead
        text = ""
        if winners & done.dead:
            said.append(f"the power of {', '.join(sorted(winners & done.dead))} is cut instead")
            for name in winners:
                back = world.room.power_off(world.room.cluster.node(name))
                off |= back.dead if back else frozenset()
        else:
            text = f"{', '.join(sorted(winners))} takes over while {loser.name} still writes"
        return replace(world, off=off, stuck=True, apart=True), Step((), tuple(said), text)

    def _cold_start(self, world: World, alone: str) -> tuple[World, Step]:
        room = world.room
        others = frozenset(node.name for node in room.cluster.nodes if node.name != alone)
        gone = replace(world.state, served=dict.fromkeys(world.state.served, ""))
        off = world.off | others
        names, island = ", ".join(sorted(others)), frozenset({alone})
        said, ignores = "", self.setup.pacemaker.properties.get("no-quorum-policy") == "ignore"
        if self.policies.waits_for_all:
            said = f"{alone} waits for {names} (wait_for_all): a person must confirm that it is off"
        elif not ignores and not self.policies.has_quorum(room, island, [island]):
            said = f"{alone} has no quorum"
        if said:
            return replace(world, state=gone, off=off, stuck=True), Step(said=(said,))
        state = self.engine.after(world.state, self._event(world, dead=others))
        said = (
            f"{alone} powers off {names} (whose BMC has power) and serves"
            if self.policies.fencing
            else f"{alone} serves"
        )
        copied = any(own.copies or own.replicated for own in self.services.values())
        said += ", possibly from the older copy" * copied
        return replace(world, state=state, off=off), Step(state.fenced, (said,))

    def _service(self, world: World, name: str, *, stops: bool) -> tuple[World, Step]:
        target = next(target for target, own in self.services.items() if name in (one.id for one in own.parts))
        place = world.state.served.get(target, "")
        if not place or place in world.off or world.apart:
            gone = not place or place in world.off
            return world, Step(said=(f"{name} does not run" if gone else "not all nodes reach each other any more",))
        failing = frozenset({(name, place)})
        in_guest = (name, place) in world.state.guests
        node = next((one for one in world.room.cluster.nodes if one.name == place), None)
        if why := self._unrecovered(name, target, stops=stops):
            state = replace(world.state, served={**world.state.served, target: ""})
            return replace(world, state=state), Step(said=(why,))
        done = world.room.power_off(node) if node else None
        hit = name if name in self.remote else place
        able = in_guest or (done if node and hit == place else devices_for(self.setup.pacemaker, hit))
        unfenceable = frozenset() if able else frozenset({hit})
        state = self.engine.after(
            world.state,
            self._event(world, monitors=failing, stops=frozenset() if stops else failing, unfenceable=unfenceable),
        )
        unclean = sorted(set(state.unclean) - set(state.fenced))
        said = (f"{', '.join(unclean)} cannot be powered off, so its services are not taken over",) if unclean else ()
        if place in state.fenced and node is not None and done is not None and place not in done.dead:
            others = frozenset(other.name for other in self._standing(world) if other.name != place)
            return self._pretended(world, others, node, done)
        wait = Span(0.0, self.times.looks_s.get(name, 0.0)) + self.times.start([target], stop=True)
        if state.fenced:
            wait += max(map(self.times.fencing, state.fenced))
        off = world.off | {*state.fenced} - self.remote  # Remote nodes return with their connections.
        return replace(world, state=state, off=off, stuck=world.stuck or bool(unclean)), Step(
            state.fenced, said, restarted=bool(state.restarted) and {*state.fenced} <= self.remote, wait=wait
        )

    def _unrecovered(self, name: str, target: str, *, stops: bool) -> str:
        if self.setup.is_heartbeat:
            return "Heartbeat does not monitor the resources in haresources"
        own = self.services[target]
        one = next(part for part in own.parts if part.id == name)
        roles = ("Promoted",) if one in own.copies else ("", "Started")
        watched = any(each.repeats and each.enabled and each.role in roles for each in one.operations)
        # Pacemaker notices a lost connection to a remote or guest node even without a monitor.
        if not watched and one.agent != "remote" and "remote-node" not in one.meta:
            return f"{name} has no monitor{' for its promoted copy' * (one in own.copies)}: nobody notices this"
        stop = one.operation("stop")
        blocked = not stops and not self.policies.fencing and (stop is None or stop.on_fail in ("", "block"))
        return f"without fencing, {name} is blocked until a person acts" * blocked

    def _path(self, world: World, part: RoomPart) -> tuple[World, Step]:
        place = world.state.served.get(part.target, "")
        if place != part.name:
            return world, Step(said=(f"{part.name} could not take over {part.target}",))
        target = next(target for target in world.room.cluster.targets if target.name == part.target)
        panics = target.pool and self.cluster.name  # Plans set failmode=panic for ZFS pools, so the node panics.
        told = "its node panics (failmode of the pool)" if panics else "the monitor of the mount must detect this"
        world, step = self._service(world, self.services[part.target].members[0].id, stops=False)
        return world, replace(step, said=(told, *step.said))

    def _grown_old(self, world: World, standing: list[Node]) -> tuple[World, tuple[str, ...]]:
        alive = {node.name for node in standing}
        stale = {
            (target.name, node)
            for target in world.room.cluster.targets
            if target.replicated and (place := world.state.served.get(target.name, "")) in alive
            for node in target.partners(place)
            if node in alive and not world.room.replicates(place, node)
        }
        if stale <= world.stale:
            return world, ()
        said = ("the standby's copy becomes outdated; it is not promoted before it is synchronised again",)
        return replace(world, stale=world.stale | stale), said


def ending(first: World, last: World, steps: list[Step]) -> Ending:
    """Return the worst effect that the failures have on clients."""
    before, after = first.places, last.places
    endings: list[Ending] = ["nothing"]
    if last.unreachable:
        endings.append("unreachable")
    if not all(after.values()):
        endings.append("outage")
    elif last.paused:
        endings.append("pause")
    elif last.frozen:
        endings.append("hangs")
    if any(after[name] and after[name] != before[name] for name in after):
        endings.append("take-over")
    if any(step.restarted for step in steps):
        endings.append("restart")
    return max(endings, key=WORST.index)


def _without(places: dict[str, str], nodes: set[str]) -> dict[str, str]:
    return {name: "" if place in nodes else place for name, place in places.items()}


# Time limits in seconds for all simulations of a rehearsal: without and with pairs of failures.
_MOST_S, _MOST_OF_PAIRS_S = 45.0, 1800.0
_NOTHING = "no resource can move: there are only clones, stopped resources, network monitors and fencing devices"


@dataclass(frozen=True)
class Rehearsal:
    """The predicted effects of failures. ``assumed``: assumptions. ``nothing``: why the result is empty, or "".

    ``not_simulated``: number of failures whose simulation exceeded the time limit.
    """

    where: str
    singles: tuple[Scene, ...]
    doubles: tuple[Scene, ...]
    assumed: tuple[str, ...] = ()
    nothing: str = ""
    not_simulated: int = 0


def rehearse(setup: Setup, *, doubles: bool = True) -> Rehearsal:
    """Return the effects of every single failure, and with ``doubles`` of every pair. Raises BadInputError."""
    if setup.cib is None:
        remedy = "Give the cluster's CIB (cibadmin --query > pacemaker/cib.xml), or the crm or pcs commands."
        raise BadInputError("there is no Pacemaker configuration", where=setup.where, remedy=remedy)
    if not model_of(setup).services:
        return Rehearsal(setup.where, (), (), nothing=_NOTHING)
    with tempfile.TemporaryDirectory(prefix="strakes-") as place:
        try:
            story = Story(setup, Path(place), _MOST_OF_PAIRS_S if doubles else _MOST_S)
        except CommandTimeout as error:
            what = "this cluster cannot be rehearsed"
            raise BadInputError(what, where=setup.where, why=error.what, remedy=error.remedy) from error
        alike = ("service", "stop")
        parts = (*parts_of(story.cluster), *(RoomPart(kind, name) for kind in alike for name in story.failing))
        pairs = [
            (one, other)
            for one, other in (combinations(parts, 2) if doubles else ())
            if one.name != other.name or {one.kind, other.kind} != set(alike)
        ]
        parts = (*parts, *(RoomPart("cold", node.name) for node in story.cluster.nodes))
        wanted, scenes = [*((part,) for part in parts), *pairs], dict[tuple[RoomPart, ...], Scene]()
        # Simulate the most frequent failures first, because the time limit may end the simulations.
        for failures in sorted(wanted, key=lambda one: (len(one), one[0].kind not in ("node", *alike), one[0].kind)):
            with suppress(CommandTimeout):
                scenes[failures] = story.play(failures)
    single, double = ([scenes.get(one) for one in wanted if len(one) == number] for number in (1, 2))
    assumed, missing = story.assumed, [one for one in wanted if one not in scenes]
    if missing:
        names = [one[0].text for one in missing if len(one) == 1]
        names += [f"{len(missing) - len(names)} pairs"] if doubles else []
        why = f"{len(missing)} of {len(wanted)} failures, which exceeded the time limit: {', '.join(names)}"
        assumed = (*assumed, f"nothing about {why}")
    found = (tuple(filter(None, single)), tuple(filter(None, double)))
    return Rehearsal(setup.where, *found, assumed, not_simulated=len(missing))


def document(rehearsal: Rehearsal) -> str:
    """Return the predicted effects of failures as JSON."""

    def row(scene: Scene) -> dict[str, object]:
        return {
            "failures": [part.text for part in scene.failures],
            "ending": scene.ending,
            "fenced": scene.fenced,
            "served_by": scene.places,
            "said": scene.said,
            "wait_s": [scene.wait.least_s, scene.wait.most_s],
            "split_brain": scene.split_brain,
            "decided_by": "model, then policy engine" if scene.modelled else "policy engine",
        }

    rows = {"singles": list(map(row, rehearsal.singles)), "doubles": list(map(row, rehearsal.doubles))}
    head = {name: getattr(rehearsal, name) for name in ("where", "assumed", "nothing", "not_simulated")}
    return json.dumps({"schema": 1, **head, **rows}, indent=1)
