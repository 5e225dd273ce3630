"""Which alarms the year gives as it was recorded, and what speaks for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from bench.watch.yardstick import DAY_S, Detector
from strakes.watch.causes import cause_of
from strakes.watch.values import ShiftedLevel, WatchedSeries

_NEAR_S = 14 * DAY_S
# Runs on both sides of a change that are looked at afterwards.
_AFTERWARDS = 30


def alarms_of(
    series: Sequence[WatchedSeries],
    changes: Mapping[str, Sequence[ShiftedLevel]],
    rivals: Sequence[Mapping[str, Detector]],
) -> Iterator[tuple[str, ...]]:
    """Yield day, series, change as told, change as seen afterwards, cause, and which rivals tell a fall there.

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
                rows.append(
                    (day, one.name, f"{change.ratio - 1:+.0%}", _afterwards(one, change), cause, ", ".join(also))
                )
    yield from sorted(rows)


def _same(one: WatchedSeries, change: ShiftedLevel, other: ShiftedLevel) -> bool:
    return other.ratio < 1 and abs(float(one.times[other.since] - one.times[change.since])) <= _NEAR_S


def _afterwards(one: WatchedSeries, change: ShiftedLevel) -> str:
    """Return the median of the runs from the change on over that of as many before."""
    after = one.values[change.since : change.since + _AFTERWARDS]
    before = one.values[max(0, change.since - _AFTERWARDS) : change.since]
    return f"{float(np.median(after)) / float(np.median(before)) - 1:+.0%}" if len(before) else ""
