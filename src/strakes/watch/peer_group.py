"""Normalize the series of a peer group, such as data targets: each is divided by the simultaneous mean of its peers.

A cause common to all members, such as the daily load, cancels; the fall of one member does not. The mean excludes this
member, which would hide a part of its fall, and outliers, which would make the other members seem to rise.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from strakes.stats.change import scale_of
from strakes.watch.values import Numbers, WatchedSeries, WatchEvent

# Minimum number of members: with two, a rate that halves looks like another rate that doubles.
FEWEST_EQUALS = 3
# Number of first values that determine the usual ratio of a member to its peers. The median of 60 values has a standard
# error of 16% of their standard deviation.
_USUAL = 60
# A member is an outlier if it deviates by over 3 spreads, or by over 1 spread in the mean of its last 8 values.
_FAR, _FAR_ON_AVERAGE, _LAST = 3.0, 1.0, 8
# A member has ended if it lacks at least 4 values, and values for over 3 times its longest earlier gap.
_GONE, _LEAST_GONE = 3, 4
# Minimum number of values before a member has ended. With 10, the next gap is the longest by chance in 10%.
_FEWEST = 10

Places = NDArray[np.intp]


def shares_of_equals(series: Sequence[WatchedSeries]) -> list[WatchedSeries]:
    """Return each series divided by the simultaneous mean of the other series.

    Leaves out times with fewer than three members, and times at which half of the members or fewer are above zero.
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
        WatchedSeries(member.name, member.times[keep], share)
        for member, keep, share in zip(series, keeps, shares, strict=True)
    ]


def ended_early(series: Sequence[WatchedSeries]) -> list[WatchEvent]:
    """Return a gap event for each series that ends well before the others."""
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
    """Return for each value the simultaneous geometric mean of the other members, without outliers.

    ``at``: index of the time of each value. ``ends``: index after the last value of each member.
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
    # The difference of two members cancels the common load, and has twice the variance of a single member.
    apart = np.diff(logs[order])[np.diff(at[order]) == 0]
    spread = float(scale_of(apart if len(apart) else off)) / np.sqrt(2)
    alike = above & (np.abs(off) <= _FAR * spread)
    for places in members:
        total = np.cumsum(np.pad(np.clip(off[places] / spread, -_FAR, _FAR), (_LAST, 0)))
        alike[places] &= np.abs(total[_LAST:] - total[:-_LAST]) <= _FAR_ON_AVERAGE * _LAST
    total, count = np.bincount(at, logs * alike)[at] - logs * alike, np.bincount(at, alike)[at] - alike
    return np.exp(np.where(count > 0, total / np.maximum(count, 1), logs - off))


def _medians(values: Numbers, at: Places) -> Numbers:
    """Return for each value the median of all simultaneous values."""
    ordered = values[np.lexsort((values, at))]
    counts = np.bincount(at)
    begins = np.cumsum(counts) - counts
    places = begins + (counts - 1) // 2, begins + counts // 2
    return np.asarray(sum(ordered[np.minimum(place, len(ordered) - 1)] for place in places)[at] / 2)
