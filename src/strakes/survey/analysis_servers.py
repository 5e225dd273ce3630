"""Sum server counters over the trials of a measurement, and find servers that are slower than others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from strakes.model.cell import Cell
from strakes.model.portrait import ServerCount
from strakes.runs.records import Visit
from strakes.stats.interval import Interval, median, median_interval
from strakes.stats.ratios import bonferroni
from strakes.targets.description import NOW


def server_counts(cells: Sequence[Cell], visits: Sequence[Visit]) -> tuple[ServerCount, ...]:
    """Return the server counters by measurement and server."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    times: Counter[tuple[str, str]] = Counter()
    for visit in visits:
        for server, counters in visit.servers.items():
            counts = {name: value for name, value in counters.items() if not name.startswith(NOW)}
            sums.setdefault((visit.cell, server), Counter()).update(counts)
            times[visit.cell, server] += 1
    studies = {cell.key: cell.study for cell in cells}
    order = {key: number for number, key in enumerate(studies)}
    return tuple(
        ServerCount(studies[cell], cell, server, times[cell, server], dict(counters))
        for (cell, server), counters in sorted(
            sums.items(), key=lambda entry: (order.get(entry[0][0], -1), entry[0][1])
        )
        if cell in studies
    )


# A server is slow if it moves less data per busy second than this share (67 %) of the other servers' data.
UNLIKE = 2 / 3


def slow_servers(visits: Sequence[Visit], confidence: float) -> Mapping[str, Interval]:
    """Return slow server -> interval of bytes per busy second, relative to the other servers.

    ``confidence``: confidence of all intervals together (Bonferroni).
    """
    ratios: dict[str, list[float]] = {}
    for visit in visits:
        rates = {
            server: rate for server, counters in visit.servers.items() if (rate := _while_busy(counters)) is not None
        }
        for server, rate in rates.items():
            others = [other for name, other in rates.items() if name != server]
            if others:
                ratios.setdefault(server, []).append(rate / median(others))
    each = bonferroni(confidence, max(1, len(ratios)))
    intervals = {server: median_interval(values, each) for server, values in ratios.items()}
    return {
        server: interval for server, interval in intervals.items() if interval is not None and interval.high < UNLIKE
    }


def _while_busy(counters: Mapping[str, float]) -> float | None:
    moved = counters.get("data.read_bytes", 0.0) + counters.get("data.write_bytes", 0.0)
    busy_s = counters.get("data.busy_s", 0.0)
    return moved / busy_s if moved > 0 and busy_s > 0 else None
