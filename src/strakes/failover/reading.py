"""Strict reader of TOML tables: errors name the missing, mistyped or unknown key and its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from strakes.errors import BadInputError
from strakes.units import parse_seconds


class ConfigurationSection:
    """One table. ``finish`` refuses the keys that were not read."""

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, Mapping):
            raise BadInputError("expected a table", where=where, why=f"it is {values!r}")
        self.where = where
        self._values = dict(values)
        self._known: list[str] = []

    def text(self, key: str, default: str | None = None, *, choices: tuple[str, ...] = ()) -> str:
        """Return a text. Raises BadInputError when it is missing, empty or not one of the choices."""
        value = self._take(key, default)
        if not isinstance(value, str) or not (value.strip() or default == ""):
            raise self.wrong(key, value, f"one of {', '.join(choices)}" if choices else "a text")
        if choices and value not in choices:
            raise self.wrong(key, value, f"one of {', '.join(choices)}")
        return value

    def number(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """Return a whole number. Raises BadInputError when it is missing, below ``least`` or not a whole number."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.wrong(key, value, f"a whole number of at least {least}")
        return value

    def flag(self, key: str) -> bool:
        """Return true or false. Raises BadInputError for anything else."""
        value = self._take(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def seconds(self, key: str, default: str) -> float:
        """Return a time in seconds, written as in "3s". Raises BadInputError for anything else."""
        value = self._take(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, value, 'a time such as "3s"')
        return parse_seconds(value)

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return a list of texts. Raises BadInputError when it is missing or contains an empty text or another type."""
        value = self._take(key, default)
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
            raise self.wrong(key, value, "a list of texts")
        return tuple(value)

    def mapping(self, key: str) -> dict[str, str]:
        """Return a table of texts. Raises BadInputError when it is missing or holds anything else."""
        value = self._take(key, None)
        if not isinstance(value, Mapping) or not all(isinstance(one, str) and one for one in value.values()):
            raise self.wrong(key, value, "a table of texts")
        return dict(value)

    def section(self, key: str) -> ConfigurationSection:
        """Return a table. Raises BadInputError when it is missing."""
        return ConfigurationSection(self._take(key, None), f"{self.where}: {key}")

    def maybe(self, key: str) -> ConfigurationSection | None:
        """Return a table, or None when it is missing."""
        self._known.append(key)
        return self.section(key) if key in self._values else None

    def sections(self, key: str) -> tuple[ConfigurationSection, ...]:
        """Return a list of tables. Raises BadInputError for anything else."""
        value = self._take(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, value, f"[[{key}]] tables")
        return tuple(ConfigurationSection(one, f"{self.where}: {key} {number}") for number, one in enumerate(value, 1))

    def named(self, key: str) -> dict[str, ConfigurationSection]:
        """Return tables by name. Raises BadInputError for anything else."""
        value = self._take(key, {})
        if not isinstance(value, Mapping):
            raise self.wrong(key, value, f"[{key}.NAME] tables")
        return {name: ConfigurationSection(one, f"{self.where}: {key}.{name}") for name, one in value.items()}

    def finish(self) -> None:
        """Raise BadInputError for the first key that was not read."""
        for key in self._values:
            if key not in self._known:
                close = get_close_matches(key, self._known, 1)
                hint = f"Did you mean {close[0]!r}? " if close else ""
                raise BadInputError(
                    f"unknown key {key!r}", where=self.where, remedy=f"{hint}The keys are: {', '.join(self._known)}."
                )

    def wrong(self, key: str, value: object, wanted: str) -> BadInputError:
        """Return the error for a missing or wrong value; ``wanted`` describes a valid value."""
        if value is None:
            return BadInputError(f"the key {key!r} is missing", where=self.where, remedy=f"It must be {wanted}.")
        return BadInputError(f"{key!r} must be {wanted}", where=self.where, why=f"it is {value!r}")

    def _take(self, key: str, default: object) -> Any:
        self._known.append(key)
        value = self._values.get(key, default)
        # Texts are written to line-based configuration files and to XML, which cannot hold NUL.
        if any(not text.isprintable() for text in _texts(value)):
            raise self.wrong(key, value, "without control characters and ends of lines")
        return value


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a value, including the names of keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
