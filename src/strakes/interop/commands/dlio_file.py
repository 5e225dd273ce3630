"""A configuration of DLIO: its sections and keys, what each of them does here, and the values with their lines."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from strakes.errors import BadInputError, nearest_word
from strakes.file_kinds import OTHER_KINDS, refuse_other_kind
from strakes.files import read_regular
from strakes.interop.commands.words import NEAR, table_of

_MOST_BYTES = 1 << 20
# In one value, each as often as aliases repeat it.
_MOST_VALUES = 100_000
# Remark of a key without effect that needs no note.
QUIET = "changes nothing here"


def _place(text: str) -> tuple[str, str]:
    section, _, key = text.partition(".")
    return section, key


_TABLE = table_of("dlio")
KEYS: Mapping[str, Mapping[str, str]] = _TABLE["keys"]
# Names in older versions.
OLDER = {_place(old): _place(new) for old, new in _TABLE["older"].items()}
_NONE: tuple[Any, ...] = (False, 0, -1, [], {}, "", "none", "None")
NOT_SUPPORTED: Mapping[tuple[str, str], tuple[tuple[Any, ...], str]] = {
    _place(name): (tuple(entry.get("allowed", _NONE)), entry["remedy"])
    for name, entry in _TABLE["not-supported"].items()
}


@dataclass
class Configuration:
    """The values of a configuration by section and key, with the line of each."""

    path: Path
    values: dict[tuple[str, str], Any] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)

    def get(self, section: str, key: str, default: Any = None) -> Any:
        """Return the value, or the default where there is none."""
        value = self.values.get((section, key))
        return default if value is None else value

    def fault(self, section: str, key: str, problem: str, remedy: str) -> BadInputError:
        """Return the error for a value, with its line."""
        line = self.lines.get((section, key))
        where = f"{self.path}:{line}" if line else str(self.path)
        return BadInputError(f"{section}.{key}: {problem}", where=where, remedy=remedy)

    def flag(self, section: str, key: str, *, default: bool) -> bool:
        """Return true or false. Raises BadInputError for anything else."""
        value = self.get(section, key, default)
        if not isinstance(value, bool):
            raise self.fault(section, key, f"{_shown(value)} is neither True nor False", "Give True or False.")
        return value

    def number(self, section: str, key: str, default: float, least: float = 0.0) -> float:
        """Return a number. Raises BadInputError that names the key."""
        value = self.get(section, key, default)
        return self.as_number(section, key, value, least)

    def as_number(self, section: str, key: str, value: Any, least: float = 0.0) -> float:
        """Return a value as a number of at least ``least``. Raises BadInputError that names the key."""
        # YAML 1.1, unlike OmegaConf, takes 1e-3 for a text.
        try:
            number = float(value) if not isinstance(value, bool) else math.nan
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number) or number < least:
            raise self.fault(
                section, key, f"{_shown(value)} is not a number of at least {least:g}", "Give such a number."
            )
        return number

    def whole(self, section: str, key: str, default: int, least: int = 1, most: int = 2**30) -> int:
        """Return a whole number; parts of a byte are left out. Raises BadInputError that names the key."""
        number = self.number(section, key, default, least)
        if number > most:
            raise self.fault(section, key, f"{number:g} is more than {most}", "Give a smaller number.")
        return int(number)

    def word(self, section: str, key: str, default: str, known: tuple[str, ...]) -> str:
        """Return one of the known words. Raises BadInputError that names the key."""
        value = self.get(section, key, default)
        # YAML 1.1 takes the word off for false.
        text = "off" if value is False else str(value).lower()
        if text not in known:
            raise self.fault(section, key, f"{_shown(value)} is not supported", f"Use one of: {', '.join(known)}.")
        return text


def read_configuration(path: Path) -> tuple[Configuration, list[str]]:
    """Read a configuration of DLIO; also what of it has no effect here.

    Raises BadInputError for what is no YAML, for keys that DLIO does not know, and for what is not supported.
    """
    refuse_other_kind(path, "dlio", OTHER_KINDS["dlio"].name)
    remedy = "Give the name of an existing file."
    try:
        text = read_regular(path, _MOST_BYTES, "the configuration cannot be read", remedy).decode("utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise BadInputError(
            "the configuration is not YAML", where=str(path), why=" ".join(str(error).split())
        ) from error
    configuration, notes = Configuration(path), []
    sections = _pairs(root, path, "the configuration")
    if len(sections) == 1 and sections[0][0] == "workload":
        sections = _pairs(sections[0][1], path, "workload")
    for name, node in sections:
        notes += _take_section(configuration, name, node)
    _refuse_unsupported(configuration)
    return configuration, notes


def _take_section(configuration: Configuration, name: str, node: Any) -> list[str]:
    """Put the values of a section into the configuration; return what is to be said about them."""
    path, notes = configuration.path, []
    section = "reader" if name == "data_reader" else name
    if section not in KEYS:
        raise _unknown(f"section {name}", name, KEYS, path, node)
    if isinstance(node, yaml.ScalarNode):
        if section not in ("model", "framework") and node.value:
            raise BadInputError(f"{name} is not a section with keys", where=f"{path}:{_line(node)}")
        entries = [("name" if section == "model" else "", node)] if node.value else []
    else:
        entries = _pairs(node, path, name)
    for given, value in entries:
        place = OLDER.get((section, given), (section, given))
        if place[1] not in KEYS[place[0]]:
            raise _unknown(f"key {section}.{given}", given, KEYS[section], path, value)
        if place in configuration.lines:
            raise BadInputError(f"{section}.{given} is there twice", where=f"{path}:{_line(value)}")
        configuration.values[place] = _plain(value, path)
        configuration.lines[place] = _line(value)
        remark = KEYS[place[0]][place[1]]
        if remark not in ("", QUIET):
            notes.append(f"{section}{'.' if given else ''}{given}: {remark}")
    return notes


def _refuse_unsupported(configuration: Configuration) -> None:
    for place, (allowed, remedy) in NOT_SUPPORTED.items():
        value = configuration.values.get(place)
        # True is 1 for Python, and one checkpoint is not a yes.
        same = (value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed)
        if value is not None and not any(same):
            raise configuration.fault(*place, f"{_shown(value)} is not supported", remedy)


def _pairs(node: Any, path: Path, what: str) -> list[tuple[str, Any]]:
    if not isinstance(node, yaml.MappingNode):
        where = f"{path}:{_line(node)}" if node else str(path)
        raise BadInputError(f"{what} is not a list of KEY: VALUE", where=where, remedy="Give a configuration of DLIO.")
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise BadInputError(f"a key of {what} is not a word", where=f"{path}:{_line(key)}")
    return [(str(key.value), value) for key, value in node.value]


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _count(node: Any, known: dict[int, float]) -> float:
    """Return how many values a node has, those of aliases each time; without end where it is in itself."""
    if id(node) not in known:
        known[id(node)] = math.inf
        parts = [] if isinstance(node, yaml.ScalarNode) else node.value
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in parts for part in pair]
        known[id(node)] = 1 + sum(_count(part, known) for part in parts)
    return known[id(node)]


def _shown(value: Any) -> str:
    """Return what an error says of a value; numbers of YAML may be longer than Python writes."""
    try:
        return reprlib.repr(value)
    except ValueError:
        return "this number"


def _plain(node: Any, path: Path) -> Any:
    try:
        if _count(node, {}) > _MOST_VALUES:
            raise ValueError
        return yaml.SafeLoader("").construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInputError("this is not a valid YAML value", where=f"{path}:{_line(node)}") from error


def _unknown(what: str, name: str, known: Mapping[str, object], path: Path, node: Any) -> BadInputError:
    near = nearest_word(name, list(known), cutoff=NEAR)
    remedy = f"The nearest known one is {near}. " if near else ""
    return BadInputError(
        f"unknown {what}", where=f"{path}:{_line(node)}", remedy=f"{remedy}Known: {', '.join(filter(None, known))}."
    )
