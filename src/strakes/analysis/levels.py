"""Whether a run met the file system in one state: changes of level in all that was measured, or in one kind of work.

All functions here are pure.

Every run of a cell is held against the median of its cell; so all runs of a kind of work make one long series in time,
in which a change shows that no cell of a dozen runs could show by itself: one that fell upon the first runs only, too.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from strakes.analysis.turns import (
    ALL,
    ENOUGH,
    SHORTEST_LEVEL,
    Run,
    Turns,
    Visit,
    below_fast,
    comes_back,
    dip_in,
    dips_in,
    groups_of,
    turns_of,
    was_slow,
)
from strakes.findings.results import Measured, Observation, Results
from strakes.statistics.change_points import change_points, correlation_of
from strakes.statistics.dependence import pooled_correlation
from strakes.statistics.gradual import rest_of_lines
from strakes.statistics.interval import in_order, median
from strakes.studies.registry import study_named
from strakes.units import counted

# Of the error that a run may make in all; the rest is that of findings and advice.
LEVELS_SHARE = 0.2
# Levels closer than this are not worth a word.
LEAST_CHANGE = 1.1
_MOST_ALIKE = 0.95
# So many runs of each measure next to a change tell its size where all others make it this much smaller.
_NEXT = 2
_DILUTED = 1.15
# Beyond so many standard errors of its ranks a kind of work surely did not change with all others.
_SURELY = 3.0
# The middle of fewer cells is mostly one of them.
CELLS_TO_PART = 3
# Kinds of work that a file system may do at speeds of their own, by what their operation is called.
_KINDS = ("create", "remove", "rename", "stat", "open", "write", "read")
_DATA = {"write", "read"}
_NAMES = set(_KINDS) - _DATA
_METADATA, _ALL_DATA = "all metadata operations", "all reads and writes"


@dataclass(frozen=True)
class Shift:
    """At ``after_s`` into the run ``what`` became ``factor`` times as fast, up to the next change of it.

    ``cells`` are the measures it shows in, or that were not run often enough to tell. ``fresh``: the rate of the pilot,
    where it is that which was faster; ``later``: how many later runs were far slower, of how many. ``like_pilot`` are
    the measures of work like its own.
    """

    what: str
    after_s: float
    factor: float
    p_value: float
    cells: tuple[str, ...]
    fresh: float | None = None
    like_pilot: tuple[str, ...] = ()
    later: tuple[int, int] = (0, 0)


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
        """Return for each measure with several levels in which kind of work."""
        changes: list[Shift | Turns] = [*self.shifts, *self.turns]
        return {cell: change.what for change in changes for cell in change.cells}


def levels_error(confidence: float) -> float:
    """Return the error of each search for changes: of all runs, of each kind of work, and of all single figures.

    >>> round(levels_error(0.9), 5)
    0.00222
    """
    return (1 - confidence) * LEVELS_SHARE / (len(_KINDS) + 2)


def levels_of(results: Results) -> Levels:
    """Find the changes of level of a run, with an error that all of them share."""
    measures = [
        measured
        for measured in results.measured
        # A study that goes on where its last visit ended changes as it should: its own findings say how.
        if measured.estimate is not None and not measured.is_side and not study_named(measured.study).visits_in_sequence
    ]
    runs = sorted((run for measured in measures for run in runs_of(measured)), key=lambda run: (run.at_s, run.phase))
    visits = _by_visit(runs)
    if len(visits) < 2 * SHORTEST_LEVEL:
        return Levels((), 0.0)
    correlation = correlation_of([visit.better for visit in visits])
    kinds = {measured.id: kind_of(measured) for measured in measures}
    groups = {ALL: runs, **{kind: [run for run in runs if kinds[run.measure] == kind] for kind in _KINDS}}
    error = levels_error(results.confidence)
    shifts: list[Shift] = []
    turns: list[Turns] = []
    wandering = _wandering(runs, kinds)
    settled: set[str] = set()
    for what, group in groups.items():
        series = _by_visit(group)
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
        if what == ALL and not all(_of_all(found, runs, kinds) for found in taking_turns or changes):
            # What all runs showed holds for those kinds of work that may have changed so; the others tell their own.
            taking_turns = [told for found in taking_turns for told in _turns_narrowed(found, runs, kinds, error)]
            changes = [
                narrowed
                for change in changes
                if (narrowed := _narrowed(change, runs, kinds)).cells
                and not 1 / LEAST_CHANGE < narrowed.factor < LEAST_CHANGE
            ]
            named = dict.fromkeys(kind for change in changes for kind in change.what.split(", "))
            of_these = [run for run in runs if kinds[run.measure] in named]
            dips = dips_in(", ".join(named), of_these, _by_visit(of_these), error)
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
            of_several = [(_METADATA, _NAMES), (_ALL_DATA, _DATA)]
            dips = [told for name, several in of_several for told in _dips(name, several, runs, kinds, error)]
            turns += dips
            settled = {kinds[cell] for dip in dips for cell in dip.cells}
    turns = _with_turns_of_phases(turns, runs, kinds, measures, {kinds[cell] for one in shifts for cell in one.cells})
    start_s = runs[0].at_s
    return Levels(
        tuple(replace(shift, after_s=shift.after_s - start_s) for shift in shifts),
        correlation,
        tuple(_since_start(one, start_s) for one in turns),
        _grouped(measures, groups, kinds),
    )


def _grouped(
    measures: Sequence[Measured], groups: Mapping[str, Sequence[Run]], kinds: Mapping[str, str]
) -> dict[str, float]:
    """Return the measures of kinds of work whose runs fall into two groups, with the ratio of these."""
    found = {
        kind: groups_of(groups[kind], median([measured.step for measured in measures if kinds[measured.id] == kind]))
        for kind in _KINDS
        if groups[kind]
    }
    return {name: two.low / two.high for name, kind in kinds.items() if (two := found.get(kind)) is not None}


def _dips(
    what: str, names: Collection[str], runs: Sequence[Run], kinds: Mapping[str, str], error: float
) -> list[Turns]:
    """Return the slow stretches of several kinds of work, each of which was hardly met in them."""
    group = [run for run in runs if kinds[run.measure] in names]
    if len({kinds[run.measure] for run in group}) < 2:
        return []
    series = _by_visit(group)
    found = dip_in(what, group, series) or dips_in(what, group, series, error)
    if all(_of_all(dip, group, kinds) for dip in found):
        return found
    return [told for dip in found for told in _turns_narrowed(dip, group, kinds, error)]


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
        for visit in _by_visit([run for run in runs if kinds[run.measure] == kind]):
            cells.setdefault(visit.cell, []).append(visit.better)
        if len(cells) < CELLS_TO_PART:
            continue
        longest = max(map(len, cells.values()))
        common = [median([own[turn] for own in cells.values() if turn < len(own)]) for turn in range(longest)]
        rest += [[better - common[turn] for turn, better in enumerate(own)] for own in cells.values()]
    return pooled_correlation(rest)


def _of_all(change: Shift | Turns, runs: Sequence[Run], kinds: Mapping[str, str]) -> bool:
    """Whether every kind of work was met on both sides, and none is surely less than half as far from staying."""
    met = {kinds[run.measure] for run in runs}
    groups = [[run for run in runs if kinds[run.measure] == kind] for kind in met]
    return all(_on_both_sides(change, group) and not _surely_less(change, group) for group in groups)


def _on_both_sides(change: Shift | Turns, runs: Sequence[Run]) -> bool:
    """Whether work was met in both states; those of levels that come and go are met at any time."""
    between = (change.after_s, math.inf) if isinstance(change, Shift) else change.between
    if between is None:
        return True
    since_s, until_s = between
    changed = sum(since_s <= run.at_s < until_s for run in runs)
    return min(changed, len(runs) - changed) >= SHORTEST_LEVEL


def _narrowed(change: Shift, runs: Sequence[Run], kinds: Mapping[str, str]) -> Shift:
    """Return the change as one of the kinds of work that did change, with its size in these."""
    what, cells, group = _named(change, runs, kinds)
    difference = _jump(group, change.after_s)
    return replace(change, what=what, factor=change.factor if difference is None else math.exp(difference), cells=cells)


def _named(
    change: Shift | Turns, runs: Sequence[Run], kinds: Mapping[str, str]
) -> tuple[str, tuple[str, ...], list[Run]]:
    """Return the name of the kinds of work that changed, the measures that may have, and the runs of those kinds.

    Kinds that were not met on both sides may have changed, too: their measures are marked, and not named.
    """
    shown = {kinds[cell] for cell in change.cells}
    possible = [kind for kind in _changed_kinds(change, runs, kinds) if kind in shown]
    changed = [kind for kind in possible if _on_both_sides(change, [run for run in runs if kinds[run.measure] == kind])]
    cells = tuple(cell for cell in change.cells if kinds[cell] in possible)
    some = change.what if len(cells) == len(kinds) else f"{len(cells)} of {counted(len(kinds), 'figure')}"
    what = ", ".join(filter(None, changed)) or some
    return what, cells, [run for run in runs if kinds[run.measure] in changed]


def _turns_narrowed(turns: Turns, runs: Sequence[Run], kinds: Mapping[str, str], error: float) -> list[Turns]:
    """Return the turns as those of the kinds of work that take them, with their size; all runs showed that there are.

    None where the two levels of these cannot be told apart.
    """
    if turns.between is not None:
        what, cells, group = _named(turns, runs, kinds)
        within, outside = _within(group, turns.between)
        factor = math.exp(median(within)) if min(len(within), len(outside)) >= ENOUGH else turns.factor
        return [replace(turns, what=what, factor=factor, cells=cells)] if cells else []
    changed = [
        kind
        for kind in _changed_kinds(turns, runs, kinds)
        if was_slow(turns, [run for run in runs if kinds[run.measure] == kind])
    ]
    group = [run for run in runs if kinds[run.measure] in changed]
    what, series = ", ".join(filter(None, changed)), _by_visit(group)
    if not changed:
        return []
    return turns_of(what, group, series, (), 0.0, shown=True) or dips_in(what, group, series, error)


def _changed_kinds(change: Shift | Turns, runs: Sequence[Run], kinds: Mapping[str, str]) -> list[str]:
    return [
        name
        for name in dict.fromkeys(kinds.values())
        if not _surely_less(change, [run for run in runs if kinds[run.measure] == name])
    ]


def _within(runs: Sequence[Run], between: tuple[float, float]) -> tuple[list[float], list[float]]:
    """Return the runs within a stretch and the others, each held against those others of its measure."""
    since_s, until_s = between
    within: list[float] = []
    outside: list[float] = []
    for measure in dict.fromkeys(run.measure for run in runs):
        own = [run for run in runs if run.measure == measure]
        others = [run.better for run in own if not since_s <= run.at_s < until_s]
        if others:
            middle = median(others)
            outside += [better - middle for better in others]
            within += [run.better - middle for run in own if since_s <= run.at_s < until_s]
    return within, outside


def _surely_less(change: Shift | Turns, runs: Sequence[Run]) -> bool:
    if isinstance(change, Shift):
        parts = _beside(runs, change.after_s)
    elif change.between is not None:
        parts = _within(runs, change.between)[::-1]
    else:
        # The middle of a measure's runs may lie on either level.
        below = below_fast(runs)
        ordered = in_order(below) if below else []
        slow = round(change.share * len(ordered))
        parts = (ordered[slow:], ordered[:slow])
    before, after = parts
    half = math.log(change.factor) / 2
    return _surely_below(before, [value - half for value in after], half < 0)


def _surely_below(some: Sequence[float], others: Sequence[float], below: bool) -> bool:
    """Whether values are surely below others, or above them, by their ranks."""
    ordered = in_order([*some, *others]) if some and others else []
    ranks = sum(bisect_left(ordered, value) + bisect_right(ordered, value) + 1 for value in some) / 2
    middle = len(some) * (len(ordered) + 1) / 2
    scatter = math.sqrt(middle * len(others) / 6)
    return (middle - ranks if below else ranks - middle) > _SURELY * scatter if scatter else False


def _beside(runs: Sequence[Run], at_s: float) -> tuple[list[float], list[float]]:
    """Return the runs before and from ``at_s`` on, each held against the early runs of its measure."""
    sides: dict[str, tuple[list[float], list[float]]] = {}
    for run in runs:
        sides.setdefault(run.measure, ([], []))[run.at_s >= at_s].append(run.better)
    both = [(early, late, median(early)) for early, late in sides.values() if early and late]
    return (
        [value - middle for early, _, middle in both for value in early],
        [value - middle for _, late, middle in both for value in late],
    )


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


def _by_visit(runs: Sequence[Run]) -> list[Visit]:
    visits: dict[float, list[Run]] = {}
    for run in runs:
        visits.setdefault(run.at_s, []).append(run)
    return [
        Visit(at_s, of_visit[0].cell, median([run.better for run in of_visit])) for at_s, of_visit in visits.items()
    ]


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
        factor = math.exp(_jump(beside, at_s) or change.after - change.before)
        if 1 / LEAST_CHANGE < factor < LEAST_CHANGE:
            continue
        touched = tuple(
            measure
            for measure in dict.fromkeys(run.measure for run in group)
            if _shows(measure, group, kinds, at_s, factor)
        )
        if touched:
            yield Shift(what, at_s, factor, change.p_value, touched)


def _difference(runs: Sequence[Run], at_s: float) -> float | None:
    """Return by how much better measures were from ``at_s`` on: of those that were run on both sides; None without any.

    Each measure is held against itself, since how often it was run on which side decides where its middle is, and
    counts as often as it was run on the side with fewer.
    """
    sides: dict[str, tuple[list[float], list[float]]] = {}
    for run in runs:
        sides.setdefault(run.measure, ([], []))[run.at_s >= at_s].append(run.better)
    both = [(early, late) for early, late in sides.values() if early and late]
    if any(sum(len(pair[side]) for pair in both) < ENOUGH for side in (0, 1)):
        return None
    return median([median(late) - median(early) for early, late in both for _ in range(min(len(early), len(late)))])


def _jump(runs: Sequence[Run], at_s: float) -> float | None:
    """Return by how much better measures were from ``at_s`` on; None without any run on both sides.

    The runs next to that moment count alone where they differ by more: what went down before and came back unseen is
    among the others.
    """
    whole = _difference(runs, at_s)
    near: list[Run] = []
    for measure in dict.fromkeys(run.measure for run in runs):
        own = [run for run in runs if run.measure == measure]
        early = [run for run in own if run.at_s < at_s]
        near += [*early[-_NEXT:], *(run for run in own[len(early) : len(early) + _NEXT])]
    if whole is None or sum(run.at_s < at_s for run in near) < _NEXT * ENOUGH:
        return whole
    jump = _difference(near, at_s)
    return jump if jump is not None and jump * whole > 0 and abs(jump) > _DILUTED * abs(whole) else whole


def _shows(measure: str, group: Sequence[Run], kinds: Mapping[str, str], at_s: float, factor: float) -> bool:
    """Whether a measure changed in that direction, by its own runs or those of its kind; true where neither tells."""
    own = [run for run in group if run.measure == measure]
    difference = _difference(own, at_s)
    if difference is None:
        difference = _difference([run for run in group if kinds[run.measure] == kinds[measure]], at_s)
    return difference is None or (difference * math.log(factor) > 0 and abs(difference) >= math.log(LEAST_CHANGE))


def _with_turns_of_phases(
    turns: Sequence[Turns],
    runs: Sequence[Run],
    kinds: Mapping[str, str],
    measures: Sequence[Measured],
    settled: set[str],
) -> list[Turns]:
    """Add the levels that last for less than a visit, and differ between its phases.

    Of all work, else of all metadata or all data, else of one kind: whichever did not change in any other way.
    ``settled``: the kinds that changed for longer. What several kinds show together is told of them together.
    """
    told: list[Turns] = []
    every, alone, together = set(kinds.values()), {kinds[cell] for one in turns for cell in one.cells}, set[str]()
    groups = {ALL: every, _METADATA: every - _DATA, _ALL_DATA: every & _DATA}
    for what, names in {**groups, **{kind: {kind} for kind in _KINDS if kind in every}}.items():
        group = [run for run in runs if kinds[run.measure] in names]
        phases = [Visit(run.at_s, run.measure, run.better) for run in group]
        if names & (together | settled) or names <= alone or len(phases) < 2 * SHORTEST_LEVEL:
            continue
        step = median([measured.step for measured in measures if kinds[measured.id] in names])
        found = turns_of(what, group, phases, (), step)
        if found and all(_of_all(one, group, kinds) for one in found):
            told += found
            together |= names
    return [*(one for one in turns if not {kinds[cell] for cell in one.cells} & together), *told]


def kind_of(measured: Measured) -> str:
    """Return what kind of work a measure is of; empty for any that has no name, and where files are read by number."""
    operation = str(measured.settings.get("operation", measured.id))
    return next(
        (
            kind
            for kind in _KINDS
            if kind in operation and (kind not in _DATA or operation == kind or measured.unit == "B/s")
        ),
        "",
    )
