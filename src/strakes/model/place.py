"""The directory that a cell's plan uses. By default it is new, and the file system may place it on any server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from strakes.targets.description import Placement


@dataclass(frozen=True)
class Place:
    """A directory for the executions of a cell's plan, and the placement on servers that it must get.

    ``target``: "" for the measured file system, "against" for the one compared with it. ``placement``: required for the
    directory. ``entries``: required for subdirectories, by their names in the engine (``items.0.tree``). Each execution
    gets a new directory, except if ``kept`` names one that all executions use: pools of files then grow, and the file
    system has time to move the directory, but the plan must remove all other files. ``drawn``: each block gets a new
    directory, created one block ahead to have time to move; placement by a hash then varies between blocks.
    """

    target: Literal["", "against"] = ""
    placement: Placement | None = None
    entries: Mapping[str, Placement] = field(default_factory=dict)
    kept: str = ""
    drawn: bool = False

    def name_in(self, block: int) -> str:
        """Return the name of the directory to use in a block, or "" if each execution of the plan gets a new one."""
        return f"{self.kept}-{block}" if self.drawn else self.kept

    def is_left_empty(self) -> bool:
        """Return whether an early end of the plan leaves no files behind, so that the plan can be repeated."""
        return not self.kept or self.drawn

    def is_plain(self) -> bool:
        """Return whether the directory has no required placement, so that the engine can create it."""
        return self.placement is None and not self.entries and not self.kept


PLAIN = Place()
