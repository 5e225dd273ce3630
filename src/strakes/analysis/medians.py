"""What a figure shows of a measure that was met on several levels: the median of each of them. Pure."""

from __future__ import annotations

import math

from strakes.analysis.beside import Shift
from strakes.analysis.levels import LEAST_CHANGE, Levels, runs_of
from strakes.analysis.turns import Turns, fast_levels
from strakes.findings.results import Measured
from strakes.statistics.interval import median

# Of two groups of runs farther apart no median is told as that of both.
_ONE_FIGURE = 0.8


def medians_of(measured: Measured, levels: Levels, start_s: float) -> tuple[float, ...]:
    """Return the measure's medians between changes, in order of time, or of slow and fast runs where levels take turns.

    One where all its runs are on one side; none where it did not change, or is only known to be of work that may have.
    """
    parts: dict[int, list[float]] = {}
    runs = [seen for seen in measured.observations if seen.purpose == "measure"]
    if _is_unsure(measured, levels):
        return ()
    turns = next((turns for turns in levels.turns if measured.id in turns.cells), None)
    # What the pilot met comes before all others, where that was the same work.
    fresh = [shift.fresh for shift in levels.shifts if shift.fresh is not None and measured.id in shift.like_pilot]
    if by_turns(measured.id, levels):
        slow = slow_runs(measured, turns.factor if turns is not None else levels.grouped[measured.id])
        for seen in runs:
            parts.setdefault(int(seen.at_s not in slow), []).append(seen.value)
    else:
        since_start = [
            shift.after_s for shift in levels.shifts if measured.id in shift.cells and measured.id not in shift.unsure
        ]
        moments = [start_s + moment for moment in (turns and turns.between) or since_start]
        for seen in runs:
            parts.setdefault(sum(moment <= seen.at_s for moment in moments), []).append(seen.value)
    if measured.id not in levels.changed and len(parts) < 2:
        return ()
    medians = [median(parts[part]) for part in sorted(parts)]
    if not fresh and len(medians) > 1 and max(medians) < LEAST_CHANGE * min(medians):
        return ()
    return (*fresh, *medians)


def slow_runs(measured: Measured, factor: float) -> set[float]:
    """Return when those runs of a measure were made that are on the slower of two levels."""
    fast = fast_levels([(run.measure, run.better) for run in runs_of(measured)]).get(measured.id, 0.0)
    return {run.at_s for run in runs_of(measured) if run.better - fast < math.log(factor) / 2}


def _is_unsure(measured: Measured, levels: Levels) -> bool:
    """Whether its work was run too seldom to tell if it changed, too."""
    changes: list[Shift | Turns] = [*levels.shifts, *levels.turns]
    of_it = [change for change in changes if measured.id in change.cells]
    return bool(of_it) and all(measured.id in change.unsure for change in of_it)


def by_turns(measure: str, levels: Levels) -> bool:
    """Whether the runs of a measure are on two levels, in any order, so far apart that no median is of both."""
    if measure in levels.changed:
        return any(
            measure in turns.cells and measure not in turns.unsure and turns.between is None for turns in levels.turns
        )
    return levels.grouped.get(measure, 1.0) <= _ONE_FIGURE
