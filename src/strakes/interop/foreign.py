"""What another tool measured, as frozen values: figures with the tool's own settings, never an interval of ours."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from strakes.findings.cell import Cell, Measure
from strakes.findings.portrait import Setting
from strakes.findings.record import from_record
from strakes.findings.sample import Sample
from strakes.store.records import Visit

RateMetric = Literal["bytes_per_s", "operations_per_s"]

_TIMES = ("%a %b %d %H:%M:%S %Y", "%m/%d/%Y %H:%M:%S")


@dataclass(frozen=True)
class ForeignFigure:
    """One figure a tool states: ``values`` in B/s or op/s, one for each repetition where the file has them."""

    name: str
    metric: RateMetric
    values: tuple[float, ...]
    settings: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True)
class Foreign:
    """One result file, or one test of it. ``when`` is None and texts are empty where the file does not say.

    ``stated`` are conclusions of the tool itself (a score), ``notes`` what a reader of the figures must know.
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

    def fingerprint(self) -> str:
        """16 hex digits over tool, place and settings: what must agree for two imports to be the same measurement again."""
        figures = sorted(json.dumps([one.name, one.metric, dict(one.settings)], sort_keys=True) for one in self.figures)
        return hashlib.sha256(json.dumps([self.tool, self.path, figures]).encode()).hexdigest()[:16]


def slug(text: str) -> str:
    """A name as ids use it.

    >>> slug("File creation"), slug("ior_easy_write")
    ('file-creation', 'ior-easy-write')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "result"


def number(text: str) -> float | None:
    """A figure that says something: finite and more than zero; tools print 0, "-" and "nan" for what was not measured.

    >>> number("12.5"), number("-nan"), number("0.000"), number("-")
    (12.5, None, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def time_of(text: str) -> datetime | None:
    """A time as the tools write it. Without a zone it is taken for this machine's.

    >>> time_of("2026-11-21T03:13:39.130+0000").isoformat(), time_of("soon")
    ('2026-11-21T03:13:39.130000+00:00', None)
    """
    text = text.strip()
    for form in _TIMES:
        try:
            return datetime.strptime(text, form).astimezone(UTC)
        except ValueError:
            continue
    try:
        return datetime.fromisoformat(re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text)).astimezone(UTC)
    except ValueError:
        return None


def gathered(figures: Iterable[ForeignFigure]) -> tuple[ForeignFigure, ...]:
    """Figures of one name and the same settings become one with all their values, in order."""
    found: dict[str, ForeignFigure] = {}
    for one in figures:
        key = json.dumps([one.name, one.metric, dict(one.settings)], sort_keys=True)
        found[key] = replace(found[key], values=(*found[key].values, *one.values)) if key in found else one
    return tuple(found.values())


def cells_and_visits(foreign: Foreign) -> tuple[list[Cell], list[Visit]]:
    """The figures in the shape in which the store keeps measurements: one cell for each, one visit for each value."""
    cells: list[Cell] = []
    visits: list[Visit] = []
    started_unix_s = foreign.when.timestamp() if foreign.when else 0.0
    fingerprint = foreign.fingerprint()
    for figure, key in zip(foreign.figures, _keys(foreign.figures), strict=True):
        measures = (Measure(figure.name, figure.metric),)
        settings = {"tool": foreign.tool, **figure.settings}
        cells.append(Cell("imported", key, settings, measures=measures, fingerprint=fingerprint, imported=True))
        for block, value in enumerate(figure.values, start=1):
            sample = from_record(Sample, {"name": figure.name, figure.metric: value})
            visits.append(Visit(len(visits), block, cell=key, samples=(sample,), started_unix_s=started_unix_s))
    return cells, visits


def _keys(figures: Sequence[ForeignFigure]) -> list[str]:
    """An id for each; a number where names repeat (the same operation with other settings)."""
    seen: dict[str, int] = {}
    keys = []
    for one in figures:
        seen[one.name] = seen.get(one.name, 0) + 1
        keys.append(one.name if seen[one.name] == 1 else f"{one.name}-{seen[one.name]}")
    return keys
