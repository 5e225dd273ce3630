"""A TOML file that people write: read whole, and whatever is wrong in it is told with file, line, key and remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError

# Where something is: names of tables and keys, and numbers for the tables of an array.
Keys = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\-\"' ]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*(?:\"([^\"]+)\"|'([^']+)'|([A-Za-z0-9_-]+))\s*=")


@dataclass(frozen=True)
class TomlFile:
    """``name`` is how messages call the file."""

    name: str
    text: str
    values: dict[str, Any]

    def error(self, keys: Keys, what: str, *, why: str = "", remedy: str = "") -> BadInputError:
        """What is wrong at ``keys``, with the line it stands on."""
        return BadInputError(what, where=f"{self.name}, line {self.line(keys)}", why=why, remedy=remedy)

    def line(self, keys: Keys) -> int:
        """The line on which ``keys`` stand, or the nearest table around them; 1 where there is none.

        >>> TomlFile("x.toml", "a = 1\\n[[knob]]\\nname = 'b'\\n\\n[[knob]]\\nname = 'c'\\n", {}).line(("knob", 1, "name"))
        6
        """
        found = dict(reversed(list(_positions(self.text))))
        if (*keys, 0) in found:  # an array of tables as a whole
            return found[(*keys, 0)]
        while keys and keys not in found:
            keys = keys[:-1]
        return found.get(keys, 1)


def _positions(text: str) -> Iterator[tuple[Keys, int]]:
    """Every table and key with its line."""
    table: Keys = ()
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            name = header[2]
            names = tuple(part.strip(" \"'") for part in name.split("."))
            table = names
            if header[1] == "[[":
                counts[name] = counts.get(name, -1) + 1
                table = (*names, counts[name])
            yield table, number
        elif key := _KEY.match(line):
            yield (*table, key[1] or key[2] or key[3]), number


def read_toml(path: Path, what: str) -> TomlFile:
    """``what`` is the kind of file in messages ("the plan"). Raises BadInputError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        remedy = "Give the name of a file that there is."
        raise BadInputError(f"{what} cannot be read", where=str(path), why=error.strerror or str(error), remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{what} is not text", where=str(path), why=str(error), remedy="Write it in UTF-8.") from error
    return parse_toml(text, str(path), what)


def parse_toml(text: str, name: str, what: str) -> TomlFile:
    """Raises BadInputError for text that is no TOML."""
    import tomllib

    try:
        return TomlFile(name, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        remedy = "Mend that line: text stands in quotes, and a key stands once in its table."
        raise BadInputError(f"{what} is not valid TOML", where=name, why=str(error), remedy=remedy) from error
