"""Who took part: how many clients, as the file system counts them, with how many ranks, on which nodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from strakes.findings.cell import Cell


def scope_of(cells: Sequence[Cell], measured_ranks: Sequence[int], environment: Mapping[str, Any]) -> str:
    """Return the scope of a run as one sentence; ``measured_ranks``: numbers of ranks of the measured cells.

    >>> scope_of([], [1, 8], {"host": "n1"})  # doctest: +NORMALIZE_WHITESPACE
    'one client measured: 1 to 8 ranks on node n1; this says nothing about more clients or about the limits of the
    servers'
    """
    span = _span(measured_ranks)
    nodes = sorted(environment.get("engine", {}).get("nodes", {})) or [str(environment.get("host", "this node"))]
    where = f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes ({', '.join(nodes)})"
    # Every rank of these cells is a client with its own session.
    sessions = [cell.plan.ranks for cell in cells if cell.plan.inside_ceph()]
    mounts = "one client" if len(nodes) == 1 else f"{len(nodes)} clients (one on each node)"
    if not sessions:
        return (
            f"{mounts} measured: {span} on {where}; this says nothing about more clients or about the limits of the "
            "servers"
        )
    clients = f"{_span(sessions, 'client')} measured (each rank is one, through libcephfs) on {where}"
    if len(sessions) < len(cells):
        clients = f"metadata: {clients}; data: {mounts}, through the mount"
    return f"{clients}; this says nothing about more nodes"


def _span(numbers: Sequence[int], noun: str = "rank") -> str:
    """
    >>> _span([4]), _span([1, 2, 8]), _span([1])
    ('4 ranks', '1 to 8 ranks', '1 rank')
    """
    low, high = min(numbers, default=0), max(numbers, default=0)
    number = str(high) if low == high else f"{low} to {high}"
    return f"{number} {noun}" if high == 1 else f"{number} {noun}s"
