"""Parse a TOML file with requirements on a file system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from strakes.base.errors import did_you_mean
from strakes.base.toml_file import Key, TomlFile, count_value, one_of, read_toml, text_value
from strakes.base.units import MOST, parse_bytes, parse_count, parse_rate
from strakes.studies.metadata_ops import OPERATIONS

Kind = Literal["files", "bytes", "files-per-hour", "clients", "bandwidth", "operations-per-s"]
_STUDIES: Mapping[str, str] = {
    "files-per-hour": "client-scaling",
    "clients": "client-scaling",
    "bandwidth": "stream",
    "operations-per-s": "metadata-ops",
}


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


def _amount(parse: Callable[[str], float], *, unit: bool = False, whole: bool = False) -> Callable[[object], float]:
    def check(value: object) -> float:
        number = parse(value) if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= MOST:
            raise ValueError(f"expected a number above 0 and at most {MOST:.3g}")
        if (unit and number is value) or (whole and number % 1):
            raise ValueError("a rate needs a unit" if unit else "expected a whole number")
        return float(number)

    return check


def _at_least(check: Callable[[object], float], example: str, *others: Key) -> Mapping[str, Key]:
    keys = (_NAME, _KIND, Key(check, "at_least", f"at_least = {example}", required=True), *others)
    return {key.field: key for key in keys}


def _operation(*names: str) -> Key:
    return Key(one_of(names), "operation", f'operation = "{names[0]}"')


_NAME = Key(text_value, "name", 'name = "capacity"')
_KIND = Key(text_value, "kind", 'kind = "files"')
_CLIENTS = Key(count_value, "clients", "clients = 100")
_EACH = Key(_amount(parse_count), "files_per_hour_each", "files_per_hour_each = 20_000", required=True)
# Kind of requirement -> keys of its table in the TOML file.
_KEYS: Mapping[str, Mapping[str, Key]] = {
    "files": _at_least(_amount(parse_count), '"20M"'),
    "bytes": _at_least(_amount(parse_bytes), '"100TiB"'),
    "files-per-hour": _at_least(_amount(parse_count), '"2M"', _CLIENTS),
    "clients": _at_least(_amount(parse_count, whole=True), "100", _EACH),
    "bandwidth": _at_least(_amount(parse_rate, unit=True), '"12GB/s"', _operation("write", "read"), _CLIENTS),
    "operations-per-s": _at_least(_amount(parse_count), "5000", _operation(*OPERATIONS), _CLIENTS),
}


def needs_from_toml(path: Path) -> tuple[str, tuple[Need, ...]]:
    """Return the title and the requirements of a TOML file.

    Raises BadInputError that names the file, the line and the invalid key.
    """
    file = read_toml(path, "the list of needs", "need")
    remedy = "Add at least one [[need]] table; examples/needs-s3.toml has some."
    entries = file.tables("need", ("title", "need"), "the file has no [[need]] table", remedy)
    needs = tuple(_need(file, number, entry) for number, entry in enumerate(entries))
    return str(file.values.get("title", path.stem)), needs


def _need(file: TomlFile, number: int, entry: Any) -> Need:
    kind: Any = entry.get("kind") if isinstance(entry, Mapping) else entry
    if kind not in get_args(Kind):
        remedy = did_you_mean(str(kind), _KEYS)
        raise file.error(("need", number, "kind"), f"not a kind of need: {kind!r}", remedy=remedy)
    found = file.fields(("need", number), "the need", entry, _KEYS[kind])
    return Need(**{"name": f"{kind} {found.get('operation', '')}".strip(), **found})
