"""The state of a rehearsal at each moment, and its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from strakes.failover.cluster import ServedTarget
from strakes.failover.rehearsal_engine import ClusterState
from strakes.failover.rehearsal_room import Room, RoomPart
from strakes.failover.rehearsal_times import NO_WAIT, Span

Ending = Literal["nothing", "restart", "take-over", "pause", "hangs", "unreachable", "outage"]
WORST: tuple[Ending, ...] = ("nothing", "restart", "take-over", "pause", "hangs", "unreachable", "outage")


@dataclass(frozen=True)
class World:
    """The state of the room and of the cluster.

    ``off``: nodes without power or dead. ``stale``: pairs (target, node) with an outdated copy. ``stuck``: no further
    take-over until a person acts. ``apart``: live nodes do not reach each other. ``frozen``: DRBD has suspended all
    writes.
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

    @property
    def places(self) -> dict[str, str]:
        """Return target -> node that serves it from a good copy, or an empty text."""
        return {target.name: self._place(target) for target in self.room.cluster.targets}

    def _place(self, target: ServedTarget) -> str:
        place = self.state.places.get(target.name, "")
        return place if place and place not in self.off and self._has_copy(target, place) else ""

    def _has_copy(self, target: ServedTarget, place: str) -> bool:
        room = self.room
        if not target.replicated:
            return not room.is_broken("shelf", target.name) and not room.is_broken("path", place, target.name)
        if not room.is_broken("disk", place, target.name):
            return True
        return room.replication_works(target) and any(
            other not in self.off
            and (target.name, other) not in self.stale
            and not room.is_broken("disk", other, target.name)
            for other in target.partners(place)
        )

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Return the targets on nodes that no client reaches."""
        return tuple(
            target for target, place in self.places.items() if place and not self.room.reached_by_clients(place)
        )


@dataclass(frozen=True)
class Step:
    """The effects of one failure; ``wait`` is the range of the time that clients wait."""

    fenced: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    split_brain: str = ""
    restarted: bool = False
    wait: Span = NO_WAIT


@dataclass(frozen=True)
class Scene:
    """One row of the rehearsal. ``places``: target -> node, or an empty text if it is not served."""

    failures: tuple[RoomPart, ...]
    ending: Ending
    fenced: tuple[str, ...]
    places: dict[str, str]
    said: tuple[str, ...]
    split_brain: str
    modelled: bool
    cuts_every_heartbeat: bool
    wait: Span

    @property
    def ends_the_service(self) -> bool:
        """Return whether clients wait until a person acts."""
        return self.ending in ("hangs", "unreachable", "outage")
