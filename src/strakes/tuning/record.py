"""Records of a search besides its trials: space, amounts, untried settings, and the confirmation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from strakes.model.record import from_record
from strakes.runs.records import ConfirmationBegun, SpaceSearched, UsualTimes
from strakes.runs.run import Run
from strakes.tuning.tune_plans import TrialSize
from strakes.tuning.tune_search import Confirmation
from strakes.tuning.tune_space import Constraint, Factor, SearchSpace


def space_event(space: SearchSpace, scale: TrialSize, not_tried: Iterable[str]) -> SpaceSearched:
    """Return the event that records the space before the first trial."""
    amounts = asdict(scale)
    per_node = amounts.pop("ranks_per_node")
    factors = tuple(asdict(factor) for factor in space.factors)
    return SpaceSearched(factors, tuple(space.points), amounts, per_node, tuple(not_tried))


def preparation_of(run: Run) -> tuple[SearchSpace, TrialSize] | None:
    """Return the inverse: the very space that was searched, whatever would be offered today."""
    stored = next(iter(run.events_of(SpaceSearched)), None)
    if stored is None:
        return None
    factors = tuple(from_record(Factor, factor) for factor in stored.factors)
    names, points = [factor.name for factor in factors], set(stored.points)
    searched = Constraint(
        "it was not among those searched", lambda settings: tuple(settings[name] for name in names) in points
    )
    return SearchSpace(factors, (searched,)), TrialSize(**stored.scale, ranks_per_node=stored.ranks_per_node)


def not_tried_of(run: Run) -> tuple[str, ...]:
    """Return the settings that could not be tried, with the reasons."""
    return tuple(text for event in run.events_of(SpaceSearched) for text in event.not_tried)


def usual_of(run: Run) -> dict[str, float]:
    """Seconds for a byte of each phase by the default; empty where phases are not weighed."""
    return next((dict(event.seconds_per_byte) for event in run.events_of(UsualTimes)), {})


def confirmation_of(run: Run) -> Confirmation | None:
    """Return the planned confirmation, or None before it was fixed."""
    return next((Confirmation(tuple(e.best.values()), e.runs) for e in run.events_of(ConfirmationBegun)), None)
