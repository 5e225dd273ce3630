"""Replay a CSV file: split its rows into series, and run the detector of level shifts over each series.

Numbers must have a decimal point and no unit; times must be Unix time or ISO 8601.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np

from strakes.base.errors import BadInputError, did_you_mean
from strakes.base.units import counted, format_duration
from strakes.stats.change import LEARN
from strakes.watch.level import MONTH_S, LevelDetector
from strakes.watch.outages import names
from strakes.watch.recorded import MOST_LINE, open_lines, unix_seconds
from strakes.watch.values import WatchedSeries, WatchEvent
from strakes.watch.watch import ALARMS_A_MONTH, FOR_CHANCE

MOST_ROWS = 2_000_000  # Maximum number of rows: a year of values per minute in four series. Memory grows in proportion.
_ONE_ALARM_S = 3 * 86400.0
# Accepted times: years 1980 to 9999. Smaller numbers are probably days of a spreadsheet. datetime has no later years.
_EARLIEST_S, _LAST_S = 315532800.0, 253402300799.0
# A file is refused if more than 3 rows, and more than 1 % of all rows, are unreadable.
_MOST_UNREAD, _MOST_UNREAD_SHARE = 3, 0.01
_MOST_VALUE = 2.0**64  # Largest accepted value: counters have 8 bytes. Powers of larger values could overflow.
_SEPARATORS = (",", ";", "\t", "|")
_MISSING = frozenset(("", "-", "na", "n/a", "nan", "nat", "null", "none"))


@dataclass(frozen=True)
class Columns:
    """Names of the columns with times and values. ``by``: columns that distinguish the series in one file."""

    time: str
    value: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replay:
    """Result of a replay. ``learning``: names of series too short for a test. ``passed_over``: number of skipped rows.

    ``impossible``: text about negative values that were ignored.
    """

    events: tuple[WatchEvent, ...]
    series: int
    learning: tuple[str, ...]
    passed_over: int
    months: float
    impossible: str = ""

    @property
    def alarms(self) -> int:
        """Return the number of alarms. Changes to the worse within three days count as one alarm."""
        began = sorted(event.began_s for event in self.events if event.alarm)
        return sum(1 for before, now in zip([-math.inf, *began], began, strict=False) if now - before > _ONE_ALARM_S)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return lines about short series, skipped rows and ignored values."""
        short = f"too short, with fewer than {LEARN} values: {names(self.learning)}"
        skipped = f"{counted(self.passed_over, 'row')} skipped: no time or no value"
        lines = (short if self.learning else "", skipped if self.passed_over else "", self.impossible)
        return tuple(line for line in lines if line)

    @property
    def summary(self) -> str:
        """Return a summary in one line."""
        gains = sum(event.kind != "early-warning" and event.gain for event in self.events)
        long, a_month = format_duration(self.months * MONTH_S), ""
        if self.months >= 1:
            long, a_month = f"{self.months:.1f} months", f" ({self.alarms / self.months:.2f} a month)"
        return f"{self.series} series over {long}: {counted(self.alarms, 'alarm')}{a_month}, {counted(gains, 'gain')}"


def read_series(path: Path, columns: Columns) -> tuple[list[WatchedSeries], int, str]:
    """Return the series of a CSV file, the number of skipped rows, and a text about ignored values.

    Raises BadInputError if the file cannot be read.
    """
    separator, header = _header(path, columns)
    places = {name: header.index(name) for name in (columns.time, columns.value, *columns.by)}
    groups: dict[str, list[tuple[float, float]]] = {}
    passed_over, number, unread, example = 0, 0, 0, ""
    for number, row in _rows(path, separator, len(header)):
        if row is None:
            passed_over += 1
            continue
        time_text, value_text = row[places[columns.time]], row[places[columns.value]]
        time_s, value = _parse_time(time_text), _number(value_text)
        if not math.isfinite(time_s) or not math.isfinite(value):
            passed_over += 1
            cell = value_text if math.isfinite(time_s) else time_text
            if cell.strip().casefold() not in _MISSING:
                unread += 1
                named = f"row {number} has {columns.time} = {time_text!r}, {columns.value} = {value_text!r}"
                example = example or named
            continue
        if not 0 <= time_s <= _LAST_S or abs(value) > _MOST_VALUE:
            why = "a time is not in the years 1970 to 9999, or a value is beyond 2^64"
            raise BadInputError("the file has a number that is too large", where=f"{path}:{number + 1}", why=why)
        name = " ".join(row[places[column]].rpartition("/")[2][:200] or "-" for column in columns.by) or columns.value
        groups.setdefault(name, []).append((time_s, value))
    remedy = "Write numbers as 1234.5, times as Unix time or 2026-12-31T23:59:00Z, and leave unknown values empty."
    if not groups:
        raise BadInputError("no row has both a time and a value", where=str(path), why=example, remedy=remedy)
    if unread > max(_MOST_UNREAD, _MOST_UNREAD_SHARE * number):
        why = f"{unread} of {number} rows; {example}"
        raise BadInputError("rows cannot be read", where=str(path), why=why, remedy=remedy)
    impossible = [row for rows in groups.values() for row in _drop_impossible(rows)]
    first = [
        f"{value:g} at {datetime.fromtimestamp(time_s, UTC):%Y-%m-%d %H:%M:%S}" for time_s, value in impossible[:3]
    ]
    text = f"{counted(len(impossible), 'impossible value')} left out: {', '.join(first)}"
    series = [_series(name, rows) for name, rows in sorted(groups.items())]
    return series, passed_over, text if impossible else ""


def _drop_impossible(rows: list[tuple[float, float]]) -> list[tuple[float, float]]:
    negative = [row for row in rows if row[1] < 0]
    if len(negative) > _MOST_UNREAD_SHARE * len(rows):
        return []
    rows[:] = [row for row in rows if row[1] >= 0]
    return negative


def _header(path: Path, columns: Columns) -> tuple[str, list[str]]:
    with open_lines(path) as lines:
        first = next(lines, "").strip("\r\n")
    if not first.strip():
        raise BadInputError("the file is empty", where=str(path))
    asked = (columns.time, columns.value, *columns.by)
    headers: dict[str, list[str]] = {separator: [] for separator in _SEPARATORS}
    for separator in _SEPARATORS:
        with suppress(csv.Error):
            headers[separator] = [cell.strip() for cell in next(csv.reader([first], delimiter=separator), [])]
    separator = max(headers, key=lambda each: (sum(column in headers[each] for column in asked), len(headers[each])))
    header = headers[separator]
    for column in asked:
        if column not in header:
            remedy = did_you_mean(column, header, f"The columns are: {', '.join(header[:20])}")
            raise BadInputError(f"no column {column!r}", where=str(path), remedy=remedy)
        if header.count(column) > 1:
            what = f"{header.count(column)} columns are called {column!r}"
            raise BadInputError(what, where=str(path), remedy="Rename all but one of these columns in the header.")
    return separator, header


def _rows(path: Path, separator: str, width: int) -> Iterator[tuple[int, list[str] | None]]:
    size = 0

    def bounded(lines: Iterator[str]) -> Iterator[str]:
        nonlocal size
        for line in lines:
            size += len(line)
            if size > MOST_LINE:
                raise ValueError(f"a row has more than {MOST_LINE} characters")
            yield line

    with open_lines(path) as lines:
        reader = csv.reader(bounded(lines), delimiter=separator, strict=True)
        try:
            next(reader, None)
            for number, cells in enumerate(reader, 1):
                if number > MOST_ROWS:
                    why = f"the file has more than {MOST_ROWS} rows"
                    raise BadInputError("the file is too large", where=str(path), why=why)
                row, size = cells, 0
                if len(cells) == width + 1:  # an empty cell at the end, or an index column without header
                    row = cells[:-1] if not cells[-1] else cells[1:]
                yield number, row if len(row) == width else None
        except (csv.Error, ValueError) as error:
            where, remedy = f"{path}:{reader.line_num}", "Check its quotation marks."
            what = "not a CSV file with a header"
            raise BadInputError(what, where=where, why=str(error), remedy=remedy) from error


def _series(name: str, rows: list[tuple[float, float]]) -> WatchedSeries:
    # Overlapping exports contain duplicate rows. A dictionary removes them and keeps the order.
    times, values = np.array(list(dict.fromkeys(sorted(rows, key=lambda row: row[0])))).T
    return WatchedSeries(name, times, values)


def replay(path: Path, columns: Columns, alarms_a_month: float = ALARMS_A_MONTH, *, worse_up: bool = False) -> Replay:
    """Run the detector of level shifts over every series of the file. Raises BadInputError if the file is not usable.

    ``worse_up``: higher values are worse.
    """
    series, passed_over, impossible = read_series(path, columns)
    span_s = max(float(each.times[-1]) for each in series) - min(float(each.times[0]) for each in series)
    if span_s == 0 and any(len(each.times) > 1 for each in series):
        remedy = "Join date and time into one column, such as 2026-12-31T23:59:00Z."
        raise BadInputError("all rows have the same time", where=str(path), why=f"column {columns.time}", remedy=remedy)
    allowed = FOR_CHANCE * alarms_a_month / len(series)
    events = [event for each in series for event in changes_of(each, allowed, worse_up=worse_up)]
    learning = tuple(each.name for each in series if len(each.times) < LEARN)
    events.sort(key=lambda event: event.told_s)
    return Replay(tuple(events), len(series), learning, passed_over, span_s / MONTH_S, impossible)


def changes_of(series: WatchedSeries, alarms_a_month: float, *, worse_up: bool) -> list[WatchEvent]:
    """Return the level shifts of one series, each with its end."""
    scale: Literal["log", "plain"] = "log" if np.all(series.values > 0) else "plain"
    levels = LevelDetector(series.name, alarms_a_month, scale, worse_up=worse_up)
    pairs = zip(series.times.tolist(), series.values.tolist(), strict=True)
    # The detector returns an event when it begins and again when it ends, so keep the last version.
    return list({event.key: event for pair in pairs for event in levels.add(*pair)}.values())


def _parse_time(text: str) -> float:
    """Parse a Unix time (in s, ms, us or ns) or ISO 8601 time; return Unix time in seconds, or NaN for other texts."""
    number = _number(text)
    if math.isfinite(number) and (seconds := unix_seconds(number)) >= _EARLIEST_S:
        return seconds
    try:
        when = datetime.fromisoformat(text.strip())
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
