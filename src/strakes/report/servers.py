"""Table of the servers' counters during a study, with each server's share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from strakes.base.language import gettext
from strakes.base.units import format_bytes, format_seconds
from strakes.model.portrait import ServerCount

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
class ServerTable:
    """Rows are servers or targets. Each value is followed by its share of the column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def server_table(counts: Sequence[ServerCount]) -> ServerTable | None:
    """Return the sums over a study's cells, or None without counters."""
    sums: dict[str, Counter[str]] = {}
    for count in counts:
        sums.setdefault(count.server, Counter()).update(_named(count.counters))
    values = {server: [sum(own[name] for name in names) for _, names, _ in _COLUMNS] for server, own in sums.items()}
    totals = [sum(row[column] for row in values.values()) for column in range(len(_COLUMNS))]
    kept = [column for column, total in enumerate(totals) if total > 0]
    if not kept:
        return None
    return ServerTable(
        tuple(gettext(_COLUMNS[column][0]) for column in kept),
        tuple(
            (server, tuple(_shown(row[column], totals[column], _COLUMNS[column][2]) for column in kept))
            for server, row in sorted(values.items())
            if any(row) or any(name.startswith(("md.", "data.")) for name in sums[server])
        ),
    )


def _named(counters: Mapping[str, float]) -> dict[str, float]:
    """Return the server's counters, or else the client's; if the total of metadata requests is missing, add it."""
    own = {name: value for name, value in counters.items() if not name.startswith(_CLIENT)}
    own = own or {name.removeprefix(_CLIENT): value for name, value in counters.items()}
    kinds = [value for name, value in own.items() if name.startswith("md.")]
    return {"md.requests": sum(kinds), **own} if kinds else own


def _shown(value: float, total: float, form: Callable[[float], str]) -> str:
    return f"{form(value)} ({value / total:.0%})" if value else "-"
