"""Results of Pacemaker's policy engine: places of resources after simulated events."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Snapshot:
    """The cluster after a simulated event.

    ``places``: resource -> nodes on which it runs, each with the role of the resource there. ``fenced``: nodes that
    were powered off. ``unclean``: nodes that could not be fenced. ``restarted``: resources that were recovered.
    ``unmanaged``: resources that Pacemaker does not manage. ``file``: the CIB after the event.
    """

    places: dict[str, tuple[tuple[str, str], ...]]
    fenced: frozenset[str] = frozenset()
    unclean: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    unmanaged: frozenset[str] = frozenset()
    file: Path = Path()

    def nodes_of(self, resource: str, role: str = "") -> frozenset[str]:
        """Return the nodes on which a resource runs; with ``role``, only those on which it has this role."""
        return frozenset(node for node, own in self.places.get(resource, ()) if role in ("", own))


@dataclass(frozen=True)
class Behaviour:
    """The states of a cluster that the policy engine predicts: with all nodes up, and after each event.

    ``without``: node -> state after its death. ``failed``: service -> state after its first failure. ``steady`` leaves
    out resources that run only with the status stored in the CIB. ``unanswered``: number of simulations that did not
    end in time.
    """

    steady: Snapshot
    without: dict[str, Snapshot]
    failed: dict[str, Snapshot]
    unanswered: int = 0
