"""Results of Pacemaker's policy engine: the nodes that run each resource after a simulated event."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Snapshot:
    """State of a cluster after a simulated event. ``places``: resource -> (node, role) pairs."""

    places: dict[str, tuple[tuple[str, str], ...]]
    fenced: frozenset[str] = frozenset()
    unclean: tuple[str, ...] = ()  # nodes that could not be fenced
    restarted: tuple[str, ...] = ()
    unmanaged: frozenset[str] = frozenset()
    file: Path = Path()

    def nodes_of(self, resource: str, role: str = "") -> frozenset[str]:
        """Return the nodes that run a resource, or those that run it in a given role."""
        return frozenset(node for node, own in self.places.get(resource, ()) if role in ("", own))


@dataclass(frozen=True)
class Behaviour:
    """Simulated states: with all nodes up, after the death of each node, and after the failure of each service."""

    steady: Snapshot
    without: dict[str, Snapshot]
    failed: dict[str, Snapshot]
    unanswered: int = 0
