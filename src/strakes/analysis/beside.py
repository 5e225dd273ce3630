"""Changes of level, and by how much runs on both sides of one differ.

All functions here are pure.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from strakes.analysis.turns import ENOUGH, SHORTEST_LEVEL, Run, Turns, Visit, below_fast
from strakes.statistics.interval import in_order, median

# So many runs of each measure next to a change tell its size where all others make it this much smaller.
_NEXT = 2
_DILUTED = 1.15


@dataclass(frozen=True)
class Shift:
    """At ``after_s`` into the run ``what`` became ``factor`` times as fast, up to the next change of it.

    ``cells`` are the measures it shows in, or that were not run often enough to tell. ``fresh``: the rate of the pilot,
    where it is that which was faster; ``later``: how many later runs were far slower, of how many. ``like_pilot`` are
    the measures of work like its own, ``unsure`` those of the cells whose runs are too few to tell.
    """

    what: str
    after_s: float
    factor: float
    p_value: float
    cells: tuple[str, ...]
    fresh: float | None = None
    like_pilot: tuple[str, ...] = ()
    later: tuple[int, int] = (0, 0)
    unsure: tuple[str, ...] = ()


def is_after(change: Shift | Turns, at_s: float) -> bool:
    """Whether a moment is after a change, or in a stretch of time; of levels that come and go none is."""
    since_s, until_s = (change.after_s, math.inf) if isinstance(change, Shift) else (change.between or (0.0, 0.0))
    return since_s <= at_s < until_s


def on_both_sides(change: Shift | Turns, runs: Sequence[Run]) -> bool:
    """Whether work was met in both states; those of levels that come and go are met at any time."""
    if isinstance(change, Turns) and change.between is None:
        return True
    changed = sum(is_after(change, run.at_s) for run in runs)
    return min(changed, len(runs) - changed) >= SHORTEST_LEVEL


def within(runs: Sequence[Run], between: tuple[float, float]) -> tuple[list[float], list[float]]:
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


def surely_less(change: Shift | Turns, runs: Sequence[Run], surely: float) -> bool:
    """Whether runs surely changed by less than half as much, by so many standard errors of their ranks."""
    if isinstance(change, Shift):
        parts = _beside(runs, change.after_s)
    elif change.between is not None:
        parts = within(runs, change.between)[::-1]
    else:
        # The middle of a measure's runs may lie on either level.
        below = below_fast(runs)
        ordered = in_order(below) if below else []
        slow = round(change.share * len(ordered))
        parts = (ordered[slow:], ordered[:slow])
    before, after = parts
    half = math.log(change.factor) / 2
    return _surely_below(before, [value - half for value in after], surely, below=half < 0)


def _surely_below(some: Sequence[float], others: Sequence[float], surely: float, *, below: bool) -> bool:
    """Whether values are surely below others, or above them, by their ranks."""
    ordered = in_order([*some, *others]) if some and others else []
    ranks = sum(bisect_left(ordered, value) + bisect_right(ordered, value) + 1 for value in some) / 2
    middle = len(some) * (len(ordered) + 1) / 2
    scatter = math.sqrt(middle * len(others) / 6)
    return (middle - ranks if below else ranks - middle) > surely * scatter if scatter else False


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


def by_visit(runs: Sequence[Run]) -> list[Visit]:
    """Return visits, each as good as the middle of its runs."""
    visits: dict[float, list[Run]] = {}
    for run in runs:
        visits.setdefault(run.at_s, []).append(run)
    return [
        Visit(at_s, of_visit[0].cell, median([run.better for run in of_visit])) for at_s, of_visit in visits.items()
    ]


def difference(runs: Sequence[Run], at_s: float) -> float | None:
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


def jump(runs: Sequence[Run], at_s: float) -> float | None:
    """Return by how much better measures were from ``at_s`` on; None without any run on both sides.

    The runs next to that moment count alone where they differ by more: what went down before and came back unseen is
    among the others.
    """
    whole = difference(runs, at_s)
    near: list[Run] = []
    for measure in dict.fromkeys(run.measure for run in runs):
        own = [run for run in runs if run.measure == measure]
        early = [run for run in own if run.at_s < at_s]
        near += [*early[-_NEXT:], *(run for run in own[len(early) : len(early) + _NEXT])]
    if whole is None or sum(run.at_s < at_s for run in near) < _NEXT * ENOUGH:
        return whole
    jump = difference(near, at_s)
    return jump if jump is not None and jump * whole > 0 and abs(jump) > _DILUTED * abs(whole) else whole
