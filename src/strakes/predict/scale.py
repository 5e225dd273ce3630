"""How large a system is, and how much asks of it: what forecasts go from and to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """``clients``: nodes that ask. ``ranks``: their processes together. ``osts``: 0 where their number is not known.

    ``files``: how many there are already. ``link``: how fast a client's link is by what it was when measured.
    ``undivided``: every rank has a directory that is on one metadata target, as much to do as the others, and the last
    one ends the phase.
    """

    clients: int = 1
    ranks: int = 1
    mdts: int = 1
    osts: int = 1
    files: int = 0
    link: float = 1.0
    undivided: bool = field(default=False, compare=False)

    def units(self, part: Part) -> float:
        """Return how many of that part there are.

        Of metadata targets with undivided directories: how many would share evenly what the busiest has to do.

        >>> Scale(clients=4, ranks=16, mdts=2).units("mdts"), Scale(clients=4, ranks=16).units("links")
        (2, 4.0)
        >>> Scale(ranks=4, mdts=3, undivided=True).units("mdts")
        2.0
        """
        if part == "mdts":
            return self.ranks / -(-self.ranks // self.mdts) if self.undivided else self.mdts
        if part == "osts":
            return max(1, self.osts)
        if part == "links":
            return self.clients * self.link
        return 1 if part == "shared" else self.clients

    @property
    def text(self) -> str:
        """Return it in words.

        >>> Scale(clients=2000, ranks=16000).text
        '2,000 clients, 16,000 ranks, 1 metadata target, 1 data target'
        >>> Scale(link=1 / 12).text.rpartition(", ")[2]
        "links at 1/12 of today's speed"
        """
        counts = [
            f"{count:,} {nouns[count != 1]}" for name, nouns in NOUNS.items() if (count := int(getattr(self, name)))
        ]
        return ", ".join([*counts, *([_say_link(self.link)] if self.link != 1 else [])])


def _say_link(factor: float) -> str:
    if factor > 1:
        return f"links {factor:.3g} times as fast as today's"
    times = 1 / factor
    share = f"1/{times:.0f}" if abs(times - round(times)) < 0.01 * times else f"{100 * factor:.2g} %"
    return f"links at {share} of today's speed"


@dataclass(frozen=True)
class MeasuredLevel:
    """What was measured with one scale.

    ``log_value``: natural logarithm of the median. ``log_error``: its standard error, of so many ``runs``. ``busy``:
    the share of the time for which a unit of a part was at work, of those parts whose counters tell. ``from_cache``:
    clients answered from what they remember. ``requests``: how many of them reached servers of metadata for an
    operation, over all phases of the visits.
    """

    scale: Scale
    log_value: float
    log_error: float
    busy: Mapping[Part, float] = field(default_factory=dict)
    from_cache: bool = False
    requests: float | None = None
    runs: int = 1


def dimensions(levels: Sequence[MeasuredLevel]) -> frozenset[str]:
    """Return the dimensions of the scale that differ between levels.

    >>> sorted(dimensions([MeasuredLevel(Scale(1, 2), 0.0, 0.1), MeasuredLevel(Scale(2, 4), 0.5, 0.1)]))
    ['clients', 'ranks']
    """
    names = ("clients", "ranks", "mdts", "osts", "files")
    return frozenset(name for name in names if len({getattr(level.scale, name) for level in levels}) > 1)
