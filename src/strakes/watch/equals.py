"""Series of equals, such as data targets: each as its share of what all do at the same time.

What slows all of them, such as the load of the day, leaves the shares as they are; a member that falls behind does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from strakes.watch.values import WatchedSeries

# Of two, nobody can tell which is the slow one.
FEWEST_EQUALS = 3


def shares_of_equals(series: Sequence[WatchedSeries]) -> list[WatchedSeries]:
    """Return each series over the median of all at the same time; times that fewer than three share are left out."""
    by_time: dict[float, list[float]] = {}
    for member in series:
        for time_s, value in zip(member.times.tolist(), member.values.tolist(), strict=True):
            by_time.setdefault(time_s, []).append(value)
    middle = {time_s: float(np.median(values)) for time_s, values in by_time.items() if len(values) >= FEWEST_EQUALS}
    return [_share(member, middle) for member in series]


def _share(member: WatchedSeries, middle: dict[float, float]) -> WatchedSeries:
    kept = np.array([middle.get(time_s, 0.0) > 0 for time_s in member.times.tolist()], dtype=bool)
    times = member.times[kept]
    medians = np.array([middle[time_s] for time_s in times.tolist()])
    causes = {column: values[kept] for column, values in member.causes.items()}
    return replace(member, times=times, values=member.values[kept] / medians, causes=causes)
