"""Changes of level of single figures: one kind of work of one setting became faster or slower and stayed so.

All functions here are pure.

A dozen or two runs of one figure have to show it by themselves, while some fifty figures are looked at. So a change
counts only if it is beyond what runs that resemble the one before do anyway, and if hardly any other figure jumps as
far from one run to the next: of work that jumps to and fro, some figures change but once by chance. Runs of a time when
all work of that kind scatters more weigh less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from strakes.analysis.beside import Shift
from strakes.analysis.levels import Levels, kind_of, levels_error
from strakes.findings.results import Measured, Results
from strakes.statistics.autoregression import change_of, p_value_of_change
from strakes.statistics.change_points import relative_scatter
from strakes.statistics.dependence import greatest_correlation
from strakes.statistics.interval import median
from strakes.studies.compose import describe
from strakes.studies.registry import study_named

_SHORTEST = 3
# Runs may resemble the one before by so much more than what is left beside a change shows, which is always less.
_MORE_ALIKE = 0.25
_UNDERRATED = 0.05
# Closer levels are not worth a word; those of a clock that steps are so many steps apart.
_LEAST_CHANGE = 1.1
_STEPS_APART = 3.0
# Jumps of this share of a change, in so many of the steps from one run of any other figure to the next, are common.
_AS_FAR = 0.6
_COMMON = 0.02
# Figures of one cell whose sizes of the change differ by less have changed alike.
_ALIKE = 1.3


@dataclass(frozen=True)
class _Change:
    measured: Measured
    before_s: float
    at_s: float
    size: float
    p_value: float


def own_shifts(results: Results, levels: Levels) -> tuple[Shift, ...]:
    """Return the changes of single figures, of those that did not change with a kind of work, as one for each cell."""
    figures = {
        measured.id: values
        for measured in results.measured
        if measured.estimate is not None
        and not measured.is_side
        and measured.estimate.stopped_because != "imported"
        and not study_named(measured.study).visits_in_sequence
        and len(values := _values(measured)) >= 2 * _SHORTEST
    }
    if not figures:
        return ()
    error = levels_error(results.confidence) / len(figures)
    alike = _MORE_ALIKE + greatest_correlation([_rest(values) for values in figures.values()], _UNDERRATED)
    scatter = _scatter([measured for measured in results.measured if measured.id in figures], figures)
    found = [
        change
        for measured in results.measured
        if measured.id in figures and measured.id not in levels.changed
        for change in _changes(measured, figures[measured.id], scatter[measured.id], error, alike)
    ]
    changed = {change.measured.id for change in found}
    others = [
        abs(late - early)
        for name, values in figures.items()
        if name not in changed and name not in levels.changed
        for early, late in pairwise(values)
    ]
    shown = [change for change in found if not _common(abs(change.size), others)]
    start_s = min(seen.at_s for measured in results.measured for seen in measured.observations)
    return tuple(_shift(group, start_s) for group in _together(shown))


def _values(measured: Measured) -> list[float]:
    """Return how good each run was, as a logarithm, in time order; none where a value is not positive."""
    if any(seen.value <= 0 for seen in measured.observations):
        return []
    sign = -1 if measured.lower_is_better else 1
    return [sign * math.log(seen.value) for seen in sorted(measured.observations, key=lambda seen: seen.at_s)]


def _rest(values: Sequence[float]) -> list[float]:
    """Return what the greatest difference of levels leaves."""
    place, _ = change_of(values, _SHORTEST)
    return [value - level for part in (values[:place], values[place:]) for level in (median(part),) for value in part]


def _scatter(measures: Sequence[Measured], figures: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Return for each run of each figure how much work of its kind scatters at that time, beside other times."""
    import numpy as np

    scatter: dict[str, list[float]] = {}
    for kind in {kind_of(measured) for measured in measures}:
        runs = []
        for measured in measures:
            if kind_of(measured) == kind:
                values = figures[measured.id]
                middle = median(values)
                spread = median([abs(value - middle) for value in values]) or 1.0
                times = sorted(seen.at_s for seen in measured.observations)
                runs += [
                    (at_s, measured.id, (value - middle) / spread) for at_s, value in zip(times, values, strict=True)
                ]
        runs.sort()
        names = np.array([name for _, name, _ in runs])
        members = [np.flatnonzero(names == name) for name in np.unique(names)]
        of_runs = relative_scatter(np.array([off for *_, off in runs]), members)
        for name, of_run in zip(names.tolist(), of_runs.tolist(), strict=True):
            scatter.setdefault(name, []).append(of_run)
    return scatter


def _changes(
    measured: Measured, values: Sequence[float], scatter: Sequence[float], error: float, alike: float
) -> list[_Change]:
    place, size = change_of(values, _SHORTEST)
    if abs(size) < max(math.log(_LEAST_CHANGE), _STEPS_APART * measured.step):
        return []
    p_value = p_value_of_change(values, _SHORTEST, alike, _as_sure(scatter, place))
    if p_value > error:
        return []
    times = sorted(seen.at_s for seen in measured.observations)
    return [_Change(measured, times[place - 1], times[place], size, p_value)]


def _as_sure(scatter: Sequence[float], place: int) -> float:
    """Return which part of a difference in standard errors is left, where runs before and after scatter unlike (Welch).

    >>> _as_sure([1.0] * 20, 5), round(_as_sure([5.0] * 5 + [1.0] * 15, 5), 2)
    (1.0, 0.61)
    """
    runs = len(scatter)
    early, late = ([of_run**2 for of_run in part] for part in (scatter[:place], scatter[place:]))
    pooled = (sum(early) + sum(late)) / runs * (1 / len(early) + 1 / len(late))
    return min(1.0, math.sqrt(pooled / (sum(early) / len(early) ** 2 + sum(late) / len(late) ** 2)))


def _common(size: float, others: Sequence[float]) -> bool:
    """Whether other figures jump as far now and then."""
    return sum(jump >= _AS_FAR * size for jump in others) > max(1.0, _COMMON * len(others))


def _together(changes: Sequence[_Change]) -> list[list[_Change]]:
    """Return the changes of one cell that may have been one: at one moment, and by as much."""
    groups: list[list[_Change]] = []
    for change in changes:
        cell = change.measured.id.rsplit(":", 1)[0]
        for group in groups:
            if (
                group[0].measured.id.rsplit(":", 1)[0] == cell
                and max(change.before_s, *(other.before_s for other in group))
                < min(change.at_s, *(other.at_s for other in group))
                and all(abs(change.size - other.size) < math.log(_ALIKE) for other in group)
            ):
                group.append(change)
                break
        else:
            groups.append([change])
    return groups


def _shift(group: Sequence[_Change], start_s: float) -> Shift:
    """Return the changes as one: of figures that changed alike only, so that what compares them still holds."""
    first, *more = (change.measured for change in group)
    operations = ", ".join(str(other.settings.get("operation", other.id)) for other in more)
    return Shift(
        what=", ".join(filter(None, (describe(first), operations))),
        after_s=min(change.at_s for change in group) - start_s,
        factor=math.exp(median([change.size for change in group])),
        p_value=min(change.p_value for change in group),
        cells=tuple(change.measured.id for change in group),
    )
