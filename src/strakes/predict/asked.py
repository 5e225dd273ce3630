"""Parse the system size for a forecast (``--at clients=2000,mdts=5``), and files with limits from data sheets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.toml_file import read_toml
from strakes.base.units import parse_count, parse_rate
from strakes.predict.capacity import evidence_of
from strakes.predict.levels import MeasuredLevel, Part, Scale

_COUNTS = ("clients", "nodes", "ranks", "mdts", "osts", "files")
_REMEDY = "Give any of clients, ranks, mdts, osts and files, such as --at clients=2000,mdts=5."
# Maximum size of a system to forecast, as a multiple of the measured size. Forecasts were tested up to 150 times.
_FURTHEST = 1000
_MOST_CAPACITY = 1e18  # Maximum accepted capacity of a component, in operations or bytes per second.
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

_EXAMPLE = "Write, for example: [limits.mdt], and below it: operations_per_s = 40000."
_KNOWN = "Known are " + ", ".join(f"[limits.{table}] {key}" for table, key in _STATED) + "."


@dataclass(frozen=True)
class Asked:
    """System size to forecast: numbers of clients, ranks, targets and files. A missing number stays as measured."""

    counts: Mapping[str, int]

    def scale(self, measured: Scale, *, rank_is_client: bool = False) -> Scale:
        """Return the measured system size with the requested changes. By default, ranks per client stay as measured."""
        counts: dict[str, Any] = dict(self.counts)
        if "clients" in counts and "ranks" not in counts:
            counts["ranks"] = counts["clients"] * (1 if rank_is_client else max(1, measured.ranks // measured.clients))
        scale = replace(measured, **counts)
        return replace(scale, clients=min(scale.clients, scale.ranks))


@dataclass(frozen=True)
class Stated:
    """Limits from data sheets: (component, unit) -> capacity of one such component."""

    capacities: Mapping[tuple[Part, str], float] = field(default_factory=dict)

    def of(self, unit: str) -> dict[Part, float]:
        """Return the limits in the unit ``unit``: for each component, the capacity of one such component."""
        return {part: capacity for (part, limits), capacity in self.capacities.items() if limits == unit}


def parse_asked(text: str) -> Asked:
    """Parse the option --at. Raises BadInputError for unknown names and invalid numbers.

    >>> parse_asked("clients=2000, mdts=5").counts
    {'clients': 2000, 'mdts': 5}
    """
    counts: dict[str, int] = {}
    for item in text.split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        name = "clients" if name == "nodes" else name
        if name not in _COUNTS or not equals:
            raise BadInputError(f"unknown value of --at: {item.strip()!r}", where=f"--at {text}", remedy=_REMEDY)
        if name in counts:
            raise BadInputError(f"--at gives {name} twice", where=f"--at {text}", remedy="Give it once.")
        counts[name] = _count(name, value, text)
    if "ranks" in counts and counts["ranks"] < counts.get("clients", 1):
        raise BadInputError(
            "there are fewer ranks than clients", where=f"--at {text}", remedy="Each client runs at least one rank."
        )
    return Asked(counts)


def _count(name: str, value: str, text: str) -> int:
    try:
        count = parse_count(value)
    except BadInputError:
        count = 0
    if 1 <= count <= 10**12 and count == int(count):
        return int(count)
    what = f"{name} is not a whole number from 1 to 10^12: {value!r}"
    raise BadInputError(what, where=f"--at {text}", remedy="Write, for example, 2000, 40k or 1.5M.")


def read_stated(path: Path) -> Stated:
    """Read a TOML file of limits. Its tables, such as ``[limits.client]``, state the capacity of one component.

    Raises BadInputError for unknown names and invalid values.
    """
    file = read_toml(path, "the file of limits", "limits")
    capacities: dict[tuple[Part, str], float] = {}
    tables = file.values.get("limits")
    for key in file.values:
        if key != "limits":
            raise file.error((key,), f"{key!r} is not known in this file", remedy=f"{_KNOWN} {_EXAMPLE}")
    if not isinstance(tables, dict) or not tables:
        raise BadInputError("the file of limits contains no limit", where=str(path), remedy=f"{_EXAMPLE} {_KNOWN}")
    for table, values in tables.items():
        if not isinstance(values, dict) or not values:
            raise file.error(("limits", table), f"[limits.{table}] contains no limit", remedy=f"{_EXAMPLE} {_KNOWN}")
        for key, value in values.items():
            if (table, key) not in _STATED:
                raise file.error(("limits", table, key), f"[limits.{table}] {key} is not known", remedy=_KNOWN)
            try:
                capacities[_STATED[table, key]] = _capacity(key, value)
            except BadInputError as error:
                raise file.error(("limits", table, key), f"{key}: {error.what}", remedy=error.remedy) from error
    return Stated(capacities)


def _capacity(key: str, value: Any) -> float:
    if key == "bytes_per_s":
        if not isinstance(value, str):
            remedy = 'Write, for example, "12GB/s" or "11GiB/s" in bytes, "100Gb/s" in bits.'
            raise BadInputError(f"a rate needs a unit: {value!r}", remedy=remedy)
        capacity = parse_rate(value)
    elif isinstance(value, str):
        capacity = parse_count(value.removesuffix("/s").removesuffix("op"))
    elif isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise BadInputError(f"not a number: {value!r}", remedy=f"Write, for example, {key} = 40000.")
    else:
        capacity = value if abs(value) > _MOST_CAPACITY else float(value)
    if capacity > _MOST_CAPACITY:
        raise BadInputError(f"{value!r} is too large", remedy="Give the capacity of one component.")
    if capacity <= 0:
        raise BadInputError(f"not above zero: {value!r}", remedy="If a component has no limit, leave it out.")
    return capacity


def why_unknown(
    levels: Sequence[MeasuredLevel], scale: Scale, stated: Mapping[Part, float], *, ranks_needed: bool
) -> str:
    """Return the reason why a forecast for ``scale`` is impossible, or an empty text.

    A forecast for another number of targets, files or (with ``ranks_needed``) ranks needs runs with at least two
    numbers. For targets, counters of busy time or a limit from data sheets also suffice.
    """
    for name, words in _WORDS.items():
        most = max(getattr(level.scale, name) for level in levels)
        if most and getattr(scale, name) > _FURTHEST * most:
            return f"asked for more than {_FURTHEST:,} times the measured number of {words}"
    known = evidence_of(levels, stated).parts
    needed = ("ranks", "mdts", "osts", "files") if ranks_needed else ("mdts", "osts", "files")
    for name in needed:
        numbers = {getattr(level.scale, name) for level in levels}
        if getattr(scale, name) not in numbers and len(numbers) == 1 and name not in known:
            return f"all runs have the same number of {_WORDS[name]}, and no counter or limit shows their capacity"
    return ""


_WORDS = {"clients": "clients", "ranks": "ranks", "mdts": "metadata targets", "osts": "data targets", "files": "files"}
