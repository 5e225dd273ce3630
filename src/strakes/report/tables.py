"""Make tables of measured values, and of the servers' counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from strakes.base.language import gettext
from strakes.base.units import format_bytes, format_seconds
from strakes.model.portrait import CellEstimate, ServerCount, Setting
from strakes.report.numbers import percent

_CLIENT = "client."
_COLUMNS: tuple[tuple[str, tuple[str, ...], Callable[[float], str]], ...] = (
    ("metadata requests", ("md.requests",), "{:,.0f}".format),
    ("creates", ("md.create",), "{:,.0f}".format),
    ("removes", ("md.unlink", "md.rmdir"), "{:,.0f}".format),
    ("write requests", ("data.write_requests",), "{:,.0f}".format),
    ("written", ("data.write_bytes",), format_bytes),
    ("read requests", ("data.read_requests",), "{:,.0f}".format),
    ("read", ("data.read_bytes",), format_bytes),
    ("busy", ("data.busy_s",), format_seconds),
)


@dataclass(frozen=True)
class CellTable:
    """A table of results. ``shared``: settings that are equal in all rows. ``factors``: names of varying settings."""

    cells: tuple[CellEstimate, ...]
    shared: Mapping[str, Setting]
    factors: tuple[str, ...]
    confidence: str


@dataclass(frozen=True)
class ServerTable:
    """A table of counters with a row per server or target. Each value comes with its share of the column's sum."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def tables_of(cells: Sequence[CellEstimate]) -> list[CellTable]:
    """Group the results by the names of their settings, and return a table per group in order of first appearance."""
    groups: dict[frozenset[str], list[CellEstimate]] = {}
    for cell in cells:
        groups.setdefault(frozenset(cell.settings), []).append(cell)
    tables = []
    for members in groups.values():
        shared, factors = shared_and_varying([cell.settings for cell in members])
        confidences = {cell.confidence for cell in members}
        confidence = percent(confidences.pop()) if len(confidences) == 1 else ""
        tables.append(CellTable(tuple(members), shared, tuple(factors), confidence))
    return tables


def shared_and_varying(settings: Sequence[Mapping[str, Setting]]) -> tuple[dict[str, Setting], list[str]]:
    """Return the settings that are equal in all rows, and the names of the other settings in order of appearance.

    >>> shared_and_varying([{"ranks": 2, "direct": False}, {"ranks": 4, "direct": False}])
    ({'direct': False}, ['ranks'])
    """
    keys = list(dict.fromkeys(key for cell in settings for key in cell))
    absent = object()
    shared = {key: settings[0][key] for key in keys if len({cell.get(key, absent) for cell in settings}) == 1}
    return shared, [key for key in keys if key not in shared]


def server_table(counts: Sequence[ServerCount]) -> ServerTable | None:
    """Return a table with the counters of each server, or None if all counters are zero or missing."""
    sums: dict[str, Counter[str]] = {}
    for count in counts:
        sums.setdefault(count.server, Counter()).update(_named(count.counters))
    values = {server: [sum(own[name] for name in names) for _, names, _ in _COLUMNS] for server, own in sums.items()}
    totals = [sum(column) for column in zip(*values.values(), strict=True)]
    kept = [(index, *_COLUMNS[index], total) for index, total in enumerate(totals) if total > 0]
    if not kept:
        return None
    rows = []
    for server, row in sorted(values.items()):
        if any(row) or any(name.startswith(("md.", "data.")) for name in sums[server]):
            shown = (f"{form(row[i])} ({row[i] / total:.0%})" if row[i] else "-" for i, _, _, form, total in kept)
            rows.append((server, tuple(shown)))
    return ServerTable(tuple(gettext(title) for _, title, _, _, _ in kept), tuple(rows))


def _named(counters: Mapping[str, float]) -> dict[str, float]:
    own = {name: value for name, value in counters.items() if not name.startswith(_CLIENT)}
    own = own or {name.removeprefix(_CLIENT): value for name, value in counters.items()}
    kinds = [value for name, value in own.items() if name.startswith("md.")]
    return {"md.requests": sum(kinds), **own} if kinds else own
