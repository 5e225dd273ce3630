"""Replay a CSV file: run its columns through the detectors, row by row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from strakes.base.errors import BadInputError
from strakes.base.units import counted, format_duration
from strakes.stats.change import LEARN
from strakes.watch.causes import cause_of, is_over
from strakes.watch.level import LearnedTooLittle, LevelChange, LevelDetector, LevelEnd
from strakes.watch.outages import names
from strakes.watch.peer_group import FEWEST_EQUALS, ended_early, shares_of_equals
from strakes.watch.table import is_missing, open_table, parse_time, plain_number
from strakes.watch.values import ShiftedLevel, WatchedSeries, WatchEvent
from strakes.watch.watch import ALARMS_A_MONTH, FOR_CHANCE, FOR_CHANCE_OF_EQUALS, GAIN, level_event

# Largest accepted value; counters have 64 bits. Powers and sums of such values are finite.
_MOST_VALUE = 2.0**64
_LAST_S = 253402300799.0
_MONTH_S = 30.4375 * 86400.0
# Changes to the worse of one file that began within three days are one alarm.
ONE_ALARM_S = 3 * 86400.0
# Accepted number and share of rows without a number, such as a word on a day without a measurement.
_MOST_UNREAD, _MOST_UNREAD_SHARE = 3, 0.01
# Time, value and causes.
_Row = tuple[float, float, list[float]]


@dataclass(frozen=True)
class Columns:
    """Roles of the columns. ``causes``: further columns that may explain a change."""

    time: str
    value: str
    by: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replay:
    """Result of a replay. ``learning``: series too short for a test. ``passed_over``: rows without a time or value."""

    events: tuple[WatchEvent, ...]
    series: int
    learning: tuple[str, ...]
    passed_over: int
    months: float

    @property
    def alarms(self) -> int:
        """Return the number of unexplained changes to the worse; simultaneous ones count once."""
        began = sorted(event.began_s for event in self.events if event.alarm)
        return sum(1 for before, now in zip([-math.inf, *began], began, strict=False) if now - before > ONE_ALARM_S)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the omissions and assumptions, one line each."""
        notes = []
        if self.learning:
            notes.append(f"too short, with fewer than {LEARN} values: {names(self.learning)}")
        if self.passed_over:
            notes.append(f"{counted(self.passed_over, 'row')} skipped: no time or no value")
        return tuple(notes)

    @property
    def summary(self) -> str:
        """Return a summary in one line."""
        gains = sum(event.kind != "early-warning" and event.cause == GAIN for event in self.events)
        explained = sum(event.kind != "early-warning" and event.cause not in ("", GAIN) for event in self.events)
        long, a_month = format_duration(self.months * _MONTH_S), ""
        if self.months >= 1:
            long, a_month = f"{self.months:.1f} months", f" ({self.alarms / self.months:.2f} a month)"
        return (
            f"{self.series} series over {long}: {counted(self.alarms, 'alarm')} without a cause{a_month}, "
            f"{counted(explained, 'change')} with a cause, {counted(gains, 'gain')}"
        )


def read_series(path: Path, columns: Columns) -> tuple[list[WatchedSeries], int]:
    """Return the series of a CSV file and the number of skipped rows. Raises BadInputError."""
    table = open_table(path, columns.time, columns.value, columns.by, columns.causes)
    header = table.header
    places = {name: header.index(name) for name in (columns.time, columns.value, *columns.by, *table.causes)}
    groups: dict[str, list[_Row]] = {}
    passed_over, number, unread, example = 0, 0, 0, ""
    for number, row in table.rows():
        if row is None:
            passed_over += 1
            continue
        time_text, value_text = row[places[columns.time]], row[places[columns.value]]
        time_s, value = parse_time(time_text), plain_number(value_text)
        if not math.isfinite(time_s) or not math.isfinite(value):
            passed_over += 1
            if not (is_missing(value_text) if math.isfinite(time_s) else is_missing(time_text)):
                unread += 1
                example = (
                    example or f"row {number} has {columns.time} = {time_text!r}, {columns.value} = {value_text!r}"
                )
            continue
        explained = [plain_number(row[places[column]]) for column in table.causes]
        if abs(time_s) > _LAST_S or any(abs(amount) > _MOST_VALUE for amount in (value, *explained)):
            why = "a time is beyond the year 9999, or a value beyond 2^64"
            raise BadInputError("the file has a number that is too large", where=f"{path}:{number + 1}", why=why)
        name = " ".join(row[places[column]].rpartition("/")[2] or "-" for column in columns.by) or columns.value
        groups.setdefault(name, []).append((time_s, value, explained))
    remedy = "Write numbers as 1234.5, times as Unix time or 2026-12-31T23:59:00Z, and leave unknown values empty."
    if not groups:
        raise BadInputError("no row has a time and a value", where=str(path), why=example, remedy=remedy)
    if unread > max(_MOST_UNREAD, _MOST_UNREAD_SHARE * number):
        why = f"{unread} of {number} rows; {example}"
        raise BadInputError("rows cannot be read", where=str(path), why=why, remedy=remedy)
    return [_series(name, rows, table.causes) for name, rows in sorted(groups.items())], passed_over


def replay(
    path: Path,
    columns: Columns,
    alarms_a_month: float = ALARMS_A_MONTH,
    *,
    worse_up: bool = False,
    equals: bool = False,
) -> Replay:
    """Run the detector of levels over every series of the file. Raises BadInputError.

    ``equals``: the series form a peer group, and each is divided by the simultaneous mean of its peers.
    """
    series, passed_over = read_series(path, columns)
    events: list[WatchEvent] = []
    if equals:
        events += ended_early(series)
        counts = Counter(time_s for member in series for time_s in member.times.tolist())
        together = max(counts.values()) >= FEWEST_EQUALS
        series = [share for share in shares_of_equals(series) if len(share.times)]
        if not series:
            if together:
                why = f"where {FEWEST_EQUALS} or more series have values, half of them or more are zero or negative"
                remedy = "Give --value a column whose values are above zero, such as rates or times."
            else:
                why = f"no time has values of {FEWEST_EQUALS} or more series"
                remedy = (
                    "Give --by the column that names the series that should behave alike; "
                    "their rows need the same times."
                )
            raise BadInputError(
                "the series cannot be compared with each other", where=str(path), why=why, remedy=remedy
            )
    learning = []
    for_chance = FOR_CHANCE_OF_EQUALS if equals else FOR_CHANCE
    allowed = for_chance * alarms_a_month / len(series)
    for each in series:
        try:
            events += changes_of(each, allowed, worse_up=worse_up, also=columns.causes, confirm=equals)
        except LearnedTooLittle:
            learning.append(each.name)
    span = max(float(each.times[-1]) for each in series) - min(float(each.times[0]) for each in series)
    events.sort(key=lambda event: event.told_s)
    return Replay(tuple(events), len(series), tuple(learning), passed_over, span / _MONTH_S)


def changes_of(
    series: WatchedSeries,
    alarms_a_month: float,
    *,
    worse_up: bool,
    also: Sequence[str] = (),
    confirm: bool = False,
) -> list[WatchEvent]:
    """Return the changes of one series with their causes and ends. Raises LearnedTooLittle.

    A cause that ends before the change does is dropped. ``confirm``: the series is a member of a peer group, and a
    confirmed fall is a slow target.
    """
    positive = bool(np.all(series.values > 0))
    detector = LevelDetector(alarms_a_month, scale="log" if positive else "plain")
    events: list[WatchEvent] = []
    open_at: dict[str, int] = {}
    explained: ShiftedLevel | None = None
    for told_at, (time_s, value) in enumerate(zip(series.times.tolist(), series.values.tolist(), strict=True)):
        told = detector.add(time_s, value)
        if told is not None and told.grade == "confirmed" and (warned := open_at.pop("early", None)) is not None:
            events[warned] = replace(events[warned], ended_s=time_s)
        if isinstance(told, LevelChange):
            since = int(np.searchsorted(series.times, told.began_s))
            # A cause explains a change to the worse, in either direction.
            ratio = 1 / told.ratio if worse_up and told.ratio > 0 else told.ratio
            change = ShiftedLevel(since, told_at, ratio, told.low, told.high)
            cause = cause_of(series, change, also)
            event = level_event(series.name, told, worse_up=worse_up, cause=cause, of_equals=confirm)
            if told.grade == "confirmed":
                explained = change if cause else None
                if confirm and event.alarm:
                    event = replace(event, kind="slow-target")
            open_at[told.grade] = len(events)
            events.append(event)
        elif isinstance(told, LevelEnd) and (ended := open_at.pop(told.grade, None)) is not None:
            explained = None if told.grade == "confirmed" else explained
            events[ended] = replace(events[ended], ended_s=max(told.ended_s, events[ended].began_s))
        if explained is not None and is_over(series, replace(explained, told=told_at), also):
            events[open_at["confirmed"]] = replace(events[open_at["confirmed"]], cause="", told_s=time_s)
            explained = None
    if detector.learning:
        raise LearnedTooLittle
    return events


def _series(name: str, rows: list[tuple[float, float, list[float]]], explaining: Sequence[str]) -> WatchedSeries:
    rows.sort(key=lambda row: row[0])
    times, values = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    # Remove duplicate rows, which come from overlapping exports.
    kept = np.sort(np.unique(np.stack([times, values]), axis=1, return_index=True)[1])
    causes: Mapping[str, np.ndarray[tuple[int], np.dtype[np.float64]]] = {
        column: np.array([rows[row][2][place] for row in kept.tolist()]) for place, column in enumerate(explaining)
    }
    return WatchedSeries(name, times[kept], values[kept], causes)
