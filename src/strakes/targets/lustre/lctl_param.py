"""``lctl get_param`` and ``set_param``: parameters and counters of the kernel modules, by names with wildcards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import explanation, not_understood, refusal

_MISSING = re.compile(r"^error: get_param: param_path '([^']+)': No such file or directory$")


@dataclass(frozen=True)
class Params:
    """Full name -> value, which may have many lines.

    ``missing`` are the names asked for of which there is none. ``cut_off``: lctl met another difficulty (mostly that
    the user is not root), gave ``why`` or nothing, and values may lack lines and ends of lines.
    """

    values: Mapping[str, str]
    missing: tuple[str, ...] = ()
    cut_off: bool = False
    why: str = ""

    @property
    def complete(self) -> bool:
        """Tell whether everything asked for is there."""
        return not self.missing and not self.cut_off


def get_param(*names: str) -> Command[Params]:
    """Values of all parameters whose names match. That there are none is no error."""
    return Command(("lctl", "get_param", *names), read_params)


def read_params(done: Completed) -> Params:
    """Read it. Raises StrakesError for output that is of no parameter."""
    patterns = [word for word in done.argv[2:] if not word.startswith("-")]
    values: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        name, equals, value = line.partition("=")
        if equals and any(fnmatchcase(name, pattern) for pattern in patterns):
            values[name] = [value] if value else []
        elif values:
            values[next(reversed(values))].append(line)
        else:
            raise not_understood("lctl get_param", line)
    texts = {name: "\n".join(lines) for name, lines in values.items()}
    missing = [_MISSING.match(line) for line in done.stderr.splitlines()]
    names = tuple(match[1].replace("/", ".") for match in missing if match)
    cut_off = done.status != 0 and (not names or len(names) < len(missing))
    return Params(texts, names, cut_off, explanation(done) if done.stderr else "")


def device(parameter: str) -> str:
    """Return the device in a parameter's name.

    >>> device("mgc.MGC192.168.77.1@tcp.import")
    'MGC192.168.77.1@tcp'
    """
    return parameter.partition(".")[2].rpartition(".")[0]


def set_param(name: str, value: str) -> Command[tuple[str, ...]]:
    """Set all parameters whose names match; gives their full names. What is in force may differ: read it back."""

    def read(done: Completed) -> tuple[str, ...]:
        if done.status != 0:
            # The last of many lines is of all devices.
            summary = replace(done, stderr="".join(done.stderr.splitlines(keepends=True)[-1:]))
            raise refusal(summary, f"{name} was not set to {value}")
        lines = done.stdout.splitlines()
        for line in lines:
            if not line.endswith(f"={value}"):
                raise not_understood("lctl set_param", line)
        return tuple(line.removesuffix(f"={value}") for line in lines)

    return Command(("lctl", "set_param", f"{name}={value}"), read)
