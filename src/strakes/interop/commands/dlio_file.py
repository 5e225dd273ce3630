"""Read a configuration of DLIO: its values with their lines, and remarks on keys that work differently here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from strakes.errors import BadInputError
from strakes.file_kinds import OTHER_KINDS, refuse_other_kind
from strakes.files import read_regular
from strakes.interop.commands.configuration import Configuration, at, shown, unknown_name
from strakes.interop.commands.words import table_of

_MOST_BYTES = 1 << 20
# Limit for one value with expanded aliases.
_MOST_VALUES = 100_000
# Remark of a key without effect that needs no note.
QUIET = "changes nothing here"


def _place(text: str) -> tuple[str, str]:
    section, _, key = text.partition(".")
    return section, key


_TABLE = table_of("dlio")
KEYS: Mapping[str, Mapping[str, str]] = _TABLE["keys"]
# Keys of older versions, and the present ones.
OLDER = {_place(old): _place(new) for old, new in _TABLE["older"].items()}
_NONE: tuple[Any, ...] = (False, 0, -1, [], {}, "", "none", "None")
NOT_SUPPORTED: Mapping[tuple[str, str], tuple[tuple[Any, ...], str]] = {
    _place(name): (tuple(entry.get("allowed", _NONE)), entry["remedy"])
    for name, entry in _TABLE["not-supported"].items()
}


def read_configuration(path: Path) -> tuple[Configuration, list[str]]:
    """Return a configuration of DLIO and the remarks on its keys.

    Raises BadInputError for invalid YAML, for keys that DLIO does not know, and for unsupported values.
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
    configuration, notes = Configuration(path, "{}.{}"), []
    sections = _pairs(root, path, "the configuration")
    if len(sections) == 1 and sections[0][0] == "workload":
        sections = _pairs(sections[0][1], path, "workload")
    for name, node in sections:
        notes += _take_section(configuration, name, node)
    _refuse_unsupported(configuration)
    return configuration, notes


def _take_section(configuration: Configuration, name: str, node: Any) -> list[str]:
    """Store the values of a section in the configuration; return the remarks on its keys."""
    path, notes = configuration.path, []
    section = "reader" if name == "data_reader" else name
    if section not in KEYS:
        raise unknown_name(f"section {name}", name, KEYS, at(path, _line(node)))
    if isinstance(node, yaml.ScalarNode):
        if section not in ("model", "framework") and node.value:
            raise BadInputError(f"{name} is not a section with keys", where=at(path, _line(node)))
        entries = [("name" if section == "model" else "", node)] if node.value else []
    else:
        entries = _pairs(node, path, name)
    for given, value in entries:
        place = OLDER.get((section, given), (section, given))
        if place[1] not in KEYS[place[0]]:
            raise unknown_name(f"key {section}.{given}", given, KEYS[section], at(path, _line(value)))
        if place in configuration.lines:
            raise BadInputError(f"{section}.{given} is there twice", where=at(path, _line(value)))
        configuration.values[place] = _plain(value, path)
        configuration.lines[place] = _line(value)
        remark = KEYS[place[0]][place[1]]
        if remark not in ("", QUIET):
            notes.append(f"{section}{'.' if given else ''}{given}: {remark}")
    return notes


def _refuse_unsupported(configuration: Configuration) -> None:
    for place, (allowed, remedy) in NOT_SUPPORTED.items():
        value = configuration.values.get(place)
        # In Python True == 1, but a count of one does not mean yes.
        same = (value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed)
        if value is not None and not any(same):
            raise configuration.fault(*place, f"{shown(value)} is not supported", remedy)


def _pairs(node: Any, path: Path, what: str) -> list[tuple[str, Any]]:
    if not isinstance(node, yaml.MappingNode):
        where = at(path, _line(node)) if node else str(path)
        raise BadInputError(f"{what} is not a list of KEY: VALUE", where=where, remedy="Give a configuration of DLIO.")
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise BadInputError(f"a key of {what} is not a word", where=at(path, _line(key)))
    return [(str(key.value), value) for key, value in node.value]


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _count(node: Any, known: dict[int, float]) -> float:
    """Return the number of values in a node with expanded aliases; infinite if the node contains itself."""
    if id(node) not in known:
        known[id(node)] = math.inf
        parts = [] if isinstance(node, yaml.ScalarNode) else node.value
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in parts for part in pair]
        known[id(node)] = 1 + sum(_count(part, known) for part in parts)
    return known[id(node)]


def _plain(node: Any, path: Path) -> Any:
    try:
        if _count(node, {}) > _MOST_VALUES:
            raise ValueError
        return yaml.SafeLoader("").construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInputError("this is not a valid YAML value", where=at(path, _line(node))) from error
