"""Options of commands, declared as fields of frozen dataclasses, and the types of option values."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar, get_type_hints

import click

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.files import default_root, own_directory, real_path, write_whole
from strakes.base.foreign_text import command_line
from strakes.base.processes import words_of
from strakes.base.units import parse_bytes, parse_count, parse_seconds, typed_bytes
from strakes.runs.impact import Impact, parse_impact
from strakes.runs.launch import LAUNCHERS, MOST_RANKS, Launch, Launcher
from strakes.targets.command import HOST, Servers

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from click.shell_completion import CompletionItem

    from strakes.runs.run import Run

T = TypeVar("T")
_Decorator = Callable[[Callable[..., Any]], click.Command]
_CLICK = "click"
MAX_SEED = 2**32 - 1  # Maximum seed, as in schemas/plan.json.


def option(text: str, *names: str, default: Any = None, **settings: Any) -> Any:
    """Declare a field as an option. The option is named after the field unless ``names`` are given.

    If the default is False, the option is a flag. If the default is (), the option may be repeated.
    """
    unset = default is None or default is False or default in ("", ())
    if default is False:
        settings["is_flag"] = True
    elif default == ():
        settings["multiple"] = True
    elif default is not None:
        settings = {"default": default, "show_default": not unset and not callable(default), **settings}
    settings["help"] = text
    return field(default=default if unset else MISSING, metadata={_CLICK: (click.option, names, settings)})


def argument(metavar: str, **settings: Any) -> Any:
    """Declare a field as an argument. ``settings``: keyword arguments of ``click.argument``."""
    return field(metadata={_CLICK: (click.argument, (), {"metavar": metavar, **settings})})


def takes(**defaults: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return a decorator that adds options and arguments to a command, according to the parameters of its function.

    The default or the annotation of a parameter declares an option. If the annotation is a dataclass, each field of the
    class declares an option, and the function gets an instance. ``defaults``: defaults by option.
    """

    def decorate(command: Callable[..., T]) -> Callable[..., T]:
        declared: dict[str, Field[Any]] = {}
        gathered: dict[str, type[DataclassInstance]] = {}
        hints = get_type_hints(command, include_extras=True)
        for name, parameter in signature(command).parameters.items():
            if own := _declared(parameter.default, hints[name]):
                declared[name] = own
                continue
            gathered[name] = kind = hints[name]
            inner = get_type_hints(kind, include_extras=True)
            declared |= {each.name: own for each in fields(kind) if (own := _declared(each, inner[each.name]))}

        @wraps(command)
        def call(**words: object) -> T:
            read = [words[name] for name, own in declared.items() if own.metadata[_CLICK][2].get("type") is PATH]
            _refuse_lost_files(words.values(), [each for each in read if isinstance(each, Path)])
            made = {
                name: kind(**{each.name: words.pop(each.name) for each in fields(kind)})
                for name, kind in gathered.items()
            }
            return command(**made, **words)

        for name, own in reversed(declared.items()):
            declare, names, settings = own.metadata[_CLICK]
            if declare is click.option and not names:
                names = (f"--{name.replace('_', '-')}",)
            if name in defaults:
                settings = {**settings, "default": defaults[name], "show_default": True}
            call = declare(*names, name, **settings)(call)
        return call

    return decorate


def _refuse_lost_files(values: Iterable[object], read: Iterable[Path]) -> None:
    """Raise BadInputError if an output would overwrite an input, another output or a file of the store.

    ``read``: files that the command reads, and directories of such files.
    """
    named = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
    outputs = [each.path for each in named if isinstance(each, Output) and each.path is not None]
    if not outputs:  # A watch must begin even if its directory does not answer.
        return
    kept = {_identity(each) for each in named if isinstance(each, str | Path) and os.path.isfile(each)}
    store = real_path(default_root())
    for path in outputs:
        if path.is_symlink() and path.lstat().st_uid not in (0, os.geteuid()):
            continue  # write_whole() replaces the link of another user.
        earlier = not path.exists() or path.suffix in (".json", ".html")  # the file is new, or a result of strakes
        places = [store / "runs", store / "knobs", store / "drills", *(() if earlier else map(real_path, read))]
        if _identity(path) in kept or any(real_path(path).is_relative_to(place) for place in places):
            what = "the output would overwrite an input file, another output or a file of the store"
            raise BadInputError(what, where=str(path), remedy="Give the name of another file.")
        if path.is_file() or not path.exists():
            kept.add(_identity(path))


def _identity(path: str | Path) -> object:
    return os.stat(path)[1:3] if os.path.isfile(path) else real_path(Path(path))


def _declared(default: object, annotation: Any) -> Field[Any] | None:
    candidates = (default, *getattr(annotation, "__metadata__", ()))
    return next((each for each in candidates if isinstance(each, Field) and _CLICK in each.metadata), None)


def command_named(name: str, cls: type[click.Command] = click.Command, **defaults: str) -> _Decorator:
    """Return a decorator that turns a function into the command ``name``. See :func:`takes` for its parameters."""
    return lambda body: click.command(name, cls=cls)(takes(**defaults)(body))


class Group(click.Group):
    """Group of commands whose parameters are declared as :func:`takes` describes."""

    def part(self, name: str, **settings: Any) -> _Decorator:
        """Return a decorator that adds a function to this group as the command ``name``."""
        return lambda body: self.command(name, **settings)(takes()(body))


class DefaultGroup(Group):
    """Command group that runs its first command if the arguments do not name a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. If they do not name a command, insert the first command."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


class _Number(click.ParamType[Any]):
    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            counted = isinstance(self, WholeNumber) and isinstance(value, str)
            number = super().convert(f"{parse_count(value):.15g}" if counted else value, param, ctx)
        except (click.BadParameter, BadInputError):
            number = math.nan
        if math.isnan(number):
            kind = "whole number" if isinstance(self, WholeNumber) else "number"
            limits: str = self._describe_range()  # type: ignore[attr-defined]
            self.fail(f"expected a {kind} in the range {limits}, not {value!r}", param, ctx)
        return number


class WholeNumber(_Number, click.IntRange):
    """A whole number within limits, such as 5000 or 5k. Other numbers are errors."""


class NumberRange(_Number, click.FloatRange):
    """A number within limits. NaN is an error."""


class Parsed(click.ParamType[T], Generic[T]):
    """Type of an option that the function ``parse`` converts. A BadInputError becomes an error of the option."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Convert the text of an option."""
        return parsed(self._parse, value) if isinstance(value, str) else value


def parsed(parse: Callable[[Any], T], words: Any) -> T:
    """Return ``parse(words)``. Turn BadInputError into click's BadParameter."""
    try:
        return parse(words)
    except BadInputError as error:
        where, why = (f" ({error.where})" if error.where else ""), (f": {error.why}" if error.why else "")
        raise click.BadParameter(f"{error.what}{where}{why}. {error.remedy}".rstrip()) from error


def _positive(parse: Callable[[str], float], text: str) -> float:
    if (value := parse(text)) <= 0:
        raise BadInputError("the value must be more than zero")
    return value


def _data_per_rank(text: str) -> int:
    from strakes.studies.study import LEAST_PER_RANK, MOST_PER_RANK, PER_RANK_STEP

    size = parse_bytes(text)
    valid = min(max(round(size / PER_RANK_STEP) * PER_RANK_STEP, LEAST_PER_RANK), MOST_PER_RANK)
    if size != valid:
        least, most, step = map(typed_bytes, (LEAST_PER_RANK, MOST_PER_RANK, PER_RANK_STEP))
        limits = f"the size must be at least {least}, at most {most} and a multiple of {step}"
        raise BadInputError(f"{limits}; the nearest valid size is {typed_bytes(valid)}")
    return valid


def assignments(words: Iterable[str], example: str) -> dict[str, str]:
    """Parse words NAME=VALUE into a mapping. For other words, raises BadInputError that suggests ``example``.

    >>> assignments(["transfer=64KiB,1MiB"], "transfer=1MiB")
    {'transfer': '64KiB,1MiB'}
    """
    values: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not name or not value.strip(", "):
            raise BadInputError(f"expected NAME=VALUE, not {word!r}", remedy=f"Write, for example, {example}.")
        if name in values:
            raise BadInputError(f"{name} is given twice", remedy=f"Give {name} once, for example {example}.")
        values[name] = value
    return values


def _hosts(text: str) -> tuple[str, ...]:
    hosts = tuple(word.strip() for word in text.split(","))
    if not all(map(HOST.fullmatch, hosts)):
        raise BadInputError(f"expected a list such as n1,n2, not {text!r}")
    return hosts


class _PlaceType(click.ParamType[Path]):
    """Option type for paths. Unlike click.Path, it does not call stat(2), which blocks if servers are dead."""

    def __init__(self, name: str, completion: str) -> None:
        self.name, self._completion = name, completion

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if value in ("", b""):  # An empty name would mean the current directory.
            self.fail("The name is empty; give a path, such as ./results.", param, ctx)
        return Path(os.fsdecode(value))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self._completion)]


@dataclass(frozen=True)
class Output:
    """Destination of a document: a file, or standard output if ``path`` is None."""

    path: Path | None

    def write(self, text: str) -> None:
        """Write the document, replacing a file atomically. Raises EnvironmentLacksError if that fails.

        The document is then kept in the directory ``unwritten`` of the store.
        """
        if self.path is None:
            click.echo(text, nl=not text.endswith("\n"))
            return
        try:
            write_whole(self.path, text.encode("utf-8", "backslashreplace"))  # file names may not be valid UTF-8
        except OSError as error:
            from strakes.runs.store_files import replace_text, store_errors

            kept = default_root() / "unwritten" / f"{time.time_ns()}{self.path.suffix[:9]}"
            try:
                with store_errors(kept), own_directory(kept.parent):
                    replace_text(kept, text)
                remedy = f"It is kept in the store: copy it from {kept}"
            except StrakesError as other:
                remedy = f"It cannot be kept in the store either ({other}). Run the command again with another file."
            where, why = str(self.path), error.strerror or str(error)
            raise EnvironmentLacksError("the result cannot be written", where=where, why=why, remedy=remedy) from error


class _OutputType(_PlaceType):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, Output):
            return value
        if value == "-":
            return Output(None)
        path = super().convert(value, param, ctx)
        if path.is_dir():
            self.fail(f"{path} is a directory; give a file", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"the directory {path.parent} does not exist", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"{path} is not writable", param, ctx)
        return Output(path)


# Key in click's ``Context.meta`` for errors that are printed at the end of a command.
FAILED_OUTPUTS = "strakes.cli.failed_outputs"


def prints_summary(*outputs: Output | None) -> bool:
    """Return whether to print a summary, which must not mix with a document on standard output."""
    return all(output is None or output.path is not None for output in outputs)


def write_document(output: Output | None, text: str) -> bool:
    """Write the document unless ``output`` is None. Return whether to print a summary. Store errors in the context."""
    if output is not None:
        try:
            output.write(text)
        except EnvironmentLacksError as error:
            click.get_current_context().meta.setdefault(FAILED_OUTPUTS, []).append(error)
    return prints_summary(output)


def write_json(output: Output | None, document: object) -> bool:
    """Write the document as JSON unless ``output`` is None. Return whether to print a summary."""
    from strakes.base.finite import to_json

    return write_document(output, "" if output is None else to_json(document, indent=1))


PATH = _PlaceType("file", "file")
DIRECTORY = _PlaceType("directory", "dir")
OUTPUT = _OutputType("file", "file")
BYTES = Parsed("size", partial(_positive, parse_bytes))
SECONDS = Parsed("time", partial(_positive, parse_seconds))
HOSTS = Parsed("hosts", _hosts)
_MOST_THREADS = 4096  # Maximum number of ranks in one process (engine/crew/crew.hpp). Twice as many take 480 MiB.
RANKS = WholeNumber(1, MOST_RANKS)


def _neighbour(text: str) -> float:
    from strakes.studies.neighbour import parse_neighbour

    return parse_neighbour(text)


Directory = Annotated[Path, argument("DIR", type=DIRECTORY)]
MaybeDirectory = Annotated[Path | None, argument("[DIR]", type=DIRECTORY, required=False)]
StoredRun = Annotated[str, argument("[RUN]", default="latest")]
AsJson = Annotated[
    Output | None, option("Write the result as JSON.", "--json", type=OUTPUT, is_flag=True, flag_value="-")
]
Json = Annotated[Output | None, option("Write the results as JSON to FILE (- is standard output).", type=OUTPUT)]
TextOutput = Annotated[
    Output,
    option(
        "Write to FILE.  [default: standard output]", "-o", "--output", type=OUTPUT, default="-", show_default=False
    ),
]
AtServers = Annotated[
    Servers | None,
    option(
        'Command that runs another command on the server {host}, such as "ssh {host} sudo"; for counters, settings '
        "and faults of servers.",
        type=Parsed("template", Servers),
    ),
]
Confidence = Annotated[
    float, option("Confidence level of every interval.", type=NumberRange(0.5, 0.999), default=0.9, metavar="SHARE")
]
Like = Annotated[
    str | None, option("Use the plans of RUN, so that strakes compare can compare the two runs.", metavar="RUN")
]
Libcephfs = Annotated[
    bool,
    option(
        "On CephFS, do metadata operations through libcephfs, not the mount; each rank is a separate client.",
        default=False,
    ),
]
Against = Annotated[
    Path | None, option("Also measure DIR2, in turn with DIR, and compare the two.", type=DIRECTORY, metavar="DIR2")
]
FailOn = Annotated[
    str | None, option("Exit with status 1 on any of these results, such as slower:5%,inconclusive.", metavar="LIST")
]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Options for the measuring time, and for the confidence level of intervals."""

    budget_s: float = option("Time to spend on measuring, such as 60s or 5m.", "--budget", type=SECONDS)
    confidence: Confidence


@dataclass(frozen=True, kw_only=True)
class Report:
    """Options for the files that receive the results of a run."""

    html: Output | None = option(
        "Write the HTML report to FILE.  [default: report.html in the run's directory]", type=OUTPUT
    )
    json: Json = None


@dataclass(frozen=True, kw_only=True)
class Launching:
    """Options for starting the ranks."""

    launcher: Launcher = option(
        "How to start ranks (parallel workers): as threads on this host (local), or as processes by "
        "mpiexec (mpi), srun (slurm) or --launcher-command (command). strakes doctor says which work here.",
        type=click.Choice(LAUNCHERS),
        default="local",
    )
    ranks: int | None = option(
        "Use at most N ranks.  [default: as many as the plan or study asks for]", "-n", "--ranks", type=RANKS
    )
    hosts: tuple[str, ...] | None = option(
        "Hosts to start ranks on.  [default: this host; slurm: all hosts of the job]", type=HOSTS, metavar="A,B"
    )
    ranks_per_node: int | None = option("Number of ranks on each host.", type=RANKS)
    mpiexec: Path | None = option(
        "The mpiexec to use.  [default: the one installed with strakes, else the one in PATH]", type=PATH
    )
    launcher_options: str | None = option(
        "Additional options for mpiexec or srun, quoted as one argument.", metavar="WORDS"
    )
    launcher_command: str | None = option(
        "Start the ranks with this command, such as 'jsrun -n {ranks} {engine}'.", metavar="WORDS"
    )

    @property
    def launch(self) -> Launch:
        """Return the options as a Launch. Raises BadInputError if they contradict each other."""
        launcher = "command" if self.launcher_command is not None and self.launcher == "local" else self.launcher
        processes: tuple[Launcher, ...] = ("mpi", "slurm", "command")
        wrong: dict[str, tuple[object, tuple[Launcher, ...]]] = {
            "--hosts": (self.hosts, processes),
            "--ranks-per-node": (self.ranks_per_node, processes),
            f"{self.ranks} ranks": (self.ranks if (self.ranks or 0) > _MOST_THREADS else None, processes),
            "--mpiexec": (self.mpiexec, ("mpi",)),
            "--launcher-options": (self.launcher_options, ("mpi", "slurm")),
            "--launcher-command": (self.launcher_command, ("command",)),
        }
        for name, (value, where) in wrong.items():
            if value is not None and launcher not in where:
                remedy = f"Add --launcher {' or '.join(where)}."
                raise BadInputError(f"{name} cannot be used with --launcher {launcher}", remedy=remedy)
        if launcher == "command" and self.launcher_command is None:
            remedy = "Add --launcher-command 'jsrun -n {ranks} {engine}'."
            raise BadInputError("--launcher command was given without a command", remedy=remedy)
        words = words_of("--launcher-options", self.launcher_options) if self.launcher_options else ()
        command = self.launcher_command or ""
        return Launch(launcher, self.ranks, self.hosts or (), self.ranks_per_node, self.mpiexec, words, command)


@dataclass(frozen=True, kw_only=True)
class Measuring(Launching, Report, Effort):
    """Options of every command that measures."""

    resume: bool = option("Resume the newest interrupted run with the same DIR and options.", default=False)
    servers: AtServers
    keep: bool = option("Do not remove the measured files; strakes clean DIR removes them later.", default=False)
    seed: int = option(
        "Seed of random choices. The same seed repeats the choices, but not the contents of files.",
        type=WholeNumber(0, MAX_SEED),
        default=lambda: int.from_bytes(os.urandom(4), "big"),
    )
    quiet: bool = option("Do not show progress.", "-q", "--quiet", default=False)

    in_request: ClassVar[tuple[str, ...]] = ("budget_s", "confidence", "seed", "keep", "launch", "resume", "servers")
    """Options that a request also contains."""

    def for_request(self) -> dict[str, Any]:
        """Return the options that a request contains, and the command line."""
        return {"command": join(command_line()), **{name: getattr(self, name) for name in self.in_request}}


@dataclass(frozen=True, kw_only=True)
class Sampling(Measuring):
    """Options of commands that repeat measurements until intervals are narrow. Some options limit the load."""

    relative_half_width: float = option(
        "Repeat each cell (a combination of settings) until the relative half-width of its interval is this small.",
        "--precision",
        type=NumberRange(0.005, 0.5),
        default=0.1,
        metavar="SHARE",
    )
    impact: Impact = option(
        "Limit the load of all ranks together: 200MiB/s limits reads and writes, 5000ops/s all operations, "
        "metadata operations too. Give it twice to limit both.",
        default=(),
        callback=lambda _ctx, _param, words: parsed(parse_impact, words),
        metavar="LIMIT",
    )
    neighbour_s: float | None = option(
        "Protect other users: probe the latency of the file system during the run. Reduce the load when the 99th "
        "percentile exceeds this limit, such as p99=20ms; stop if that does not help.",
        "--neighbour",
        type=Parsed("limit", _neighbour),
    )

    in_request = (*Measuring.in_request, "relative_half_width", "impact", "neighbour_s")


@dataclass(frozen=True, kw_only=True)
class Amounts:
    """Amount of data, number of files and seconds of each phase of a run. None: chosen by strakes."""

    data_per_rank: int | None = option(
        "Data that each rank moves in each phase, such as 4GiB.  [default: as the budget and the memory allow]",
        type=Parsed("size", _data_per_rank),
    )
    files: int | None = option(
        "Files that all ranks together create in each metadata phase. Study population: total files at its end. "
        "Study recovery: files that clients create before a fail-over.",
        type=WholeNumber(1, 1 << 30),  # The engine's maximum number of files of one rank.
    )
    phase_s: float | None = option(
        "Length of each phase, such as 30s.  [default: as the budget allows]", "--phase", type=SECONDS
    )


def like_run(like: str | None, *amounts: float | None) -> Run | None:
    """Return the stored run that --like names, or None. Raises BadInputError if --like and an amount are given."""
    from strakes.runs.store import Store

    if like is not None and any(amounts):
        remedy = "Leave out --data-per-rank, --files and --phase: RUN determines the amounts of work."
        raise BadInputError("--like cannot be used with --data-per-rank, --files or --phase", remedy=remedy)
    run = None if like is None else Store().open(like)
    if run and "--like" in sys.argv:  # Store the id, because "latest" may be another run later.
        sys.argv[sys.argv.index("--like") + 1] = run.id
    return run
