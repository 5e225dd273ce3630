"""Sizes of a system and of its load, and what was measured at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Part = Literal["clients", "links", "mdts", "osts", "shared"]
PARTS: tuple[Part, ...] = get_args(Part)

NOUNS: Mapping[str, tuple[str, str]] = {
    "clients": ("client", "clients"),
    "ranks": ("rank", "ranks"),
    "mdts": ("metadata target", "metadata targets"),
    "osts": ("data target", "data targets"),
    "files": ("file", "files"),
}
PART_NAMES: Mapping[Part, str] = {
    "clients": "the clients' processors",
    "links": "the clients' links",
    "mdts": "the metadata targets",
    "osts": "the data targets",
    "shared": "something that all ranks share, such as a lock",
}


@dataclass(frozen=True)
class Scale:
    """``clients``: nodes that use the file system. ``ranks``: their processes together. ``osts``: 0 where not known.

    ``files``: how many there are already. ``undivided``: each rank has a directory on one metadata target, as much to
    do as the others, and the last one ends the phase.
    """

    clients: int = 1
    ranks: int = 1
    mdts: int = 1
    osts: int = 1
    files: int = 0
    undivided: bool = field(default=False, compare=False)

    def units(self, part: Part) -> float:
        """Return how many of that part there are.

        Of metadata targets with undivided directories: how many would share evenly the load of the busiest one.

        >>> Scale(clients=4, ranks=16, mdts=2).units("mdts"), Scale(ranks=4, mdts=3, undivided=True).units("mdts")
        (2, 2.0)
        """
        if part == "mdts":
            return self.ranks / -(-self.ranks // self.mdts) if self.undivided else self.mdts
        if part == "osts":
            return max(1, self.osts)
        return 1 if part == "shared" else self.clients

    @property
    def text(self) -> str:
        """Return it in words.

        >>> Scale(clients=2000, ranks=16000).text
        '2,000 clients, 16,000 ranks, 1 metadata target, 1 data target'
        """
        return ", ".join(
            f"{count:,} {nouns[count != 1]}" for name, nouns in NOUNS.items() if (count := int(getattr(self, name)))
        )


@dataclass(frozen=True)
class MeasuredLevel:
    """What was measured with one scale.

    ``log_value``: natural logarithm of the median of ``runs``. ``log_error``: its standard error by their scatter, 0
    for a single run. ``busy``: the share of the time for which a unit of a part was busy, by its counters.
    ``from_cache``: caches of clients answered. ``requests``: requests to metadata servers for each operation.
    """

    scale: Scale
    log_value: float
    log_error: float
    busy: Mapping[Part, float] = field(default_factory=dict)
    from_cache: bool = False
    requests: float | None = None
    runs: int = 1
