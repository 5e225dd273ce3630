"""The whole rehearsal: every single failure and every pair of them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.failover.rehearsal_room import RoomPart, Scene, parts_of
from strakes.failover.rehearsal_story import Story
from strakes.failover.setup import Setup


@dataclass(frozen=True)
class Rehearsal:
    """The results of all single failures and pairs. ``assumed``: assumptions that no file confirms."""

    where: str
    singles: tuple[Scene, ...]
    doubles: tuple[Scene, ...]
    assumed: tuple[str, ...] = ()


def rehearse(
    setup: Setup, *, doubles: bool = True, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> Rehearsal:
    """Rehearse every single failure and every pair of failures.

    Raises EnvironmentLacksError without crm_simulate, BadInputError for a plan that does not start.
    """
    require_pacemaker(setup)
    with tempfile.TemporaryDirectory(prefix="strakes-") as place:
        story = Story(setup, Path(place))
        parts = (
            *parts_of(story.cluster),
            *(RoomPart("service", name) for name in story.failing),
            *(RoomPart("stop", name) for name in story.failing),
        )
        # A service that fails, and the same one that also cannot be stopped, are no pair.
        alike = {"service", "stop"}
        pairs = [
            (one, other)
            for one, other in (combinations(parts, 2) if doubles else ())
            if one.name != other.name or {one.kind, other.kind} != alike
        ]
        parts = (*parts, *(RoomPart("cold", node.name) for node in story.cluster.nodes))
        total = len(parts) + len(pairs)
        scenes = []
        for number, failures in enumerate([*((part,) for part in parts), *pairs], 1):
            scenes.append(story.play(failures))
            progress(number, total)
    return Rehearsal(setup.where, tuple(scenes[: len(parts)]), tuple(scenes[len(parts) :]), story.assumed)


def require_pacemaker(setup: Setup) -> None:
    """Raise BadInputError without a Pacemaker configuration, which a rehearsal needs."""
    if setup.cib is None:
        raise BadInputError(
            "no Pacemaker configuration",
            where=setup.where,
            remedy="Give its CIB (cibadmin --query > pacemaker/cib.xml), or the commands of crm or pcs that make it.",
        )


def document(rehearsal: Rehearsal) -> str:
    """Return the rehearsal as JSON."""

    def row(scene: Scene) -> dict[str, object]:
        return {
            "failures": [part.text for part in scene.failures],
            "ending": scene.ending,
            "fenced": scene.fenced,
            "served_by": scene.places,
            "said": scene.said,
            "wait_s": [scene.wait.least_s, scene.wait.most_s],
            "split_brain": scene.split_brain,
            "decided_by": deciders(scene),
        }

    rows = {"singles": list(map(row, rehearsal.singles)), "doubles": list(map(row, rehearsal.doubles))}
    return json.dumps({"schema": 1, "where": rehearsal.where, "assumed": rehearsal.assumed, **rows}, indent=1)


def deciders(scene: Scene) -> str:
    """Return what decided the result of a scene: the policy engine alone, or the model and then the policy engine."""
    return "model, then policy engine" if scene.modelled else "policy engine"
