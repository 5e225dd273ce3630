"""Recorded columns that explain a level shift, such as the load or the fullness of the servers.

A column explains a fall if its median since the change exceeds both its 95th percentile in the 60 days before and the
bound of its ``Cause``. The rules were fixed before any recorded year was examined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from strakes.watch.values import Numbers, ShiftedLevel, WatchedSeries

_BEFORE_S = 60 * 86400.0
# Number of the last values that decide whether a cause is over.
_LAST = 8
_PERCENTILE = 95
# Fewest values before and after a change for a comparison.
_FEWEST_BEFORE, _FEWEST_AFTER = 10, 2


@dataclass(frozen=True)
class Cause:
    """Columns whose names match ``pattern``, described by ``words``; only values above ``least`` matter."""

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
    """Return the cause of a column by its name, or None."""
    return next((cause for cause in CAUSES if fnmatchcase(column, cause.pattern)), None)


def cause_of(series: WatchedSeries, change: ShiftedLevel, also: Iterable[str] = ()) -> str:
    """Return the explanation of a change to the worse as text, or "".

    ``also``: further columns that may explain it.
    """
    return _explains(series, change, also, change.since) if change.ratio < 1 else ""


def _explains(series: WatchedSeries, change: ShiftedLevel, also: Iterable[str], first: int) -> str:
    """Compare the values from index ``first`` on with those before the change."""
    for column, values in series.causes.items():
        cause = known_cause(column) or (Cause(column, column) if column in also else None)
        if cause is not None and _is_worse(series.times, values, change, cause.least, first):
            return cause.words
    return ""


def is_over(series: WatchedSeries, change: ShiftedLevel, also: Iterable[str] = ()) -> bool:
    """Return whether the cause of a change has ended while the change lasts; ``change.told`` is the last index.

    A change is reported after few values, so a coincidence may explain it at first.
    """
    last = max(change.since, change.told + 1 - _LAST)
    return change.told - change.since >= _LAST and not _explains(series, change, also, last)


def around(
    times: Numbers, values: Numbers, change: ShiftedLevel, first: int | None = None
) -> tuple[Numbers, Numbers] | None:
    """Return the values of a column in the 60 days before a change and since the change, or None if there are too few.

    ``first``: index of the first value to include after the change (default: all).
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
