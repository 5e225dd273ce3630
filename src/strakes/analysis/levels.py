"""Whether a run met the file system in one state: changes of level in all that was measured, or in one kind of work. Pure.

Every run of a cell is held against the median of its cell; so all runs of a kind of work make one long series in time, in which a
change shows that no cell of a dozen runs could show by itself: one that fell upon the first runs only, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from strakes.findings.results import Measured, Observation, Results
from strakes.statistics.change_points import change_points, correlation_of
from strakes.statistics.interval import median
from strakes.studies.registry import study_named

# Of the error that a run may make in all; the rest is that of findings and advice.
LEVELS_SHARE = 0.2
# A change that fell upon the first few runs is one, too.
_SHORTEST = 3
# Levels closer than this are not worth a word.
_LEAST_CHANGE = 1.1
# Kinds of work that a file system may do at speeds of their own, by what their operation is called.
_KINDS = ("create", "remove", "rename", "stat", "open", "write", "read")
_ALL = "all that was measured"


@dataclass(frozen=True)
class Shift:
    """From ``after_s`` into the run on ``what`` was ``factor`` times as fast as before.

    ``cells`` are the measures it shows in.
    """

    what: str
    after_s: float
    factor: float
    p_value: float
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Levels:
    """``correlation``: of each run with the one before it, whatever they measured; 0 where that is not shown."""

    shifts: tuple[Shift, ...]
    correlation: float

    @property
    def changed(self) -> Mapping[str, str]:
        """Return for each measure with several levels in which kind of work."""
        return {cell: shift.what for shift in self.shifts for cell in shift.cells}


@dataclass(frozen=True)
class _Run:
    """One value: ``better`` is the logarithm of how much better it was than its measure's median."""

    at_s: float
    measure: str
    better: float


def levels_of(results: Results) -> Levels:
    """Find the changes of level of a run, with an error that all of them share."""
    measures = [
        one
        for one in results.measured
        # A study that goes on where its last visit ended changes as it should: its own findings say how.
        if one.estimate is not None and not one.is_side and not study_named(one.study).visits_in_sequence
    ]
    runs = sorted((run for one in measures for run in _runs(one)), key=lambda run: run.at_s)
    visits = _by_visit(runs)
    if len(visits) < 2 * _SHORTEST:
        return Levels((), 0.0)
    correlation = correlation_of([better for _, better in visits])
    kinds = {one.id: _kind(one) for one in measures}
    groups = {_ALL: runs, **{kind: [run for run in runs if kinds[run.measure] == kind] for kind in _KINDS}}
    error = (1 - results.confidence) * LEVELS_SHARE / len(groups)
    shifts: list[Shift] = []
    for what, group in groups.items():
        series = _by_visit(group)
        if len(series) < 2 * _SHORTEST or any(shift.what == _ALL for shift in shifts):
            continue
        # The farther apart its runs are, the less they depend on each other.
        own = correlation ** (len(visits) / len(series))
        shifts += _shifts(what, group, series, error, own, runs[0].at_s)
    return Levels(tuple(shifts), correlation)


def _runs(one: Measured) -> Iterator[_Run]:
    values: Sequence[Observation] = [seen for seen in one.observations if seen.value > 0]
    if not values:
        return
    middle = math.log(median([seen.value for seen in values]))
    for seen in values:
        better = math.log(seen.value) - middle
        yield _Run(seen.at_s, one.id, -better if one.lower_is_better else better)


def _by_visit(runs: Sequence[_Run]) -> list[tuple[float, float]]:
    """Return one value a visit, whatever it measured: what slowed it slowed all its phases."""
    visits: dict[float, list[float]] = {}
    for run in runs:
        visits.setdefault(run.at_s, []).append(run.better)
    return [(at_s, median(values)) for at_s, values in visits.items()]


def _shifts(
    what: str,
    group: Sequence[_Run],
    series: Sequence[tuple[float, float]],
    error: float,
    correlation: float,
    start_s: float,
) -> Iterator[Shift]:
    values = [better for _, better in series]
    found = change_points(values, error, shortest=_SHORTEST, correlation=correlation)
    for change in found:
        factor = math.exp(change.after - change.before)
        if 1 / _LEAST_CHANGE < factor < _LEAST_CHANGE:
            continue
        at_s = series[change.index][0]
        cells = tuple(
            measure for measure in dict.fromkeys(run.measure for run in group) if _shows(measure, group, at_s, factor)
        )
        if cells:
            yield Shift(what, at_s - start_s, factor, change.p_value, cells)


def _shows(measure: str, group: Sequence[_Run], at_s: float, factor: float) -> bool:
    """Whether the measure itself, where it was run on both sides, changed in that direction.

    Else it is taken to have.
    """
    sides = [
        [run.better for run in group if run.measure == measure and (run.at_s < at_s) == early]
        for early in (True, False)
    ]
    if not all(sides):
        return True
    own = median(sides[1]) - median(sides[0])
    return own * math.log(factor) > 0 and abs(own) >= math.log(_LEAST_CHANGE)


def _kind(one: Measured) -> str:
    operation = str(one.settings.get("operation", one.id))
    return next((kind for kind in _KINDS if kind in operation), "")


def medians_of(one: Measured, shifts: Sequence[Shift], start_s: float) -> tuple[float, ...]:
    """Return the measure's medians before and after each of its changes.

    None where it was not run on both sides of one.
    """
    moments = sorted(start_s + shift.after_s for shift in shifts if one.id in shift.cells)
    parts: dict[int, list[float]] = {}
    for seen in one.observations:
        parts.setdefault(sum(moment <= seen.at_s for moment in moments), []).append(seen.value)
    return tuple(median(parts[part]) for part in sorted(parts)) if len(parts) > 1 else ()
