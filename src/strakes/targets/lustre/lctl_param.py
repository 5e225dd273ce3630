"""``lctl get_param`` and ``set_param``: parameters and counters of the kernel modules, by names with wildcards."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import explanation, not_understood, refusal

_MISSING = re.compile(r"^error: get_param: param_path '([^']+)': No such file or directory$")
_ERROR = re.compile(r"^(?:error|lctl)\b")
# Before every line, by commands that reach many servers at once (pdsh, clush).
_HOST = re.compile(r"^[^\s=:]+: ")


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

    def is_asked(line: str) -> bool:
        name, equals, _ = line.partition("=")
        return bool(equals) and any(fnmatchcase(name, pattern) for pattern in patterns)

    lines, errors = _without_host(done.stdout, is_asked), _without_host(done.stderr, _ERROR.match)
    missing = [match for line in errors if (match := _MISSING.match(line))]
    names = tuple(match[1].replace("/", ".") for match in missing)
    # What stands before the first value is the greeting of a server.
    first = next((number for number, line in enumerate(lines) if is_asked(line)), len(lines))
    if lines and first == len(lines) and not names:
        raise not_understood("lctl get_param", lines[0])
    values: dict[str, list[str]] = {}
    for line in lines[first:]:
        name, _, value = line.partition("=")
        if is_asked(line):
            values[name] = [value] if value else []
        else:
            values[next(reversed(values))].append(line)
    texts = {name: "\n".join(lines) for name, lines in values.items()}
    others = sum(_ERROR.match(line) is not None for line in errors) > len(missing)
    cut_off = done.status != 0 and (not names or others)
    return Params(texts, names, cut_off, explanation(done) if done.stderr else "")


def _without_host(text: str, is_meant: Callable[[str], object]) -> list[str]:
    """Return the lines, without the host before each where only so one of them is what is meant."""
    lines = text.splitlines()
    if any(is_meant(line) for line in lines):
        return lines
    prefixes = (match[0] for line in lines if (match := _HOST.match(line)) and is_meant(line[match.end() :]))
    prefix = next(prefixes, "")
    # Of an empty line, the space at the end may be missing.
    return [
        line.removeprefix(prefix) if line.startswith(prefix) else line.removeprefix(prefix.rstrip()) for line in lines
    ]


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
