"""Needs: requirements in a TOML file, parsed into values."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from strakes.base.errors import BadInputError
from strakes.base.toml_file import read_toml
from strakes.base.units import parse_bytes, parse_rate, parse_seconds
from strakes.model.service_level import ServiceLevel, parse_service_level
from strakes.studies.metadata_ops import OPERATIONS

Kind = Literal[
    "files", "bytes", "files-per-hour", "clients", "bandwidth", "operations-per-s", "operating-life", "service-level"
]
# Optional and required keys of each kind, in addition to kind, name and at_least.
_KEYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "files": ((), ()),
    "bytes": ((), ()),
    "files-per-hour": (("clients",), ()),
    "clients": (("files_per_hour_each",), ("files_per_hour_each",)),
    "bandwidth": (("operation", "clients"), ("operation",)),
    "operations-per-s": (("operation", "clients"), ("operation",)),
    "operating-life": (("files_per_day", "file_bytes"), ("files_per_day",)),
    "service-level": (("level",), ("level",)),
}
_BANDWIDTH = ("read", "write")
_TOP_KEYS = ("title", "need")


@dataclass(frozen=True)
class Need:
    """One need. ``at_least``: in files, bytes, files an hour, clients, B/s, operations a second, or seconds."""

    name: str
    kind: Kind
    at_least: float
    clients: int | None = None
    operation: str = ""
    files_per_hour_each: float = 0.0
    files_per_day: float = 0.0
    file_bytes: float = 0.0
    level: ServiceLevel | None = None

    @property
    def study(self) -> str:
        """The study that answers it, or "" if facts of the file system do."""
        return {
            "files-per-hour": "client-scaling",
            "clients": "client-scaling",
            "bandwidth": "stream",
            "operations-per-s": "metadata-ops",
        }.get(self.kind, "")


def needs_from_toml(path: Path) -> tuple[str, tuple[Need, ...]]:
    """Return title and needs of a file. Raises BadInputError with the file, the need and the key at fault."""
    document = read_toml(path, "the list of needs", "need").values
    unknown = sorted(set(document) - set(_TOP_KEYS))
    if unknown:
        raise BadInputError(
            f"unknown key {unknown[0]!r}", where=str(path), remedy=f"The keys are: {', '.join(_TOP_KEYS)}."
        )
    entries = document.get("need", [])
    if not isinstance(entries, list) or not entries:
        remedy = "Add at least one [[need]] table; examples/needs-s3.toml has some."
        raise BadInputError("the file has no need", where=str(path), remedy=remedy)
    needs = tuple(_need(entry, f"{path}: need {number}") for number, entry in enumerate(entries, start=1))
    return str(document.get("title", path.stem)), needs


def _need(entry: Any, where: str) -> Need:
    if not isinstance(entry, Mapping):
        raise BadInputError("a need must be a table", where=where, remedy="Begin each need with [[need]].")
    kind = next((known for known in get_args(Kind) if known == entry.get("kind")), None)
    if kind is None:
        raise BadInputError(
            f"not a kind of need: {entry.get('kind')!r}", where=where, remedy=f"One of: {', '.join(_KEYS)}."
        )
    optional, required = _KEYS[kind]
    allowed = ("name", "kind", "at_least", *optional)
    for key in entry:
        if key not in allowed:
            raise BadInputError(
                f"unknown key {key!r}", where=where, remedy=f"The keys of this kind are: {', '.join(allowed)}."
            )
    for key in (*(() if kind == "service-level" else ("at_least",)), *required):
        if key not in entry:
            raise BadInputError(f"the key {key!r} is missing", where=where)
        if entry[key] == 0:
            raise BadInputError(f"{key} must be more than zero", where=where)
    operation = str(entry.get("operation", ""))
    known = _BANDWIDTH if kind == "bandwidth" else OPERATIONS
    if "operation" in entry and operation not in known:
        raise BadInputError(f"no operation {operation!r}", where=where, remedy=f"One of: {', '.join(known)}.")
    clients = entry.get("clients")
    if clients is not None and (not isinstance(clients, int) or isinstance(clients, bool) or clients < 1):
        raise BadInputError("clients must be a whole number of at least 1", where=where)
    at_least = _amount(entry.get("at_least", 0.0), kind, "at_least", where)
    if kind == "clients" and at_least != int(at_least):
        raise BadInputError("at_least must be a whole number of clients", where=where)
    return Need(
        name=str(entry.get("name", f"{kind} {operation}".strip())),
        kind=kind,
        at_least=at_least,
        clients=clients,
        operation=operation,
        files_per_hour_each=_amount(entry.get("files_per_hour_each", 0.0), "files", "files_per_hour_each", where),
        files_per_day=_amount(entry.get("files_per_day", 0.0), "files", "files_per_day", where),
        file_bytes=_amount(entry.get("file_bytes", 0.0), "bytes", "file_bytes", where),
        level=parse_service_level(str(entry["level"])) if "level" in entry else None,
    )


def _amount(value: Any, kind: str, key: str, where: str) -> float:
    """Return the number for a value, which may be a text with a unit for sizes, rates and times."""
    try:
        if isinstance(value, str) and kind == "bytes":
            value = parse_bytes(value)
        elif kind == "bandwidth" and not isinstance(value, str):
            remedy = 'Write, for example, "1GiB/s" or "12GB/s" in bytes, "100Gb/s" in bits.'
            raise BadInputError(f"a rate needs a unit: {value!r}", remedy=remedy)
        elif isinstance(value, str) and kind == "bandwidth":
            value = parse_rate(value)
        elif isinstance(value, str) and kind == "operating-life":
            value = _years(value)
    except BadInputError as error:
        raise BadInputError(f"{key}: {error.what}", where=where, remedy=error.remedy) from error
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise BadInputError(f"{key} must be a number, not {value!r}", where=where)
    return float(value)


def _years(text: str) -> float:
    """Return the seconds of a duration, which may be in years.

    >>> _years("2y") / 86400
    730.5
    """
    number, year, rest = text.strip().partition("y")
    return 365.25 * parse_seconds(f"{number.strip()}d") if year and not rest else parse_seconds(text)
