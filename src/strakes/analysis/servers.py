"""What servers counted while cells ran: sums over the visits at which somebody looked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from strakes.findings.cell import Cell
from strakes.findings.portrait import ServerCount
from strakes.store.records import Visit
from strakes.targets.description import NOW


def server_counts(cells: Sequence[Cell], visits: Sequence[Visit]) -> tuple[ServerCount, ...]:
    """One entry for each cell and server, in the order of the cells."""
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
        for (cell, server), counters in sorted(sums.items(), key=lambda one: (order.get(one[0][0], -1), one[0][1]))
        if cell in studies  # the pilot is no cell
    )
