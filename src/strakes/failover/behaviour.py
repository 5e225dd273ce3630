"""Results of Pacemaker's policy engine: the nodes on which resources run after simulated events."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Snapshot:
    """State of a cluster after a simulated event."""

    places: dict[str, tuple[tuple[str, str], ...]]  # resource -> (node, role) pairs where it runs
    fenced: frozenset[str] = frozenset()  # nodes that were powered off
    unclean: tuple[str, ...] = ()  # nodes that could not be fenced
    restarted: tuple[str, ...] = ()  # resources that were recovered
    unmanaged: frozenset[str] = frozenset()  # resources that Pacemaker does not manage
    file: Path = Path()  # path of the CIB after the event

    def nodes_of(self, resource: str, role: str = "") -> frozenset[str]:
        """Return the nodes on which a resource runs. A ``role`` selects the nodes where the resource has this role."""
        return frozenset(node for node, own in self.places.get(resource, ()) if role in ("", own))


@dataclass(frozen=True)
class Behaviour:
    """States of a cluster that Pacemaker's policy engine predicts."""

    steady: Snapshot  # all nodes are up; resources that run only because of the status in the CIB are left out
    without: dict[str, Snapshot]  # node -> state after this node has died
    failed: dict[str, Snapshot]  # service -> state after its first failure
    unanswered: int = 0  # number of simulations that exceeded their time limit
