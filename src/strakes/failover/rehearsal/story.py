"""One failure after the other: what the room makes of it, what the policy engine does then, and who serves in the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from strakes.failover.cib import Cib
from strakes.failover.description import Node
from strakes.failover.rehearsal.engine import ClusterState, Event, PolicyEngine
from strakes.failover.rehearsal.room import PowerOff, Room, RoomPart
from strakes.failover.rehearsal.wiring import Wiring, has_fencing
from strakes.failover.rules.fencing import delays_of
from strakes.failover.rules.heartbeat import name_of, nodes_of
from strakes.failover.rules.timing import freeze_s
from strakes.failover.setup import Setup

Ending = Literal["nothing", "restart", "take-over", "pause", "hangs", "unreachable", "outage"]
_WORST: tuple[Ending, ...] = ("nothing", "restart", "take-over", "pause", "hangs", "unreachable", "outage")


@dataclass(frozen=True)
class Policies:
    """What the configuration says about splits, as far as the room needs to know."""

    fencing: bool
    two_node: bool
    frozen_without_peer: bool
    frozen_s: float
    delays_s: dict[str, float]
    tie_breaker: str
    waits_for_all: bool

    @classmethod
    def of(cls, setup: Setup) -> Policies:
        assert setup.cib is not None and setup.corosync is not None
        cib = setup.cib
        device = setup.corosync.one("quorum").one("device").one("net")
        tie = device.get("tie_breaker", "lowest")
        return cls(
            fencing=has_fencing(cib),
            two_node=setup.corosync.one("quorum").get("two_node") in ("1", "yes"),
            frozen_without_peer=all(set(resource.fencing) == {"resource-and-stonith"} for resource in setup.drbd),
            frozen_s=max(map(freeze_s, setup.drbd), default=0.0),
            delays_s=delays_of(setup),
            tie_breaker=_node_of(setup, tie),
            waits_for_all=_waits_for_all(setup),
        )


def _node_of(setup: Setup, tie_breaker: str) -> str:
    """Who wins a tie of the quorum device: the node with the lowest id, the highest, or a given one."""
    ids = {int(node.get("nodeid")): name_of(node) for node in nodes_of(setup) if node.get("nodeid").isdecimal()}
    if tie_breaker.isdecimal():
        return ids.get(int(tie_breaker), "")
    return ids[max(ids) if tie_breaker == "highest" else min(ids)] if ids else ""


def _waits_for_all(setup: Setup) -> bool:
    quorum = setup.membership.one("quorum")
    two_node = quorum.get("two_node") in ("1", "yes")
    return quorum.get("wait_for_all", "1" if two_node else "0") in ("1", "yes")


@dataclass(frozen=True)
class World:
    """Everything as it is now.

    ``off``: nodes without power or dead; ``stale``: (target, node) with an old copy; ``stuck``: a person has to act before anything more
    is taken over; ``apart``: both nodes are alive and do not see each other; ``frozen``: DRBD has stopped all writing.
    """

    room: Room
    state: ClusterState
    off: frozenset[str] = frozenset()
    stale: frozenset[tuple[str, str]] = frozenset()
    stuck: bool = False
    apart: bool = False
    frozen: bool = False
    paused: bool = False
    quorum: bool = True


@dataclass(frozen=True)
class Step:
    """What one failure did."""

    fenced: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    split_brain: str = ""
    restarted: bool = False


@dataclass(frozen=True)
class Scene:
    """One row of the rehearsal. ``places`` is target -> node, empty where it is not served."""

    failures: tuple[RoomPart, ...]
    ending: Ending
    fenced: tuple[str, ...]
    places: dict[str, str]
    said: tuple[str, ...]
    split_brain: str
    modelled: bool
    cuts_every_heartbeat: bool

    @property
    def ends_the_service(self) -> bool:
        return self.ending in ("hangs", "unreachable", "outage")


@dataclass
class Story:
    """Plays failures for one plan."""

    setup: Setup
    engine: PolicyEngine
    policies: Policies = field(init=False)
    first: World = field(init=False)

    def __post_init__(self) -> None:
        assert self.setup.cluster is not None
        self.policies = Policies.of(self.setup)
        self.first = World(Room(self.setup.cluster, configured=Wiring.configured(self.setup)), self.engine.steady())

    def play(self, failures: tuple[RoomPart, ...]) -> Scene:
        """Play the failures one after the other, each after the cluster has answered the one before."""
        ordered = tuple(sorted(failures, key=lambda part: part.order))
        world, steps = self.first, list[Step]()
        for part in ordered:
            world, step = self._fail(world, part)
            steps.append(step)
        before, after = self._served(self.first), self._served(world)
        said = [text for step in steps for text in step.said]
        if world.room.clients_cut_off:
            said.append("clients reach nobody over their network")
        return Scene(
            failures=ordered,
            ending=self._ending(world, steps, before, after),
            fenced=tuple(dict.fromkeys(node for step in steps for node in step.fenced)),
            places=after,
            said=tuple(dict.fromkeys(said)),
            split_brain="; ".join(dict.fromkeys(step.split_brain for step in steps if step.split_brain)),
            modelled=any(part.modelled for part in failures),
            cuts_every_heartbeat=not world.room.heartbeat_works,
        )

    def _ending(self, world: World, steps: list[Step], before: dict[str, str], after: dict[str, str]) -> Ending:
        endings: list[Ending] = ["nothing"]
        if world.room.clients_cut_off:
            endings.append("unreachable")
        if not all(after.values()):
            endings.append("outage")
        elif world.paused:
            endings.append("pause")
        elif world.frozen:
            endings.append("hangs")
        if any(after[name] and after[name] != before[name] for name in after):
            endings.append("take-over")
        if any(step.restarted for step in steps):
            endings.append("restart")
        return max(endings, key=_WORST.index)

    def _fail(self, world: World, part: RoomPart) -> tuple[World, Step]:
        if part.kind == "cold":
            return self._cold_start(world, part.name)
        world = replace(world, room=world.room.without(part))
        room = world.room
        nodes = room.cluster.nodes
        died = [node for node in nodes if node.name not in world.off and not room.alive(node)]
        standing = [node for node in nodes if node.name not in world.off and room.alive(node)]
        if died:
            return self._died(world, died, standing)
        if part.kind in ("service", "stop"):
            return self._service(world, part)
        if part.kind == "disk" and part.name not in world.off:
            return self._disk(world, part)
        if len(standing) == 2 and not room.heartbeat_works and not world.stuck:
            return self._split(world, standing)
        if len(standing) == 2 and not room.replication_works:
            return self._replication_cut(world)
        if part.kind in ("bmc", "outlets") or not all(room.can_power_off(node) for node in standing):
            return world, Step(said=self._fencing_lost(room, standing))
        return world, Step()

    def _fencing_lost(self, room: Room, standing: list[Node]) -> tuple[str, ...]:
        return tuple(f"{node.name} could not be powered off now" for node in standing if not room.can_power_off(node))

    def _died(self, world: World, died: list[Node], standing: list[Node]) -> tuple[World, Step]:
        names = frozenset(node.name for node in died)
        world = replace(world, off=world.off | names)
        if not standing:
            return replace(world, stuck=True), Step(said=("no node is left",))
        if world.stuck:
            return world, Step(said=("a person has to decide already",))
        room = world.room
        sure = all(room.can_power_off(node) for node in died)
        quorum = self.policies.two_node or room.quorum_host_answers
        event = Event(dead=names, stale=world.stale, quorum=quorum, unfenceable=frozenset() if sure else names)
        state = self.engine.after(world.state, event)
        said = []
        if not quorum:
            said.append("the survivor has no quorum")
        elif self.policies.fencing and not sure:
            said.append(f"{', '.join(sorted(names))} cannot be made sure to be off: a person must confirm it")
        said += [
            f"{target} on {node} is old and not promoted"
            for target, node in sorted(world.stale)
            if node not in world.off
        ]
        unproven = (
            f"{', '.join(sorted(names))} is taken over from without being powered off"
            if not self.policies.fencing
            else ""
        )
        hit = [node for node in standing if any(node.name in off.dead for off in map(room.power_off, died) if off)]
        if sure and hit and self.policies.fencing:
            names_hit = frozenset(node.name for node in hit)
            said.append(f"the power of {', '.join(sorted(names_hit))} is cut instead")
            gone = replace(state, places=dict.fromkeys(state.places, ""), fenced=tuple(sorted(names_hit)))
            return replace(world, state=gone, off=world.off | names_hit, stuck=True), Step(gone.fenced, tuple(said))
        served = any(node.name in world.state.places.values() for node in standing)
        paused = self.policies.fencing and not sure and served and self.policies.frozen_without_peer
        if paused:
            said.append(f"DRBD stops writing until fence-peer gives up, {self.policies.frozen_s:g} s")
        return replace(world, state=state, stuck=not sure or not quorum, quorum=quorum, paused=paused), Step(
            state.fenced, tuple(said), unproven
        )

    def _split(self, world: World, standing: list[Node]) -> tuple[World, Step]:
        """All heartbeats are cut, and both nodes are alive."""
        room = world.room
        cut = not room.replication_works
        if not self.policies.fencing:
            text = (
                "both sides serve, each from its own copy"
                if cut
                else "both sides want to serve; only DRBD's single primary prevents it"
            )
            return replace(world, stuck=True, apart=True), Step(said=("nobody is powered off",), split_brain=text)
        if not self.policies.two_node and not room.quorum_host_answers:
            state = self.engine.after(world.state, Event(stale=world.stale, quorum=False))
            return replace(world, state=state, stuck=True, apart=True, quorum=False), Step(
                said=("neither side has quorum",)
            )
        winners = self._winners(room, standing)
        if winners is None:
            off = frozenset(node.name for node in standing)
            return replace(world, off=off, stuck=True), Step(tuple(sorted(off)), ("both nodes power each other off",))
        if not winners:
            frozen = cut and self.policies.frozen_without_peer
            said = "neither can power the other off" + (
                ": DRBD stops all writing until a person acts" if frozen else ""
            )
            return replace(world, stuck=True, apart=True, frozen=frozen), Step(said=(said,))
        (winner,) = winners
        loser = next(node for node in standing if node is not winner)
        done = room.power_off(loser)
        assert done is not None
        if loser.name not in done.dead:
            return self._pretended(world, winner, loser, done)
        state = self.engine.after(world.state, Event(dead=frozenset({loser.name}), stale=world.stale))
        old = [
            f"{target} on {node} is old and not promoted" for target, node in sorted(world.stale) if node == winner.name
        ]
        return replace(world, state=state, off=world.off | {loser.name}), Step(
            (loser.name,), (f"{winner.name} survives", *old)
        )

    def _winners(self, room: Room, standing: list[Node]) -> tuple[Node, ...] | None:
        """Who powers off the other: one, nobody (empty), or both at once (None)."""
        able = [node for node in standing if room.can_power_off(next(other for other in standing if other is not node))]
        if not self.policies.two_node:
            # The device gives its vote to one side only.
            return tuple(node for node in able if node.name == self.policies.tie_breaker)
        if len(able) < 2:
            return tuple(able)
        if not self.policies.delays_s:
            # Chance, or priorities: the worse of both is that the one that serves is powered off.
            return tuple(node for node in standing if node.name not in self.first.state.places.values())[:1] or tuple(
                able[:1]
            )
        first, second = (self.policies.delays_s.get(node.name, 0.0) for node in standing)
        return None if first == second else (standing[0] if first > second else standing[1],)

    def _pretended(self, world: World, winner: Node, loser: Node, done: PowerOff) -> tuple[World, Step]:
        """Go on after the fencing of ``loser`` was reported as done, and it goes on."""
        said = [f"{done.device} reports that {loser.name} is off, and it is not"]
        off = world.off | done.dead
        if winner.name in done.dead:
            said.append(f"the power of {winner.name} is cut instead")
            back = world.room.power_off(winner)
            off |= back.dead if back else frozenset()
            text = ""
        else:
            text = f"{winner.name} takes over while {loser.name} still writes"
        return replace(world, off=off, stuck=True, apart=True), Step((), tuple(said), text)

    def _cold_start(self, world: World, alone: str) -> tuple[World, Step]:
        """Both were without power, and one is back."""
        room = world.room
        other = next(node for node in room.cluster.nodes if node.name != alone)
        gone = replace(world.state, places=dict.fromkeys(world.state.places, ""))
        off = world.off | {other.name}
        if self.policies.waits_for_all:
            said = f"{alone} waits for {other.name} (wait_for_all): a person has to say that it is off"
            return replace(world, state=gone, off=off, stuck=True), Step(said=(said,))
        if not self.policies.two_node and not room.quorum_host_answers:
            return replace(world, state=gone, off=off, stuck=True), Step(said=(f"{alone} has no quorum",))
        state = self.engine.after(world.state, Event(dead=frozenset({other.name}), stale=world.stale))
        said = f"{alone} powers off {other.name} and serves: its copy may be the older one"
        return replace(world, state=state, off=off), Step(state.fenced, (said,))

    def _service(self, world: World, part: RoomPart) -> tuple[World, Step]:
        primitive = next(one for one in self._cib.primitives if one.id == part.name)
        place = world.state.places.get(primitive.group, "")
        if not place or place in world.off or world.apart:
            return world, Step(
                said=(
                    f"{part.name} does not run"
                    if not place or place in world.off
                    else "nobody sees both nodes any more",
                )
            )
        failing = frozenset({(part.name, place)})
        node = next(node for node in world.room.cluster.nodes if node.name == place)
        event = Event(
            monitors=failing,
            stops=failing if part.kind == "stop" else frozenset(),
            stale=world.stale,
            quorum=world.quorum,
            unfenceable=frozenset() if world.room.can_power_off(node) else frozenset({node.name}),
        )
        state = self.engine.after(world.state, event)
        said = ("it cannot be powered off, so nothing is taken over",) if state.unclean else ()
        done = world.room.power_off(node)
        if place in state.fenced and done is not None and place not in done.dead:
            winner = next(other for other in world.room.cluster.nodes if other.name != place)
            return self._pretended(world, winner, node, done)
        off = world.off | set(state.fenced)
        restarted = bool(state.restarted) and not state.fenced
        return replace(world, state=state, off=off, stuck=world.stuck or bool(state.unclean)), Step(
            state.fenced, said, restarted=restarted
        )

    def _disk(self, world: World, part: RoomPart) -> tuple[World, Step]:
        place = world.state.places.get(f"serve-{part.target}", "")
        world = replace(world, stale=world.stale | {(part.target, part.name)})
        text = (
            f"{part.target} goes on with the disk of the other node"
            if place == part.name
            else f"{part.target} has no second copy"
        )
        return world, Step(said=(text,))

    def _replication_cut(self, world: World) -> tuple[World, Step]:
        stale = {
            (target.name, node.name)
            for target in world.room.cluster.targets
            for node in world.room.cluster.nodes
            if node.name != world.state.places.get(f"serve-{target.name}", "")
        }
        if stale <= world.stale:
            return world, Step()
        return replace(world, stale=world.stale | stale), Step(
            said=("the standby's copy grows old; it is not promoted until it has caught up",)
        )

    def _served(self, world: World) -> dict[str, str]:
        """Target -> the node that serves it, from a copy that is good."""
        found = {}
        for target in world.room.cluster.targets:
            place = world.state.places.get(f"serve-{target.name}", "")
            found[target.name] = (
                place if place and place not in world.off and self._has_copy(world, target.name, place) else ""
            )
        return found

    def _has_copy(self, world: World, target: str, place: str) -> bool:
        room = world.room
        if room.disk_works(place, target):
            return True
        other = next(node.name for node in room.cluster.nodes if node.name != place)
        return (
            other not in world.off
            and (target, other) not in world.stale
            and room.disk_works(other, target)
            and room.replication_works
        )

    @property
    def _cib(self) -> Cib:
        assert self.setup.cib is not None
        return self.setup.cib
