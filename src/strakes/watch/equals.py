"""Series of equals, such as data targets: each as its share of what the others do at the same time.

What slows all of them, such as the load of the day, leaves the shares as they are; a member that falls behind does not.
A member is no part of what it is held against, or it would seem to fall less far than it does. Nor is one of the others
that is far from what is usual for it, or the rest would seem to rise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from strakes.statistics.change import scale_of
from strakes.watch.values import Numbers, WatchedSeries, WatchEvent

# Of two, nobody can tell which is the slow one.
FEWEST_EQUALS = 3
# Equals need not be equally fast: so many of its values tell what is usual for a member.
_USUAL = 60
# One says nothing of what all do that is so many spreads off, or was on average over its last values.
_FAR, _FAR_ON_AVERAGE, _LAST = 3.0, 1.0, 8
# One is gone that lacks so many times as many values as it ever lacked in a row before, but more than a few.
_GONE, _LEAST_GONE = 3, 4
# Fewer values do not tell how many a member usually lacks.
_FEWEST = 10

Places = NDArray[np.intp]


def shares_of_equals(series: Sequence[WatchedSeries]) -> list[WatchedSeries]:
    """Return each series over the middle of the others at the same time.

    Times are left out that fewer than three share, and those at which no more than half are above zero.
    """
    values = np.concatenate([member.values for member in series])
    at = np.unique(np.concatenate([member.times for member in series]), return_inverse=True)[1]
    counts = np.bincount(at)
    kept = ((counts >= FEWEST_EQUALS) & (2 * np.bincount(at, values > 0) > counts))[at]
    keeps = np.split(kept, np.cumsum([len(member.times) for member in series])[:-1])
    ends = np.cumsum([np.count_nonzero(keep) for keep in keeps])[:-1]
    middles = _middles(values[kept], at[kept], ends) if kept.any() else values[kept]
    shares = np.split(values[kept] / middles, ends)
    return [
        replace(
            member,
            times=member.times[keep],
            values=share,
            causes={column: amounts[keep] for column, amounts in member.causes.items()},
        )
        for member, keep, share in zip(series, keeps, shares, strict=True)
    ]


def ended_early(series: Sequence[WatchedSeries]) -> list[WatchEvent]:
    """Return the members that have no values any more while others go on, each as a gap."""
    moments, counts = np.unique(np.concatenate([np.unique(member.times) for member in series]), return_counts=True)
    moments = moments[counts >= 2]
    events = []
    for member in series:
        places = np.searchsorted(moments, member.times[np.isin(member.times, moments)])
        if len(places) < _FEWEST:
            continue
        gone = max(_LEAST_GONE, _GONE * int(np.diff(places).max() - 1) + 1)
        if len(moments) - 1 - places[-1] >= gone:
            last = datetime.fromtimestamp(float(moments[-1]), UTC)
            text = f"{member.name} has no more values; others have values until {last:%Y-%m-%d %H:%M:%S} UTC"
            began_s, told_s = float(moments[places[-1] + 1]), float(moments[places[-1] + gone])
            events.append(WatchEvent("gap", member.name, began_s, told_s, text))
    return events


def _middles(values: Numbers, at: Places, ends: Places) -> Numbers:
    """Return what the others do when each value was taken: their mean on a log scale, without those that are far off.

    ``at``: which are taken at the same time. ``ends``: of members.
    """
    above = values > 0
    logs = np.log(np.where(above, values, np.finfo(float).tiny))
    off = logs - _medians(logs, at)
    first = np.zeros(len(values), dtype=bool)
    members = np.split(np.arange(len(values)), ends)
    for places in members:
        early = places[above[places]][:_USUAL]
        first[early] = True
        logs[places] -= np.median(off[early]) if len(early) else 0.0
    off = logs - _medians(logs, at)
    order = np.flatnonzero(first)[np.argsort(at[first], kind="stable")]
    # The difference of two members has no load in it, and twice the variance of each.
    apart = np.diff(logs[order])[np.diff(at[order]) == 0]
    spread = float(scale_of(apart if len(apart) else off)) / np.sqrt(2)
    alike = above & (np.abs(off) <= _FAR * spread)
    for places in members:
        total = np.cumsum(np.pad(np.clip(off[places] / spread, -_FAR, _FAR), (_LAST, 0)))
        alike[places] &= np.abs(total[_LAST:] - total[:-_LAST]) <= _FAR_ON_AVERAGE * _LAST
    total, count = np.bincount(at, logs * alike)[at] - logs * alike, np.bincount(at, alike)[at] - alike
    return np.exp(np.where(count > 0, total / np.maximum(count, 1), logs - off))


def _medians(values: Numbers, at: Places) -> Numbers:
    """Return for each value the median of all that were taken at the same time."""
    ordered = values[np.lexsort((values, at))]
    counts = np.bincount(at)
    begins = np.cumsum(counts) - counts
    places = begins + (counts - 1) // 2, begins + counts // 2
    return np.asarray(sum(ordered[np.minimum(place, len(ordered) - 1)] for place in places)[at] / 2)
