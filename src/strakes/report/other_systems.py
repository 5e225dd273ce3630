"""Compare a site's figures per client node with those of published systems, such as the IO500 list."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.base.files import read_regular
from strakes.base.units import GIB, counted
from strakes.model.portrait import CellEstimate, Portrait
from strakes.report.facts import headlines_of
from strakes.report.numbers import show, show_interval

NAME = "io500"
_SOURCE = "IO500 submissions (github.com/IO500/submission-data), rows of 2021 to 2025"
_MOST_BYTES = 1 << 20
# For each phase of IO500: column of the table, unit of the column, and settings with comparable main results, in order
# of preference. The first of these settings that was measured is compared.
_PHASES: Mapping[str, tuple[str, float, Sequence[Mapping[str, str]]]] = {
    f"ior_easy_{name}": (
        f"ior_easy_{name}_gib_s",
        GIB,
        [{"operation": name, "io": io} for io in ("direct", "buffered")],
    )
    for name in ("write", "read")
} | {"mdtest_easy_write": ("mdtest_easy_write_kiops", 1000, [{"operation": "file-create"}])}
# Compare with systems of half to twice the site's number of client nodes, or with the nearest if fewer than 3 are left.
_LIKE_TIMES = 2.0


@dataclass(frozen=True)
class System:
    """A submission. ``nodes``: number of clients. ``rates``: of all clients by IO500's phase, in B/s or op/s."""

    name: str
    file_system: str
    year: str
    nodes: int
    rates: Mapping[str, float]


def systems(which: str = NAME) -> tuple[tuple[System, ...], str]:
    """Return the systems of a list, and its source. ``which``: io500 (part of strakes) or the path of a CSV file.

    Raises BadInputError if the file cannot be read or lacks a column.
    """
    columns = [column for column, _, _ in _PHASES.values()]
    remedy = f"Give {NAME}, or a CSV file with the columns system, file_system, year, nodes, {', '.join(columns)}."
    if which == NAME:
        text, source = files("strakes.model").joinpath("io500.csv").read_text(encoding="utf-8"), _SOURCE
    else:
        content, source = read_regular(Path(which), _MOST_BYTES, "the list of systems cannot be read", remedy), which
        text = content.decode(errors="replace")
    try:
        return tuple(_system(row) for row in csv.DictReader(text.splitlines())), source
    except (KeyError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        raise BadInputError("the list of systems cannot be read", where=which, why=why, remedy=remedy) from error


def _system(row: Mapping[str, str]) -> System:
    rates = {phase: float(row[column]) * unit for phase, (column, unit, _) in _PHASES.items()}
    name = ": ".join(filter(None, (row.get("institution"), row["system"])))
    if int(row["nodes"]) < 1:
        raise ValueError("nodes has to be at least 1")
    return System(name, row["file_system"], row["year"], int(row["nodes"]), rates)


def render_comparison(portrait: Portrait, systems: Sequence[System], source: str) -> str:
    """Return text that compares headlines of the site with systems that have a similar number of clients."""
    nodes = max(1, len(portrait.environment.get("engine", {}).get("nodes", {})))
    alike = of_its_size(systems, nodes)
    if not alike:
        return f"Other systems  no system in {source}"
    fewest, most = min(system.nodes for system in alike), max(system.nodes for system in alike)
    size = counted(most, "client node") if fewest == most else f"{fewest} to {most} client nodes"
    lines = [f"Other systems  {counted(len(alike), 'system')} with {size}, per client node, measured by others"]
    if not any(_distance(system, nodes) <= _LIKE_TIMES for system in alike):
        lines.append(f"  no system has about {counted(nodes, 'client node')}: these are the nearest")
    cells = [cell for _, cell in headlines_of(portrait)]
    for phase, (_, _, like) in _PHASES.items():
        cell = next((cell for settings in like for cell in cells if settings.items() <= cell.settings.items()), None)
        if cell is None:
            lines.append(f"  {phase}: not measured here")
            continue
        theirs = sorted(system.rates[phase] / system.nodes for system in alike)
        low, middle, high = (show(theirs[index], cell.unit) for index in (0, len(theirs) // 2, -1))
        interval = f" [{show_interval(cell)}]" if cell.low is not None and nodes == 1 else ""
        lines.append(f"  {phase}: here {show(cell.median / nodes, cell.unit)}{interval}; {_place(cell, nodes, theirs)}")
        lines.append(f"    others {low} to {high}, median {middle}")
    lines.append(f"  Source: {source}. Their runs last 5 minutes with many processes; ours are short.")
    return "\n".join(lines)


def _distance(system: System, nodes: int) -> float:
    return max(system.nodes / nodes, nodes / system.nodes)


def of_its_size(systems: Sequence[System], nodes: int) -> list[System]:
    """Return the systems with a similar number of client nodes; if these are fewer than three, the nearest ones.

    >>> made = [System(f"s{n}", "x", "2025", n, {}) for n in (10, 10, 20, 500)]
    >>> [system.nodes for system in of_its_size(made, 15)], [system.nodes for system in of_its_size(made, 1)]
    ([10, 10, 20], [10, 10, 20])
    """
    distances = sorted(_distance(system, nodes) for system in systems)
    most = max(_LIKE_TIMES, *distances[:3], 0.0)
    return [system for system in systems if _distance(system, nodes) <= most]


def _place(cell: CellEstimate, nodes: int, theirs: Sequence[float]) -> str:
    """Return a text with the number of other systems whose rate is below, above and within our cell's interval."""
    if cell.low is None or cell.high is None:
        return "the rank is not known, because there is no interval"
    slower, faster = sum(rate < cell.low / nodes for rate in theirs), sum(rate > cell.high / nodes for rate in theirs)
    within = len(theirs) - slower - faster
    told = f"{slower} of {len(theirs)} are slower, {faster} faster"
    return f"{told}, {within} within the interval" if within else told
