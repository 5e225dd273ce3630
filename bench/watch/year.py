"""Which alarms the year gives as it was recorded, and what speaks for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from bench.watch.yardstick import DAY_S, Detector
from strakes.units import counted
from strakes.watch.causes import around, cause_of, known_cause
from strakes.watch.values import ShiftedLevel, WatchedSeries

_NEAR_S = 14 * DAY_S
# Runs on both sides of a change that are looked at afterwards.
_AFTERWARDS = 30


def alarms_of(
    series: Sequence[WatchedSeries],
    changes: Mapping[str, Sequence[ShiftedLevel]],
    rivals: Sequence[Mapping[str, Detector]],
) -> Iterator[tuple[str, ...]]:
    """Yield day, series, change as told, change as seen afterwards, cause, rivals that tell a fall there, nearest column.

    ``rivals``: those for the even and for the odd series.
    """
    rows = []
    for number, one in enumerate(series):
        others = {name: list(detector(one)) for name, detector in rivals[number % 2].items()}
        for change in changes[one.name]:
            if change.ratio < 1:
                also = [name for name, told in others.items() if any(_same(one, change, other) for other in told)]
                day = datetime.fromtimestamp(float(one.times[change.since]), UTC).date().isoformat()
                cause = cause_of(one, change) or "none in the columns"
                told = f"{change.ratio - 1:+.0%}"
                rows.append(
                    (day, one.name, told, _afterwards(one, change), cause, ", ".join(also), _nearest(one, change))
                )
    yield from sorted(rows)


def _same(one: WatchedSeries, change: ShiftedLevel, other: ShiftedLevel) -> bool:
    return other.ratio < 1 and abs(float(one.times[other.since] - one.times[change.since])) <= _NEAR_S


def _nearest(one: WatchedSeries, change: ShiftedLevel) -> str:
    """Return which column comes nearest to explaining a change, how near, and how many columns could."""
    places = []
    for column, values in one.causes.items():
        cause, known = known_cause(column), around(one.times, values, change)
        if cause is not None and known is not None:
            places.append((float(np.mean(known[0] < np.median(known[1]))), cause.words))
    if not places:
        return "no column has values"
    share, words = max(places)
    return f"{words} {share:.0%}, of {counted(len(places), 'column')}"


def _afterwards(one: WatchedSeries, change: ShiftedLevel) -> str:
    """Return the median of the runs from the change on over that of as many before."""
    after = one.values[change.since : change.since + _AFTERWARDS]
    before = one.values[max(0, change.since - _AFTERWARDS) : change.since]
    return f"{float(np.median(after)) / float(np.median(before)) - 1:+.0%}" if len(before) else ""
