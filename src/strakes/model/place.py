"""The directory in which a plan runs. By default it is new, on servers that the file system chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from strakes.targets.description import Placement


@dataclass(frozen=True)
class Place:
    """A directory in which a plan runs, and its required placement on servers.

    ``target``: "" for the measured file system, "against" for the one compared with it. ``placement``: required for the
    directory. ``entries``: required for subdirectories, by their names in the engine (``items.0.tree``). ``kept``: name
    of a directory for all executions of the plan, where pools of files can grow; without a name, each execution gets a
    new directory. ``drawn``: each round of trials gets a new directory, so that placement by a hash varies. It is
    created one round before its use, because the file system may take time to move it to its server.
    """

    target: Literal["", "against"] = ""
    placement: Placement | None = None
    entries: Mapping[str, Placement] = field(default_factory=dict)
    kept: str = ""
    drawn: bool = False

    def name_in(self, block: int) -> str:
        """Return the name of the directory that all executions of a round share, or "" if each creates its own."""
        return f"{self.kept}-{block}" if self.drawn else self.kept

    def is_left_empty(self) -> bool:
        """Return whether a plan that ended early can be repeated, because it then gets an empty directory."""
        return not self.kept or self.drawn

    def is_plain(self) -> bool:
        """Return whether the directory has no required placement, so that the engine can create it."""
        return self.placement is None and not self.entries and not self.kept


PLAIN = Place()
