"""Turn system settings (knobs) into factors of a search, and read the stored trials of a search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import cast

from strakes.base.errors import BadInputError, StrakesError
from strakes.control.knob import Knob, as_number
from strakes.control.knob_change import changed, read
from strakes.model.record import from_record
from strakes.runs.records import ConfirmationBegun, SpaceSearched, Visit
from strakes.runs.run import Run
from strakes.targets.target import Target
from strakes.tuning.advise_app import App
from strakes.tuning.tune_plans import TrialSize, goodness, has_shares, seconds_per_byte
from strakes.tuning.tune_search import MOST_TRIALS, Confirmation, Stage, Trial, TrialResult
from strakes.tuning.tune_space import Factor, SearchSpace
from strakes.tuning.tune_words import KNOB

NOT_SET = "not set"
# Maximum product of the numbers of combinations and of trials. Each pair takes 8 bytes of memory per factor.
_MOST_PAIRS = 20_000_000
_MOST_LEVELS = 1000  # Maximum number of values of a factor. 1,000 values take 8 MB. Twice as many take 32 MB.


def knob_factors(target: Target, wanted: Mapping[str, tuple[str, ...]]) -> tuple[list[Factor], list[str]]:
    """Return a search factor for each system setting (knob), and a text for each value that the system refused.

    A factor has the values that the system accepts. Raises BadInputError for a knob that is unknown, that has no value
    on this system, or that strakes does not change.
    """
    factors: list[Factor] = []
    refused: list[str] = []
    for reading in read(target, tuple(wanted)) if wanted else ():
        knob, found = reading.knob, set(reading.values.values())
        if len(found) != 1 or not knob.changeable:
            different = bool(found) and knob.changeable
            why = "the setting differs between places" if different else "strakes does not change it"
            what, where = f"{knob.name} cannot be tried here", str(target.path)
            raise BadInputError(what, where=where, why=reading.why or why, remedy="strakes knobs list DIR")
        now = found.pop()
        present = NOT_SET if now is None else knob.canonical(now)
        values = [present]
        for value in wanted[knob.name]:
            canonical = knob.parse(value)
            why = "" if canonical == present else _why_not(target, knob, canonical)
            if why:
                refused.append(f"{knob.name} = {value}: {why}")
            elif canonical not in values:
                values.append(canonical)
        if len(values) > 1:
            ordered = knob.kind in ("integer", "number", "bytes") and None not in map(as_number, values)
            levels = tuple(sorted(values, key=float) if ordered else values)
            factors.append(Factor(f"{KNOB}{knob.name}", levels, present, ordered=ordered))
    return factors, refused


def _why_not(target: Target, knob: Knob, value: str) -> str:
    try:
        with changed(target, {knob.name: value}) as change:
            return "; ".join(change.remarks)
    except StrakesError as error:
        return error.why or error.what


def usual_of(app: App, space: SearchSpace, visits: Sequence[Visit]) -> dict[str, float]:
    """Return phase -> seconds per byte in the first trial of the default setting, or {} without such a trial."""
    default = [visit for visit in visits if visit.settings == space.settings(space.default) and visit.ended_well]
    return seconds_per_byte(app, default[0]) if default and has_shares(app) else {}


def observed(app: App, space: SearchSpace, visits: Sequence[Visit]) -> list[TrialResult]:
    """Return the results of all trials of a search, computed from the stored records."""
    usual_s = usual_of(app, space, visits)
    points = (tuple(visit.settings[factor.name] for factor in space.factors) for visit in visits)
    trials = [Trial(point, cast("Stage", visit.stage)) for point, visit in zip(points, visits, strict=True)]
    rates = [goodness(app, visit, usual_s) for visit in visits]
    return [TrialResult(*each) for each in zip(trials, (visit.block for visit in visits), rates, strict=True)]


def space_event(space: SearchSpace, scale: TrialSize, not_tried: Iterable[str]) -> SpaceSearched:
    """Return the event that stores the search space and the trial size. It is stored before the first trial."""
    factors = tuple(asdict(factor) for factor in space.factors)
    return SpaceSearched(factors, tuple(space.points), asdict(scale), tuple(not_tried))


def preparation_of(run: Run) -> tuple[SearchSpace, TrialSize] | None:
    """Return the search space and trial size that a run has stored, or None for a run without a search."""
    stored = next(iter(run.events_of(SpaceSearched)), None)
    if stored is None:
        return None
    factors = tuple(from_record(Factor, factor) for factor in stored.factors)
    if sum(len(factor.levels) for factor in factors) > _MOST_LEVELS:
        raise ValueError(f"the stored search space has more than {_MOST_LEVELS} levels")
    if len(run.visits) > 2 * MOST_TRIALS or len(run.visits) * len(stored.points) > _MOST_PAIRS:
        raise run.damaged("it has more trials or combinations of settings than any search", "visits.jsonl")
    levels = [set(factor.levels) for factor in factors]
    known = [len(point) == len(levels) and all(map(set.__contains__, levels, point)) for point in stored.points]
    if not known or not all(known) or tuple(factor.default for factor in factors) not in stored.points:
        raise ValueError("the stored points are not points of the stored search space")
    return SearchSpace(factors, only=stored.points), from_record(TrialSize, stored.scale)


def confirmation_of(run: Run) -> Confirmation | None:
    """Return the planned final comparison with the default, or None if the search ended before planning it."""
    return next((Confirmation(tuple(e.best.values()), e.runs) for e in run.events_of(ConfirmationBegun)), None)
