"""The changes of level of a whole recorded series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.watch import level
from strakes.watch.calibration import Calibration, calibrate
from strakes.watch.level import LevelChange, LevelDetector, LevelStays
from strakes.watch.values import Numbers, ShiftedLevel, WatchedSeries


def find_changes(series: WatchedSeries, alarms_a_month: float, *, confirm: bool = False) -> list[ShiftedLevel]:
    """Return the changes of a whole recorded series, as they would have been told one value after the other.

    ``confirm``: those that later values confirm, as told then.
    """
    detector = LevelDetector(alarms_a_month)
    places = {float(time): index for index, time in enumerate(series.times)}
    changes: list[ShiftedLevel] = []
    confirmed: list[bool] = []
    for time, value in zip(series.times.tolist(), series.values.tolist(), strict=True):
        told = detector.add(time, value)
        if isinstance(told, LevelChange):
            changes.append(
                ShiftedLevel(places[told.began_s], places[told.told_s], told.ratio, told.low, told.high, told.sure)
            )
            confirmed.append(not confirm)
        elif isinstance(told, LevelStays) and not confirmed[-1]:
            changes[-1] = replace(changes[-1], told=places[told.confirmed_s])
            confirmed[-1] = True
    return [change for change, sure in zip(changes, confirmed, strict=True) if sure]


def remember_calibrations() -> None:
    """Calibrate each past once: until its plant begins, a series is the same for all plants and numbers of alarms."""
    known: dict[tuple[bytes, float, tuple[int, ...]], Calibration] = {}

    def remembered(past: Numbers, values_a_month: float, begins: Sequence[int] = (0,)) -> Calibration:
        key = (past.tobytes(), values_a_month, tuple(begins))
        if key not in known:
            known[key] = calibrate(past, values_a_month, begins)
        return known[key]

    level.calibrate = remembered  # type: ignore[attr-defined,assignment]
