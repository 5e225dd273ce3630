"""What is asked for (``--at clients=2000,mdts=5``), and what data sheets state of the system that is asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError
from strakes.predict.scale import MeasuredLevel, Part, Scale
from strakes.toml_file import read_toml
from strakes.units import parse_bytes

_COUNTS = ("clients", "nodes", "ranks", "mdts", "osts", "files")
_REMEDY = "Give any of clients, ranks, mdts, osts, files and link, such as --at clients=2000,mdts=5."
_MOST = 10**12
# What one unit of a part can state, and the unit of the figures that it limits.
_STATED: Mapping[tuple[str, str], tuple[Part, str]] = {
    ("client", "operations_per_s"): ("clients", "op/s"),
    ("client", "bytes_per_s"): ("clients", "B/s"),
    ("link", "bytes_per_s"): ("links", "B/s"),
    ("mdt", "operations_per_s"): ("mdts", "op/s"),
    ("ost", "operations_per_s"): ("osts", "op/s"),
    ("ost", "bytes_per_s"): ("osts", "B/s"),
    ("shared", "operations_per_s"): ("shared", "op/s"),
    ("shared", "bytes_per_s"): ("shared", "B/s"),
}

_KNOWN = (
    "Known are "
    + ", ".join(f"[limits.{table}] {key}" for table, key in _STATED)
    + '; for example bytes_per_s = "12GB/s".'
)


@dataclass(frozen=True)
class Asked:
    """The dimensions that are to change, and to what; ``link_bytes_per_s``: of each client's link."""

    counts: Mapping[str, int]
    link_bytes_per_s: float | None = None

    def scale(self, measured: Scale, link_factor: float = 1.0, *, rank_is_client: bool = False) -> Scale:
        """Return the scale asked for, seen from a measured one.

        Ranks of each client stay as many as they are unless given; one where each rank stands for a client.
        """
        counts: dict[str, Any] = dict(self.counts)
        if "clients" in counts and "ranks" not in counts:
            counts["ranks"] = counts["clients"] * (1 if rank_is_client else max(1, measured.ranks // measured.clients))
        scale = replace(measured, **counts, link=measured.link * link_factor)
        return replace(scale, clients=min(scale.clients, scale.ranks))

    @property
    def text(self) -> str:
        """Return it as it is given."""
        link = [f"link={self.link_bytes_per_s:.0f}B/s"] if self.link_bytes_per_s else []
        return ",".join([*(f"{name}={count}" for name, count in self.counts.items()), *link])


@dataclass(frozen=True)
class Stated:
    """``capacities``: of one unit of a part, by the unit of the figures that it limits (``op/s`` or ``B/s``)."""

    capacities: Mapping[tuple[Part, str], float] = field(default_factory=dict)

    def of(self, unit: str) -> dict[Part, float]:
        """Return what limits figures of that unit."""
        return {part: capacity for (part, limits), capacity in self.capacities.items() if limits == unit}


def parse_asked(text: str) -> Asked:
    """Parse ``clients=2000,mdts=5``. Raises BadInputError.

    >>> parse_asked("clients=2000, mdts=5").counts
    {'clients': 2000, 'mdts': 5}
    """
    counts: dict[str, int] = {}
    link = None
    for item in text.split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        if name == "link" and equals:
            link = float(parse_bytes(value.removesuffix("/s")))
            continue
        if name not in _COUNTS or not equals:
            raise BadInputError(f"--at does not know {item.strip()!r}", where=f"--at {text}", remedy=_REMEDY)
        name = "clients" if name == "nodes" else name
        if name in counts:
            raise BadInputError(f"--at gives {name} twice", where=f"--at {text}", remedy=_REMEDY)
        if (
            not (value.isascii() and value.replace("_", "").isdigit())
            or not 1 <= int(value.replace("_", "")[:13]) <= _MOST
        ):
            raise BadInputError(
                f"{name} is not a number from 1 to 10^12: {value!r}", where=f"--at {text}", remedy=_REMEDY
            )
        counts[name] = int(value.replace("_", ""))
    if "ranks" in counts and counts["ranks"] < counts.get("clients", 1):
        raise BadInputError(
            "there are fewer ranks than clients", where=f"--at {text}", remedy="Each client runs at least one rank."
        )
    return Asked(counts, link)


def read_stated(path: Path) -> Stated:
    """Read the tables in ``[limits]``: what one client, link, metadata target, data target and what all share can do.

    Raises BadInputError.
    """
    file = read_toml(path, "the limits of the system", "limits")
    capacities: dict[tuple[Part, str], float] = {}
    tables = file.values.get("limits")
    if set(file.values) != {"limits"} or not isinstance(tables, dict):
        raise file.error((), "the file has to have tables in limits and nothing else", remedy=_KNOWN)
    for table, values in tables.items():
        if not isinstance(values, dict):
            raise file.error(("limits", table), f"limits.{table} is not a table", remedy=_KNOWN)
        for key, value in values.items():
            if (table, key) not in _STATED:
                raise file.error(("limits", table, key), f"[limits.{table}] {key} is not known", remedy=_KNOWN)
            bad = file.error(("limits", table, key), f"{key} is not a rate above zero: {value!r}", remedy=_KNOWN)
            capacities[_STATED[table, key]] = _capacity(value, bad)
    return Stated(capacities)


def _capacity(value: Any, error: BadInputError) -> float:
    if isinstance(value, str):
        try:
            value = parse_bytes(value.removesuffix("/s"))
        except BadInputError as bad:
            raise error from bad
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e18:
        raise error
    return float(value)


def link_factor(asked: Asked, stated: Stated) -> float:
    """Return by what factor the links asked for are faster. Raises BadInputError where nobody says what they are."""
    if asked.link_bytes_per_s is None:
        return 1.0
    today = stated.of("B/s").get("links")
    if today is None:
        raise BadInputError(
            "how fast the links of today are is not known",
            where=f"--at {asked.text}",
            remedy='Say it in the file of --system: [limits.link] bytes_per_s = "12GB/s".',
        )
    return asked.link_bytes_per_s / today


def not_bounded(levels: tuple[MeasuredLevel, ...], scale: Scale, stated: Mapping[Part, float]) -> str:
    """Return why nothing can be said at a scale; empty where something can.

    Of each dimension that changes there has to be a measurement with several values, a counter or a stated limit.
    """
    told = {part for level in levels for part in level.busy} | set(stated)
    needs: list[tuple[str, frozenset[str], frozenset[str]]] = [
        ("clients", frozenset({"clients", "ranks"}), frozenset({"clients", "links", "mdts"})),
        ("ranks", frozenset({"clients", "ranks"}), frozenset({"mdts"})),
        ("mdts", frozenset({"mdts"}), frozenset({"mdts"})),
        ("osts", frozenset({"osts"}), frozenset({"osts"})),
        ("files", frozenset({"files"}), frozenset()),
    ]
    for name, dimensions, parts in needs:
        if getattr(scale, name) in {getattr(level.scale, name) for level in levels}:
            continue
        varied = any(len({getattr(level.scale, dimension) for level in levels}) > 1 for dimension in dimensions)
        if not varied and not told & parts:
            return (
                f"measured with one number of {_SPOKEN[name]} only, and neither a counter nor a stated limit tells more"
            )
    return ""


_SPOKEN = {"clients": "clients", "ranks": "ranks", "mdts": "metadata targets", "osts": "data targets", "files": "files"}
