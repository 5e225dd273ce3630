"""What else was different when a level changed: a column that was worse than it had been for two months.

The rules were fixed before any recorded year was looked at. A column explains a fall where its median since the change
lies above the 95th percentile of what it was in the 60 days before, and, for columns that are said to matter only
beyond a bound, above that bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from strakes.watch.values import Numbers, ShiftedLevel, WatchedSeries

_BEFORE_S = 60 * 86400.0
# So many of the last values tell whether what explains a change is over.
_LAST = 8
_PERCENTILE = 95
# Fewer values before or after say nothing of what is usual.
_FEWEST_BEFORE, _FEWEST_AFTER = 10, 2


@dataclass(frozen=True)
class Cause:
    """Columns whose names match ``pattern`` are ``words``; they matter only above ``least``."""

    pattern: str
    words: str
    least: float = -np.inf


CAUSES = (
    Cause("fshealth_ost_overloaded_ost_count", "failed-over data targets", 0.5),
    Cause("*overloaded_oss_count", "failed-over data targets", 0.5),
    Cause("*ost_avg_full_pct", "fullness of the data targets", 70.0),
    Cause("*ost_most_full_pct", "fullness of the fullest data target", 80.0),
    Cause("fs_ave_mds_cpu", "load of the metadata servers"),
    Cause("fs_ave_oss_cpu", "load of the data servers"),
    Cause("fs_ave_open_ops_per_sec", "metadata operations of others"),
    Cause("jobsdb_concurrent_jobs", "jobs at the same time"),
)


def known_cause(column: str) -> Cause | None:
    """Return the cause that a column is, None for one that is not known to be any."""
    return next((cause for cause in CAUSES if fnmatchcase(column, cause.pattern)), None)


def cause_of(series: WatchedSeries, change: ShiftedLevel, also: Iterable[str] = ()) -> str:
    """Return what explains a change to the worse, in words; empty where nothing does.

    ``also``: further columns that may.
    """
    return _explains(series, change, also, change.since) if change.ratio < 1 else ""


def _explains(series: WatchedSeries, change: ShiftedLevel, also: Iterable[str], first: int) -> str:
    """``first``: of the values since the change that are looked at."""
    for column, values in series.causes.items():
        cause = known_cause(column) or (Cause(column, column) if column in also else None)
        if cause is not None and _is_worse(series.times, values, change, cause.least, first):
            return cause.words
    return ""


def is_over(series: WatchedSeries, change: ShiftedLevel, also: Iterable[str] = ()) -> bool:
    """Tell whether what explained a change is over while the change stays; ``change.told``: the last value so far.

    When a change is told it has few values, and what is usual for long may have been unusual for these.
    """
    last = max(change.since, change.told + 1 - _LAST)
    return change.told - change.since >= _LAST and not _explains(series, change, also, last)


def around(
    times: Numbers, values: Numbers, change: ShiftedLevel, first: int | None = None
) -> tuple[Numbers, Numbers] | None:
    """Return what a column was in the two months before a change and from it to its telling; None: too little.

    ``first``: of the values since the change, where not all of them are asked for.
    """
    before = values[(times >= times[change.since] - _BEFORE_S) & (times < times[change.since])]
    after = values[change.since if first is None else first : change.told + 1]
    before, after = before[np.isfinite(before)], after[np.isfinite(after)]
    return None if len(before) < _FEWEST_BEFORE or len(after) < _FEWEST_AFTER else (before, after)


def _is_worse(times: Numbers, values: Numbers, change: ShiftedLevel, least: float, first: int) -> bool:
    known = around(times, values, change, first)
    if known is None:
        return False
    before, after = known
    level = float(np.median(after))
    return level > least and level > float(np.percentile(before, _PERCENTILE))
