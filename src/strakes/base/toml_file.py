"""Read TOML files that users write. Errors name the file, the line, the key and a remedy."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError, did_you_mean
from strakes.base.file_kinds import TOML_KINDS, kind_of, refuse_other_kind
from strakes.base.files import read_regular
from strakes.base.schemas import example_names, shipped

_MOST_BYTES = 1 << 20
# Maximum number of dots in a line. The memory of tomllib is proportional to the square of the number of dots in a key.
_MOST_DOTS = 200

_MOST_BITS = 64  # Maximum size of an integer. Random seeds need 64 bits, one more than TOML 1.0 guarantees.

# Path to a value: names of tables and keys, and indices in arrays of tables.
Keys = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*(\[\[?)([A-Za-z0-9_.\-\"' \t]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*(?:\"([^\"]+)\"|'([^']+)'|([A-Za-z0-9_-]+))\s*=")


@dataclass(frozen=True)
class Key:
    """A key of a table. ``check``: function that returns the value of ``field``, or raises ValueError."""

    check: Callable[[object], Any]
    field: str
    example: str
    required: bool = False


@dataclass(frozen=True)
class TomlFile:
    """A parsed TOML file. ``name``: the file's name in messages."""

    name: str
    text: str
    values: dict[str, Any]

    def error(self, keys: Keys, what: str, *, why: str = "", remedy: str = "") -> BadInputError:
        """Return an error about the value at ``keys``. It names the file and the line."""
        return BadInputError(what, where=f"{self.name}, line {self.line(keys)}", why=why, remedy=remedy)

    def tables(self, key: str, known: Collection[str], lacking: str, remedy: str) -> list[Any]:
        """Return the tables called ``key``. Raises BadInputError if they are missing, or for a key not in ``known``."""
        if unknown := sorted(set(self.values) - set(known)):
            raise self.error((unknown[0],), f"unknown key {unknown[0]!r}", remedy=did_you_mean(unknown[0], known))
        tables = self.values.get(key)
        if not isinstance(tables, list) or not tables:
            raise BadInputError(lacking, where=self.name, remedy=remedy)
        return tables

    def fields(self, at: Keys, whose: str, table: object, keys: Mapping[str, Key]) -> dict[str, Any]:
        """Return field -> value for the table at ``at``. Raises BadInputError. ``whose``: table's name in messages."""
        if not isinstance(table, Mapping):
            raise self.error(at, f"{whose} must be a table", remedy=f"Begin it with [[{at[0]}]].")
        if unknown := next((key for key in table if key not in keys), ""):
            raise self.error((*at, unknown), f"unknown key {unknown!r}", remedy=did_you_mean(unknown, keys))
        if lacking := next((name for name, key in keys.items() if key.required and name not in table), ""):
            remedy = f"Write, for example: {keys[lacking].example}"
            raise self.error(at, f"{whose} lacks the key {lacking}", remedy=remedy)
        found = {}
        for name, value in table.items():
            try:
                found[keys[name].field] = keys[name].check(value)
            except (ValueError, BadInputError) as error:
                why, remedy = f"{value!r}: {error}", f"Write, for example: {keys[name].example}"
                if isinstance(error, BadInputError):
                    why, remedy = error.what, error.remedy
                raise self.error((*at, name), f"{name} has an invalid value", why=why, remedy=remedy) from None
        return found

    def line(self, keys: Keys) -> int:
        """Return the line number of the value at ``keys``, or of the table that contains it.

        >>> text = "a = 1\\n[[knob]]\\nname = 'b'\\n\\n[[knob]]\\nname = 'c'\\n"
        >>> TomlFile("x.toml", text, {}).line(("knob", 1, "name"))
        6
        """
        lines = dict(reversed(list(_positions(self.text))))
        if (*keys, 0) in lines:
            return lines[(*keys, 0)]
        while keys and keys not in lines:
            keys = keys[:-1]
        return lines.get(keys, 1)


def _positions(text: str) -> Iterator[tuple[Keys, int]]:
    table: Keys = ()
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            name = header[2].strip()
            table = tuple(part.strip(" \"'") for part in name.split("."))
            if header[1] == "[[":
                counts[name] = counts.get(name, -1) + 1
                table = (*table, counts[name])
            yield table, number
        elif key := _KEY.match(line):
            yield (*table, key[1] or key[2] or key[3]), number


def read_toml(path: Path, what: str, kind: str) -> TomlFile:
    """Read a TOML file. ``what``: the file's name in messages. ``kind``: the top-level key that such files have.

    Raises BadInputError. For another kind of file, the error names the command that reads such files.
    """
    refuse_other_kind(path, kind, TOML_KINDS[kind].name)
    try:
        text = read_regular(path, _MOST_BYTES, f"{what} cannot be read", _how_to_get(path, kind)).decode()
    except UnicodeDecodeError as error:
        remedy = "Save it in UTF-8."
        raise BadInputError(f"{what} is not text", where=str(path), why=str(error), remedy=remedy) from error
    file = parse_toml(text, str(path), what)
    other = next((key for key in TOML_KINDS if key in file.values), kind)
    if other != kind:
        found, wanted = TOML_KINDS[other], TOML_KINDS[kind].name
        what = f"this file is {found.name}, not {wanted}"
        raise BadInputError(what, where=str(path), remedy=f"Use: {found.commands}")
    return file


def _how_to_get(path: Path, kind: str) -> str:
    for name in () if os.path.exists(path) else example_names():
        example = shipped("examples") / name
        if example.name == path.name and (found := kind_of(example)) and found[0] == kind:
            return f"{name} is an example of strakes. Write it to a file: strakes examples {name} -o {path.name}"
    return "Give the name of an existing file."


def text_value(value: object) -> str:
    """Return the value if it is a string that is not empty. Raises ValueError for other values."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected a string")
    return value


def flag_value(value: object) -> bool:
    """Return the value if it is a boolean. Raises ValueError for other values."""
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def count_value(value: object) -> int:
    """Return the value if it is a whole number of at least 1. Raises ValueError for other values."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9:
        raise ValueError("expected a whole number of at least 1")
    return value


def one_of(choices: tuple[str, ...]) -> Callable[[object], str]:
    """Return a function that checks a value. It raises ValueError unless the value is one of ``choices``."""

    def check(value: object) -> str:
        if value not in choices:
            raise ValueError(f"expected one of: {', '.join(choices)}")
        return str(value)

    return check


def parse_toml(text: str, name: str, what: str) -> TomlFile:
    """Parse TOML. ``name``: name of the file. ``what``: name of its kind. Raises BadInputError for invalid TOML."""
    import tomllib

    try:
        if any(line.count(".") > _MOST_DOTS for line in text.split("\n")):
            raise ValueError(f"a line has more than {_MOST_DOTS} dots")
        values = tomllib.loads(text)
        for each in _leaves(values):
            if isinstance(each, str) and "\0" in each:
                raise ValueError("a string has a NUL byte, which file names and program arguments cannot contain")
            if isinstance(each, int) and each.bit_length() > _MOST_BITS:
                raise ValueError(f"a number has more than {_MOST_BITS} bits")
        return TomlFile(name, text, values)
    except (ValueError, RecursionError) as error:
        remedy = "Correct that line. Put text in quotes, and use a key only once in a table."
        raise BadInputError(f"{what} is not valid TOML", where=name, why=str(error), remedy=remedy) from error


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict | list):
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value
