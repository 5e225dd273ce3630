"""Parse a TOML file with requirements on a file system."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from strakes.base.errors import BadInputError, did_you_mean
from strakes.base.toml_file import read_toml
from strakes.base.units import parse_bytes, parse_count, parse_rate
from strakes.studies.metadata_ops import OPERATIONS

Kind = Literal["files", "bytes", "files-per-hour", "clients", "bandwidth", "operations-per-s"]
# Kind of requirement -> keys of its table in the TOML file, without kind, name and at_least. "!" marks required keys.
_KEYS: Mapping[str, str] = {
    "files": "",
    "bytes": "",
    "files-per-hour": "clients",
    "clients": "files_per_hour_each!",
    "bandwidth": "operation! clients",
    "operations-per-s": "operation! clients",
}
_STUDIES: Mapping[str, str] = {
    "files-per-hour": "client-scaling",
    "clients": "client-scaling",
    "bandwidth": "stream",
    "operations-per-s": "metadata-ops",
}
_BANDWIDTH = ("read", "write")


@dataclass(frozen=True)
class Need:
    """One requirement. ``at_least``: minimum in files, bytes, clients, B/s or operations per second."""

    name: str
    kind: Kind
    at_least: float
    clients: int | None = None
    operation: str = ""
    files_per_hour_each: float = 0.0

    @property
    def study(self) -> str:
        """Name of the study that measures the required value, or "" if statvfs reports the value."""
        return _STUDIES.get(self.kind, "")


def needs_from_toml(path: Path) -> tuple[str, tuple[Need, ...]]:
    """Return the title and the requirements of a TOML file.

    Raises BadInputError that names the file, the requirement and the invalid key.
    """
    file = read_toml(path, "the list of needs", "need")
    remedy = "Add at least one [[need]] table; examples/needs-s3.toml has some."
    entries = file.tables("need", ("title", "need"), "the file has no [[need]] table", remedy)
    needs = tuple(_need(entry, f"{path}: need {number}") for number, entry in enumerate(entries, start=1))
    return str(file.values.get("title", path.stem)), needs


def _need(entry: Any, where: str) -> Need:
    if not isinstance(entry, Mapping):
        raise BadInputError("a need must be a table", where=where, remedy="Begin each need with [[need]].")
    for what, remedy in _mistakes(entry):
        raise BadInputError(what, where=where, remedy=remedy)
    kind: Kind = entry["kind"]
    amounts = {"at_least": kind, "files_per_hour_each": "files"}
    given = {key: _amount(entry.get(key, 0.0), unit, key, where) for key, unit in amounts.items() if key in entry}
    operation = str(entry.get("operation", ""))
    name = str(entry.get("name", f"{kind} {operation}".strip()))
    return Need(name, kind, clients=entry.get("clients"), operation=operation, **given)


def _mistakes(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kind = entry.get("kind")
    if kind not in get_args(Kind):
        yield f"not a kind of need: {kind!r}", did_you_mean(str(kind), _KEYS)
    keys = _KEYS[str(kind)].split()
    allowed = ("name", "kind", "at_least", *(key.rstrip("!") for key in keys))
    if unknown := next((key for key in entry if key not in allowed), ""):
        yield f"unknown key {unknown!r}", did_you_mean(unknown, allowed)
    required = [key.rstrip("!") for key in keys if key.endswith("!")]
    for key in ("at_least", *required):
        if key not in entry:
            yield f"the key {key!r} is missing", f"This kind needs the keys: {', '.join(('at_least', *required))}."
        if entry[key] == 0:
            yield f"{key} must be more than zero", ""
    known = _BANDWIDTH if kind == "bandwidth" else OPERATIONS
    if entry.get("operation", known[0]) not in known:
        yield f"no operation {entry['operation']!r}", did_you_mean(str(entry["operation"]), known)
    clients = entry.get("clients", 1)
    if type(clients) is not int or clients < 1:
        yield "clients must be a whole number of at least 1", ""
    if kind == "clients" and isinstance(entry["at_least"], float) and entry["at_least"] % 1:
        yield "at_least must be a whole number of clients", ""


def _amount(value: Any, kind: str, key: str, where: str) -> float:
    try:
        if kind == "bandwidth" and not isinstance(value, str):
            remedy = 'Write, for example, "1GiB/s" or "12GB/s" in bytes, "100Gb/s" in bits.'
            raise BadInputError(f"a rate needs a unit: {value!r}", remedy=remedy)
        if isinstance(value, str):
            value = _PARSERS.get(kind, parse_count)(value)
    except BadInputError as error:
        raise BadInputError(f"{key}: {error.what}", where=where, remedy=error.remedy) from error
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise BadInputError(f"{key} must be a number, not {value!r}", where=where)
    return float(value)


_PARSERS: Mapping[str, Callable[[str], float]] = {"bytes": parse_bytes, "bandwidth": parse_rate}
