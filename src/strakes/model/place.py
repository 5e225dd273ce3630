"""Places: the directory in which a cell's plan runs, by default a new one without a required placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from strakes.targets.description import Placement


@dataclass(frozen=True)
class Place:
    """A directory that is created for each visit. Its settings are read back, and a difference is an error.

    ``target``: "" for the measured file system, "against" for the one compared with it. ``placement``: of the plan's
    directory. ``entries``: placement of directories in it, by their names in the engine (``items.0.tree``). ``kept``:
    name of a directory that is kept between visits: pools in it grow, and a file system that moves directories slowly
    has time to do so. A plan in it must remove its files, except pools. ``drawn``: a new directory for each block
    instead, created one block ahead for the same reason; if a hash places directories, each block is placed anew.
    """

    target: Literal["", "against"] = ""
    placement: Placement | None = None
    entries: Mapping[str, Placement] = field(default_factory=dict)
    kept: str = ""
    drawn: bool = False

    def name_in(self, block: int) -> str:
        """Return the name of the directory in a block, or "" for a new directory in each visit."""
        return f"{self.kept}-{block}" if self.drawn else self.kept

    def is_left_empty(self) -> bool:
        """Return whether a visit that was ended early leaves no files behind, so that it can be repeated."""
        return not self.kept or self.drawn

    def is_plain(self) -> bool:
        """Return whether a new directory of the engine suffices."""
        return self.placement is None and not self.entries and not self.kept


PLAIN = Place()
