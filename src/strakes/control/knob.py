"""Knobs: settings of a file system, of its servers or of the kernel, and their valid values.

All knobs are in ``catalogue/*.toml``. A key at the top of a file is the default for all of its knobs. In a default,
``{name}`` stands for the name of the knob.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import inf
from typing import Literal

from strakes.base.errors import BadInputError
from strakes.base.units import format_bytes, parse_bytes

Kind = Literal["integer", "number", "bytes", "choice", "text"]
# Where a setting (knob) is stored. "cluster": in the file system itself, so that any client can change it.
Where = Literal["client", "cluster", "metadata server", "data server"]
# Format of the command output that contains the value of a setting.
Answer = Literal["plain", "lctl", "ceph config dump", "gluster volume info"]

_WORD = re.compile(r"[^\s\x00-\x1f]{1,200}")


@dataclass(frozen=True)
class Knob:
    """Entry of the catalogue of settings.

    A knob is read and set by ``file``, or by the commands ``read``, ``write`` and ``unset``. ``by_hand``: instructions
    for a knob that strakes does not change. ``in_force``: command that prints the values that servers use. ``cluster``:
    command that prints the id of the cluster. ``adjusts``: how the system alters values. ``moves``: settings in the
    same directory that the system changes together with the knob. ``not_from``: a value that can never be changed, and
    the reason. ``unset_sets``: another option, and the value that it gets whenever the knob is unset.
    """

    name: str
    file_systems: tuple[str, ...]
    meaning: str
    kind: Kind
    where: Where
    source: str
    unit: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    file: str = ""
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    in_force: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    answer: Answer = "plain"
    field: str = ""
    by_hand: str = ""
    root: bool = False
    restart: str = ""
    adjusts: str = ""
    moves: tuple[str, ...] = ()
    not_from: tuple[str, str] | None = None
    unset_sets: tuple[str, str] | None = None
    # Corresponding parameter of the file system StorNext, from its tuning guide for small files (Quantum, 2011).
    counterpart: str = ""

    @property
    def changeable(self) -> bool:
        """Return whether strakes can change the knob without a restart of servers."""
        return not self.by_hand and not self.restart

    @property
    def how_to_set(self) -> str:
        """Return instructions to change the knob by hand."""
        if self.by_hand:
            return self.by_hand
        if self.file:
            return f"write to {self.file}"
        words = (word for word in self.write if word != "{ceph}")
        return " ".join(words).replace("{value}", "VALUE").replace("{place}", self.read[-1])

    @property
    def range_text(self) -> str:
        """Return the range of valid values as text."""
        if self.choices:
            return " or ".join(self.choices) if len(self.choices) < 3 else ", ".join(self.choices)
        least, most = self._shown(self.least), self._shown(self.most)
        if least and most:
            return f"{least} to {most}"
        return f"at least {least}" if least else f"at most {most}" if most else ""

    def parse(self, value: str | float) -> str:
        """Return a value as the system spells it. Raises BadInputError if it is not a valid value.

        >>> Knob("x", (), "", "bytes", "client", "", least=4096).parse("64KiB")
        '65536'
        """
        text = str(value).strip()
        canonical = self.canonical(text)
        if self.kind in ("choice", "text"):
            valid = _WORD.fullmatch(text) is not None and (not self.choices or canonical in self.choices)
        else:
            number = as_number(canonical)
            least, most = (-inf if self.least is None else self.least), (inf if self.most is None else self.most)
            whole = number is not None and (self.kind == "number" or number == int(number))
            valid = number is not None and whole and least <= number <= most
        if not valid:
            forms = {"text": "one word", "bytes": "a size such as 64MiB"}
            wanted = self.range_text or forms.get(self.kind, f"a value of kind {self.kind}")
            unit = f" {self.unit}" if self.unit and not self.choices else ""
            what = f"not a valid value for {self.name}: {text!r}"
            raise BadInputError(what, why=self.meaning, remedy=f"It takes {wanted}{unit}.")
        return canonical

    def canonical(self, text: str) -> str:
        """Return a number in canonical spelling, so that equal numbers are equal texts. Return other text unchanged."""
        if self.kind == "bytes" and not text.lstrip("-").isdecimal():
            try:
                return str(parse_bytes(text))
            except BadInputError:
                return text
        number = as_number(text) if self.kind in ("integer", "number", "bytes") else None
        if number is None:
            return text
        return str(int(number)) if number == int(number) else repr(number)

    def shown(self, value: str | None) -> str:
        """Return a value with its unit, as text for messages."""
        if value is None:
            return "not set"
        if self.kind == "bytes" and value.isdecimal():
            return f"{value} ({format_bytes(int(value))})"
        return f"{value} {self.unit}".strip()

    def _shown(self, number: float | None) -> str:
        if number is None:
            return ""
        return format_bytes(number) if self.kind == "bytes" else f"{number:.15g}"


def as_number(text: str) -> float | None:
    """Return a text as a number, or None if it is not a number.

    >>> as_number("-5"), as_number("1_0"), as_number("\uff11")
    (-5, None, None)
    """
    if not text.isascii() or "_" in text:  # Reject what int() also accepts: 1_0, and digits of other scripts.
        return None
    try:
        number = float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return None
    return number if abs(number) < 1e300 else None


# Placeholders in files and commands, such as {device}. knob_bindings.py replaces them.
PLACEHOLDERS = ("device", "bdi", "instance", "file_system", "ceph", "volume")
_COMMANDS = ("file", "read", "write", "unset", "in_force", "cluster", "answer")


@cache
def catalogue() -> tuple[Knob, ...]:
    """Return all knobs of all file systems, in the order of the files."""
    places = sorted((files("strakes.control") / "catalogue").iterdir(), key=lambda place: place.name)
    texts = ((place.read_text(encoding="utf-8"), place.name) for place in places if place.name.endswith(".toml"))
    return tuple(knob for text, name in texts for knob in load(text, name))


def load(text: str, name: str) -> tuple[Knob, ...]:
    """Return the knobs in one file. Raises BadInputError if an entry is invalid."""
    knobs: list[Knob] = []
    knob = ""
    try:
        common = tomllib.loads(text)
        for own in common.pop("knob"):
            knob = own["name"]
            top = {key: value for key, value in common.items() if key not in _COMMANDS or "by_hand" not in own}
            for key, value in (top := top | own).items():
                if isinstance(value, list):
                    top[key] = tuple(word.replace("{name}", knob) if isinstance(word, str) else word for word in value)
            knobs.append(Knob(**top))
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        what, where = "the catalogue of settings is not valid", f"{name}: {knob}" if knob else name
        remedy = "Write the entry like the other entries of the file."
        raise BadInputError(what, where=where, why=str(error), remedy=remedy) from error
    return tuple(knobs)


def find(name: str, knobs: tuple[Knob, ...] | None = None) -> Knob:
    """Return the knob with this name. If there is none, raise BadInputError with similar names."""
    from difflib import get_close_matches

    known = {knob.name: knob for knob in (catalogue() if knobs is None else knobs)}
    if name in known:
        return known[name]
    near = [full for full in known if full.rpartition(".")[2] == name] or get_close_matches(name, known, n=3)
    remedy = f"Did you mean {' or '.join(near)}?" if near else "List all settings: strakes knobs list"
    raise BadInputError(f"there is no setting {name!r}", remedy=remedy)
