"""In which kinds of work a change of level showed: only those are named whose own runs tell.

All functions here are pure.

What all runs show together is often the change of a part of them. So each kind of work is asked by itself: it shows the
change by its own runs, or surely did not change as much, or has too few runs to tell. "All" is said where all that have
enough runs show it, and none contradicts. Within a kind it is the same with operations and sizes of calls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from strakes.analysis.beside import Shift, by_visit, is_after, jump, on_both_sides, surely_less, within
from strakes.analysis.shown import may_show, may_show_two_levels, p_value_beside, shows_two_levels, slow_beside
from strakes.analysis.turns import ALL, ENOUGH, Run, Turns, Visit, dips_in, fast_levels, turns_of, was_slow
from strakes.findings.portrait import Setting
from strakes.statistics.interval import median
from strakes.units import counted, format_bytes

# Beyond so many standard errors of its ranks a kind of work, or one of some twenty parts, did not change with the rest.
_SURELY, _SURELY_A_PART = 3.0, 3.3
# A part of a kind of work that surely changed agrees with that by so much.
_AGREES = 0.05

# Kinds of work that a file system may do at speeds of their own, by what their operation is called.
KINDS = ("create", "remove", "rename", "stat", "open", "write", "read")
DATA = {"write", "read"}
METADATA, ALL_DATA = "all metadata operations", "all reads and writes"
SEVERAL = {ALL: set(KINDS), METADATA: set(KINDS) - DATA, ALL_DATA: DATA}

Change = TypeVar("Change", Shift, Turns)


@dataclass(frozen=True)
class Naming:
    """``kinds`` of work and ``settings`` of each measure; the ``error`` of all kinds that are named together."""

    kinds: Mapping[str, str]
    settings: Mapping[str, Mapping[str, Setting]]
    error: float

    def of_all(self, change: Shift | Turns, runs: Sequence[Run]) -> bool:
        """Whether every kind of work was met in both states, and those that can tell show that they changed.

        Of two levels that come and go a kind hardly shows by itself that it has them: so most of those that can are
        enough, where no kind contradicts what these show.
        """
        groups = [self._of(runs, kind) for kind in dict.fromkeys(self.kinds[run.measure] for run in runs)]
        if not all(on_both_sides(change, group) and not surely_less(change, group, _SURELY) for group in groups):
            return False
        # That all changed is false where one did not: so each may be asked at the error of all.
        able = [group for group in groups if self._may_show(change, group, self.error)]
        if len(groups) == 1 or not able:
            return True
        shown = [group for group in able if self._chance(change, group, self._others(runs, group)) <= self.error]
        if isinstance(change, Shift) or change.between is not None:
            return len(shown) == len(able)
        together = [run for group in shown for run in group]
        alone = turns_of(change.what, together, by_visit(together), (), 0.0, shown=True) if together else []
        return 2 * len(shown) >= len(able) and not any(
            surely_less(found, group, _SURELY) for found in alone for group in groups
        )

    def narrowed(self, change: Shift, runs: Sequence[Run]) -> Shift:
        """Return the change as one of the kinds of work that show it, with its size in these."""
        what, cells, group = self._named(change, runs)
        difference = jump(group, change.after_s)
        factor = change.factor if difference is None else math.exp(difference)
        return replace(change, what=what, factor=factor, cells=cells)

    def turns_narrowed(self, turns: Turns, runs: Sequence[Run]) -> list[Turns]:
        """Return the turns as those of the kinds of work that show them, with their size.

        None where the two levels of these cannot be told apart.
        """
        what, cells, group = self._named(turns, runs)
        if turns.between is not None:
            inside, outside = within(group, turns.between)
            factor = math.exp(median(inside)) if min(len(inside), len(outside)) >= ENOUGH else turns.factor
            return [replace(turns, what=what, factor=factor, cells=cells)] if cells else []
        if not group:
            return []
        series = by_visit(group)
        return turns_of(what, group, series, (), 0.0, shown=True) or dips_in(
            what, group, series, self.error / len(KINDS)
        )

    def in_parts(self, change: Change, runs: Sequence[Run]) -> Change:
        """Return the change as one of the operations and sizes of calls that show it, where others of a kind do not.

        Measures that can tell neither way are marked as unsure.
        """
        named = [kind for kind in dict.fromkeys(self.kinds.values()) if is_named(kind, change.what)]
        names: list[str] = []
        against: set[str] = set()
        unsure = {cell for cell in change.cells if self.kinds[cell] not in named} if named else set()
        for kind in named:
            shown, cells_against, cells_unsure = self._parts(change, kind, runs)
            names += [f"{kind} ({'; '.join(shown)})" if cells_against or cells_unsure else kind] if shown else []
            against |= cells_against
            unsure |= cells_unsure
        cells = tuple(cell for cell in change.cells if cell not in against)
        what = ", ".join(names)
        if not what or not cells or (not against and change.what in SEVERAL):
            what, cells = change.what, change.cells
        return replace(change, what=what, cells=cells, unsure=tuple(cell for cell in cells if cell in unsure))

    def _parts(self, change: Shift | Turns, kind: str, runs: Sequence[Run]) -> tuple[Sequence[str], set[str], set[str]]:
        """Return the parts of a kind of work that show a change, its measures that surely did not, and unsure ones."""
        parts: dict[str, list[Run]] = {}
        for run in self._of(runs, kind):
            parts.setdefault(_part(self.settings[run.measure]), []).append(run)
        error = self.error / len(parts)
        others = {part for part, group in parts.items() if surely_less(change, group, _SURELY_A_PART)}
        chances = {part: self._chance(change, group) for part, group in parts.items() if part not in others}
        shown = _surely(chances, error * len(chances))
        rest = parts.keys() - others - {*shown}
        # A kind as a whole is named where most of its parts agree; of two levels few surely can.
        met = [part for part in chances if on_both_sides(change, parts[part])]
        agreeing = sum(chances[part] <= _AGREES for part in met)
        most = 2 * agreeing > len(met) and len(met) >= min(2, len(parts))
        whole = isinstance(change, Turns) or change.what in SEVERAL or most
        if not others and (not shown or whole):
            return [kind], set(), set()
        unsure = {run.measure for part in rest for run in parts[part]}
        return shown, {run.measure for part in others for run in parts[part]}, unsure

    def _of(self, runs: Sequence[Run], kind: str) -> list[Run]:
        return [run for run in runs if self.kinds[run.measure] == kind]

    def _others(self, runs: Sequence[Run], group: Sequence[Run]) -> list[Run]:
        """Return the runs of other kinds of work."""
        own = {self.kinds[run.measure] for run in group}
        return [run for run in runs if self.kinds[run.measure] not in own]

    def _named(self, change: Shift | Turns, runs: Sequence[Run]) -> tuple[str, tuple[str, ...], list[Run]]:
        """Return the name of the kinds of work that changed, the measures that may have, and the runs of those kinds.

        Kinds that cannot tell may have changed, too: their measures are marked, and not named.
        """
        groups = {kind: self._of(runs, kind) for kind in dict.fromkeys(self.kinds[cell] for cell in change.cells)}
        possible = {kind: group for kind, group in groups.items() if not surely_less(change, group, _SURELY)}
        met = {kind: group for kind, group in possible.items() if on_both_sides(change, group)}
        chances = {kind: self._chance(change, group, self._others(runs, group)) for kind, group in met.items()}
        shown = {kind: met[kind] for kind in _surely(chances, self.error)}
        if not any(self._may_show(change, group, self.error / len(met)) for group in met.values()):
            shown = met
        # What none shows that could is each one's own to tell.
        elif not shown:
            possible = {}
        cells = tuple(cell for cell in change.cells if self.kinds[cell] in possible)
        some = change.what if len(cells) == len(self.kinds) else f"{len(cells)} of {counted(len(self.kinds), 'figure')}"
        what = ", ".join(filter(None, shown)) or some
        return what, cells, [run for group in shown.values() for run in group]

    def _chance(self, change: Shift | Turns, runs: Sequence[Run], others: Sequence[Run] = ()) -> float:
        """Return how likely runs would be as they are without the change; 0 or 1 for levels that come and go."""
        series = by_visit(runs)
        if isinstance(change, Turns) and change.between is None:
            shows = was_slow(change, runs) and (
                self._takes_turns(runs, series) or self._as_others(change, series, others)
            )
            return float(not shows)
        after = [is_after(change, visit.at_s) for visit in series]
        return p_value_beside(series, after, slower=change.factor < 1)

    def _takes_turns(self, runs: Sequence[Run], series: Sequence[Visit]) -> bool:
        """Whether visits, or the phases of them, are on two levels."""
        phases = [Visit(run.at_s, run.measure, run.better) for run in runs]
        return (
            any(shows_two_levels(each) or turns_of("", runs, each, (), 0.0, shown=True) for each in (series, phases))
            or dips_in("", runs, series, self.error / len(KINDS)) != []
        )

    def _as_others(self, change: Turns, series: Sequence[Visit], others: Sequence[Run]) -> bool:
        """Whether work is slower by half as much, at least, when other work beside it is on the slow level."""
        beside = slow_beside(series, _below_fast(others), math.log(change.factor) / 2)
        known = [(visit, slow) for visit, slow in zip(series, beside, strict=True) if slow is not None]
        if not known:
            return False
        visits, slow = [visit for visit, _ in known], [slow for _, slow in known]
        sides = [[visit.better for visit, late in known if late == side] for side in (False, True)]
        return (
            all(sides)
            and median(sides[True]) - median(sides[False]) <= math.log(change.factor) / 2
            and p_value_beside(visits, slow, slower=True) <= self.error
        )

    def _may_show(self, change: Shift | Turns, runs: Sequence[Run], error: float) -> bool:
        series = by_visit(runs)
        if isinstance(change, Turns) and change.between is None:
            return may_show_two_levels(series, change.share)
        return may_show(series, [is_after(change, visit.at_s) for visit in series], error)


def _below_fast(runs: Sequence[Run]) -> list[Run]:
    """Return runs as far as they are from the faster level of their measure, in order of time."""
    fast = fast_levels([(run.measure, run.better) for run in runs])
    known = [replace(run, better=run.better - fast[run.measure]) for run in runs if run.measure in fast]
    return sorted(known, key=lambda run: run.at_s)


def _surely(chances: Mapping[str, float], error: float) -> list[str]:
    """Return what is surely so, all together with that error (Holm, Scand. J. Statist. 6 (1979) 65), in their order.

    >>> _surely({"read": 0.4, "write": 0.001, "stat": 0.02}, 0.05)
    ['write', 'stat']
    """
    ordered = sorted(chances, key=lambda name: chances[name])
    most = next((place for place, name in enumerate(ordered) if chances[name] * (len(ordered) - place) > error), None)
    return [name for name in chances if name in ordered[:most]]


def next_to(change: Shift | Turns, changes: Sequence[Shift], runs: Sequence[Run]) -> Sequence[Run]:
    """Return the runs between the changes of the same measures before and after; all, of levels that come back."""
    if isinstance(change, Turns):
        return runs
    others = [other.after_s for other in changes if not set(other.cells).isdisjoint(change.cells)]
    since_s = max((at_s for at_s in others if at_s < change.after_s), default=-math.inf)
    until_s = min((at_s for at_s in others if at_s > change.after_s), default=math.inf)
    return [run for run in runs if since_s <= run.at_s < until_s]


def is_named(kind: str, what: str) -> bool:
    """Whether a change of this is one of that kind of work.

    >>> is_named("read", "all reads and writes"), is_named("stat", "create, remove")
    (True, False)
    """
    return kind in SEVERAL.get(what, what.split(", "))


def _part(settings: Mapping[str, Setting]) -> str:
    """Return what a measure does within its kind of work: which operation, by calls of which size."""
    size = settings.get("transfer_bytes")
    if size is None:
        return str(settings.get("operation", "")).replace(",", "")
    return f"{format_bytes(float(size))}{' direct' if settings.get('io') == 'direct' else ''}"
