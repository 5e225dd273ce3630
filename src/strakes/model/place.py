"""The directory where a plan runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from strakes.targets.description import Placement


@dataclass(frozen=True)
class Place:
    """The directory where a plan runs, and the servers on which it and its subdirectories must be.

    ``target``: "against" for the second file system of a comparison. ``entries``: placements of subdirectories, by name
    (``items.0.tree``). ``kept``: name of a directory for all executions of the plan; if empty, each execution gets a
    new one. ``drawn``: each round of the study gets a new directory, so that a placement by hash varies. It is created
    one round early, because some file systems move a new directory to another server only later. Raises ValueError for
    a name that leads to another directory, such as "..", because another user may have written the plan.
    """

    target: Literal["", "against"] = ""
    placement: Placement | None = None
    entries: Mapping[str, Placement] = field(default_factory=dict)
    kept: str = ""
    drawn: bool = False

    def __post_init__(self) -> None:
        if bad := [name for name in (self.kept, *self.entries) if "/" in name or name in (".", "..") or "\0" in name]:
            raise ValueError(f"not the name of a directory: {bad[0]!r}")

    def name_in(self, block: int) -> str:
        """Return the name of the directory for all executions in a round, or "" if each execution gets a new one."""
        return f"{self.kept}-{block}" if self.drawn else self.kept

    def is_left_empty(self) -> bool:
        """Return whether the engine removes the files after each execution, so that the plan can be repeated."""
        return not self.kept or self.drawn

    def is_plain(self) -> bool:
        """Return whether the directory is new and needs no placement, so that the engine can create it."""
        return self.placement is None and not self.entries and not self.kept


PLAIN = Place()
