"""What a search keeps in its run besides its trials: the space, the amounts, what could not be tried, and what was to be confirmed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from strakes.tune.here import Here
from strakes.tune.plans import Scale
from strakes.tune.search import Confirmation
from strakes.tune.space import Constraint, Factor, Point, Space

Events = Sequence[Mapping[str, Any]]


def events_of(space: Space, scale: Scale, here: Here, not_tried: Iterable[str]) -> list[dict[str, Any]]:
    """Before the first trial."""
    factors = [{"name": one.name, "levels": list(one.levels), "default": one.default, "ordered": one.ordered} for one in space.factors]
    facts = {key: value for key, value in here.facts.items() if key != "path"}
    return [
        {"event": "facts", "facts": {**facts, "path": str(here.facts["path"])}},
        {
            "event": "space",
            "factors": factors,
            "points": [list(point) for point in space.points],
            "scale": {"ranks": scale.ranks, "data_bytes": scale.data_bytes, "limit_s": scale.limit_s, "seed": scale.seed},
            "ranks_per_node": scale.ranks_per_node,
            "not_tried": list(not_tried),
        },
    ]


def preparation_of(events: Events) -> tuple[Space, Scale] | None:
    """The inverse: the very space that was searched, whatever would be offered today."""
    stored = next((event for event in events if event["event"] == "space"), None)
    if stored is None:
        return None
    factors = tuple(Factor(one["name"], tuple(one["levels"]), one["default"], one["ordered"]) for one in stored["factors"])
    names = [factor.name for factor in factors]
    points = {tuple(point) for point in stored["points"]}
    searched = Constraint("it was not among those searched", lambda settings: tuple(settings[name] for name in names) in points)
    return Space(factors, (searched,)), Scale(**stored["scale"], ranks_per_node=stored["ranks_per_node"])


def not_tried_of(events: Events) -> tuple[str, ...]:
    return tuple(text for event in events if event["event"] == "space" for text in event["not_tried"])


def usual_of(events: Events) -> dict[str, float]:
    return next((dict(event["seconds_per_byte"]) for event in events if event["event"] == "usual"), {})


def confirmation_event(space: Space, found: Confirmation) -> dict[str, Any]:
    return {"event": "confirmation", "best": space.settings(found.best), "runs": found.runs}


def confirmation_of(events: Events) -> Confirmation | None:
    stored = next((event for event in events if event["event"] == "confirmation"), None)
    if stored is None:
        return None
    best: Point = tuple(stored["best"].values())
    return Confirmation(best, int(stored["runs"]))
