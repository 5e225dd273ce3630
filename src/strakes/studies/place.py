"""Where a cell's plan runs: by default in a directory of its own, else in one whose place on the file system is chosen beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from strakes.targets.model import Placement


@dataclass(frozen=True)
class Place:
    """A directory made for every visit, its settings read back; what differs from what was asked for is an error.

    ``target``: the file system measured, or the one it is measured ``against``. ``placement`` is that of the plan's directory;
    ``entries`` places directories in it by name (as the engine calls them: ``items.0.tree``). A place with ``kept`` is a
    directory of that name that stays from visit to visit: pools in it grow, and a file system that moves directories to their targets at
    leisure has the time to do so. A plan in it has to remove what it makes, pools aside.
    """

    target: Literal["", "against"] = ""
    placement: Placement | None = None
    entries: Mapping[str, Placement] = field(default_factory=dict)
    kept: str = ""

    def is_plain(self) -> bool:
        """Whether the engine's own new directory will do."""
        return self.placement is None and not self.entries and not self.kept


PLAIN = Place()


def place_record(place: Place) -> dict[str, Any]:
    """As the store keeps it; empty for a plain place.

    >>> place_record(PLAIN), place_record(Place("against"))["target"]
    ({}, 'against')
    """
    return {} if place == PLAIN else asdict(place)


def place_from_record(record: Mapping[str, Any]) -> Place:
    """The inverse of :func:`place_record`.

    >>> place = Place(placement=Placement("manual", (1,)), entries={"items.0.tree": Placement("manual", (0,))})
    >>> place_from_record(place_record(place)) == place
    True
    """
    if not record:
        return PLAIN
    return Place(
        target=record["target"],
        placement=_placement(record["placement"]) if record["placement"] else None,
        entries={name: _placement(one) for name, one in record["entries"].items()},
        kept=record["kept"],
    )


def _placement(record: Mapping[str, Any]) -> Placement:
    return Placement(**{**record, "metadata_targets": tuple(record["metadata_targets"])})
