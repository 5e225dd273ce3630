"""Faults and repairs in a random order, played on the model; a seed gives the same order again."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from strakes.failover.rehearsal.rehearse import require_pacemaker
from strakes.failover.rehearsal.room import RoomPart, parts_of
from strakes.failover.rehearsal.story import Story
from strakes.failover.rehearsal.world import Step, World
from strakes.failover.setup import Setup
from strakes.units import counted


@dataclass(frozen=True)
class ScheduledEvent:
    """A part fails, or with ``mended`` is as before: a node is switched on, a cable is plugged in."""

    part: RoomPart
    mended: bool = False

    @property
    def text(self) -> str:
        """Return the event in words."""
        return f"repaired: {self.part.text}" if self.mended else self.part.text


@dataclass(frozen=True)
class Prediction:
    """The prediction for one event: the serving nodes, the fenced ones, and whether a person has to act."""

    event: ScheduledEvent
    world: World
    step: Step

    @property
    def places(self) -> dict[str, str]:
        """Return who serves each target."""
        return self.world.places


class ScheduleModel:
    """The story with repairs.

    Every state is worked out once, so that the next of 100,000 schedules costs next to nothing.
    """

    def __init__(self, story: Story, parts: Sequence[RoomPart]) -> None:
        self.story, self.parts = story, tuple(parts)
        self._worlds: list[World] = []
        self._numbers: dict[object, int] = {}
        self._next: dict[tuple[int, ScheduledEvent], tuple[int, Step]] = {}
        self.first = self._number(story.first)

    def draw(self, seed: int, length: int) -> tuple[ScheduledEvent, ...]:
        """Draw a schedule: only working parts fail, and only broken ones are mended."""
        chance = random.Random(seed)
        events: list[ScheduledEvent] = []
        number = self.first
        for _ in range(length):
            event = chance.choice(self.possible(self._worlds[number]))
            events.append(event)
            number, _ = self.after(number, event)
            world = self._worlds[number]
            if world.stuck or world.off >= {node.name for node in world.room.cluster.nodes}:
                break
        return tuple(events)

    def possible(self, world: World) -> list[ScheduledEvent]:
        """Return the possible next events: faults of working parts, repairs of broken ones."""
        faults = [
            ScheduledEvent(part)
            for part in self.parts
            if part not in world.room.broken and not (part.kind in ("node", "card", "bmc") and part.name in world.off)
        ]
        repairs = [ScheduledEvent(part, mended=True) for part in sorted(world.room.broken, key=lambda part: part.text)]
        back = [
            ScheduledEvent(RoomPart("node", name), mended=True)
            for name in sorted(world.off)
            # Switched on where it sees nobody, it would wait.
            if world.room.heartbeat_works and RoomPart("node", name) not in world.room.broken
        ]
        repairs = [event for event in repairs if event.part.kind != "node" or world.room.heartbeat_works]
        services = [event for event in faults if event.part.kind in ("service", "stop")]
        running = {name for name, place in world.places.items() if place}
        idle = [event for event in services if self.story.target_of(event.part.name) not in running]
        return [event for event in faults if event not in idle] + repairs + back

    def play(self, events: Sequence[ScheduledEvent]) -> tuple[Prediction, ...]:
        """Predict what each event does."""
        number, predictions = self.first, list[Prediction]()
        for event in events:
            number, step = self.after(number, event)
            predictions.append(Prediction(event, self._worlds[number], step))
        return tuple(predictions)

    def after(self, number: int, event: ScheduledEvent) -> tuple[int, Step]:
        """Return the state after an event, worked out at the first time."""
        key = (number, event)
        if key not in self._next:
            world = self._worlds[number]
            last, step = self.story.mend(world, event.part) if event.mended else self.story.fail(world, event.part)
            if event.part.kind in ("service", "stop"):
                # It has been restarted, or its node is off: nothing about it is broken any more.
                last = replace(last, room=replace(last.room, broken=last.room.broken - {event.part}))
            self._next[key] = self._number(last), step
        return self._next[key]

    @property
    def states(self) -> int:
        """Return how many different states were met."""
        return len(self._worlds)

    def _number(self, world: World) -> int:
        same = replace(world, room=self.story.first.room, state=self.story.first.state)
        flags = (same.off, same.stale, same.stuck, same.apart, same.frozen, same.paused, same.quorum)
        key = (world.room.broken, world.state.file, *flags)
        if key not in self._numbers:
            self._numbers[key] = len(self._worlds)
            self._worlds.append(world)
        return self._numbers[key]


def acknowledged_and_lost(first: World, predictions: Sequence[Prediction]) -> tuple[str, ...]:
    """Let clients write after every event, and return where a take-over by an older copy loses an acknowledged write.

    The copies are counted here by what reaches what, not by what the story calls old.
    """
    versions: dict[tuple[str, str], int] = {}
    told: dict[str, int] = {}
    lost: list[str] = []
    world = first
    for number, after in enumerate((None, *predictions)):
        world = after.world if after else first
        for target in world.room.cluster.targets:
            if not target.replicated:
                continue
            place = world.places[target.name]
            if place and not world.frozen:
                works = world.room.disk_works(place, target.name)
                disk = place if works else target.partners(place)[0]
                if versions.get((target.name, disk), 0) < told.get(target.name, 0):
                    lost.append(
                        f"after event {number}, {place} serves a copy of {target.name} that lacks acknowledged writes"
                    )
                told[target.name] = told.get(target.name, 0) + 1
                versions[target.name, disk] = told[target.name]
            copies = [(target.name, node) for node in target.nodes]
            joined = not set(target.nodes) & world.off and world.room.replication_works(target) and not world.apart
            if joined and all(world.room.disk_works(node, target.name) for node in target.nodes):
                # DRBD brings the older copy up to date, served or not.
                newest = max(versions.get(copy, 0) for copy in copies)
                versions |= dict.fromkeys(copies, newest)
    return tuple(lost)


@dataclass(frozen=True)
class ScheduleSummary:
    """The outcome of many schedules.

    ``bad`` gives by seed what happened in those with a split brain or a lost record.
    """

    where: str
    schedules: int
    first_seed: int
    length: int
    events: int
    states: int
    handed_over: int
    ended: int
    bad: dict[int, tuple[str, ...]]

    @property
    def text(self) -> str:
        """Return the summary in words."""
        lines = [
            (
                f"{counted(self.schedules, 'random schedule')} of up to "
                f"{counted(self.length, 'fault or repair', 'faults and repairs')}, seeds "
                f"{self.first_seed} to "
                f"{self.first_seed + self.schedules - 1}: {counted(self.events, 'event')}, different states: "
                f"{self.states:,}"
            ),
            f"{self.handed_over:,} with a take-over, {self.ended:,} after which a person has to act or nobody serves",
            f"split brain, or an acknowledged record that is no longer served: {len(self.bad) or 'none'}",
        ]
        return "\n".join([*lines, *(f"  seed {seed}: {'; '.join(what)}" for seed, what in list(self.bad.items())[:10])])


def scheduled_parts(story: Story) -> tuple[RoomPart, ...]:
    """Return what fails in schedules: everything but what only the site can mend, such as disks and feeds."""
    kinds = ("node", "network", "bmc", "one-way", "card")
    services = story.failing
    return (
        *(part for part in parts_of(story.cluster) if part.kind in kinds),
        *(RoomPart("service", name) for name in services),
        *(RoomPart("stop", name) for name in services),
    )


def rehearse_schedules(
    setup: Setup,
    count: int,
    first_seed: int = 0,
    length: int = 6,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> ScheduleSummary:
    """Play schedules that are drawn from consecutive seeds. Raises what ``rehearse`` raises."""
    require_pacemaker(setup)
    events = handed_over = ended = 0
    bad: dict[int, tuple[str, ...]] = {}
    with tempfile.TemporaryDirectory(prefix="strakes-") as place:
        story = Story(setup, Path(place))
        model = ScheduleModel(story, scheduled_parts(story))
        for number, seed in enumerate(range(first_seed, first_seed + count), 1):
            predictions = model.play(model.draw(seed, length))
            events += len(predictions)
            places = [model.story.first.places, *(prediction.places for prediction in predictions)]
            handed_over += any(
                now[target] and before[target] and now[target] != before[target]
                for before, now in pairwise(places)
                for target in now
            )
            ended += predictions[-1].world.stuck or not all(places[-1].values())
            split = [prediction.step.split_brain for prediction in predictions if prediction.step.split_brain]
            lost = acknowledged_and_lost(model.story.first, predictions)
            if split or lost:
                bad[seed] = (*split, *lost)
            progress(number, count)
        return ScheduleSummary(setup.where, count, first_seed, length, events, model.states, handed_over, ended, bad)
