"""Run the command that a command line names, print errors, and return the exit status."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import resource
import select
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.errors import (
    BROKEN_PIPE_STATUS,
    BadInputError,
    EnvironmentLacksError,
    InterruptedByUser,
    PerhapsDamagedError,
    StrakesError,
    nearest_word,
)
from strakes.base.foreign_text import for_terminal, shown_command, without_secrets
from strakes.base.language import ENGLISH, LANGUAGES, choose, wanted
from strakes.base.units import format_bytes
from strakes.base.version import __version__
from strakes.cli.say import as_called, broken, remark
from strakes.cli.signals import orderly_signals

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Commands whose output is translated. All other commands print English.
_TRANSLATED = frozenset({"survey", "study", "run", "report", "report guide", "compare"})
_RESUMABLE = frozenset({"survey", "study", "run", "accept", "tune"})
_COMPLETION = "_STRAKES_COMPLETE"

# Help text of each command. The main help shows it without importing the commands.
COMMANDS = {
    "survey": "Measure the file system under DIR and say how to use it well.",
    "study": "Run one study in full.",
    "study reproduce": "Repeat the measurements of a published study and compare.",
    "run": "Run a plan file, or work of IOR, mdtest or IO500.",
    "accept": "Check stated needs: PASS, FAIL, a forecast or UNKNOWN.",
    "advise": "Recommend settings for one application from measurements.",
    "tune": "Search for the best settings of one application by experiment.",
    "predict": "Forecast a larger system from small runs.",
    "report": "Write the report, a figure or the guide page of a run.",
    "report figure": "Write a figure of a run as SVG, PNG or PDF.",
    "report guide": "Write a page of advice for users of a file system.",
    "compare": "Compare two runs: faster, slower or the same, with intervals.",
    "runs": "List runs; show how figures changed.",
    "runs history": "Show how a repeated measurement changed over time.",
    "import": "Import results of IOR, mdtest, fio and other tools.",
    "export": "Export a run as JSON, CSV or OpenMetrics.",
    "watch": "Watch a file system in production: what changed, when, where.",
    "failover": "Plan, check, rehearse and test the fail-over of two servers.",
    "target": "Show the properties of the file system under DIR.",
    "knobs": "Read, change and put back settings of a file system.",
    "doctor": "Check what this machine has and lacks.",
    "lab": "Start and remove disposable file systems on this machine.",
    "examples": "List and print examples of plans, applications and needs.",
    "clean": "Remove what an interrupted run left in DIR.",
}
# Environment variables with paths that commands use.
_PLACES = ("HOME", "STRAKES_STORE", "XDG_DATA_HOME", "XDG_STATE_HOME", "TMPDIR", "PATH")
_GROUPS = {
    "Measure": ("survey", "study", "run", "accept"),
    "Advise": ("advise", "tune", "predict"),
    "Results": ("report", "compare", "runs", "import", "export"),
    "Operate": ("watch", "failover", "target", "knobs"),
    "Try": ("doctor", "lab"),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, names in _GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:<8}", COMMANDS[name]) for name in names])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str, click.Command | None, list[str]]:
        name = _name_of(args)
        if name not in COMMANDS and not ctx.resilient_parsing:  # The shell completes also words after a wrong command.
            names = {known.split()[-1]: known for known in COMMANDS}
            near = nearest_word(args[0], names)
            raise click.UsageError(f"no such command: {args[0]}{f'; did you mean {names[near]}?' if near else ''}", ctx)
        return name, self.get_command(ctx, name), args[len(name.split()) :]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [item for item in super().shell_complete(ctx, incomplete) if " " not in item.value]


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    metavar="en|zh",
    help="Language of summaries, reports, the guide and comparisons.  [default: from the locale, else en]",
)
@click.version_option(__version__, "-V", "--version", prog_name="strakes", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context, language: str | None) -> None:
    """Measure how a file system really behaves, find out how to use it well, and prove the advice.

    Start with: strakes survey DIR

    Example plans, applications and needs: strakes examples

    Remove what an interrupted run left: strakes clean DIR
    """
    if language:
        choose(language)
    if ctx.invoked_subcommand not in _TRANSLATED:
        choose(ENGLISH)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


# Smallest accepted limit on address space. OpenBLAS cannot allocate its buffers in 300 MB, but can in 450 MB.
_LEAST_ADDRESS_SPACE_BYTES = 512 << 20
# Smallest accepted limit on open files. A survey needs 24, and each of up to 64 parallel commands on servers needs 6.
_LEAST_OPEN_FILES = 512
# Smallest accepted limits on file size and stack. Buffer files have up to 68 MiB. Engines crash with 800 KiB of stack.
_LEAST_FILE_BYTES, _LEAST_STACK_BYTES = 128 << 20, 2 << 20
# Errors of system calls that a bug in strakes causes. All others come from the system.
_OWN_FAULTS = (0, errno.EBADF, errno.EFAULT, errno.ECHILD, errno.EPIPE)
_LIMITS = (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EFBIG)
_MEMORY_DENIED = re.compile("failed to map segment|annot allocate memory")


def main() -> int:
    """Run the ``strakes`` command and return its exit status."""
    if (instruction := os.environ.get(_COMPLETION)) and ("_source" in instruction or "COMP_WORDS" in os.environ):
        from click.shell_completion import shell_complete

        with suppress(Exception):  # A traceback would be printed into the line that the user types.
            return shell_complete(cli, {}, "strakes", _COMPLETION, instruction)
        return BadInputError.exit_status
    os.umask(os.umask(0) & 0o077)  # Keep the user's access to new files.
    _open_standard_files()
    choose(wanted(os.environ))
    arguments = sys.argv[1:]
    if (name := _name_of(arguments)) not in COMMANDS:
        return run(arguments)
    from strakes.base.processes import ending, secure_environment
    from strakes.cli.apart import run_apart

    killed: EnvironmentLacksError | None = None

    def work() -> int:
        secure_environment()
        return run(arguments, None if killed is None else partial(_recover_from, killed))

    foreground, explain = name == "lab" and "exec" in arguments, partial(_trouble, arguments)
    try:
        for _ in range(2):
            status = run_apart(work, explain=explain, foreground=foreground)
            if status >= 0 or foreground:
                return status if status >= 0 else 128 - status
            why = "memory may have run out (see dmesg)" if status == -signal.SIGKILL else ""
            remedy = "strakes clean DIR removes leftover files; strakes knobs journal lists settings still changed."
            killed = EnvironmentLacksError(f"the worker process was {ending(status)}", why=why, remedy=remedy)
        return EnvironmentLacksError.exit_status if killed is None else _complain(killed)
    except (OSError, RuntimeError) as error:
        if (known := killed or _of_the_system(error)) is None:
            raise
        return _complain(known, error)


def _open_standard_files() -> None:  # If descriptor 0, 1 or 2 is closed, the next open() would reuse it.
    for number, name, mode in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_WRONLY), (2, "stderr", os.O_WRONLY)):
        with suppress(OSError):
            os.set_blocking(number, True)  # Writing to a full non-blocking pipe would fail.
            if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE in (mode, os.O_RDWR):
                continue
            os.close(number)  # Where descriptor 2 is closed, bash opens its script as descriptor 2.
        os.set_inheritable(os.open(os.devnull, mode), True)
        setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    # Remove these variables. Even with its option -I, Python reads modules from the directories that they name.
    odd = [name for name in ("COLUMNS", "LINES") if len(os.environ.get(name, "")) > 4]  # Rich makes lines so long.
    for variable in ("PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__", *odd):
        os.environ.pop(variable, None)


def _trouble(arguments: Sequence[str]) -> tuple[str, str, str]:
    from strakes.base.processes import secure_environment_unseen
    from strakes.runs.watchdog import advice
    from strakes.targets.mountinfo import find_mount, read_mounts
    from strakes.targets.registry import target_of_mount

    mounts = read_mounts()
    values = [value for name in _PLACES for value in os.environ.get(name, "").split(os.pathsep) if os.path.isabs(value)]
    secure_environment_unseen()
    words = [word for word in arguments[1:] if not word.startswith("-")]
    named = {word: find_mount(mounts, os.path.abspath(word)) for word in (*words, *values)}
    named = {word: mount for word, mount in named.items() if mount.mount_point != "/"}
    where = next((word for word, mount in named.items() if mount.remote and ("/" in word or word == ".")), "")
    texts = []
    for place, mount in {mount.mount_point: mount for mount in named.values()}.items():
        texts.append(f"The command line or the environment names a path on {place} ({mount.file_system}).")
        try:
            texts += target_of_mount(Path(place), mount).trouble()
        except StrakesError as error:
            texts.append(str(error))
    remedy = advice(where or "DIR", resumable=_name_of(arguments) in _RESUMABLE)
    if arguments[:2] == ["knobs", "restore"]:
        remedy = "Check the servers. When they answer again, run: strakes knobs restore"
    return where, " ".join(texts), remedy


def run(arguments: Sequence[str], invoke: Callable[[list[str]], int] | None = None) -> int:
    """Run one command line and return its exit status. Raises no errors."""
    with orderly_signals():
        try:
            status = (invoke or _invoke)(list(arguments))
            sys.stdout.flush()
            return status
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            return BadInputError.exit_status
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else f"strakes {_name_of(arguments)}"
            remedy = f"See: {command} --help"
            if isinstance(error, click.NoSuchOption) and error.option_name == "--language":
                remedy = "Give the option before the command: strakes --language zh report."
            return _complain(BadInputError(" ".join(error.format_message().split()), where=command, remedy=remedy))
        except (KeyboardInterrupt, click.Abort) as error:
            return _complain(InterruptedByUser("interrupted"), error)
        except PerhapsDamagedError as error:
            log = write_log(error, arguments)
            error.remedy = f"{error.remedy} If the files are not damaged, please report this bug with this log: {log}"
            return _complain(error)
        except StrakesError as error:
            return _complain(error)
        except Exception as error:  # noqa: BLE001 - the outermost level: a bug becomes a message and a log
            if isinstance(error, BrokenPipeError) and _nobody_reads_stdout():
                _silence(1)
                return BROKEN_PIPE_STATUS
            if known := _of_the_system(error):
                return _complain(known, error)
            what = f"internal error in strakes: {type(error).__name__}"
            remedy = f"Please report this bug with this log: {write_log(error, arguments)}"
            return _complain(StrakesError(what, why=str(error), remedy=remedy), error)


def _invoke(arguments: list[str]) -> int:
    # click's main() is not used, because it mistakes every broken pipe, even the engine's, for a closed stdout.
    try:
        with cli.make_context("strakes", arguments) as ctx:
            _require_limits()
            if arguments and not {"--help", "-h"} & set(arguments):
                _recover(_name_of(arguments), arguments)
            result = cli.invoke(ctx)
            status = result if isinstance(result, int) else 0
            from strakes.cli.options import FAILED_OUTPUTS

            for error in ctx.meta.get(FAILED_OUTPUTS, ()):
                status = status or error.exit_status
                _complain(error)
    except click.exceptions.Exit as end:
        return end.exit_code
    return status


def _require_limits() -> None:  # With too little memory, OpenBLAS would hang.
    for kind, what, unit, least, letter in (
        (resource.RLIMIT_AS, "the limit on address space is too low", 1 << 10, _LEAST_ADDRESS_SPACE_BYTES, "v"),
        (resource.RLIMIT_NOFILE, "the limit on open files is too low", 1, _LEAST_OPEN_FILES, "n"),
        (resource.RLIMIT_FSIZE, "the limit on the size of files is too low", 1 << 10, _LEAST_FILE_BYTES, "f"),
        (resource.RLIMIT_STACK, "the limit on the stack is too low", 1 << 10, _LEAST_STACK_BYTES, "s"),
    ):
        if resource.RLIM_INFINITY != (limit := resource.getrlimit(kind)[0]) < least:
            why = f"it is limited to {format_bytes(limit)}" if unit > 1 else f"the limit is {limit}"
            remedy = f"Raise the limit: ulimit -{letter} {least // unit}, or more for many ranks."
            raise EnvironmentLacksError(what, why=why, remedy=remedy)
    if not os.path.exists("/proc/self/mountinfo"):
        from strakes.targets.mountinfo import no_proc

        raise no_proc()


def _recover_from(killed: StrakesError, _arguments: list[str]) -> int:
    status = _complain(killed)
    _recover("", [])
    return status


def _recover(name: str, arguments: list[str]) -> None:
    from strakes.base.files import default_root

    def found(*below: str) -> list[str]:
        try:
            return os.listdir(default_root().joinpath(*below))
        except (FileNotFoundError, NotADirectoryError, StrakesError):
            return []
        except OSError:  # Reading the records reports it.
            return [".jsonl"]

    def attempt(restore: Callable[[Path, Callable[[str], None]], object], failure: str) -> None:
        try:
            restore(default_root(), remark)
        except StrakesError as error:
            remark(f"{failure}: {error}")

    if name != "knobs" and any(file.endswith(".jsonl") for file in found("knobs")):
        from strakes.control.knob_restore import restore_abandoned

        attempt(restore_abandoned, "settings of killed commands could not be put back")
    if found("drills") and arguments[:2] != ["failover", "undo"]:
        from strakes.control.drill_journal import put_right_abandoned

        attempt(put_right_abandoned, "faults of killed drills could not be undone")


def _name_of(arguments: Sequence[str]) -> str:
    while arguments and (arguments[0] == "--" or arguments[0].startswith("--language")):
        arguments = arguments[2 if arguments[0] == "--language" else 1 :]
    two = " ".join(arguments[:2])
    return two if two in COMMANDS else " ".join(arguments[:1])


def _load(name: str) -> click.Command:
    from importlib import import_module

    module, _, own = name.partition(" ")
    try:
        # "import" is a Python keyword, so the module is import_.
        loaded = import_module(f"strakes.cli.{module}_" if module == "import" else f"strakes.cli.{module}")
    except ModuleNotFoundError as error:
        remedy = "Install strakes again with pip install . (in a checkout: rm -r .venv, then ./strakes)."
        raise EnvironmentLacksError(f"the command {name} cannot be loaded", why=str(error), remedy=remedy) from error
    command: click.Command = getattr(loaded, own or "command")
    if parts := [f"strakes {part} --help" for part in COMMANDS if part.startswith(f"{name} ")]:
        command.epilog = f"See also: {', '.join(parts)}"
    return command


def write_log(error: Exception, arguments: Sequence[str]) -> str:
    """Write traceback and arguments, without secrets, to a new temporary file. Return the path of the file."""
    import platform
    import tempfile
    import traceback

    from strakes.base.files import create_kept

    system = f"strakes {__version__}, Python {platform.python_version()}, {platform.platform()}"
    lines = [system, f"arguments: {shown_command(arguments)}", *traceback.format_exception(error)]
    try:
        name = Path(tempfile.gettempdir()) / f"strakes-{os.urandom(4).hex()}.log"
        create_kept(name, without_secrets("\n".join(lines)).encode(errors="backslashreplace"))
    except OSError as unwritable:
        return f"(it cannot be written: {unwritable})"
    return str(name)


def _complain(error: StrakesError, cause: BaseException | None = None) -> int:
    notes: dict[str, None] = {}
    link: BaseException | None = cause or error
    while link is not None:  # Also what an error said that this one replaced, such as a fault that is not undone.
        notes, link = notes | dict.fromkeys(getattr(link, "__notes__", ())), link.__context__
    for line in (*error.lines(), *(f"  also: {note}" for note in notes)):
        text = as_called(for_terminal(line))
        with suppress(OSError):
            with suppress(OSError, ImportError):  # broken() imports modules, which fails at the limit of open files
                text = broken(text, sys.stderr)
            click.echo(text, err=True)
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            _silence(number)
    return error.exit_status


def _of_the_system(error: Exception) -> StrakesError | None:
    text = str(error)
    if (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno in _LIMITS)
        or (isinstance(error, ImportError) and _MEMORY_DENIED.search(text))
        or (isinstance(error, RuntimeError) and text == "can't start new thread")
    ):
        limit = "a resource limit of this machine or of this user is reached"
        remedy = "Raise the limits of memory, open files and processes (ulimit -a), or free some."
        return EnvironmentLacksError(limit, why=text, remedy=remedy)
    if not isinstance(error, OSError):
        return None
    number, why = error.errno or 0, error.strerror or ""
    where = f"{error.filename or ''}"[:200] if not isinstance(error.filename, int) else ""
    known = {errno.ENAMETOOLONG: "a file name is too long", errno.EACCES: "no access to this path"}
    known |= {} if where else {errno.ENOENT: "the current directory was removed"}
    if what := known.get(number):
        return BadInputError(what, where=where, why=why)
    try:
        sys.stdout.write("\n")  # A failed flush empties the buffer, so write again to test whether stdout fails.
        sys.stdout.flush()
    except OSError:
        _silence(1)
        return EnvironmentLacksError("standard output cannot be written", why=why)
    what, remedy = "a file or directory cannot be used", "Check its file system, or give another path (STRAKES_STORE)."
    if number in (errno.ENOSPC, errno.EDQUOT):
        what, remedy = "a file cannot be written", "Free some space, or set TMPDIR to another directory."
    return None if number in _OWN_FAULTS else EnvironmentLacksError(what, where=where, why=why, remedy=remedy)


def _nobody_reads_stdout() -> bool:
    poll = select.poll()
    poll.register(1, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _silence(number: int) -> None:
    # At exit, the interpreter flushes standard output again. A failure would change the exit status to 120.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)
