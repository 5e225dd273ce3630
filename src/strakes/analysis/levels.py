"""Whether a run met the file system in one state: changes of level in all that was measured, or in one kind of work.

All functions here are pure.

Every run of a cell is held against the median of its cell; so all runs of a kind of work make one long series in time,
in which a change shows that no cell of a dozen runs could show by itself: one that fell upon the first runs only, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from strakes.analysis.beside import Shift, by_visit, difference, jump
from strakes.analysis.naming import ALL_DATA, DATA, KINDS, METADATA, SEVERAL, Naming, next_to
from strakes.analysis.turns import (
    ALL,
    SHORTEST_LEVEL,
    Run,
    Turns,
    Visit,
    comes_back,
    dip_in,
    dips_in,
    groups_of,
    turns_of,
)
from strakes.findings.results import Measured, Observation, Results
from strakes.statistics.change_points import change_points, correlation_of
from strakes.statistics.dependence import pooled_correlation
from strakes.statistics.gradual import rest_of_lines
from strakes.statistics.interval import median
from strakes.studies.registry import study_named

# Of the error that a run may make in all; the rest is that of findings and advice.
LEVELS_SHARE = 0.2
# Levels closer than this are not worth a word.
LEAST_CHANGE = 1.1
_MOST_ALIKE = 0.95
# The middle of fewer cells is mostly one of them.
CELLS_TO_PART = 3


@dataclass(frozen=True)
class Levels:
    """``correlation``: of each run with the one before it, whatever they measured; 0 where that is not shown.

    ``grouped``: the measures of kinds of work whose runs fall into two groups, with how fast the slower one is beside
    the faster one.
    """

    shifts: tuple[Shift, ...]
    correlation: float
    turns: tuple[Turns, ...] = ()
    grouped: Mapping[str, float] = field(default_factory=dict)

    @property
    def changed(self) -> Mapping[str, str]:
        """Return for each measure with several levels in which kind of work, and for those that may have such."""
        changes: list[Shift | Turns] = [*self.shifts, *self.turns]
        return {
            cell: f"{change.what}?" if cell in change.unsure else change.what
            for change in changes
            for cell in change.cells
        }


def levels_error(confidence: float) -> float:
    """Return the error of each search for changes: of all runs, of each kind of work, and of all single figures.

    >>> round(levels_error(0.9), 5)
    0.00222
    """
    return (1 - confidence) * LEVELS_SHARE / (len(KINDS) + 2)


def levels_of(results: Results) -> Levels:
    """Find the changes of level of a run, with an error that all of them share."""
    measures = [
        measured
        for measured in results.measured
        # A study that goes on where its last visit ended changes as it should: its own findings say how.
        if measured.estimate is not None and not measured.is_side and not study_named(measured.study).visits_in_sequence
    ]
    runs = sorted((run for measured in measures for run in runs_of(measured)), key=lambda run: (run.at_s, run.phase))
    visits = by_visit(runs)
    if len(visits) < 2 * SHORTEST_LEVEL:
        return Levels((), 0.0)
    correlation = correlation_of([visit.better for visit in visits])
    kinds = {measured.id: kind_of(measured) for measured in measures}
    groups = {ALL: runs, **{kind: [run for run in runs if kinds[run.measure] == kind] for kind in KINDS}}
    error = levels_error(results.confidence)
    shifts: list[Shift] = []
    turns: list[Turns] = []
    wandering = _wandering(runs, kinds)
    asked = Naming(kinds, {measured.id: measured.settings for measured in measures}, error * len(KINDS))
    settled: set[str] = set()
    for what, group in groups.items():
        series = by_visit(group)
        if len(series) < 2 * SHORTEST_LEVEL or what in settled:
            continue
        own = max(wandering, _correlation_within(series, visits, correlation))
        changes = list(_shifts(what, group, series, kinds, error, own))
        step = median([measured.step for measured in measures if what in (ALL, kinds[measured.id])])
        taking_turns = turns_of(what, group, series, [shift.after_s for shift in changes], step)
        # Each of several dips may be long enough for a change and one back.
        dips = dips_in(what, group, series, error)
        taking_turns = (dips and (taking_turns or dips)) or _for_a_time(changes, series) or taking_turns
        if not taking_turns and not changes:
            taking_turns = dip_in(what, group, series)
        if what == ALL and not all(
            asked.of_all(found, next_to(found, changes, runs)) for found in taking_turns or changes
        ):
            # What all runs showed holds for those kinds of work that show it; the others tell their own.
            taking_turns = [told for found in taking_turns for told in asked.turns_narrowed(found, runs)]
            changes = [
                narrowed
                for change in changes
                if (narrowed := asked.narrowed(change, next_to(change, changes, runs))).cells
                and not 1 / LEAST_CHANGE < narrowed.factor < LEAST_CHANGE
            ]
            named = dict.fromkeys(kind for change in changes for kind in change.what.split(", "))
            of_these = [run for run in runs if kinds[run.measure] in named]
            dips = dips_in(", ".join(named), of_these, by_visit(of_these), error)
            taking_turns = taking_turns or dips or _for_a_time(changes, series)
            turns += taking_turns
            shifts += [] if taking_turns else changes
            settled = {kinds[cell] for cell in Levels(tuple(shifts), 0.0, tuple(turns)).changed}
            continue
        turns += taking_turns
        shifts += [] if taking_turns else changes
        if what == ALL and (taking_turns or changes):
            break
        if what == ALL:
            dips = [told for name in (METADATA, ALL_DATA) for told in _dips(name, runs, asked)]
            turns += dips
            settled = {kinds[cell] for dip in dips for cell in dip.cells}
    settled = {kinds[cell] for one in shifts for cell in one.cells}
    turns = [asked.in_parts(one, runs) for one in _with_turns_of_phases(turns, runs, asked, measures, settled)]
    shifts = [asked.in_parts(shift, next_to(shift, shifts, runs)) for shift in shifts]
    start_s = runs[0].at_s
    return Levels(
        tuple(replace(shift, after_s=shift.after_s - start_s) for shift in shifts),
        correlation,
        tuple(_since_start(one, start_s) for one in turns),
        _grouped(measures, groups, asked),
    )


def _grouped(measures: Sequence[Measured], groups: Mapping[str, Sequence[Run]], asked: Naming) -> dict[str, float]:
    """Return the measures of kinds of work whose runs fall into two groups, with the ratio of these."""
    ratios: dict[str, float] = {}
    for kind in KINDS:
        of_kind = [measured for measured in measures if asked.kinds[measured.id] == kind]
        two = groups_of(groups[kind], median([measured.step for measured in of_kind])) if of_kind else None
        if two is not None:
            ratio = two.low / two.high
            found = Turns(kind, ratio, two.low_share, tuple(measured.id for measured in of_kind))
            told = asked.in_parts(found, groups[kind])
            ratios |= {cell: ratio for cell in told.cells if cell not in told.unsure}
    return ratios


def _dips(what: str, runs: Sequence[Run], asked: Naming) -> list[Turns]:
    """Return the slow stretches of several kinds of work, each of which was hardly met in them."""
    group = [run for run in runs if asked.kinds[run.measure] in SEVERAL[what]]
    if len({asked.kinds[run.measure] for run in group}) < 2:
        return []
    series = by_visit(group)
    found = dip_in(what, group, series) or dips_in(what, group, series, asked.error / len(KINDS))
    if all(asked.of_all(dip, group) for dip in found):
        return found
    return [told for dip in found for told in asked.turns_narrowed(dip, group)]


def _since_start(turns: Turns, start_s: float) -> Turns:
    if turns.between is None:
        return turns
    since_s, until_s = turns.between
    return replace(turns, between=(since_s - start_s, until_s - start_s))


def _for_a_time(changes: Sequence[Shift], series: Sequence[Visit]) -> list[Turns]:
    """Return a change and the one back as one stretch of time; nothing where that is not all that changed."""
    if len({change.what for change in changes}) != 1 or len(changes) != 2:
        return []
    if changes[0].factor >= 1 or not comes_back(changes[0].factor, changes[1].factor):
        return []
    since_s, until_s = (change.after_s for change in changes)
    factor = math.sqrt(changes[0].factor / changes[1].factor)
    share = sum(since_s <= visit.at_s < until_s for visit in series) / len(series)
    cells = tuple(dict.fromkeys(cell for change in changes for cell in change.cells))
    return [Turns(changes[0].what, factor, share, cells, (since_s, until_s))]


def _correlation_within(series: Sequence[Visit], visits: Sequence[Visit], correlation: float) -> float:
    """Return how much runs of a group depend on each other: the less, the more visits to others lie between them.

    On the safe side by a standard error: too small a correlation would make changes of what only wanders. What one kind
    of work does by itself shows little in visits of all kinds, one after the other; where it went steadily up or down,
    what that leaves tells.
    """
    better = [visit.better for visit in series]
    alone = correlation_of(better) if len(series) < len(visits) else 0.0
    if correlation == 0 or (len(series) < len(visits) and rest_of_lines(better) is not None):
        return alone
    places = {visit.at_s: place for place, visit in enumerate(visits)}
    steps = [places[late.at_s] - places[early.at_s] for early, late in pairwise(series)]
    by_distance = sum(correlation**step for step in steps) / len(steps)
    return max(alone, min(_MOST_ALIKE, by_distance + 1 / math.sqrt(len(series))))


def _wandering(runs: Sequence[Run], kinds: Mapping[str, str]) -> float:
    """Return how much visits of a cell resemble its visit before, beyond what all cells of that kind of work do.

    A change of level is in all cells of a kind; what each does by itself is none.
    """
    rest: list[list[float]] = []
    for kind in dict.fromkeys(kinds.values()):
        cells: dict[str, list[float]] = {}
        for visit in by_visit([run for run in runs if kinds[run.measure] == kind]):
            cells.setdefault(visit.cell, []).append(visit.better)
        if len(cells) < CELLS_TO_PART:
            continue
        longest = max(map(len, cells.values()))
        common = [median([own[turn] for own in cells.values() if turn < len(own)]) for turn in range(longest)]
        rest += [[better - common[turn] for turn, better in enumerate(own)] for own in cells.values()]
    return pooled_correlation(rest)


def runs_of(measured: Measured) -> Iterator[Run]:
    """Return the runs of a measure, each held against their middle."""
    values: Sequence[Observation] = [seen for seen in measured.observations if seen.value > 0]
    if not values:
        return
    cell = measured.id.rsplit(":", 1)[0]
    middle = math.log(median([seen.value for seen in values]))
    for seen in values:
        better = math.log(seen.value) - middle
        yield Run(seen.at_s, cell, measured.id, -better if measured.lower_is_better else better, seen.sample.phase)


def _shifts(
    what: str,
    group: Sequence[Run],
    series: Sequence[Visit],
    kinds: Mapping[str, str],
    error: float,
    correlation: float,
) -> Iterator[Shift]:
    values, cells = [visit.better for visit in series], [visit.cell for visit in series]
    changes = change_points(values, error, shortest=SHORTEST_LEVEL, correlation=correlation, groups=cells)
    moments = [-math.inf, *(series[change.index].at_s for change in changes), math.inf]
    for change, since_s, at_s, until_s in zip(changes, moments, moments[1:], moments[2:], strict=False):
        beside = [run for run in group if since_s <= run.at_s < until_s]
        factor = math.exp(jump(beside, at_s) or change.after - change.before)
        if 1 / LEAST_CHANGE < factor < LEAST_CHANGE:
            continue
        touched = tuple(
            measure
            for measure in dict.fromkeys(run.measure for run in group)
            if _shows(measure, group, kinds, at_s, factor)
        )
        if touched:
            yield Shift(what, at_s, factor, change.p_value, touched)


def _shows(measure: str, group: Sequence[Run], kinds: Mapping[str, str], at_s: float, factor: float) -> bool:
    """Whether a measure changed in that direction, by its own runs or those of its kind; true where neither tells."""
    own = [run for run in group if run.measure == measure]
    found = difference(own, at_s)
    if found is None:
        found = difference([run for run in group if kinds[run.measure] == kinds[measure]], at_s)
    return found is None or (found * math.log(factor) > 0 and abs(found) >= math.log(LEAST_CHANGE))


def _with_turns_of_phases(
    turns: Sequence[Turns],
    runs: Sequence[Run],
    asked: Naming,
    measures: Sequence[Measured],
    settled: set[str],
) -> list[Turns]:
    """Add the levels that last for less than a visit, and differ between its phases.

    Of all work, else of all metadata or all data, else of one kind: whichever did not change in any other way.
    ``settled``: the kinds that changed for longer. What several kinds show together is told of them together.
    """
    told: list[Turns] = []
    kinds = asked.kinds
    every, alone, together = set(kinds.values()), {kinds[cell] for one in turns for cell in one.cells}, set[str]()
    groups = {what: every & names for what, names in SEVERAL.items()}
    for what, names in {**groups, **{kind: {kind} for kind in KINDS if kind in every}}.items():
        group = [run for run in runs if kinds[run.measure] in names]
        phases = [Visit(run.at_s, run.measure, run.better) for run in group]
        if names & (together | settled) or names <= alone or len(phases) < 2 * SHORTEST_LEVEL:
            continue
        step = median([measured.step for measured in measures if kinds[measured.id] in names])
        found = turns_of(what, group, phases, (), step)
        if found and all(asked.of_all(one, group) for one in found):
            told += found
            together |= names
    return [*(one for one in turns if not {kinds[cell] for cell in one.cells} & together), *told]


def kind_of(measured: Measured) -> str:
    """Return what kind of work a measure is of; empty for any that has no name, and where files are read by number."""
    operation = str(measured.settings.get("operation", measured.id))
    return next(
        (
            kind
            for kind in KINDS
            if kind in operation and (kind not in DATA or operation == kind or measured.unit == "B/s")
        ),
        "",
    )
