"""The behaviour of a configuration as values: places of resources after each trial, and the order of actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

# A resource, an operation and a node; pseudo operations have neither resource nor node.
Action = tuple[str, str, str]


@dataclass(frozen=True)
class Snapshot:
    """The cluster after a trial.

    ``places``: resource -> nodes on which it runs, with its role there. ``fenced``: nodes that were powered off.
    ``before``: completed action -> actions that had to complete first. ``stuck``: resources whose actions wait for
    each other in a circle. ``unclean``: nodes that could not be fenced. ``restarted``: resources that were recovered.
    ``unmanaged``: resources that Pacemaker does not manage. ``file``: the CIB afterwards.
    """

    places: dict[str, tuple[tuple[str, str], ...]]
    fenced: frozenset[str] = frozenset()
    before: dict[Action, frozenset[Action]] = field(default_factory=dict)
    stuck: frozenset[str] = frozenset()
    unclean: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    unmanaged: frozenset[str] = frozenset()
    file: Path = Path()

    def nodes_of(self, resource: str, role: str = "") -> frozenset[str]:
        """Return the nodes on which a resource runs; with ``role``, only those on which it has this role."""
        return frozenset(node for node, own in self.places.get(resource, ()) if role in ("", own))

    def waits(self, later: Action, earlier: Action) -> bool:
        """Return whether ``later`` had to wait for ``earlier``, directly or transitively."""
        seen, waiting = set[Action](), [later]
        while waiting:
            for action in self.before.get(waiting.pop(), frozenset()) - seen:
                seen.add(action)
                waiting.append(action)
        return earlier in seen


@dataclass(frozen=True)
class Behaviour:
    """The behaviour of a configuration: with all nodes up, and after each trial.

    ``without`` has the death of each node, ``emptied`` what happens when a node
    is put into standby, ``failed`` the first failure of each service. ``steady`` does not list resources that
    run only with the status that the CIB has. ``unanswered`` counts the trials without an answer.
    """

    steady: Snapshot
    without: dict[str, Snapshot]
    emptied: dict[str, Snapshot]
    failed: dict[str, Snapshot]
    unanswered: int = 0
