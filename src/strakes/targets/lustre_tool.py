"""Functions for calls of ``lfs`` and ``lctl``: parameters, error messages, and parallel queries of servers."""

from __future__ import annotations

import errno
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.processes import ending
from strakes.base.units import counted
from strakes.targets.answers import MOST_VALUES, NotUnderstoodError, limit_values, not_understood, understood
from strakes.targets.command import MOST_OUTPUT_BYTES, OUTPUT_BYTES, Command, CommandTimeout, Completed, Runner
from strakes.targets.target import said

T = TypeVar("T")

# Exit status of lfs and lctl for a usage error. For any other failure, the exit status is an errno.
_USAGE_STATUS = 4

_TARGET = re.compile(r"^(?P<name>[\w-]+?-(?P<kind>OST|MDT)(?P<index>[0-9a-f]{4}))(?:_UUID)?$")
_NUMBERED = re.compile(r" \(\d+\)$")
_KEY = re.compile(r"(?<![\w.])([a-z][a-z0-9_.]*):(?=\s|$)")

_ROOT = "Run strakes as root or as the owner, or ask your administrator to allow it."
_WHERE = "Give a directory on a mounted Lustre file system."
_AGAIN = "Check the servers (lfs check servers, lctl get_param *.*.import), and try again when they answer."
_NEWER = "Use a newer version of Lustre: this version does not support the request."
# Error message -> class of the exception, and remedy (None: the caller's remedy).
_REFUSALS: tuple[tuple[str, type[StrakesError], str | None], ...] = (
    ("Operation not permitted|Permission denied", EnvironmentLacksError, _ROOT),
    ("is not a valid command|unrecognized option|invalid option|how it is used", EnvironmentLacksError, _NEWER),
    ("not on a Lustre file|Inappropriate ioctl|Operation not supported", BadInputError, _WHERE),
    ("Input/output error|temporarily unavailable|endpoint|timed out|No route to host", MeasurementError, _AGAIN),
    ("No space left|Disk quota exceeded", MeasurementError, "Free some space: lfs df and lfs quota show its use."),
    ("No such file or directory", BadInputError, ""),
    ("File exists", BadInputError, "Choose a name that is not taken."),
    ("Not a directory|Directory not empty|No such device|No data available|File name too long", BadInputError, None),
    ("Invalid argument|File too large|Numerical result out of range", BadInputError, None),
)


def target_name(uuid: str, tool: str) -> tuple[str, str, int]:
    """Return (name, kind, index) of a target: (lab-OST000a, OST, 10). Raises NotUnderstoodError for other text."""
    match = _TARGET.match(uuid)
    if match is None:
        raise not_understood(tool, uuid)
    return match["name"], match["kind"], int(match["index"], 16)


def key_values(line: str) -> Iterator[tuple[str, str]]:
    """Yield (key, value) for each ``key: value`` in a line; values may be empty."""
    _, *parts = _KEY.split(line)
    yield from zip(parts[::2], map(str.strip, parts[1::2]), strict=True)


def explanation(done: Completed) -> str:
    """Return the error message of a command in at most three lines, without repetitions."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if not lines and done.status != _USAGE_STATUS:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()][-1:]
    # lfs and lctl repeat an error for each device, and print a summary last, so keep one line per error.
    lines = list({_NUMBERED.sub("", line).rpartition(": ")[2]: line for line in lines}.values())
    return "; ".join(lines[:3]) + (f"; and {counted(len(lines) - 3, 'line')} more" if len(lines) > 3 else "")


def refusal(done: Completed, what: str, remedy: str = "") -> StrakesError:
    """Return the exception for a failed ``lfs`` or ``lctl``. ``remedy``: advice for an invalid value."""
    where, why = shlex.join(done.argv), explanation(done)
    if done.status < 0:
        why = ending(done.status)
    elif not why and done.status == _USAGE_STATUS:
        why = "it printed its usage instead"
    elif not why:
        why = f"exit status {done.status}" + (f": {os.strerror(done.status)}" if done.status in errno.errorcode else "")
    for words, kind, advice in _REFUSALS:
        if re.search(words, why):
            return kind(what, where=where, why=why, remedy=remedy if advice is None else advice)
    if done.status == _USAGE_STATUS:
        return BadInputError(what, where=where, why=why, remedy=remedy)
    return MeasurementError(what, where=where, why=why)


def checked(done: Completed, what: str, remedy: str = "") -> str:
    """Return the output of a successful command. Raises the error of :func:`refusal` if the command failed."""
    if done.status != 0:
        raise refusal(done, what, remedy)
    return done.stdout


_MISSING = re.compile(r"^error: get_param: param_path '([^']+)': No such file or directory$")
_ERROR = re.compile(r"^(?:error|lctl)\b")
_MUCH_SPACE = re.compile(r"[^\S\n]{65,}")
_MOST_PARAMETERS = 200_000  # Maximum number of parameters. 10,000 targets have 130,000. 200,000 take 10 s (measured).


def succeeding(argv: tuple[str, ...], what: str, remedy: str = "") -> Command[None]:
    """Return a command whose output is ignored. If the command fails, ``what`` is the message of the exception."""

    def read(done: Completed) -> None:
        checked(done, what, remedy)

    return Command(argv, read)


@dataclass(frozen=True)
class Params:
    """The output of ``lctl get_param``. ``values``: texts of one or more lines, by parameter name.

    ``missing``: requested names without a match. ``cut_off``: values may be truncated, mostly because the user is not
    root. ``why``: error messages of lctl.
    """

    values: Mapping[str, str]
    missing: tuple[str, ...] = ()
    cut_off: bool = False
    why: str = ""


def get_param(*names: str) -> Command[Params]:
    """Return the command that prints all parameters whose names match one of the patterns."""
    return Command(("lctl", "get_param", *names), read_params)


@understood("lctl get_param")
def read_params(done: Completed) -> Params:
    """Parse the output of ``lctl get_param``. Raises StrakesError if it contains text but no parameter."""
    patterns = [word for word in done.argv[2:] if not word.startswith("-")]

    def is_asked(line: str) -> bool:
        name, equals, _ = line.partition("=")
        return bool(equals) and any(fnmatchcase(name, pattern) for pattern in patterns)

    limit_values(done.stdout, "\n", MOST_VALUES // 2, ends="\n")  # 1 million lines take 12 s and 600 MiB (measured).
    # Collapse white space, because the run time of the parsers grows with the square of its length.
    lines, errors = _MUCH_SPACE.sub(" ", done.stdout).splitlines(), done.stderr.splitlines()
    names = tuple(match[1].replace("/", ".") for line in errors if (match := _MISSING.match(line)))
    # Skip a login banner, which a server may print before the parameters.
    first = next((number for number, line in enumerate(lines) if is_asked(line)), len(lines))
    if lines and first == len(lines) and not names:
        raise not_understood("lctl get_param", lines[0])
    values: dict[str, list[str]] = {}
    for line in lines[first:]:
        name, _, value = line.partition("=")
        if is_asked(line):
            if len(values) == _MOST_PARAMETERS:
                raise not_understood("lctl get_param", line, f"it has more than {_MOST_PARAMETERS} parameters")
            values[name] = [value] if value else []
        else:
            values[next(reversed(values))].append(line)
    texts = {name: "\n".join(lines) for name, lines in values.items()}
    others = sum(_ERROR.match(line) is not None for line in errors) > len(names)
    cut_off = done.status != 0 and (not names or others)
    return Params(texts, names, cut_off, explanation(done) if done.stderr else "")


def device(parameter: str) -> str:
    """Return the device in a parameter's name: ``lab-OST0000`` in ``obdfilter.lab-OST0000.stats``."""
    return parameter.partition(".")[2].rpartition(".")[0]


def set_param(name: str, value: str) -> Command[None]:
    """Return the command that sets all parameters whose names match. Lustre may round the value."""
    return succeeding(("lctl", "set_param", f"{name}={value}"), f"{name} was not set to {value}")


# After a time-out, a tool that hung is not started again for this number of seconds.
_REST_S = 5.0


class Answers:
    """Runner of commands that collects their errors in ``notes``. It does not restart a tool that hung.

    ``hung``: (monotonic time, error) by tool. A new object with this ``hung`` retries a tool after ``_REST_S`` seconds.
    """

    def __init__(self, run: Runner, hung: dict[str, tuple[float, StrakesError]] | None = None) -> None:
        self.run = run
        self.notes: list[str] = []
        self.misread = False
        """Whether an output was in an unknown form."""
        self._hung = {} if hung is None else hung
        now_s = time.monotonic()
        self._silent = {tool: error for tool, (since_s, error) in self._hung.items() if now_s - since_s < _REST_S}

    def get(self, command: Command[T], otherwise: T) -> T:
        """Return the result of a command. If it fails, add the error to ``notes`` and return ``otherwise``."""
        tool = command.argv[0]
        if tool in self._silent:
            self.note(self._silent[tool])
            return otherwise
        try:
            return command.ask(self.run)
        except StrakesError as error:
            if isinstance(error, CommandTimeout):
                self._silent[tool] = error
                self._hung[tool] = time.monotonic(), error
            self.misread |= isinstance(error, NotUnderstoodError)
            self.note(error)
            return otherwise

    def hangs(self, tool: str) -> bool:
        return tool in self._silent

    def note(self, error: StrakesError) -> None:
        if said(error) not in self.notes:
            self.notes.append(said(error))


# Maximum number of simultaneous remote shells. With half the number, queries of 64 servers take twice as long.
_AT_ONCE = 64
# All answers together may be as large as one output, but each may have this size: counters of 64 targets (measured).
_LEAST_BYTES = 256 << 10


def ask_servers(ways: Mapping[str, Runner], *names: str) -> dict[str, Params | StrakesError]:
    """Query all hosts in parallel. Return host -> its parameters, or the error if it does not answer."""

    def ask(run: Runner) -> Params | StrakesError:
        try:
            return get_param(*names).ask(run)
        except StrakesError as error:
            return error

    with queries(len(ways)) as pool:
        return dict(zip(ways, pool.map(ask, ways.values()), strict=True))


def queries(count: int) -> ThreadPoolExecutor:
    """Return the threads for queries of ``count`` servers at once, which share the maximum size of an output."""
    most_bytes = max(MOST_OUTPUT_BYTES // max(count, 1), _LEAST_BYTES)
    return ThreadPoolExecutor(_AT_ONCE, initializer=OUTPUT_BYTES.set, initargs=(most_bytes,))


# Name of a client's device. Devices between servers (NAME-osc-MDT0000) do not match.
_DEVICE = re.compile(r"^(?P<target>.+-(?:MDT|OST)[0-9a-f]{4})-(?:mdc|osc)-(?!MDT)(?P<instance>\w+)$")


def is_target_of(name: str, file_system: str) -> bool:
    """Return whether a target belongs to a file system.

    >>> is_target_of("lab-MDT000a", "lab"), is_target_of("lab-2-MDT000a", "lab"), is_target_of("lab-2-MDT000a", "lab-2")
    (True, False, True)
    """
    return re.fullmatch(rf"{re.escape(file_system)}-(?:MDT|OST)[0-9a-f]{{4}}", name) is not None


def of_mount(values: Mapping[str, str], file_system: str, ask_instance: Callable[[], str]) -> dict[str, str]:
    """Return the parameters of one mount of a file system, or of all mounts if the id of the mount is unknown.

    ``ask_instance`` returns the id of the mount. It may query servers, so it is called only if there are several
    mounts.

    >>> values = {"osc.lab-OST0000-osc-ff01.state": "FULL", "osc.lab-OST0000-osc-ff02.state": "DISCONN"}
    >>> of_mount(values, "lab", lambda: "ff01")
    {'osc.lab-OST0000-osc-ff01.state': 'FULL'}
    """
    matches = {parameter: _DEVICE.match(device(parameter)) for parameter in values}
    instances = {
        parameter: match["instance"]
        for parameter, match in matches.items()
        if match and is_target_of(match["target"], file_system)
    }
    wanted = set(instances.values())
    if len(wanted) > 1:
        with suppress(StrakesError):
            wanted = {ask_instance()} & wanted or wanted
    return {parameter: values[parameter] for parameter, instance in instances.items() if instance in wanted}
