"""Rehearse all single failures and all pairs of failures."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.failover.model import model_of
from strakes.failover.rehearsal_room import RoomPart, Scene, parts_of
from strakes.failover.rehearsal_story import Story
from strakes.failover.setup import Setup
from strakes.targets.command import CommandTimeout

# Time limits in seconds for all simulations, without and with pairs of failures.
_MOST_S, _MOST_OF_PAIRS_S = 45.0, 1800.0
_NOTHING = "no resource can move: there are only clones, stopped resources, network monitors and fencing devices"


@dataclass(frozen=True)
class Rehearsal:
    """The results of all failures. ``assumed``: assumptions. ``nothing``: reason for an empty result."""

    where: str
    singles: tuple[Scene, ...]
    doubles: tuple[Scene, ...]
    assumed: tuple[str, ...] = ()
    nothing: str = ""


def rehearse(setup: Setup, *, doubles: bool = True) -> Rehearsal:
    """Return the results of every single failure, and with ``doubles`` of every pair. Raises BadInputError."""
    if setup.cib is None:
        remedy = "Give the cluster's CIB (cibadmin --query > pacemaker/cib.xml), or the crm or pcs commands."
        raise BadInputError("no Pacemaker configuration", where=setup.where, remedy=remedy)
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
        wanted, scenes = [*((part,) for part in parts), *pairs], list[Scene]()
        for failures in wanted:
            with suppress(CommandTimeout):
                scenes.append(story.play(failures))
    single, double = (tuple(one for one in scenes if len(one.failures) == number) for number in (1, 2))
    left = f"nothing about {len(wanted) - len(scenes)} of {len(wanted)} failures, which exceeded the time limit"
    return Rehearsal(setup.where, single, double, (*story.assumed, *([left] if len(scenes) < len(wanted) else [])))


def document(rehearsal: Rehearsal) -> str:
    """Return the results of a rehearsal as JSON."""

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
    head = {"schema": 1, "where": rehearsal.where, "assumed": rehearsal.assumed, "nothing": rehearsal.nothing}
    return json.dumps({**head, **rows}, indent=1)
