"""Results of Pacemaker's policy engine: the nodes on which resources run after simulated events."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Snapshot:
    """State of a cluster after a simulated event.

    ``places``: resource -> (node, role) pairs where it runs. ``fenced``: nodes that were powered off. ``unclean``:
    nodes that could not be fenced. ``restarted``: resources that were recovered. ``unmanaged``: resources that
    Pacemaker does not manage. ``file``: path of Pacemaker's configuration (CIB) after the event.
    """

    places: dict[str, tuple[tuple[str, str], ...]]
    fenced: frozenset[str] = frozenset()
    unclean: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    unmanaged: frozenset[str] = frozenset()
    file: Path = Path()

    def nodes_of(self, resource: str, role: str = "") -> frozenset[str]:
        """Return the nodes on which a resource runs. A ``role`` selects the nodes where the resource has this role."""
        return frozenset(node for node, own in self.places.get(resource, ()) if role in ("", own))


@dataclass(frozen=True)
class Behaviour:
    """States of a cluster that Pacemaker's policy engine predicts.

    ``steady``: all nodes are up; resources that run only because of the status stored in the CIB are left out.
    ``without``: node -> state after this node has died. ``failed``: service -> state after the first failure of this
    service. ``unanswered``: number of simulations that exceeded their time limit.
    """

    steady: Snapshot
    without: dict[str, Snapshot]
    failed: dict[str, Snapshot]
    unanswered: int = 0
