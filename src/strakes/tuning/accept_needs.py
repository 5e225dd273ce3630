"""Needs: requirements in a TOML file, parsed into values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
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
# Keys of each kind, in addition to kind, name and at_least; those with "!" are required.
_KEYS: Mapping[str, str] = {
    "files": "",
    "bytes": "",
    "files-per-hour": "clients",
    "clients": "files_per_hour_each!",
    "bandwidth": "operation! clients",
    "operations-per-s": "operation! clients",
    "operating-life": "files_per_day! file_bytes",
    "service-level": "level!",
}
_STUDIES: Mapping[str, str] = {
    "files-per-hour": "client-scaling",
    "clients": "client-scaling",
    "bandwidth": "stream",
    "operations-per-s": "metadata-ops",
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
        return _STUDIES.get(self.kind, "")


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
    def wrong(what: str, remedy: str = "") -> BadInputError:
        return BadInputError(what, where=where, remedy=remedy)

    if not isinstance(entry, Mapping):
        raise wrong("a need must be a table", "Begin each need with [[need]].")
    kind = next((known for known in get_args(Kind) if known == entry.get("kind")), None)
    if kind is None:
        raise wrong(f"not a kind of need: {entry.get('kind')!r}", f"One of: {', '.join(_KEYS)}.")
    keys = _KEYS[kind].split()
    allowed = ("name", "kind", "at_least", *(key.rstrip("!") for key in keys))
    required = [key.rstrip("!") for key in keys if key.endswith("!")]
    for key in entry:
        if key not in allowed:
            raise wrong(f"unknown key {key!r}", f"The keys of this kind are: {', '.join(allowed)}.")
    for key in (*(() if kind == "service-level" else ("at_least",)), *required):
        if key not in entry:
            raise wrong(f"the key {key!r} is missing")
        if entry[key] == 0:
            raise wrong(f"{key} must be more than zero")
    operation = str(entry.get("operation", ""))
    known = _BANDWIDTH if kind == "bandwidth" else OPERATIONS
    if "operation" in entry and operation not in known:
        raise wrong(f"no operation {operation!r}", f"One of: {', '.join(known)}.")
    clients = entry.get("clients")
    if clients is not None and (not isinstance(clients, int) or isinstance(clients, bool) or clients < 1):
        raise wrong("clients must be a whole number of at least 1")
    at_least = _amount(entry.get("at_least", 0.0), kind, "at_least", where)
    if kind == "clients" and at_least != int(at_least):
        raise wrong("at_least must be a whole number of clients")
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
        if kind == "bandwidth" and not isinstance(value, str):
            remedy = 'Write, for example, "1GiB/s" or "12GB/s" in bytes, "100Gb/s" in bits.'
            raise BadInputError(f"a rate needs a unit: {value!r}", remedy=remedy)
        if isinstance(value, str) and kind in _PARSERS:
            value = _PARSERS[kind](value)
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


_PARSERS: Mapping[str, Callable[[str], float]] = {
    "bytes": parse_bytes,
    "bandwidth": parse_rate,
    "operating-life": _years,
}
