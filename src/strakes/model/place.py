"""The directory in which a cell's plan runs; by default a new one that the file system may place on any server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from strakes.targets.description import Placement


@dataclass(frozen=True)
class Place:
    """A directory that is created for each visit (one execution of the plan) and must get the required placement.

    ``target``: "" for the measured file system, "against" for the one compared with it. ``placement``: required of the
    plan's directory. ``entries``: required of directories in it, by their names in the engine (``items.0.tree``).
    ``kept``: name of a directory that is kept between visits, so that pools grow and the file system has time to move
    the directory to its place. A plan in it must remove all files except pools. ``drawn``: instead, each block has a
    new directory, created one block ahead for the same reason; a placement by hash then differs between blocks.
    """

    target: Literal["", "against"] = ""
    placement: Placement | None = None
    entries: Mapping[str, Placement] = field(default_factory=dict)
    kept: str = ""
    drawn: bool = False

    def name_in(self, block: int) -> str:
        """Return the name of the directory to use in a block, or "" if each visit uses a new one."""
        return f"{self.kept}-{block}" if self.drawn else self.kept

    def is_left_empty(self) -> bool:
        """Return whether a visit that was ended early leaves no files behind, so that it can be repeated."""
        return not self.kept or self.drawn

    def is_plain(self) -> bool:
        """Return whether nothing is required of the directory, so that the engine can create it."""
        return self.placement is None and not self.entries and not self.kept


PLAIN = Place()
