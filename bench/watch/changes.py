"""The changes of level of a whole recorded series."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from strakes.watch import level
from strakes.watch.calibration import WANDER, WANDER_OF_EQUALS, Calibration, calibrate
from strakes.watch.causes import cause_of, is_over
from strakes.watch.level import LevelChange, LevelDetector, LevelEnd, LevelReturns, LevelStays
from strakes.watch.values import Numbers, ShiftedLevel, WatchedSeries

# States of a detector are kept so many values apart.
_APART = 8


@dataclass
class _State:
    """A detector and the change that it told last: whether it was confirmed, is over, and has a cause."""

    detector: LevelDetector
    told: ShiftedLevel | None = None
    stays: bool = False
    over: bool = False
    explained: bool = False


class Finder:
    """A detector of changes for series of which many begin alike, as plants do: what is alike is gone through once.

    ``confirm``: as of ``find_changes``.
    """

    def __init__(self, alarms_a_month: float, *, confirm: bool = False) -> None:
        self._alarms_a_month = alarms_a_month
        self._wander = WANDER_OF_EQUALS if confirm else WANDER
        self._confirm = confirm
        self._first: dict[str, tuple[WatchedSeries, list[_State], list[ShiftedLevel]]] = {}

    def __call__(self, series: WatchedSeries) -> Iterator[ShiftedLevel]:
        """Yield the changes of a series, as they would have been told one value after the other."""
        if series.name not in self._first:
            states: list[_State] = []
            self._first[series.name] = series, states, []
            begun = _State(LevelDetector(self._alarms_a_month, wander=self._wander))
            self._first[series.name][2].extend(_changes(series, begun, 0, states, confirm=self._confirm))
        first, states, changes = self._first[series.name]
        count = min(len(first.times), len(series.times))
        unlike = (first.times[:count] != series.times[:count]) | (first.values[:count] != series.values[:count])
        alike = int(unlike.argmax()) if unlike.any() else count
        begin = min(alike // _APART, len(states) - 1) * _APART
        yield from (change for change in changes if change.told < begin)
        yield from _changes(series, copy.deepcopy(states[begin // _APART]), begin, confirm=self._confirm)


def find_changes(series: WatchedSeries, alarms_a_month: float, *, confirm: bool = False) -> list[ShiftedLevel]:
    """Return the changes of a whole recorded series, as they would have been told one value after the other.

    ``confirm``: those that later values confirm, as told then.
    """
    detector = LevelDetector(alarms_a_month, wander=WANDER_OF_EQUALS if confirm else WANDER)
    return list(_changes(series, _State(detector), confirm=confirm))


def _changes(
    series: WatchedSeries, state: _State, begin: int = 0, states: list[_State] | None = None, *, confirm: bool = False
) -> Iterator[ShiftedLevel]:
    """``states``: takes the states before every eighth value."""
    places = {float(time): index for index, time in enumerate(series.times)}
    for index in range(begin, len(series.times)):
        if states is not None and index % _APART == 0:
            states.append(copy.deepcopy(state))
        told = state.detector.add(float(series.times[index]), float(series.values[index]))
        if isinstance(told, LevelChange):
            falls = state.told is not None and max(state.told.ratio, told.ratio) < 1
            if confirm and falls and state.told is not None and not (state.stays or state.over):
                yield replace(state.told, told=index)
            state.told = ShiftedLevel(
                places[told.began_s], places[told.told_s], told.ratio, told.low, told.high, told.sure
            )
            state.stays = state.over = False
            state.explained = bool(cause_of(series, state.told))
            if not confirm:
                yield state.told
        elif isinstance(told, LevelStays) and state.told is not None:
            if confirm and not state.stays:
                yield replace(state.told, told=index)
            state.stays = True
        elif isinstance(told, LevelEnd | LevelReturns):
            state.over = isinstance(told, LevelEnd)
            state.explained = False
        if state.explained and state.stays and state.told is not None and not confirm:
            now = replace(state.told, told=index)
            if is_over(series, now):
                yield now
                state.explained = False


def remember_calibrations() -> None:
    """Calibrate each past once: until its plant begins, a series is the same for all plants and numbers of alarms.

    What was remembered before is forgotten.
    """
    known: dict[tuple[bytes, float, tuple[int, ...], float], Calibration] = {}

    def remembered(past: Numbers, values_a_month: float, begins: Sequence[int], wander: float) -> Calibration:
        key = (past.tobytes(), values_a_month, tuple(begins), wander)
        if key not in known:
            known[key] = calibrate(past, values_a_month, begins, wander)
        return known[key]

    level.calibrate = remembered  # type: ignore[attr-defined,assignment]
