"""Describe the scope of a run: numbers of clients (as the file system counts them), ranks and nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from strakes.base.language import gettext, ngettext
from strakes.model.cell import Cell


def scope_of(cells: Sequence[Cell], measured_ranks: Sequence[int], environment: Mapping[str, Any]) -> str:
    """Return a text on the scope of a run: clients, processes, nodes. ``measured_ranks``: measured numbers of ranks.

    >>> scope_of([], [1, 8], {"host": "n1"})
    'one client measured: 1 to 8 processes on node n1'
    """
    processes = _span(measured_ranks)
    nodes = sorted(environment.get("engine", {}).get("nodes", {})) or [str(environment.get("host", "this node"))]
    several = gettext("{count} nodes ({names})", count=len(nodes), names=", ".join(nodes))
    where = gettext("node {name}", name=nodes[0]) if len(nodes) == 1 else several
    # With libcephfs, each rank is a client with a separate session.
    sessions = [cell.plan.ranks for cell in cells if cell.plan.inside_ceph()]
    mounts = ngettext("one client", "{count} clients (one on each node)", len(nodes))
    if not sessions:
        return gettext("{clients} measured: {ranks} on {where}", clients=mounts, ranks=processes, where=where)
    inside = gettext(
        "{clients} measured on {where} (through libcephfs, where each rank is a client)",
        clients=_span(sessions, "client"),
        where=where,
    )
    if len(sessions) < len(cells):
        metadata = gettext("metadata: {clients}", clients=inside)
        return f"{metadata}; {gettext('data: {clients} measured (data goes through the mount)', clients=mounts)}"
    return inside


_NUMBERS = {
    "process": ("1 process", "{high} processes", "{low} to {high} processes"),
    "client": ("1 client", "{high} clients", "{low} to {high} clients"),
}


def _span(numbers: Sequence[int], noun: str = "process") -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    one, several, span = _NUMBERS[noun]
    return gettext(span if low < high else one if high == 1 else several, low=low, high=high)
