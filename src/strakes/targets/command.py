"""Run file system tools with a time limit and without a terminal, on this machine or (--servers) on servers."""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import PurePath
from typing import Generic, Protocol, TypeVar

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError
from strakes.base.processes import by_env, kill_sessions, mark_of, process_start
from strakes.base.units import format_bytes

DEFAULT_TIMEOUT_S = 10.0
# Maximum size of a tool's output in bytes. The largest known output, job statistics of 1,000 Lustre targets, has 20 MB.
MOST_OUTPUT_BYTES = 64 << 20
# An output may have one line for this number of bytes of its limit: 2 million lines, ten times the largest known.
_LINE_BYTES = 32
_MOST_QUOTED = 400  # Maximum characters of a quoted line: 5 rows of a terminal. Twice the number hides other messages.
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_PIECE_BYTES = 1 << 20
_FIRST_WAIT_S, _LAST_WAIT_S = 0.001, 0.03
# Maximum seconds to wait for the end of a killed child. A dead server may delay the end.
_REAP_S = 1.0
# Maximum size of the output of the commands in a context, such as a thread.
OUTPUT_BYTES: ContextVar[int] = ContextVar("output_bytes", default=MOST_OUTPUT_BYTES)
# A counter has 64 bits. Longer numbers are cut to 128 bits, so that parsers can convert them to float and square them.
_LONG_NUMBER = re.compile(r"(?<!\w)(0[xX][0-9a-fA-F]{32})[0-9a-fA-F]+|(?<!\d)(\d{39})\d+")
_MOST_LONG_NUMBERS = 1000  # Each cut takes 100 bytes of memory. No tool prints any such number.
_DIGITS = str.maketrans(dict.fromkeys("123456789abcdefABCDEF", "0"))
# Commands that may still run. :func:`end_running` kills them.
_running: set[subprocess.Popen[bytes]] = set()
# Time limit in seconds for commands that run after :func:`end_running` to undo changes.
_SHORT_TIMEOUT_S = 2.0
_short = threading.Event()

# Directories of administration tools. The PATH of an ordinary user may lack them.
_MORE_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin")
# Programs that pass their arguments to a remote shell, which removes one level of quotes.
_REMOTE_SHELLS = frozenset({"ssh", "rsh", "mrsh"})

# A host name or address, possibly with a user, without characters that are special in a shell.
HOST = re.compile(r"[\w\[.:][\w.:@%\[\]-]*", re.ASCII)

# Exit status of ssh for its own errors, such as an unreachable host.
_NOT_REACHED_STATUS = 255

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Completed:
    """A command that has ended. ``status``: exit status, or the negative number of the signal that ended it.

    Numbers in the output are cut to 128 bits.
    """

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str

    def __post_init__(self) -> None:
        for name, text in (("stdout", self.stdout), ("stderr", self.stderr)):
            # The search takes 60 ms per MB, the translation 2 ms (measured).
            if not text.isascii() or "0" * 33 in text.translate(_DIGITS):
                cut, count = _LONG_NUMBER.subn(r"\1\2", text, _MOST_LONG_NUMBERS)
                if count == _MOST_LONG_NUMBERS:
                    raise _too_much(self.argv, f"the output has {count} numbers of more than 128 bits")
                object.__setattr__(self, name, cut)

    @property
    def last_line(self) -> str:
        """Return the last line of standard error, else of standard output. Without output, return the exit status."""
        return _last_line(self.stderr) or _last_line(self.stdout) or f"exit status {self.status}"


class CommandCutOffError(MeasurementError):
    """A command was killed or lost its connection. What it started on a server may still run."""


class CommandTimeout(CommandCutOffError):
    """A command did not end within its time limit."""


class Runner(Protocol):
    """Type of a function that runs a command: :func:`run`, or a replay of recorded output in a test."""

    def __call__(self, argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        """Run a command for at most ``timeout_s`` seconds; return its output and exit status."""


@dataclass(frozen=True)
class Command(Generic[T_co]):
    """A call of a tool. ``read``: parser of its output, which raises StrakesError if the tool failed."""

    argv: tuple[str, ...]
    read: Callable[[Completed], T_co]
    timeout_s: float = DEFAULT_TIMEOUT_S

    def ask(self, run: Runner) -> T_co:
        return self.read(run(self.argv, self.timeout_s))


def run(
    argv: Sequence[str],
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    mark: Mapping[str, str] | None = None,
    cwd: str = "",
    start: Callable[[Sequence[str]], list[str]] = by_env,
) -> Completed:
    """Run a command with empty standard input and messages in English. Return its output and exit status.

    After the time limit, the command and its children are killed. Raises CommandTimeout, or EnvironmentLacksError if
    the command cannot be started. ``mark``: more environment variables (default: `mark_of`).
    """
    _running.difference_update([child for child in tuple(_running) if child.poll() is not None])
    mark = mark_of(os.getpid(), process_start(os.getpid()) or 0) if mark is None else mark
    environment = {**os.environ, "LC_ALL": "C", "LANGUAGE": "C", "PATH": search_path(), **mark}
    with ExitStack() as stack:
        (stdout, its_stdout), (stderr, its_stderr) = pipes = (os.pipe(), os.pipe())
        for descriptor in chain(*pipes):
            stack.callback(os.close, descriptor)
        try:
            # A new session has no terminal, so the command cannot prompt for a password.
            child = subprocess.Popen(
                start(argv),
                stdin=subprocess.DEVNULL,
                stdout=its_stdout,
                stderr=its_stderr,
                env=environment,
                cwd=cwd or None,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # ValueError: an argument has a NUL byte.
            why = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
            remedy = f"Install {argv[0]}, or add it to the PATH."
            raise EnvironmentLacksError(f"{argv[0]} cannot be started", why=why, remedy=remedy) from error
        _running.add(child)
        if _short.is_set():
            timeout_s = min(timeout_s, _SHORT_TIMEOUT_S)
        most_bytes, outputs = OUTPUT_BYTES.get(), [bytearray(), bytearray()]
        try:
            _read(child, {stdout: outputs[0], stderr: outputs[1]}, time.monotonic() + timeout_s, most_bytes)
        finally:
            status = child.returncode
            if status is None:
                _kill(child)
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_REAP_S)
            if child.returncode is not None:
                _running.discard(child)
        why = f"the output is larger than {format_bytes(most_bytes)}"
        if max(map(len, outputs)) <= most_bytes:
            # File names need not be UTF-8, so preserve their bytes.
            texts = [outputs.pop(0).decode(errors="surrogateescape") for _ in range(2)]
            most = max(sum(map(text.count, _LINE_ENDS)) for text in texts)
            why = f"the output has {most:,} lines" if most > most_bytes // _LINE_BYTES else ""
        if why:
            raise _too_much(argv, why)
        if status is None:
            why = _last_line(texts[1]) or _last_line(texts[0]) or "the command printed nothing until then"
            remedy = "Check whether a server is down or overloaded, then try again."
            raise CommandTimeout(f"no answer within {timeout_s:g} s", where=shlex.join(argv), why=why, remedy=remedy)
        if status in (126, 127) and texts[1].startswith("/usr/bin/env: ") and argv[0] in texts[1] and start is by_env:
            # env(1) has started nothing. It searches PATH only up to a directory that fails, as of a dead FUSE process.
            return run(argv, timeout_s, mark=mark, cwd=cwd, start=list)
        return Completed(tuple(argv), status, *texts)


# Runs a command of the user. strakes kills marked processes when it ends, but services that the command starts stay.
run_unmarked: Runner = partial(run, mark={})


def search_path() -> str:
    """Return the PATH of commands: that of this process, and the directories of administration tools."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *_MORE_PATH))


def _read(child: subprocess.Popen[bytes], outputs: Mapping[int, bytearray], until_s: float, most_bytes: int) -> None:
    """Read the outputs of a child until it ends, ``until_s`` has passed, or an output is too large.

    A background process of the child may keep the pipes open, so do not wait for their end.
    """
    poll, wait_s = select.poll(), _FIRST_WAIT_S
    for pipe in outputs:
        poll.register(pipe, select.POLLIN)
    while (left_s := until_s - time.monotonic()) > 0 and max(map(len, outputs.values())) <= most_bytes:
        has_ended = child.poll() is not None
        ready = poll.poll(0 if has_ended else min(left_s, wait_s) * 1000)
        for pipe, _ in ready:
            outputs[pipe] += os.read(pipe, _PIECE_BYTES)
        if has_ended and not ready:
            break
        wait_s = _FIRST_WAIT_S if ready else min(2 * wait_s, _LAST_WAIT_S)


def share(most: int) -> int:
    """Return the part of a limit that remains for each of many queries at once, like the part of their output."""
    return most * OUTPUT_BYTES.get() // MOST_OUTPUT_BYTES


def end_running() -> None:
    """Kill all running commands. Until :func:`end_grace`, limit later commands to 2 seconds."""
    _short.set()
    kill_running()


def kill_running() -> None:
    """Kill all running commands."""
    _kill(*_running)


def is_ending() -> bool:
    """Return whether :func:`end_running` has killed commands, whose failures then say nothing."""
    return _short.is_set()


def end_grace() -> None:
    """Restore the time limits that :func:`end_running` shortened."""
    _short.clear()


def _kill(*children: subprocess.Popen[bytes]) -> None:
    """Kill children with all processes of their sessions, because some programs (timeout) make process groups."""
    leaders, ends_s = [child.pid for child in children], time.monotonic() + _REAP_S
    for pid in leaders:
        with suppress(OSError):  # It has ended, or is root's (sudo).
            os.killpg(pid, signal.SIGKILL)
    while kill_sessions(leaders) and time.monotonic() < ends_s:
        time.sleep(_LAST_WAIT_S)


def _too_much(argv: Sequence[str], why: str) -> CommandCutOffError:
    what, remedy = "a command printed too much", "Run the command yourself to see the output."
    return CommandCutOffError(what, where=shlex.join(argv), why=why, remedy=remedy)


def _last_line(text: str) -> str:
    return next((line.strip()[:_MOST_QUOTED] for line in reversed(text.splitlines()) if line.strip()), "")


@dataclass(frozen=True)
class Servers:
    """The option --servers: a command prefix that reaches a server, such as ``ssh {host} sudo``."""

    template: str

    def __post_init__(self) -> None:
        try:
            words = shlex.split(self.template)
            why = "" if any("{host}" in word for word in words) else "it has no {host}"
        except ValueError as error:
            why = str(error)
        if why:
            what, remedy = "--servers is not a valid template", 'Write, for example, "ssh {host} sudo".'
            raise BadInputError(what, where=self.template, why=why, remedy=remedy)
        # The template may run later in another directory, so the program needs an absolute path.
        if "/" in words[0] and not words[0].startswith("/"):
            object.__setattr__(self, "template", shlex.join([os.path.abspath(words[0]), *words[1:]]))

    def argv(self, host: str, argv: Sequence[str]) -> tuple[str, ...]:
        """Return the local command that runs ``argv`` on the host. Raises BadInputError for an invalid host name."""
        if not HOST.fullmatch(host):
            why = "the name is empty, begins like an option, or has a character that is invalid in names and addresses"
            raise BadInputError("not a valid host name", where=repr(host), why=why, remedy="Leave out --servers.")
        return through([word.replace("{host}", host) for word in shlex.split(self.template)], argv)

    def runner(self, host: str, run: Runner) -> Runner:
        """Return a runner for commands on a host, which raises CommandCutOffError if the host cannot be reached."""

        def on_host(argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
            done = run(self.argv(host, argv), timeout_s)
            if done.status == _NOT_REACHED_STATUS and _shells_in(shlex.split(self.template)):
                remedy = f"Try: {shlex.join(self.argv(host, ['true']))}"
                raise CommandCutOffError("a server cannot be reached", where=host, why=done.last_line, remedy=remedy)
            return Completed(tuple(argv), done.status, done.stdout, done.stderr)

        return on_host


def through(words: Sequence[str], argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs ``argv`` behind a prefix such as ``ssh HOST``, with quotes for remote shells."""
    for _ in range(_shells_in(words)):
        argv = [shlex.quote(word) for word in argv]
    return (*words, *argv)


def _shells_in(words: Sequence[str]) -> int:
    return sum(PurePath(word).name in _REMOTE_SHELLS for word in words)
