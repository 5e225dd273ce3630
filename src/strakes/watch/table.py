"""CSV files as spreadsheets and databases write them: which separators, decimal signs, dates and units they have.

Nothing is guessed from one row. How numbers and dates are written is decided by all rows of the column; what stays
ambiguous is refused with an example.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from strakes.errors import BadInputError, nearest_word
from strakes.watch.causes import known_cause
from strakes.watch.recorded import open_lines, unix_seconds

# A value a minute of four series for a year.
MOST_ROWS = 2_000_000
_SEPARATORS = (",", ";", "\t", "|")
# More is no time in ns, either.
_BEYOND_TIMES = 1e20
_UNIT = re.compile(r"^(.*?[\d.,])\s*((?![eE][-+]?\d)[^\W\d_][^\s\d]*|%)$")
_GROUPS = {",": re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+"), ".": re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+")}
# Swiss and French thousands separators, after non-breaking spaces were replaced.
_APART = re.compile(r"[-+]?\d{1,3}(?:[ '\u2019]\d{3})+(?:[.,]\d+)?")
_NOT_A_NUMBER = frozenset(("", "na", "nan", "nat", "null", "none", "nil", "n", "nd", "missing", "div0", "value"))
_COMPACT = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
# 1980: smaller numbers are no Unix times but days, as spreadsheets count them, or something else.
_EARLIEST_S = 315532800.0
_OFFSET = re.compile(r"(?:[zZ]|[-+]\d{2}(?::?\d{2})?)$")
_UTC = re.compile(r"(?<=[\d ])\s*(?:UTC|GMT)$")
_YEAR_FIRST = re.compile(r"(\d{4})([./])(\d{2})\2(\d{2})(?!\d)")
_DATE = re.compile(
    r"(\d{1,2})([./])(\d{1,2})\2(\d{4}|\d{2})"
    r"(?:,?[ T]+(\d{1,2}):(\d{2})(?::(\d{2}(?:[.,]\d+)?))?(?:\s*([AaPp])\.?[Mm]\.?)?)?"
)


@dataclass
class Numbers:
    """How the numbers of a column are written, learned from all of them."""

    separator: str
    _decimal: str = ""
    _point: str = ""
    _comma: str = ""
    _groups_only: str = ""
    _unit: str | None = None
    other_unit: tuple[str, str] | None = None

    @property
    def has_numbers(self) -> bool:
        """Return whether any cell had a number."""
        return self._unit is not None

    def learn(self, cell: str) -> None:
        """Take in a cell."""
        text, unit = _without_unit(cell)
        if not any(map(str.isdecimal, text)):
            return
        if self._unit is None:
            self._unit = unit
        elif unit != self._unit:
            self.other_unit = self.other_unit or (self._unit, unit)
        commas, points = text.count(","), text.count(".")
        if commas and (text.rfind(",") > text.rfind(".")) and commas == 1 and not _GROUPS[","].fullmatch(text):
            self._comma = self._comma or cell
        elif commas and (points or commas > 1):
            self._point = self._point or cell
        elif points > 1:
            self._comma = self._comma or cell
        elif points and not _GROUPS["."].fullmatch(text):
            self._point = self._point or cell
        elif commas:
            self._groups_only = self._groups_only or cell

    def decide(self, column: str, where: str) -> None:
        """Decide the decimal separator. Raises BadInputError if it is ambiguous."""
        if self.other_unit:
            kinds = ", ".join(repr(unit) for unit in self.other_unit)
            remedy = "Give all values in one unit."
            raise BadInputError(f"the values of {column!r} have different units", where=where, why=kinds, remedy=remedy)
        ambiguous = self._groups_only and not self._comma and not self._point and self.separator not in ",;"
        if (self._comma and self._point) or ambiguous:
            why = ", ".join(repr(cell) for cell in (self._comma, self._point, self._groups_only) if cell)
            remedy = "Write decimals with a point, and no separators of thousands."
            raise BadInputError(f"the numbers of {column!r} are ambiguous", where=where, why=why, remedy=remedy)
        # Spreadsheets part columns by semicolons where the comma is the sign of decimals.
        comma = self._comma or (self._groups_only and not self._point and self.separator == ";")
        self._decimal = "," if comma else "."

    def number(self, cell: str) -> float:
        """Return the number of a cell; NaN where it has none."""
        text = _without_unit(cell)[0]
        if self._decimal == ",":
            text = text.replace(".", "").replace(",", ".")
        elif "," in text:
            text = text.replace(",", "")
        return plain_number(text)


@dataclass
class Times:
    """How the times of a column are written, learned from all of them."""

    without_offset: bool = False
    _largest: float = 0.0
    _smallest: float = math.inf
    _compact: bool = True
    _first: str = ""
    _day_first: str = ""
    _month_first: str = ""
    _firsts: set[str] = field(default_factory=set)
    _years: set[str] = field(default_factory=set)

    def learn(self, cell: str) -> None:
        """Take in a cell."""
        number = plain_number(cell)
        if math.isfinite(number):
            self._largest, self._smallest = max(self._largest, number), min(self._smallest, number)
            self._compact &= _COMPACT.fullmatch(cell.strip()) is not None
            return
        text = _without_zone(cell)
        self.without_offset |= ":" in text and not _OFFSET.search(text) and not _UTC.search(cell.strip())
        if match := _DATE.fullmatch(text):
            self._first = self._first or cell
            self._firsts.add(match[1])
            self._years.add(match[4])
            if int(match[1]) > 12:
                self._day_first = self._day_first or cell
            # Dates with points have the day first wherever they are written.
            if int(match[3]) > 12:
                self._month_first = self._month_first or cell
            elif match[2] == ".":
                self._day_first = self._day_first or cell

    def decide(self, column: str, where: str) -> None:
        """Decide whether days or months are first. Raises BadInputError if that is ambiguous."""
        remedy = "Write times as Unix time or ISO 8601, such as 2026-12-31T23:59:00Z."
        if self._first and bool(self._day_first) == bool(self._month_first):
            why = ", ".join(dict.fromkeys(cell for cell in (self._day_first, self._month_first, self._first) if cell))
            raise BadInputError(
                f"it is not clear whether the day or the month is first in {column!r}",
                where=where,
                why=why,
                remedy=remedy,
            )
        # If the first and the last number have two digits, the one with fewer different values is the year.
        short = any(len(year) == 2 for year in self._years)
        if short and self._day_first and len(self._years) >= len(self._firsts):
            what = f"it is not clear which of the numbers is the year in {column!r}"
            raise BadInputError(what, where=where, why=self._first, remedy=remedy)
        if self._compact:
            return
        if unix_seconds(self._smallest) < _EARLIEST_S:
            remedy = f"{remedy} Format what a spreadsheet counts in days as a date."
            raise BadInputError(
                f"the times of {column!r} are no Unix times",
                where=where,
                why=f"{self._smallest:.15g} would be before 1980",
                remedy=remedy,
            )
        if self._largest < _BEYOND_TIMES and (
            unix_seconds(self._largest) / self._largest != unix_seconds(self._smallest) / self._smallest
        ):
            why = f"{self._smallest:.0f}, {self._largest:.0f}"
            raise BadInputError(f"the times of {column!r} have different units", where=where, why=why, remedy=remedy)

    def seconds(self, cell: str) -> float:
        """Return Unix time; NaN where the cell has none."""
        if self._compact and _COMPACT.fullmatch(cell.strip()):
            return _iso_seconds(cell)
        text = _without_zone(cell)
        match = _DATE.fullmatch(text)
        return parse_time(text) if match is None else self._of_date(match)

    def _of_date(self, match: re.Match[str]) -> float:
        day, month = (match[1], match[3]) if self._day_first else (match[3], match[1])
        hour = int(match[5] or 0)
        if match[8]:
            hour = hour % 12 + 12 * (match[8] in "pP")
        try:
            # Two digits are a year from 1969 to 2068, as in POSIX.
            year = int(match[4]) if len(match[4]) > 2 else 1969 + (int(match[4]) - 69) % 100
            date = datetime(year, int(month), int(day), hour, int(match[6] or 0), tzinfo=UTC)
        except ValueError:
            return math.nan
        return (date + timedelta(seconds=float((match[7] or "0").replace(",", ".")))).timestamp()


@dataclass(frozen=True)
class Table:
    """A CSV file, its header, and how its times and values are read."""

    path: Path
    header: tuple[str, ...]
    separator: str
    times: Times
    value: Numbers
    causes: Mapping[str, Numbers]
    example: str
    """The first row, as it was read."""

    def rows(self) -> Iterator[tuple[int, list[str] | None]]:
        """Yield the rows below the header with their numbers, or None if the number of columns differs."""
        yield from _rows(self.path, self.separator, len(self.header))


def open_table(path: Path, time: str, value: str, by: Sequence[str] = (), causes: Sequence[str] = ()) -> Table:
    """Detect the format of a CSV file. Raises BadInputError.

    ``causes``: further columns that may explain a change.
    """
    with open_lines(path) as lines:
        first = next(lines, "").strip("\r\n")
    if not first.strip():
        raise BadInputError("the file is empty", where=str(path))
    headers = {separator: _split(first, separator) for separator in _SEPARATORS}
    asked = (time, value, *by, *causes)
    # The separator is the one that gives the columns that are asked for.
    separator = max(headers, key=lambda each: (sum(column in headers[each] for column in asked), len(headers[each])))
    header = headers[separator]
    for column in asked:
        if column not in header:
            near = nearest_word(column, header)
            remedy = f"Did you mean {near}?" if near else f"The columns are: {', '.join(header[:20])}"
            raise BadInputError(f"there is no column {column!r}", where=str(path), remedy=remedy)
        if header.count(column) > 1:
            what = f"{header.count(column)} columns are called {column!r}"
            raise BadInputError(what, where=str(path), remedy="Rename all but one of them in the header.")
    times, numbers = Times(), Numbers(separator)
    explaining = {name: Numbers(separator) for name in (*causes, *filter(known_cause, header)) if name != value}
    learning = [(header.index(name), each) for name, each in ((value, numbers), *explaining.items())]
    places = header.index(time), header.index(value)
    example = ""
    for _, row in _rows(path, separator, len(header)):
        if row is not None:
            times.learn(row[places[0]])
            for place, each in learning:
                each.learn(row[place])
            example = example or f"the first row has {time} = {row[places[0]]!r} and {value} = {row[places[1]]!r}"
    times.decide(time, str(path))
    for name, each in ((value, numbers), *explaining.items()):
        each.decide(name, str(path))
        if name in causes and not each.has_numbers:
            raise BadInputError(f"no row has a number in {name!r}", where=str(path), remedy="Leave out --cause.")
    return Table(path, tuple(header), separator, times, numbers, explaining, example)


def parse_time(text: str) -> float:
    """Return Unix time from Unix time (also in ms, us or ns) or ISO 8601; NaN for neither.

    >>> parse_time("1487030400.0"), parse_time("2017-02-14T00:00:00"), parse_time("1487030400000")
    (1487030400.0, 1487030400.0, 1487030400.0)
    """
    number = plain_number(text)
    return unix_seconds(number) if math.isfinite(number) else _iso_seconds(text)


def says_nothing(cell: str) -> bool:
    """Return whether a cell denotes a missing value.

    >>> [says_nothing(cell) for cell in ("", " - ", "n/a", "#DIV/0!", "1e", "slow")]
    [True, True, True, True, False, False]
    """
    return re.sub(r"[\W_]", "", cell).casefold() in _NOT_A_NUMBER


def _without_zone(cell: str) -> str:
    """Return a time without the name of UTC, and with a date that has the year first as ISO 8601 has it.

    >>> _without_zone("2026/12/31 23:59 UTC"), _without_zone("31.12.2026")
    ('2026-12-31 23:59', '31.12.2026')
    """
    return _YEAR_FIRST.sub(r"\1-\3-\4", _UTC.sub("", cell.strip()), count=1)


def _iso_seconds(text: str) -> float:
    try:
        when = datetime.fromisoformat(text.strip())
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def plain_number(text: str) -> float:
    """Return a number with a decimal point; NaN for anything else."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _rows(path: Path, separator: str, columns: int) -> Iterator[tuple[int, list[str] | None]]:
    with open_lines(path) as lines:
        reader = csv.reader(lines, delimiter=separator, strict=True)
        try:
            next(reader, None)
            for number, cells in enumerate(reader, 1):
                if number > MOST_ROWS:
                    raise BadInputError(
                        "the file is too large", where=str(path), why=f"it has more than {MOST_ROWS} rows"
                    )
                # The first column may be an index that the header does not name.
                row = cells[1:] if len(cells) == columns + 1 else cells
                yield number, row if len(row) == columns else None
        except (csv.Error, ValueError) as error:
            where = f"{path}:{reader.line_num}"
            remedy = "Check its quotation marks."
            raise BadInputError("not a CSV file with a header", where=where, why=str(error), remedy=remedy) from error


def _split(line: str, separator: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        return []


def _without_unit(cell: str) -> tuple[str, str]:
    text = re.sub("[\u00a0\u2009\u202f]", " ", cell.strip())
    # Accountants write negative numbers so.
    if text[:1] == "(" and text[-1:] == ")":
        text = f"-{text[1:-1].strip()}"
    match = _UNIT.match(text)
    number, unit = (match[1].strip(), match[2]) if match else (text, "")
    return (re.sub("[ '\u2019]", "", number) if _APART.fullmatch(number) else number), unit
