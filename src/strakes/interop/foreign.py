"""Imported results of other tools: rates with the tool's settings, without intervals."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import without_secrets
from strakes.base.units import parse_bytes
from strakes.model.cell import Cell, Measure
from strakes.model.portrait import Setting
from strakes.model.record import from_record
from strakes.model.sample import Sample
from strakes.runs.records import Visit

RateMetric = Literal["bytes_per_s", "operations_per_s"]

_TIMES = ("%a %b %d %H:%M:%S %Y", "%m/%d/%Y %H:%M:%S")


@dataclass(frozen=True)
class ForeignFigure:
    """A rate that a tool reports. ``values``: the rate in B/s or op/s in each repetition in the file."""

    name: str
    metric: RateMetric
    values: tuple[float, ...]
    settings: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Return name, metric and settings as text. Repetitions of a measurement have equal texts."""
        return json.dumps([self.name, self.metric, dict(self.settings)], sort_keys=True)


@dataclass(frozen=True)
class Foreign:
    """One test in a result file of another tool.

    ``figures``: rates. ``stated``: other results as text, such as a score. ``notes``: caveats. ``form``: file format.
    """

    tool: str
    figures: tuple[ForeignFigure, ...]
    version: str = ""
    when: datetime | None = None
    command: str = ""
    path: str = ""
    host: str = ""
    stated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    form: str = ""

    def fingerprint(self) -> str:
        """Return a hash of tool, command, path and settings. All repetitions of a test have the same hash."""
        figures = sorted(figure.identity for figure in self.figures)
        return hashlib.sha256(json.dumps([self.tool, self.command, self.path, figures]).encode()).hexdigest()[:16]


def without_secrets_in(value: Any) -> Any:
    """Return a test, or a part of one, without secrets in its texts, because results are published."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, tuple):
        return tuple(map(without_secrets_in, value))
    if isinstance(value, Mapping):
        return {key: without_secrets_in(each) for key, each in value.items()}
    if isinstance(value, Foreign | ForeignFigure):
        texts = {each.name: without_secrets_in(getattr(value, each.name)) for each in fields(value)}
        return replace(value, **texts)
    return value


_NUMBERS = ("ranks", "nodes", "segments", "hosts", "threads", "dirs", "files", "queue_depth")
DECIMAL_COMMA = re.compile(r"[\d.]+,\d+")
COMMAS = "the numbers in the file have decimal commas"
# Maximum rate, far above real ones. The square of a much larger number would overflow.
_MOST = 1e24


def slug(text: str) -> str:
    """Return a name as an id: lower case, with hyphens between the words.

    >>> slug("File creation"), slug("ior_easy_write")
    ('file-creation', 'ior-easy-write')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "result"


def number(text: str, *, has_decimals: bool = False) -> float | None:
    """Return a positive number, or None for other texts. Tools print 0, "-" or "nan" for operations that did not run.

    Separators of thousands are removed, and decimal commas replaced. ``has_decimals``: the tool always prints three
    decimals, so a comma before the last three digits is a decimal comma.

    >>> number("12.5"), number("-nan"), number("0.000"), number("-")
    (12.5, None, None, None)
    >>> number("1,460.989"), number("1.460,989"), number("1,885"), number("1,885", has_decimals=True), number("3,25")
    (1460.989, 1460.989, 1885.0, 1.885, 3.25)
    """
    is_decimal = has_decimals and text.count(",") == 1 and "." not in text
    if not is_decimal and re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    elif re.fullmatch(r"(\d{1,3}(\.\d{3})+|\d+),\d+", text):
        text = text.replace(".", "").replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < _MOST else None


def time_of(text: str) -> datetime | None:
    """Parse a printed time or Unix timestamp; return None for other texts. A time without a zone is local time.

    >>> time_of("2026-11-21T03:13:39.130+0000").isoformat(), time_of("1700000000").isoformat(), time_of("soon")
    ('2026-11-21T03:13:39.130000+00:00', '2023-11-14T22:13:20+00:00', None)
    """
    text = text.strip()
    for form in _TIMES:
        with suppress(ValueError, OverflowError):
            return datetime.strptime(text, form).astimezone(UTC)
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(int(text), UTC) if int(text) else None
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text)).astimezone(UTC)
    return None


def settings_of(facts: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Setting]:
    """Return the settings of a test by their names in strakes. ``names``: mapping of tool's name to strakes' name."""
    settings: dict[str, Setting] = {}
    for key, text in facts.items():
        name, digits = names.get(key, ""), re.match(r"\d{1,18}(?!\d)", text)
        if name.endswith("_bytes"):
            with suppress(BadInputError):
                settings[name] = parse_bytes(text.replace("bytes", "").strip())
        elif name in _NUMBERS and digits:
            settings[name] = int(digits[0])
        elif name and name not in _NUMBERS and text:
            settings[name] = text in ("1", "true") if name in ("direct", "random") else text
    return settings


def gathered(figures: Iterable[ForeignFigure]) -> tuple[ForeignFigure, ...]:
    """Merge rates with the same name, metric and settings into one, which has all of their values in order."""
    merged: dict[str, tuple[ForeignFigure, list[float]]] = {}
    for figure in figures:
        merged.setdefault(figure.identity, (figure, []))[1].extend(figure.values)
    return tuple(replace(figure, values=tuple(values)) for figure, values in merged.values())


def cells_and_visits(foreign: Foreign) -> tuple[list[Cell], list[Visit]]:
    """Return the rates in the form of the store: a cell per rate, and a visit (execution) per value of the rate."""
    cells: list[Cell] = []
    visits: list[Visit] = []
    seen: Counter[str] = Counter()
    started_unix_s = foreign.when.timestamp() if foreign.when else 0.0
    fingerprint = foreign.fingerprint()
    for figure in foreign.figures:
        # If several rates have the name of one operation, the second gets the key NAME-2, and so on.
        seen[figure.name] += 1
        key = figure.name if seen[figure.name] == 1 else f"{figure.name}-{seen[figure.name]}"
        measures = (Measure(figure.name, figure.metric),)
        settings = {"tool": foreign.tool, **figure.settings}
        cells.append(Cell("imported", key, settings, measures=measures, fingerprint=fingerprint, imported=True))
        for block, value in enumerate(figure.values, start=1):
            sample = from_record(Sample, {"name": figure.name, figure.metric: value})
            visits.append(Visit(len(visits), block, cell=key, samples=(sample,), started_unix_s=started_unix_s))
    return cells, visits
