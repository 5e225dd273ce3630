"""CSV files: a header, columns separated by commas, semicolons or tabs, plain numbers, and times of one format.

Formats are not guessed: numbers have a decimal point and no unit; times are Unix time or ISO 8601.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from strakes.base.errors import BadInputError, nearest_word
from strakes.watch.causes import known_cause
from strakes.watch.recorded import open_lines, unix_seconds

# Most rows: four series with a value per minute for a year.
MOST_ROWS = 2_000_000
_SEPARATORS = (",", ";", "\t", "|")
_NOT_A_NUMBER = frozenset(("", "-", "na", "n/a", "nan", "nat", "null", "none"))
# The year 1980: smaller numbers are days since 1900, as in spreadsheets, or no times.
_EARLIEST_S = 315532800.0


@dataclass(frozen=True)
class Table:
    """A CSV file and its header. ``causes``: columns that may explain a change."""

    path: Path
    header: tuple[str, ...]
    separator: str
    causes: tuple[str, ...]

    def rows(self) -> Iterator[tuple[int, list[str] | None]]:
        """Yield the rows below the header with their numbers, or None if the number of columns differs."""
        with open_lines(self.path) as lines:
            reader = csv.reader(lines, delimiter=self.separator, strict=True)
            try:
                next(reader, None)
                for number, cells in enumerate(reader, 1):
                    if number > MOST_ROWS:
                        why = f"it has more than {MOST_ROWS} rows"
                        raise BadInputError("the file is too large", where=str(self.path), why=why)
                    # The first column may be an index that the header does not name.
                    row = cells[1:] if len(cells) == len(self.header) + 1 else cells
                    yield number, row if len(row) == len(self.header) else None
            except (csv.Error, ValueError) as error:
                where, remedy = f"{self.path}:{reader.line_num}", "Check its quotation marks."
                what = "not a CSV file with a header"
                raise BadInputError(what, where=where, why=str(error), remedy=remedy) from error


def open_table(path: Path, time: str, value: str, by: Sequence[str] = (), causes: Sequence[str] = ()) -> Table:
    """Read the header of a CSV file. Raises BadInputError. ``causes``: columns that may explain a change."""
    with open_lines(path) as lines:
        first = next(lines, "").strip("\r\n")
    if not first.strip():
        raise BadInputError("the file is empty", where=str(path))
    headers = {separator: _split(first, separator) for separator in _SEPARATORS}
    asked = (time, value, *by, *causes)
    # The separator is the one that gives the requested columns.
    separator = max(headers, key=lambda each: (sum(column in headers[each] for column in asked), len(headers[each])))
    header = headers[separator]
    for column in asked:
        if column not in header:
            near = nearest_word(column, header)
            remedy = f"Did you mean {near}?" if near else f"The columns are: {', '.join(header[:20])}"
            raise BadInputError(f"no column {column!r}", where=str(path), remedy=remedy)
        if header.count(column) > 1:
            what = f"{header.count(column)} columns are called {column!r}"
            raise BadInputError(what, where=str(path), remedy="Rename all but one of them in the header.")
    explaining = dict.fromkeys((*causes, *(name for name in header if known_cause(name) and name != value)))
    return Table(path, tuple(header), separator, tuple(explaining))


def parse_time(text: str) -> float:
    """Return the Unix time of a text in Unix time (also in ms, us or ns) or ISO 8601, or NaN for another text.

    >>> parse_time("1487030400.0"), parse_time("2017-02-14T00:00:00"), parse_time("1487030400000")
    (1487030400.0, 1487030400.0, 1487030400.0)
    >>> parse_time("43000"), parse_time("20170214")
    (nan, 1487030400.0)
    """
    number = plain_number(text)
    if math.isfinite(number) and (seconds := unix_seconds(number)) >= _EARLIEST_S:
        return seconds
    try:
        when = datetime.fromisoformat(text.strip())
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def is_missing(cell: str) -> bool:
    """Return whether a cell denotes a missing value.

    >>> [is_missing(cell) for cell in ("", " - ", "n/a", "1e", "slow")]
    [True, True, True, False, False]
    """
    return cell.strip().casefold() in _NOT_A_NUMBER


def plain_number(text: str) -> float:
    """Return a number with a decimal point, or NaN for another text."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _split(line: str, separator: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        return []
