"""Comparison of a site with published systems, per client node. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strakes.base.units import counted
from strakes.model.literature_io500 import System
from strakes.model.portrait import CellEstimate, Portrait
from strakes.report.facts import headlines_of
from strakes.report.numbers import show, show_interval

# The most similar headlines to a phase, by their settings; the first one that was measured is used.
_PHASES: Sequence[tuple[str, Sequence[Mapping[str, str]]]] = (
    ("ior_easy_write", ({"operation": "write", "io": "direct"}, {"operation": "write", "io": "buffered"})),
    ("ior_easy_read", ({"operation": "read", "io": "direct"}, {"operation": "read", "io": "buffered"})),
    ("mdtest_easy_write", ({"operation": "file-create"},)),
)
# Systems with up to this many times more or fewer client nodes are comparable with a site.
_LIKE = 2.0
_FEWEST = 3


def render_beside(portrait: Portrait, systems: Sequence[System], source: str) -> str:
    """Return lines of text that compare each headline of the site with systems of similar size."""
    nodes = max(1, len(portrait.environment.get("engine", {}).get("nodes", {})))
    alike = of_its_size(systems, nodes)
    if not alike:
        return f"Other systems  no system in {source}"
    span = sorted({system.nodes for system in alike})
    size = f"{span[0]}" if len(span) == 1 else f"{span[0]} to {span[-1]}"
    head = (
        f"Other systems  {counted(len(alike), 'system')} with {size} client {'node' if span == [1] else 'nodes'}, per "
        "client node; theirs, not ours"
    )
    lines = [head]
    if not any(nodes / _LIKE <= system.nodes <= nodes * _LIKE for system in alike):
        lines.append(f"  none with about {counted(nodes, 'client node')}: these are the nearest")
    for phase, like in _PHASES:
        cell = _cell(portrait, like)
        if cell is None:
            lines.append(f"  {phase}: not measured here")
            continue
        theirs = sorted(system.rates[phase] / system.nodes for system in alike)
        low, middle, high = (show(theirs[index], cell.unit) for index in (0, len(theirs) // 2, -1))
        rate = show(cell.median / nodes, cell.unit)
        ours = f"{rate}{_interval(cell, nodes)}"
        lines.append(f"  {phase}: here {ours}; {place(cell, nodes, theirs)}")
        lines.append(f"    theirs {low} to {high}, middle {middle}")
    lines.append(f"  Source: {source}. Their runs last 5 minutes with many processes; ours are short.")
    return "\n".join(lines)


def of_its_size(systems: Sequence[System], nodes: int) -> list[System]:
    """Return the systems with about as many client nodes; if they are too few, the nearest in number.

    >>> from strakes.model.literature_io500 import System
    >>> made = [System(f"s{n}", "x", "2025", n, {}) for n in (10, 10, 20, 500)]
    >>> [system.nodes for system in of_its_size(made, 15)], [system.nodes for system in of_its_size(made, 1)]
    ([10, 10, 20], [10, 10, 20])
    """
    alike = [system for system in systems if nodes / _LIKE <= system.nodes <= nodes * _LIKE]
    if len(alike) >= _FEWEST:
        return alike
    near = sorted(systems, key=lambda system: max(system.nodes / nodes, nodes / system.nodes))[:_FEWEST]
    most = max((max(system.nodes / nodes, nodes / system.nodes) for system in near), default=0)
    return [system for system in systems if max(system.nodes / nodes, nodes / system.nodes) <= most]


def place(cell: CellEstimate, nodes: int, theirs: Sequence[float]) -> str:
    """Return the numbers of other systems that are slower and faster than the interval of our cell, as text."""
    if cell.low is None or cell.high is None:
        return "its rank is not known: it has no interval"
    slower = sum(rate < cell.low / nodes for rate in theirs)
    faster = sum(rate > cell.high / nodes for rate in theirs)
    within = len(theirs) - slower - faster
    told = f"{slower} of {len(theirs)} are slower, {faster} faster"
    return f"{told}, {within} within the interval" if within else told


def _cell(portrait: Portrait, like: Sequence[Mapping[str, str]]) -> CellEstimate | None:
    cells = [cell for _, cell in headlines_of(portrait)]
    return next((cell for settings in like for cell in cells if settings.items() <= cell.settings.items()), None)


def _interval(cell: CellEstimate, nodes: int) -> str:
    return f" [{show_interval(cell)}]" if cell.low is not None and nodes == 1 else ""
