"""Scope of a run: numbers of clients (as the file system counts clients), ranks and nodes. All functions are pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from strakes.base.language import gettext, ngettext
from strakes.model.cell import Cell


def scope_of(cells: Sequence[Cell], measured_ranks: Sequence[int], environment: Mapping[str, Any]) -> str:
    """Return the scope of a run as text. ``measured_ranks``: numbers of ranks of the measured cells.

    >>> scope_of([], [1, 8], {"host": "n1"})  # doctest: +NORMALIZE_WHITESPACE
    'one client measured: 1 to 8 ranks on node n1; this says nothing about more clients or about the limits of the
    servers'
    """
    ranks = _span(measured_ranks)
    nodes = sorted(environment.get("engine", {}).get("nodes", {})) or [str(environment.get("host", "this node"))]
    where = (
        gettext("node {name}", name=nodes[0])
        if len(nodes) == 1
        else gettext("{count} nodes ({names})", count=len(nodes), names=", ".join(nodes))
    )
    # With libcephfs, each rank is a client with its own session.
    sessions = [cell.plan.ranks for cell in cells if cell.plan.inside_ceph()]
    mounts = ngettext("one client", "{count} clients (one on each node)", len(nodes))
    if not sessions:
        measured = gettext("{clients} measured: {ranks} on {where}", clients=mounts, ranks=ranks, where=where)
        limits = gettext("this says nothing about more clients or about the limits of the servers")
        return f"{measured}; {limits}"
    inside = gettext(
        "{clients} measured (each rank is a client, through libcephfs) on {where}",
        clients=_span(sessions, "client"),
        where=where,
    )
    if len(sessions) < len(cells):
        metadata = gettext("metadata: {clients}", clients=inside)
        inside = f"{metadata}; {gettext('data: {clients}, because data goes through the mount', clients=mounts)}"
    return f"{inside}; {gettext('this says nothing about more nodes')}"


# Messages on the number of ranks or clients: for one, for several, for a range.
_NUMBERS = {
    "rank": ("1 rank", "{high} ranks", "{low} to {high} ranks"),
    "client": ("1 client", "{high} clients", "{low} to {high} clients"),
}


def _span(numbers: Sequence[int], noun: str = "rank") -> str:
    """Return the range of some numbers, with a noun, as text.

    >>> _span([4]), _span([1, 2, 8]), _span([1])
    ('4 ranks', '1 to 8 ranks', '1 rank')
    """
    low, high = min(numbers, default=0), max(numbers, default=0)
    one, several, span = _NUMBERS[noun]
    return gettext(span if low < high else one if high == 1 else several, low=low, high=high)
