"""A recorded year of daily benchmarks with planted changes, and the score of a detector on it.

A series contains the rates of one benchmark on one file system, with at least 100 runs. The even and the odd half of
the series are watched separately. An alarm is a detected decrease. Alarms of one file system within 3 days count as
one.

Planted changes are decreases by 10, 20 or 40 % from a random day on, or by 40 % for one week. They begin between 35 %
and 80 % of a series. A change is found by an alarm within 60 days (for a week: 14 days) that dates the change at most
14 days too early.

Late alarms with the right date, and alarms that the unchanged series also gives, do not count. All other alarms are
false. Precision is found / (found + false).
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from strakes.watch.values import WatchedSeries

DAY_S = 86400.0
MONTH_S = 30.4375 * DAY_S
KINDS = (("level", 0.9), ("level", 0.8), ("level", 0.6), ("week", 0.6))
_FEWEST_RUNS = 100
_TIME, _VALUE = "darshan_start_time", "darshan_agg_perf_by_slowest_posix"
_FIRST, _LAST = 0.35, 0.80
_WITHIN_S = {"level": 60 * DAY_S, "week": 14 * DAY_S}
_NEAR_S = 14 * DAY_S
_ONE_ALARM_S = 3 * DAY_S


@dataclass(frozen=True)
class ShiftedLevel:
    """A level shift that begins at index ``since`` and was detected at index ``told``.

    ``ratio``: level after / level before. ``low`` to ``high``: 90 % interval of the ratio.
    """

    since: int
    told: int
    ratio: float
    low: float
    high: float


Detector = Callable[[WatchedSeries], Iterable[ShiftedLevel]]


@dataclass(frozen=True)
class Plant:
    """A planted change: values from index ``begin`` up to, but not including, ``end`` are multiplied by ``ratio``."""

    kind: str
    begin: int
    end: int
    ratio: float


@dataclass(frozen=True)
class Score:
    """Results for planted changes of one kind. ``held``: found changes whose size is in the reported interval."""

    planted: int = 0
    delays_s: tuple[float, ...] = ()
    false: int = 0
    held: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(
            self.planted + other.planted,
            self.delays_s + other.delays_s,
            self.false + other.false,
            self.held + other.held,
        )

    @property
    def found(self) -> float:
        """Share of the planted changes that were found."""
        return len(self.delays_s) / self.planted

    @property
    def precision(self) -> float:
        """Share of the counted alarms that found a planted change (1 without alarms)."""
        reported = len(self.delays_s) + self.false
        return len(self.delays_s) / reported if reported else 1.0

    @property
    def coverage(self) -> float:
        """Share of the found changes whose size lies in the reported interval."""
        return self.held / max(len(self.delays_s), 1)

    @property
    def delay_days(self) -> float:
        """Median delay in days, or NaN if nothing was found."""
        return median(self.delays_s) / DAY_S if self.delays_s else math.nan


def read_series(path: Path) -> list[WatchedSeries]:
    with gzip.open(path, "rt", newline="") as file:
        header, *lines = csv.reader(file)
    # The first column may be an index without a header.
    rows = [dict(zip(header, line[len(line) - len(header) :], strict=True)) for line in lines]
    groups: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        if _number(row[_VALUE]) > 0 and math.isfinite(_number(row[_TIME])):
            groups.setdefault(_name(row), []).append(row)
    series = []
    for name, members in sorted(groups.items()):
        if len(members) >= _FEWEST_RUNS:
            members.sort(key=lambda row: float(row[_TIME]))
            times, values = (np.array([float(row[column]) for row in members]) for column in (_TIME, _VALUE))
            series.append(WatchedSeries(name, times, values))
    return series


def _name(row: Mapping[str, str]) -> str:
    read, written = (_number(row[f"darshan_tot_bytes_{way}_posix"]) for way in ("read", "written"))
    direction = "read" if read > written else "write"
    files = "files" if _number(row[f"darshan_biggest_{direction}_api_files"]) > 1 else "file"
    # Burst buffers have no name. Use their mount point without the leading job number.
    place = row["_file_system"] or row[f"darshan_biggest_{direction}_fs"].rpartition("/")[2].lstrip("0123456789_")
    application = row["darshan_app"].rpartition("/")[2]
    return f"{place} {application} {direction} {files} {_number(row['darshan_nprocs']):.0f}"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def plants(one: WatchedSeries, seed: Sequence[int], count: int) -> Iterator[Plant]:
    """Yield ``count`` changes of each kind to plant in a series."""
    for kind, ratio in KINDS:
        generator = np.random.default_rng([*seed, round(ratio * 100), len(kind)])
        for share in _FIRST + (_LAST - _FIRST) * generator.random(count):
            day = one.times[0] + share * (one.times[-1] - one.times[0])
            begin = int(np.searchsorted(one.times, day))
            end = int(np.searchsorted(one.times, day + 7 * DAY_S)) if kind == "week" else len(one.times)
            yield Plant(kind, begin, end, ratio)


def score(one: WatchedSeries, planted: Iterable[Plant], detector: Detector) -> dict[tuple[str, float], Score]:
    """Return the score of a detector by kind of change. Only one ``planted`` change at a time is in the series."""
    own = [change for change in detector(one) if change.ratio < 1]
    scores = dict.fromkeys(KINDS, Score())
    for plant in planted:
        values = one.values.copy()
        values[plant.begin : plant.end] *= plant.ratio
        trial = replace(one, values=values)
        begun_s = float(trial.times[min(plant.begin, len(trial.times) - 1)])
        found: list[tuple[float, bool]] = []
        false = 0
        for change in detector(trial):
            if change.ratio >= 1:
                continue
            since_s, told_s = float(trial.times[change.since]), float(trial.times[change.told])
            if begun_s <= told_s <= begun_s + _WITHIN_S[plant.kind] and since_s >= begun_s - _NEAR_S:
                found.append((told_s - begun_s, change.low <= plant.ratio <= change.high))
            elif not any(abs(float(one.times[each.since]) - since_s) <= _NEAR_S for each in own):
                # An alarm that is late, but dates the change correctly, is not false.
                false += not (abs(since_s - begun_s) <= _NEAR_S and told_s >= begun_s)
        delays = tuple(delay_s for delay_s, _ in found[:1])
        scores[plant.kind, plant.ratio] += Score(1, delays, false, sum(held for _, held in found[:1]))
    return scores


def alarms_a_month(series: Sequence[WatchedSeries], detector: Detector) -> float:
    """Return the number of alarms per month in these series without planted changes."""
    alarms: dict[str, list[float]] = {}
    for one in series:
        for change in detector(one):
            if change.ratio < 1:
                alarms.setdefault(one.name.split(" ")[0], []).append(float(one.times[change.since]))
    count = sum(
        1
        for of_one in alarms.values()
        for before, now in zip([-math.inf, *sorted(of_one)], sorted(of_one), strict=False)
        if now - before > _ONE_ALARM_S
    )
    first, last = min(one.times[0] for one in series), max(one.times[-1] for one in series)
    return count * MONTH_S / float(last - first)
