"""One failure after the other: what the room makes of it, what the policy engine does then, and who serves in the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from strakes.failover.cib import Cib
from strakes.failover.description import Node
from strakes.failover.rehearsal.engine import Event, PolicyEngine, State
from strakes.failover.rehearsal.room import Part, Room
from strakes.failover.rules.fencing import PRETENDERS
from strakes.failover.setup import Setup

Ending = Literal["nothing", "restart", "take-over", "hangs", "outage"]
_WORST: tuple[Ending, ...] = ("nothing", "restart", "take-over", "hangs", "outage")


@dataclass(frozen=True)
class Policies:
    """What the configuration says about splits, as far as the room needs to know."""

    fencing: bool
    two_node: bool
    frozen_without_peer: bool
    delays_s: dict[str, float]

    @classmethod
    def of(cls, setup: Setup) -> Policies:
        assert setup.cib is not None and setup.corosync is not None
        cib = setup.cib
        devices = [device for device in cib.devices if device.agent not in PRETENDERS]
        enabled = cib.properties.get("stonith-enabled", "true").lower() not in ("false", "no", "off", "0")
        delays: dict[str, float] = {}
        for device in cib.devices:
            for node in cib.fences(device):
                delays[node] = max(delays.get(node, 0.0), cib.delay_s(device))
        return cls(
            fencing=enabled and bool(devices),
            two_node=setup.corosync.one("quorum").get("two_node") in ("1", "yes"),
            frozen_without_peer=all(resource.fencing == "resource-and-stonith" for resource in setup.drbd),
            delays_s=delays,
        )


@dataclass(frozen=True)
class World:
    """Everything as it is now.

    ``off``: nodes without power or dead; ``stale``: (target, node) with an old copy; ``stuck``: a person has to act before anything more
    is taken over; ``apart``: both nodes are alive and do not see each other; ``frozen``: DRBD has stopped all writing.
    """

    room: Room
    state: State
    off: frozenset[str] = frozenset()
    stale: frozenset[tuple[str, str]] = frozenset()
    stuck: bool = False
    apart: bool = False
    frozen: bool = False
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

    failures: tuple[Part, ...]
    ending: Ending
    fenced: tuple[str, ...]
    places: dict[str, str]
    said: tuple[str, ...]
    split_brain: str
    modelled: bool
    cuts_every_heartbeat: bool

    @property
    def ends_the_service(self) -> bool:
        return self.ending in ("hangs", "outage")


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
        self.first = World(Room(self.setup.cluster), self.engine.steady())

    def play(self, failures: tuple[Part, ...]) -> Scene:
        """The failures one after the other, each after the cluster has answered the one before."""
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
        if not all(after.values()):
            endings.append("outage")
        elif world.frozen:
            endings.append("hangs")
        if any(after[name] and after[name] != before[name] for name in after):
            endings.append("take-over")
        if any(step.restarted for step in steps):
            endings.append("restart")
        return max(endings, key=_WORST.index)

    def _fail(self, world: World, part: Part) -> tuple[World, Step]:
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
        said += [f"{target} on {node} is old and not promoted" for target, node in sorted(world.stale) if node not in world.off]
        unproven = f"{', '.join(sorted(names))} is taken over from without being powered off" if not self.policies.fencing else ""
        return replace(world, state=state, stuck=not sure or not quorum, quorum=quorum), Step(state.fenced, tuple(said), unproven)

    def _split(self, world: World, standing: list[Node]) -> tuple[World, Step]:
        """All heartbeats are cut, and both nodes are alive."""
        room = world.room
        cut = not room.replication_works
        if not self.policies.fencing:
            text = "both sides serve, each from its own copy" if cut else "both sides want to serve; only DRBD's single primary prevents it"
            return replace(world, stuck=True, apart=True), Step(said=("nobody is powered off",), split_brain=text)
        if not self.policies.two_node and not room.quorum_host_answers:
            state = self.engine.after(world.state, Event(stale=world.stale, quorum=False))
            return replace(world, state=state, stuck=True, apart=True, quorum=False), Step(said=("neither side has quorum",))
        winners = self._winners(room, standing)
        if winners is None:
            off = frozenset(node.name for node in standing)
            return replace(world, off=off, stuck=True), Step(tuple(sorted(off)), ("both nodes power each other off",))
        if not winners:
            frozen = cut and self.policies.frozen_without_peer
            said = "neither can power the other off" + (": DRBD stops all writing until a person acts" if frozen else "")
            return replace(world, stuck=True, apart=True, frozen=frozen), Step(said=(said,))
        (winner,) = winners
        loser = next(node for node in standing if node is not winner)
        state = self.engine.after(world.state, Event(dead=frozenset({loser.name}), stale=world.stale))
        old = [f"{target} on {node} is old and not promoted" for target, node in sorted(world.stale) if node == winner.name]
        return replace(world, state=state, off=world.off | {loser.name}), Step((loser.name,), (f"{winner.name} survives", *old))

    def _winners(self, room: Room, standing: list[Node]) -> tuple[Node, ...] | None:
        """Who powers off the other: one, nobody (empty), or both at once (None)."""
        able = [node for node in standing if room.can_power_off(next(other for other in standing if other is not node))]
        if not self.policies.two_node:
            # The device gives its vote to one side only: the one with the lowest id.
            return tuple(node for node in standing[:1] if node in able)
        if len(able) < 2:
            return tuple(able)
        first, second = (self.policies.delays_s.get(node.name, 0.0) for node in standing)
        return None if first == second else (standing[0] if first > second else standing[1],)

    def _service(self, world: World, part: Part) -> tuple[World, Step]:
        primitive = next(one for one in self._cib.primitives if one.id == part.name)
        place = world.state.places.get(primitive.group, "")
        if not place or place in world.off or world.apart:
            return world, Step(
                said=(f"{part.name} does not run" if not place or place in world.off else "nobody sees both nodes any more",)
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
        off = world.off | set(state.fenced)
        restarted = bool(state.restarted) and not state.fenced
        return replace(world, state=state, off=off, stuck=world.stuck or bool(state.unclean)), Step(state.fenced, said, restarted=restarted)

    def _disk(self, world: World, part: Part) -> tuple[World, Step]:
        place = world.state.places.get(f"serve-{part.target}", "")
        world = replace(world, stale=world.stale | {(part.target, part.name)})
        text = f"{part.target} goes on with the disk of the other node" if place == part.name else f"{part.target} has no second copy"
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
            found[target.name] = place if place and place not in world.off and self._has_copy(world, target.name, place) else ""
        return found

    def _has_copy(self, world: World, target: str, place: str) -> bool:
        room = world.room
        if room.disk_works(place, target):
            return True
        other = next(node.name for node in room.cluster.nodes if node.name != place)
        return other not in world.off and (target, other) not in world.stale and room.disk_works(other, target) and room.replication_works

    @property
    def _cib(self) -> Cib:
        assert self.setup.cib is not None
        return self.setup.cib
