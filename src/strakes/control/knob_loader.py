"""The catalogue of knobs, in ``catalogue/*.toml``.

A key at the top of a file holds for every knob in it that does not override it; ``{name}`` there is the knob's name.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from strakes.base.errors import BadInputError
from strakes.control.knob import Knob

# Names in braces in files and commands; bindings.py fills them in for a target.
PLACEHOLDERS = ("device", "bdi", "instance", "file_system", "ceph", "volume")
# How strakes reads and changes a knob; a knob that is changed by hand has none of these.
_COMMANDS = ("file", "read", "write", "unset", "in_force", "answer")


@cache
def catalogue() -> tuple[Knob, ...]:
    """Return every knob of every file system, in the order of the files.

    >>> next(knob.unit for knob in catalogue() if knob.name == "osc.max_rpcs_in_flight")
    'requests'
    """
    places = sorted((files("strakes.control") / "catalogue").iterdir(), key=lambda place: place.name)
    texts = ((place.read_text(encoding="utf-8"), place.name) for place in places if place.name.endswith(".toml"))
    return tuple(knob for text, name in texts for knob in load(text, name))


def load(text: str, name: str) -> tuple[Knob, ...]:
    """Read the knobs of one file. Raises BadInputError that names the file and the knob."""
    knobs: list[Knob] = []
    knob = ""
    try:
        common = tomllib.loads(text)
        for own in common.pop("knob"):
            knob = own["name"]
            top = {key: value for key, value in common.items() if key not in _COMMANDS or "by_hand" not in own}
            knobs.append(Knob(**{key: _value(value, knob) for key, value in (top | own).items()}))
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise BadInputError(
            "the catalogue of settings is not valid",
            where=f"{name}: {knob}" if knob else name,
            why=str(error),
            remedy="The entries around it are examples.",
        ) from error
    return tuple(knobs)


def _value(value: Any, name: str) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(word.replace("{name}", name) if isinstance(word, str) else word for word in value)


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
