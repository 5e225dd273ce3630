"""The values of a tool's configuration file by section and key, with line numbers for messages."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError, nearest_word
from strakes.interop.commands.words import NEAR, bytes_of_ior

_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


@dataclass
class Configuration:
    """Values and lines; ``form`` shows a key in messages: "[{}] {}" or "{}.{}"."""

    path: Path
    form: str
    values: dict[tuple[str, str], Any] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)

    def get(self, section: str, key: str, default: Any = None) -> Any:
        """Return the value, or the default if it is absent or empty."""
        value = self.values.get((section, key))
        return default if value is None or value == "" else value

    def text(self, section: str, key: str, default: str = "") -> str:
        """Return the value as text."""
        return str(self.get(section, key, default))

    def fault(self, section: str, key: str, problem: str, remedy: str) -> BadInputError:
        """Return the error for a value, with its line."""
        where = at(self.path, self.lines.get((section, key)))
        return BadInputError(f"{self.form.format(section, key)}: {problem}", where=where, remedy=remedy)

    def flag(self, section: str, key: str, *, default: bool) -> bool:
        """Return true or false. Raises BadInputError for anything else."""
        text = self.text(section, key, str(default)).lower()
        if text not in (*_TRUE, *_FALSE):
            problem = f"{shown(self.get(section, key))} is neither TRUE nor FALSE"
            raise self.fault(section, key, problem, "Give TRUE or FALSE.")
        return text in _TRUE

    def number(self, section: str, key: str, value: Any, least: float = 0.0) -> float:
        """Return a value of a key as a number of at least ``least``. Raises BadInputError."""
        # YAML 1.1 reads 1e-3 as a string, OmegaConf as a number.
        try:
            number = float(value) if not isinstance(value, bool) else math.nan
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number) or number < least:
            problem = f"{shown(value)} is not a number of at least {least:g}"
            raise self.fault(section, key, problem, "Give such a number.")
        return number

    def whole(self, section: str, key: str, default: int, least: int = 1, most: int = 2**30) -> int:
        """Return a number rounded down to a whole number. Raises BadInputError."""
        number = self.number(section, key, self.get(section, key, default), least)
        if number > most:
            raise self.fault(section, key, f"{number:g} is more than {most}", "Give a smaller number.")
        return int(number)

    def size(self, section: str, key: str, default: str) -> int:
        """Return the bytes of a size in IOR's notation (2m). Raises BadInputError."""
        text = self.text(section, key, default)
        try:
            size = bytes_of_ior(text)
        except BadInputError as error:
            raise self.fault(section, key, error.what, error.remedy) from error
        if size < 1:
            raise self.fault(section, key, f"{text!r} is not an amount of data", "Give at least one byte.")
        return size

    def word(self, section: str, key: str, default: str, known: tuple[str, ...]) -> str:
        """Return one of the known words. Raises BadInputError."""
        value = self.get(section, key, default)
        # YAML 1.1 reads the word off as false.
        text = "off" if value is False else str(value).lower()
        if text not in known:
            raise self.fault(section, key, f"{shown(value)} is not supported", f"Use one of: {', '.join(known)}.")
        return text


def at(path: Path, line: int | None) -> str:
    """Return a file and line for messages."""
    return f"{path}:{line}" if line else str(path)


def shown(value: Any) -> str:
    """Return a value shortened for messages. Python refuses to print the longest integers of YAML."""
    try:
        return reprlib.repr(value)
    except ValueError:
        return "this number"


def unknown_name(what: str, name: str, known: Iterable[str], where: str) -> BadInputError:
    """Return the error for an unknown section or key, which names the nearest known one."""
    names = [name for name in known if name]
    near = nearest_word(name, names, cutoff=NEAR)
    nearest = f"The nearest known one is {near}. " if near else ""
    return BadInputError(f"unknown {what}", where=where, remedy=f"{nearest}Known: {', '.join(names)}.")


def help_of_keys(
    head: Sequence[str], keys: Mapping[str, Mapping[str, str]], refused: Mapping[str, str], hidden: Sequence[str] = ()
) -> str:
    """Return the help of a tool with a configuration: sections with their keys, remarks, and refused keys."""
    used = {
        section: [key for key, remark in remarks.items() if not remark and key not in hidden]
        for section, remarks in keys.items()
    }
    lines = [*head, "", "Sections, and the keys that have an effect:"]
    lines += [f"  {section:<22}  {', '.join(names)}" for section, names in used.items() if names]
    lines += ["", "Refused, except for values that match the behaviour of strakes:"]
    return "\n".join([*lines, *(f"  {key:<22}  {remedy}" for key, remedy in refused.items())])
