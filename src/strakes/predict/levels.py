"""Scales (sizes of a system and its load) and levels (measurements at one scale)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from strakes.model.portrait import Setting
from strakes.model.setting_text import level_text

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
# Two measurements are comparable if their requests per operation differ by at most this factor. A cache then serves at
# most 20% of the requests. Whole runs differ by about 14% without a cache (docs/statistics.md).
_SAME_WORK = 1.25
# Rates of fewer ranks that are this many times higher were measured in a cache. Contention costs less than that.
_TOO_FAST = 20.0


@dataclass(frozen=True)
class Scale:
    """Size of a system and its load. ``osts`` is 0 if the number of data targets is unknown.

    ``files``: number of files before the measurement. ``undivided``: all ranks do the same amount of work, each in a
    directory on one metadata target.
    """

    clients: int = 1
    ranks: int = 1
    mdts: int = 1
    osts: int = 1
    files: int = 0
    undivided: bool = field(default=False, compare=False)

    def units(self, part: Part) -> float:
        """Return the number of components of a kind. Unevenly loaded metadata targets count as fewer.

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
        """Return the scale as text.

        >>> Scale(clients=2000, ranks=16000).text
        '2,000 clients, 16,000 ranks, 1 metadata target, 1 data target'
        """
        return ", ".join(
            f"{count:,} {nouns[count != 1]}" for name, nouns in NOUNS.items() if (count := int(getattr(self, name)))
        )


@dataclass(frozen=True)
class MeasuredLevel:
    """Measurements of one quantity at one scale. ``log_value`` is the logarithm of the median of ``runs`` runs.

    ``log_error``: standard error of ``log_value``. ``busy``: utilization (0 to 1) by component. ``from_cache``: client
    caches served the operations. ``requests``: requests to metadata servers per operation. ``caution``: warning if the
    value may be the speed of this node's memory, else empty.
    """

    scale: Scale
    log_value: float
    log_error: float
    busy: Mapping[Part, float] = field(default_factory=dict)
    from_cache: bool = False
    requests: float | None = None
    runs: int = 1
    caution: str = ""


@dataclass(frozen=True)
class FigureLevels:
    """One measured quantity of some runs. ``settings``: the settings that distinguish it from the other quantities.

    ``rank_is_client``: each rank counts as a client. ``local``: only this node can reach the file system.
    """

    study: str
    operation: str
    unit: str
    settings: Mapping[str, Setting]
    levels: tuple[MeasuredLevel, ...]
    rank_is_client: bool = False
    local: bool = False

    @property
    def comparable(self) -> tuple[MeasuredLevel, ...]:
        """Return the measurements with the same work and the same use of caches as the one at the largest scale."""
        most = self.outermost.log_value + (math.inf if self.is_time else math.log(_TOO_FAST))
        return tuple(level for level in self.levels if level.log_value <= most and _is_same_work(level, self.outermost))

    @property
    def left_out(self) -> tuple[MeasuredLevel, ...]:
        """Return the measurements that are not comparable with the one at the largest scale."""
        return tuple(level for level in self.levels if level not in self.comparable)

    @property
    def outermost(self) -> MeasuredLevel:
        """Return the measurement at the largest scale."""
        return max(self.levels, key=lambda level: (level.scale.ranks, level.scale.mdts, level.scale.files))

    @property
    def is_time(self) -> bool:
        """Return whether the quantity is a time, not a rate."""
        return self.unit == "s"

    @property
    def name(self) -> str:
        """Return the operation, the identifying settings and the study as text."""
        settings = [
            level_text(key, value)
            for key, value in self.settings.items()
            if key != "operation" and value not in ("", None)
        ]
        return ", ".join([self.operation.replace("-", " "), *settings]) + f" ({self.study})"


def _is_same_work(level: MeasuredLevel, other: MeasuredLevel) -> bool:
    if level.from_cache != other.from_cache:
        return False
    if level.requests is None or other.requests is None:
        return True
    least, most = sorted((level.requests, other.requests))
    return most <= _SAME_WORK * least
