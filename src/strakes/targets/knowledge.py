"""Everything that is known of a target at one moment.

For ``strakes target``, and for the runs that are measured on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from strakes.errors import StrakesError
from strakes.targets.description import Description, Layout, Limit, Placement
from strakes.targets.target import Target, TargetFacts
from strakes.targets.unlike import unlike_targets

T = TypeVar("T")


@dataclass(frozen=True)
class Knowledge:
    """All facts about a target, with ``layout`` and ``placement`` of the given directory.

    ``unlike``: a sentence for each target or server that is unhealthy or differs from the others.
    """

    facts: TargetFacts
    description: Description
    layout: Layout | None
    placement: Placement | None
    controls: tuple[str, ...]
    limits: tuple[Limit, ...]
    unlike: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return a JSON document of the facts and all other fields."""
        document = asdict(self)
        facts = document.pop("facts")
        return {**facts, "path": str(facts["path"]), **document}


def know(target: Target) -> Knowledge:
    """Collect all facts about a target.

    Raises StrakesError only if not even the sizes are known; any other missing fact becomes a limit with its reason.
    """
    limits: list[Limit] = []
    facts = target.facts()
    description = target.describe()
    layout = _asked(target.layout, target.path, "read the layout of this directory", limits)
    placement = _asked(target.placement, target.path, "read the placement of this directory", limits)
    unlike = (*unlike_targets(description), *target.trouble())
    return Knowledge(facts, description, layout, placement, target.controls(), (*target.limits(), *limits), unlike)


def _asked(ask: Callable[[Path], T], path: Path, what: str, limits: list[Limit]) -> T | None:
    try:
        return ask(path)
    except StrakesError as error:
        limits.append(Limit(what, error.why or error.what))
        return None
