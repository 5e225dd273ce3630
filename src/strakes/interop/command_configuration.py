"""Parsed configuration file of another tool, checked against the table of the tool's sections and keys."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from strakes.base.errors import BadInputError, did_you_mean
from strakes.base.file_kinds import OTHER_KINDS, refuse_other_kind
from strakes.base.files import read_regular
from strakes.interop.command_options import NEAR, bytes_of_ior, table_of, wrong

_MOST_BYTES = 1 << 20
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
# Values that switch a feature off. strakes accepts them even for a key that it does not support.
_SWITCHED_OFF = (*_FALSE, "0.0", "-1", "none")
# Mark of keys that strakes ignores without a message.
QUIET = "changes nothing here"


@dataclass(frozen=True)
class Entry:
    """One value in a configuration file, with its section, key and line number."""

    section: str
    key: str
    value: str
    line: int


@dataclass
class Configuration:
    """A parsed configuration file.

    ``form``: how messages show section and key, such as "[{}] {}". ``notes``: how strakes differs from the tool, for
    the user. ``entries``: entries by (section, key).
    """

    tool: str
    path: Path
    form: str
    notes: list[str] = field(default_factory=list)
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)

    @classmethod
    def of_file(cls, tool: str, path: Path, form: str) -> tuple[Configuration, str]:
        """Return an empty configuration and the file's text. Raises BadInputError if the file is of another kind."""
        refuse_other_kind(path, tool, OTHER_KINDS[tool].name)
        what, remedy = "the configuration cannot be read", "Give the name of an existing file."
        try:
            return cls(tool, path, form), read_regular(path, _MOST_BYTES, what, remedy).decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadInputError("the configuration is not text", where=str(path), why=str(error)) from error

    def fill(self, entries: Iterable[Entry]) -> None:
        """Add the entries. Raises BadInputError for an unknown section or key, or an unsupported value."""
        keys, not_supported = keys_of(self.tool), table_of(self.tool)["not-supported"]
        for entry in entries:
            place, shown = (entry.section, entry.key), self.form.format(entry.section, entry.key)
            known = keys.get(entry.section)
            if known is None:
                raise unknown_name(f"section {entry.section}", entry.section, keys, self.at(entry.line))
            if entry.key not in known:
                raise unknown_name(f"key {shown}", entry.key, known, self.at(entry.line))
            if place in self.entries:
                raise BadInputError(f"{shown} is given twice", where=self.at(entry.line), remedy="Remove one.")
            self.entries[place] = entry
            refused = not_supported.get(f"{entry.section}.{entry.key}", not_supported.get(entry.key))
            if refused and entry.value and entry.value.lower() not in refused.get("allowed", _SWITCHED_OFF):
                raise self.fault(*place, f"{reprlib.repr(entry.value)} is not supported", refused["remedy"])
            if entry.value and known[entry.key] not in ("", QUIET):
                self.note(f"{shown.rstrip('.')}: {known[entry.key]}")

    def note(self, text: str) -> None:
        """Add a sentence to the notes, unless it is already there."""
        if text not in self.notes:
            self.notes.append(text)

    def at(self, line: int | None) -> str:
        """Return "FILE:LINE" for messages, or the file alone if the line is unknown."""
        return f"{self.path}:{line}" if line else str(self.path)

    def text(self, section: str, key: str, default: str = "") -> str:
        """Return the value of a key as text, or the default if it is absent or empty."""
        entry = self.entries.get((section, key))
        return entry.value if entry and entry.value else default

    def fault(self, section: str, key: str, problem: str, remedy: str) -> BadInputError:
        """Return an error about the value of a key. It names the file and the line."""
        entry = self.entries.get((section, key))
        where = self.at(entry.line if entry else None)
        return BadInputError(f"{self.form.format(section, key)}: {problem}", where=where, remedy=remedy)

    def flag(self, section: str, key: str, *, default: bool) -> bool:
        """Return the value of a key as true or false. Raises BadInputError for any other value."""
        return self.word(section, key, str(default).lower(), (*_TRUE, *_FALSE)) in _TRUE

    def word(self, section: str, key: str, default: str, known: tuple[str, ...]) -> str:
        """Return the value of a key in lower case. Raises BadInputError if it is not one of the words ``known``."""
        text = self.text(section, key, default).lower()
        if text not in known:
            problem = f"{reprlib.repr(text)} is not supported"
            raise self.fault(section, key, problem, f"Use one of: {', '.join(known)}.")
        return text

    def number(self, section: str, key: str, default: float, least: float = 0.0, most: float = math.inf) -> float:
        """Return the value of a key as a number. Raises BadInputError if it is below ``least`` or above ``most``."""
        text = self.text(section, key, str(default))
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and least <= number <= most):
            limits = f"at least {least:g}" if most == math.inf else f"{least:g} to {most}"
            raise self.fault(section, key, f"{reprlib.repr(text)} is not a number of {limits}", "Give such a number.")
        return number

    def whole(self, section: str, key: str, default: int, least: int = 1, most: int = 2**30) -> int:
        """Return the value of a key as a number, rounded down. Raises the errors of :meth:`number`."""
        return int(self.number(section, key, default, least, most))

    def size(self, section: str, key: str, default: str) -> int:
        """Return the value of a key as a size in bytes. Raises BadInputError unless it has the form of IOR (2m)."""
        text = self.text(section, key, default)
        try:
            size = bytes_of_ior(text)
        except BadInputError as error:
            raise self.fault(section, key, error.what, error.remedy) from error
        if size < 1:
            raise self.fault(section, key, f"{text!r} is not an amount of data", "Give at least one byte.")
        return size


def file_of(tool: str, words: Sequence[str], example: str) -> Path:
    """Return the path of the configuration. Raises BadInputError unless ``words`` is exactly one path."""
    if len(words) != 1 or not words[0]:
        remedy = f"Give one file: strakes run -n 4 {tool} {example}"
        raise wrong(tool, f"{tool} takes exactly one argument, a configuration file", remedy=remedy)
    return Path(words[0])


def unknown_name(what: str, name: str, known: Iterable[str], where: str) -> BadInputError:
    """Return the error for an unknown section or key. It suggests the most similar known name."""
    remedy = did_you_mean(name, filter(None, known), cutoff=NEAR)
    return BadInputError(f"unknown {what}", where=where, remedy=remedy)


def keys_of(tool: str) -> Mapping[str, Mapping[str, str]]:
    """Return section -> known key -> remark on the key, for a tool's configuration."""
    table = table_of(tool)
    tests = {
        section: {**table["of-all-tests"], **dict.fromkeys(own, "")}
        for section, own in table.get("of-tests", {}).items()
    }
    return {**table["keys"], **tests}


def help_of_keys(tool: str, form: str) -> str:
    """Return the help on a tool's configuration file: keys with an effect, ignored keys and refused keys."""
    keys, not_supported = keys_of(tool), table_of(tool)["not-supported"]
    lines = [table_of(tool)["usage"], "", "Sections, and the keys that have an effect:"]
    for section, remarks in keys.items():
        used = (key for key, remark in remarks.items() if not remark)
        names = [key for key in used if not {key, f"{section}.{key}"} & not_supported.keys()]
        lines += [f"  {form.format(section):<22}  {', '.join(names)}"] if names else []
    remarks = {key: remark for known in keys.values() for key, remark in known.items() if remark not in ("", QUIET)}
    lines += [
        "",
        "Accepted, but without effect:",
        *(f"  {key:<22}  {remark}" for key, remark in remarks.items() if key),
    ]
    lines += ["", "Refused, except for values that match the behaviour of strakes:"]
    return "\n".join([*lines, *(f"  {key:<22}  {entry['remedy']}" for key, entry in not_supported.items())])
