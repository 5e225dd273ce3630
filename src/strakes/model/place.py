"""The directory where a plan runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from strakes.targets.description import Placement


@dataclass(frozen=True)
class Place:
    """The directory where a plan runs, and the required placements on servers.

    ``target``: "against" for the second file system of a comparison. ``entries``: placements of subdirectories, by name
    (``items.0.tree``). ``kept``: name of a directory for all executions of the plan. Without a name, each execution
    gets a new one. ``drawn``: each round gets a new directory, so that placement by a hash varies. It is
    created one round early, because some file systems move new directories to another server with a delay. Raises
    ValueError for a name that leads to another directory, because another user may have written it.
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
        """Return the name of the directory that all executions of a round share, or "" if each gets a new one."""
        return f"{self.kept}-{block}" if self.drawn else self.kept

    def is_left_empty(self) -> bool:
        """Return whether the engine removes the files after each execution, so that the plan can be repeated."""
        return not self.kept or self.drawn

    def is_plain(self) -> bool:
        """Return whether the engine can create the directory: it is new and has no required placements."""
        return self.placement is None and not self.entries and not self.kept


PLAIN = Place()
