"""The catalogue of knobs, read strictly from ``catalogue/*.toml``: a wrong entry is named with its file and line.

What a file says at its top is said for every knob in it that does not say otherwise; ``{name}`` there is the knob's.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from strakes.errors import BadInputError
from strakes.knobs.knob import ANSWERS, COUNTERPARTS, KINDS, WHERES, Knob
from strakes.toml_file import Keys, TomlFile, flag_value, one_of, parse_toml, text_value

# What stands in braces in files and words, and is known of a target (bindings.py) or of the change.
PLACEHOLDERS = ("device", "bdi", "instance", "file_system", "ceph", "volume")
_IN_WRITE = ("value", "place")
_NAME = re.compile(r"[A-Za-z0-9_.:*-]+")


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("it is not a number")
    return value


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
        raise ValueError("it is not a list of words")
    return tuple(value)


def _command(allowed: tuple[str, ...]) -> Callable[[object], tuple[str, ...]]:
    def check(value: object) -> tuple[str, ...]:
        words = _words(value)
        _check_placeholders(" ".join(words), allowed)
        return words

    return check


def _file(value: object) -> str:
    path = text_value(value)
    if not path.startswith(("/sys/", "/proc/sys/", "/proc/fs/")):
        raise ValueError("it is not a file in /sys or /proc")
    _check_placeholders(path, PLACEHOLDERS)
    return path


def _check_placeholders(text: str, allowed: tuple[str, ...]) -> None:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise ValueError(f"its braces do not match ({error})") from None
    unknown = [name for name in names if name not in allowed]
    if unknown:
        raise ValueError(f"{{{unknown[0]}}} is not known; there are {', '.join(allowed)}")


def _pattern(value: object) -> str:
    text = text_value(value)
    try:
        groups = re.compile(text, re.MULTILINE).groups
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from None
    if groups != 1:
        raise ValueError("it needs one group, which holds the value")
    return text


def _link(value: object) -> str:
    text = text_value(value)
    if not text.startswith("https://"):
        raise ValueError("it is not an https:// address")
    return text


def _not_from(value: object) -> tuple[str, str]:
    words = _words(value)
    if len(words) != 2:
        raise ValueError("it is not a pair of a value and a reason")
    return words[0], words[1]


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError("a name has only letters, digits and . : * _ -")
    return value


_REQUIRED = ("name", "meaning", "kind", "where", "source")
# How strakes reads and changes a knob itself: nothing for one that is changed by hand.
_WAYS = ("file", "read", "write", "unset", "in_force", "answer")
_CHECKS: Mapping[str, Callable[[object], Any]] = {
    "name": _name,
    "meaning": text_value,
    "kind": one_of(KINDS),
    "where": one_of(WHERES),
    "source": _link,
    "unit": text_value,
    "least": _number,
    "most": _number,
    "choices": _words,
    "file": _file,
    "read": _command(PLACEHOLDERS),
    "write": _command((*PLACEHOLDERS, *_IN_WRITE)),
    "unset": _command(PLACEHOLDERS),
    "in_force": _command(PLACEHOLDERS),
    "answer": one_of(ANSWERS),
    "field": _pattern,
    "by_hand": text_value,
    "root": flag_value,
    "restart": text_value,
    "adjusts": text_value,
    "not_from": _not_from,
    "counterpart": one_of(COUNTERPARTS),
}


@cache
def catalogue() -> tuple[Knob, ...]:
    """Every knob of every file system, in the order of the files. Raises BadInputError that names a wrong line.

    >>> next(knob.unit for knob in catalogue() if knob.name == "osc.max_rpcs_in_flight")
    'requests'
    """
    knobs: list[Knob] = []
    places = sorted(
        (file for file in (files("strakes.knobs") / "catalogue").iterdir() if file.name.endswith(".toml")),
        key=lambda file: file.name,
    )
    for place in places:
        knobs += load(place.read_text(encoding="utf-8"), place.name, {knob.name for knob in knobs})
    return tuple(knobs)


def load(text: str, name: str, taken: Collection[str] = ()) -> tuple[Knob, ...]:
    """Read the knobs of one file; names that are ``taken`` are another file's.

    Raises BadInputError with file, line and key.
    """
    file = parse_toml(text, name, "the catalogue")
    common = {key: value for key, value in file.values.items() if key not in ("file_systems", "knob")}
    for key, value in common.items():
        if key not in _CHECKS or key == "name":
            remedy = "A catalogue has file_systems, keys for all of its knobs, and [[knob]] tables."
            raise file.error((key,), f"unknown key {key!r}", remedy=remedy)
        _checked(file, (key,), _CHECKS[key], _with_name(value, key))
    file_systems = _checked(file, ("file_systems",), _words, file.values.get("file_systems"))
    entries = file.values.get("knob")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise file.error(("knob",), "the catalogue has no [[knob]] table", remedy="Add at least one [[knob]] table.")
    knobs: dict[str, Knob] = {}
    for number, entry in enumerate(entries):
        knob = _knob(file, number, entry, common, file_systems)
        if knob.name in knobs or knob.name in taken:
            raise file.error(
                ("knob", number, "name"), f"two knobs are called {knob.name}", remedy="Give one of them another name."
            )
        knobs[knob.name] = knob
    return tuple(knobs.values())


def _knob(
    file: TomlFile,
    number: int,
    own: Mapping[str, object],
    common: Mapping[str, object],
    file_systems: tuple[str, ...],
) -> Knob:
    at: Keys = ("knob", number)
    taken = {key: value for key, value in common.items() if key not in _WAYS or "by_hand" not in own}
    entry = {key: _with_name(value, own.get("name")) for key, value in (taken | dict(own)).items()}
    unknown = next((key for key in entry if key not in _CHECKS), None)
    if unknown is not None:
        raise file.error((*at, unknown), f"unknown key {unknown!r}", remedy=f"The keys are: {', '.join(_CHECKS)}.")
    lacking = next((key for key in _REQUIRED if key not in entry), None)
    if lacking is not None:
        raise file.error(at, f"the knob lacks the key {lacking}", remedy=f"Every knob has: {', '.join(_REQUIRED)}.")
    knob = Knob(
        file_systems=file_systems,
        **{key: _checked(file, (*at, key), _CHECKS[key], value) for key, value in entry.items()},
    )
    key, why = _contradiction(knob)
    if why:
        raise file.error(
            (*at, key),
            f"the entry of {knob.name} contradicts itself",
            why=why,
            remedy="The entries around it are examples.",
        )
    return knob


def _with_name(value: object, name: object) -> object:
    if not isinstance(value, list) or not isinstance(name, str):
        return value
    return [word.replace("{name}", name) if isinstance(word, str) else word for word in value]


def _checked(file: TomlFile, keys: Keys, check: Callable[[object], Any], value: object) -> Any:
    try:
        return check(value)
    except ValueError as error:
        raise file.error(
            keys,
            f"{keys[-1]} has an invalid value",
            why=f"{value!r}: {error}",
            remedy="The entries around it are examples.",
        ) from None


def _contradiction(knob: Knob) -> tuple[str, str]:
    """Return the key at fault and why; empty when all is well."""
    ways = [key for key, used in (("file", knob.file), ("read", knob.read), ("by_hand", knob.by_hand)) if used]
    numeric = knob.kind in ("integer", "number", "bytes")
    checks = (
        (len(ways) != 1, "name", "it needs exactly one of file, read and by_hand"),
        (bool(knob.read) != bool(knob.write), "read", "read and write go together"),
        (
            not any("{value}" in word for word in knob.write) and bool(knob.write),
            "write",
            "it has no place for the {value}",
        ),
        (
            bool(knob.choices) != (knob.kind == "choice"),
            "kind",
            ("the kind choice needs choices, and no other kind has them"),
        ),
        (not numeric and (knob.least is not None or knob.most is not None), "kind", "only numbers have least and most"),
        (
            knob.least is not None and knob.most is not None and knob.least > knob.most,
            "least",
            "least is greater than most",
        ),
        (bool(knob.file) and knob.where != "client", "file", "files of the kernel are the client's"),
        (
            bool(knob.unset) != (knob.answer in ("ceph config dump", "gluster volume info")),
            "unset",
            "such answers can already say that it is not set",
        ),
    )
    return next(((key, why) for wrong, key, why in checks if wrong), ("", ""))


def find(name: str, knobs: tuple[Knob, ...] | None = None) -> Knob:
    """Return the knob of that name. Raises BadInputError with the nearest names."""
    from difflib import get_close_matches

    known = {knob.name: knob for knob in (catalogue() if knobs is None else knobs)}
    if name in known:
        return known[name]
    short = [full for full in known if full.rpartition(".")[2] == name]
    near = short or get_close_matches(name, known, n=3)
    remedy = f"Did you mean {' or '.join(near)}?" if near else "strakes knobs list shows all settings."
    raise BadInputError(f"there is no setting {name!r} here", remedy=remedy)
