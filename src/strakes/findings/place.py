"""Where a cell's plan runs.

The default is a new directory; a place can also fix its layout or its target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from strakes.targets.description import Placement


@dataclass(frozen=True)
class Place:
    """A directory made for every visit. Its settings are read back, and a difference is an error.

    ``target``: the file system measured, or the one it is measured ``against``. ``placement``: of the plan's
    directory; ``entries`` places directories in it by name (as the engine calls them: ``items.0.tree``). A place with
    ``kept`` is a directory of that name that stays from visit to visit: pools in it grow, and a file system that moves
    directories to their targets at leisure has time to do so. A plan in it must remove its files, except
    pools. ``drawn``: instead a new directory for each block, made one block ahead for the same reason; where a hash
    places directories, every block then draws anew.
    """

    target: Literal["", "against"] = ""
    placement: Placement | None = None
    entries: Mapping[str, Placement] = field(default_factory=dict)
    kept: str = ""
    drawn: bool = False

    def name_in(self, block: int) -> str:
        """Return the name of the directory in a block; empty for a new directory in each visit."""
        return f"{self.kept}-{block}" if self.drawn else self.kept

    def is_left_empty(self) -> bool:
        """Return whether nothing of a visit that was ended early stays in the directory, so that it can be repeated."""
        return not self.kept or self.drawn

    def is_plain(self) -> bool:
        """Whether the engine's own new directory will do."""
        return self.placement is None and not self.entries and not self.kept


PLAIN = Place()
