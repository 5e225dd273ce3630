"""The behaviour of a configuration as values: places of resources after each trial, and the order of actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

# A resource, an operation and a node; pseudo operations have neither resource nor node.
Action = tuple[str, str, str]


@dataclass(frozen=True)
class Snapshot:
    """The cluster after a trial.

    ``places`` gives, for each resource, the nodes on which it runs with its role there; ``fenced`` are the nodes whose
    power was cut; ``before`` gives, for each action that was done, all that had to be over first; ``stuck`` are the
    resources whose actions wait for each other, so that none of them is ever done; ``unclean`` are nodes that could not
    be fenced, ``restarted`` the resources that were recovered, ``unmanaged`` those that are left alone; ``file`` is the
    CIB afterwards.
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
        """Return the nodes on which a resource runs, in this role where one is given."""
        return frozenset(node for node, own in self.places.get(resource, ()) if role in ("", own))

    def waits(self, later: Action, earlier: Action) -> bool:
        """Return whether an action had to wait for another one, directly or by others between."""
        seen, waiting = set[Action](), [later]
        while waiting:
            for action in self.before.get(waiting.pop(), frozenset()) - seen:
                seen.add(action)
                waiting.append(action)
        return earlier in seen


@dataclass(frozen=True)
class Behaviour:
    """The behaviour of a configuration: with all nodes up, and after each trial.

    ``without`` has the death of each node, ``returned`` what its return then does, ``emptied`` what happens when a node
    is put into standby, ``failed`` the first failure of each service. ``steady`` does not list resources that
    run only with the status that the CIB has. ``unanswered`` counts the trials without an answer.
    """

    steady: Snapshot
    without: dict[str, Snapshot]
    returned: dict[str, Snapshot]
    emptied: dict[str, Snapshot]
    failed: dict[str, Snapshot]
    unanswered: int = 0
