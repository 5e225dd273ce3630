"""Parameter types and options that several commands share."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from strakes.base.errors import BadInputError, MeasurementError
from strakes.base.files import write_whole
from strakes.base.units import MIB, parse_bytes, parse_seconds
from strakes.cli.numbers import NumberRange, WholeNumber
from strakes.runs.choice import LAUNCHERS, Launch, Launcher, offer
from strakes.runs.impact import Impact, parse_impact
from strakes.targets.command import Servers

if TYPE_CHECKING:
    from strakes.runs.run import Run

Command = TypeVar("Command", bound=Callable[..., object])

_HOST = re.compile(r"[\w\[.:][\w.:@%\[\]-]*", re.ASCII)  # a name or an address
_EMPTY = "The name is empty; give a path, such as ./results."
MAX_SEED = 2**32 - 1  # as schemas/plan.json


@dataclass(frozen=True)
class Output:
    """Destination of a document: a file, or standard output if ``path`` is None."""

    path: Path | None
    remedy: str = "No measurement is lost; write the report again: strakes report latest"
    """Next step if the file cannot be written."""

    def write(self, text: str) -> None:
        """Write the document, a file atomically. Raises MeasurementError if it cannot be written."""
        if self.path is None:
            click.echo(text, nl=not text.endswith("\n"))
            return
        try:
            write_whole(self.path, text.encode("utf-8", "backslashreplace"))  # a name need not be UTF-8
        except OSError as error:
            why = error.strerror or str(error)
            what = "the result cannot be written"
            raise MeasurementError(what, where=str(self.path), why=why, remedy=self.remedy) from error


@dataclass(frozen=True)
class Measuring:
    """Options of every command that measures."""

    budget_s: float
    confidence: float
    html: Output | None
    json: Output | None
    resume: str | None
    """RUN, "" for the newest unfinished run of the same measurement, or None."""
    launch: Launch
    servers: Servers | None
    keep: bool
    seed: int
    quiet: bool


@dataclass(frozen=True)
class Sampling(Measuring):
    """Options of commands that repeat cells until their intervals are narrow, and may limit their load."""

    relative_half_width: float
    impact: Impact
    neighbour_s: float | None


@dataclass(frozen=True)
class Amounts:
    """Amounts of each phase, or None if the survey chooses them."""

    data_per_rank: int | None = None
    """Bytes."""
    files: int | None = None
    phase_s: float | None = None


def write_document(output: Output | None, text: str, *others: Output | None) -> bool:
    """Write the document if there is an output. Return whether to print a summary.

    No summary is printed if this document or one of ``others`` goes to standard output.
    """
    if output is not None:
        output.write(text)
    return all(destination is None or destination.path is not None for destination in (output, *others))


def write_json(output: Output | None, document: object, *others: Output | None) -> bool:
    """Write the document as JSON, with the result of ``write_document``."""
    from strakes.base.finite import to_json

    text = "" if output is None else to_json(document, indent=1)
    return write_document(output, text, *others)


class AmountType(click.ParamType[float]):
    """An amount with a unit, read by ``parse``. It must be positive and at least ``least``."""

    def __init__(self, name: str, parse: Callable[[str], float], too_little: str, least: float = 0.0) -> None:
        self.name, self._parse, self._too_little, self._least = name, parse, too_little, least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the amount, in bytes or seconds."""
        if isinstance(value, int | float):
            return value
        try:
            amount = self._parse(str(value))
        except BadInputError as error:
            self.fail(f"{error.what}. {error.remedy}", param, ctx)
        if amount <= 0 or amount < self._least:
            self.fail(self._too_little, param, ctx)
        return amount


class OutputType(click.ParamType[Output]):
    """A file to write, or - for standard output. An unwritable file is refused before the measurement."""

    name = "file"

    def __init__(self, remedy: str = Output.remedy) -> None:
        self._remedy = remedy

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        """Return the output; fail if the file cannot be written."""
        if isinstance(value, Output):
            return value
        if not value:
            self.fail(_EMPTY, param, ctx)
        if value == "-":
            return Output(None, self._remedy)
        path = Path(value)
        if path.is_dir():
            self.fail(f"{path} is a directory; give a file", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"the directory {path.parent} does not exist", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"{path} is not writable", param, ctx)
        return Output(path, self._remedy)


class HostsType(click.ParamType[tuple[str, ...]]):
    """Names of hosts, separated by commas."""

    name = "hosts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the names."""
        if isinstance(value, tuple):
            return value
        hosts = tuple(host.strip() for host in str(value).split(","))
        if not all(hosts) or not all(map(_HOST.fullmatch, hosts)):
            self.fail(f"expected a list of hosts such as n1,n2, not {value!r}", param, ctx)
        return hosts


class DirectoryType(click.ParamType[Path]):
    """A directory that is not checked: click.Path would call stat(2) and block for ever if its servers are dead."""

    name = "directory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path as it was typed."""
        if value in ("", b""):
            self.fail(_EMPTY, param, ctx)
        return Path(os.fsdecode(value)) if isinstance(value, str | bytes) else value


class PathType(click.Path):
    """A path other than DIR. An empty name is refused, because it would mean the current directory."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the placeholder in the help."""
        return "FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if value in ("", b""):
            self.fail(_EMPTY, param, ctx)
        return super().convert(value, param, ctx)


PATH = PathType(path_type=Path)
DIRECTORY = DirectoryType()
BYTES = AmountType("size", parse_bytes, "must be at least one byte")
SECONDS = AmountType("time", parse_seconds, "must be more than zero")
HOSTS = HostsType()
RANKS = WholeNumber(1, 65536)  # as schemas/plan.json
OUTPUT = OutputType()


def budget_option(default: str) -> Callable[[Command], Command]:
    """Return the option ``--budget``, passed as ``budget_s``."""
    text = "Time to spend on measuring, such as 60s or 5m."
    return click.option("--budget", "budget_s", type=SECONDS, default=default, show_default=True, help=text)


def draw_seed() -> int:
    """Return a random seed."""
    import secrets

    return secrets.randbelow(MAX_SEED)


# Each option becomes an argument of the same name: FILE as Output or None, SHARE as float.
confidence_option = click.option(
    "--confidence",
    type=NumberRange(0.5, 0.999),
    default=0.9,
    show_default=True,
    metavar="SHARE",
    help="Confidence level of every interval.",
)
precision_option = click.option(
    "--precision",
    "relative_half_width",
    type=NumberRange(0.005, 0.5),
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="Repeat each cell (a combination of settings) until its interval is this narrow (relative half-width).",
)
html_option = click.option(
    "--html", type=OUTPUT, help="Write the HTML report to FILE.  [default: report.html in the run's directory]"
)
json_option = click.option("--json", type=OUTPUT, help="Write the results as JSON to FILE (- is standard output).")
as_json_option = click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
_AMOUNT_OPTIONS = (
    click.option(
        "--data-per-rank",
        type=AmountType("size", parse_bytes, "must be at least 1MiB", MIB),
        help="Data that each rank moves in each phase, such as 4GiB.  [default: as the budget and the memory allow]",
    ),
    click.option(
        "--files",
        type=WholeNumber(min=1),
        help="Files that all ranks together create in each metadata phase. Study population: total files at its end. "
        "Study recovery: files that clients create before a fail-over.",
    ),
    click.option(
        "--phase", "phase_s", type=SECONDS, help="Length of each phase, such as 30s.  [default: as the budget allows]"
    ),
)


compare_with_option = click.option(
    "--compare-with",
    metavar="LIST",
    help="Also compare this system with a list of systems: io500 for the IO500 list, or a CSV file in the same form.",
)
like_option = click.option(
    "--like", metavar="RUN", help="Use the plans of RUN, so that strakes compare can compare the two runs."
)


def like_run(like: str | None, *amounts: float | None) -> Run | None:
    """Return the run whose plans are used, or None. Raises BadInputError if amounts were given as well."""
    from strakes.runs.store import Store

    if like is None:
        return None
    if any(amounts):
        remedy = "Leave out --data-per-rank, --files and --phase: RUN determines them."
        raise BadInputError("--like cannot be used together with amounts", remedy=remedy)
    return Store().open(like)


def amount_options(command: Command) -> Command:
    """Add the options for the amounts of a phase, passed as one Amounts in ``amounts``."""
    return with_options(_gathered(Amounts, "amounts", command), *_AMOUNT_OPTIONS)


keep_option = click.option(
    "--keep", is_flag=True, help="Do not remove the measured files; strakes clean DIR removes them later."
)
# ``batch``: words for sbatch.
batch_option = click.option(
    "--batch",
    metavar="WORDS",
    help="Submit the measurement as a Slurm job with these sbatch options, such as '-N 4 -t 30', and return.",
)
libcephfs_option = click.option(
    "--libcephfs",
    is_flag=True,
    help="On CephFS, do metadata operations through libcephfs, not the mount; each rank is a separate client.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Do not show progress.")
resume_option = click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[RUN]",
    help="Resume an interrupted run: RUN, or the newest with the same DIR and options.",
)
seed_option = click.option(
    "--seed",
    type=WholeNumber(0, MAX_SEED),
    default=draw_seed,
    help="Seed of random choices; the same seed repeats them, but not the contents of files.",
)


def _read_with(parse: Callable[[Any], object]) -> Callable[[click.Context, click.Parameter, Any], object]:
    """Make a callback that parses the value of an option and reports errors as errors of the option."""

    def read(_ctx: click.Context, _param: click.Parameter, words: Any) -> object:
        try:
            return None if words is None else parse(words)
        except BadInputError as error:
            where, why = (f" ({error.where})" if error.where else ""), (f": {error.why}" if error.why else "")
            raise click.BadParameter(f"{error.what}{where}{why}. {error.remedy}") from error

    return read


def _parse_neighbour(text: str) -> float:
    from strakes.studies.neighbour import parse_neighbour

    return parse_neighbour(text)


# ``impact`` is an Impact.
impact_option = click.option(
    "--impact",
    multiple=True,
    callback=_read_with(parse_impact),
    metavar="LIMIT",
    help="Limit the load of all ranks together, such as 200MiB/s or 5000ops/s. Give it twice to limit both.",
)
neighbour_option = click.option(
    "--neighbour",
    "neighbour_s",
    callback=_read_with(_parse_neighbour),
    metavar="LIMIT",
    help="Protect other users: probe the file system meanwhile, and slow down when the 99th percentile of the probe's "
    "latencies exceeds this limit, such as p99=20ms; stop if that does not help.",
)
# ``servers`` is a Servers or None.
servers_option = click.option(
    "--servers",
    callback=_read_with(Servers),
    metavar="TEMPLATE",
    help='Command that runs another command on the server {host}, such as "ssh {host} sudo"; for counters, settings '
    "and faults of servers.",
)


_LAUNCH_OPTIONS = (
    click.option(
        "--launcher",
        type=click.Choice(LAUNCHERS),
        default="local",
        show_default=True,
        help="How to start ranks (parallel workers): as threads on this host (local), or as processes by "
        "mpiexec (mpi), srun (slurm) or --launcher-command (command). strakes doctor says which work here.",
    ),
    click.option(
        "-n", "--ranks", type=RANKS, help="Use at most N ranks.  [default: as many as the plan or study asks for]"
    ),
    click.option(
        "--hosts",
        type=HOSTS,
        metavar="A,B",
        help="Hosts to start ranks on.  [default: this host; slurm: all hosts of the job]",
    ),
    click.option("--ranks-per-node", type=RANKS, help="Number of ranks on each host."),
    click.option(
        "--mpiexec",
        type=PATH,
        help="The mpiexec to use.  [default: the one installed with strakes, else the one in PATH]",
    ),
    click.option(
        "--launcher-options", metavar="WORDS", help="Additional options for mpiexec or srun, quoted as one argument."
    ),
    click.option(
        "--launcher-command",
        metavar="WORDS",
        help="Start the ranks with this command, such as 'jsrun -n {ranks} {engine}'.",
    ),
)


def with_options(command: Command, *options: Callable[[Command], Command]) -> Command:
    """Add the options to a command, in the order of its help."""
    for option in reversed(options):
        command = option(command)
    return command


def _gathered(kind: type[object], name: str, command: Command) -> Command:
    """Pass the options that are fields of the dataclass ``kind`` to the command as one argument ``name``."""

    @wraps(command)
    def gathering(**options: Any) -> object:
        values = {parameter: options.pop(parameter) for parameter in signature(kind).parameters}
        return command(**{name: kind(**values)}, **options)

    return cast("Command", gathering)


def launch_options(command: Command) -> Command:
    """Add the options that ``launch_from`` takes, as separate arguments."""
    return with_options(command, *_LAUNCH_OPTIONS)


def launch_option(command: Command) -> Command:
    """Add the launch options, passed as one Launch in ``launch``."""

    @wraps(command)
    def with_launch(**options: Any) -> object:
        words = {name: options.pop(name) for name in signature(launch_from).parameters}
        return command(launch=launch_from(**words), **options)

    return launch_options(cast("Command", with_launch))


def launch_from(
    launcher: Launcher,
    ranks: int | None,
    hosts: tuple[str, ...] | None,
    ranks_per_node: int | None,
    mpiexec: Path | None,
    launcher_options: str | None,
    launcher_command: str | None,
) -> Launch:
    """Return the values of ``launch_options`` as a Launch. Raises BadInputError if they contradict each other."""
    if launcher_command is not None and launcher == "local":
        launcher = "command"
    wrong: tuple[tuple[str, object, tuple[Launcher, ...]], ...] = (
        ("--hosts", hosts, ("mpi", "slurm", "command")),
        ("--ranks-per-node", ranks_per_node, ("mpi", "slurm", "command")),
        ("--mpiexec", mpiexec, ("mpi",)),
        ("--launcher-options", launcher_options, ("mpi", "slurm")),
        ("--launcher-command", launcher_command, ("command",)),
    )
    for name, value, where in wrong:
        if value is not None and launcher not in where:
            raise BadInputError(f"{name} cannot be used with --launcher {launcher}", remedy=offer(where))
    if launcher == "command" and launcher_command is None:
        remedy = "Add --launcher-command 'jsrun -n {ranks} {engine}'."
        raise BadInputError("--launcher command was given without a command", remedy=remedy)
    words = () if launcher_options is None else words_of("--launcher-options", launcher_options)
    return Launch(launcher, ranks, hosts or (), ranks_per_node, mpiexec, words, launcher_command or "")


def words_of(option: str, text: str) -> tuple[str, ...]:
    """Split the options of another program, given as one word. Raises BadInputError for an unclosed quotation."""
    import shlex

    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        remedy = f"Close the quotation mark, as in {option} 'first \"second word\"'."
        raise BadInputError(f"{option} cannot be read", where=text, why=str(error), remedy=remedy) from error


def measuring_options(default_budget: str, *, repeats_cells: bool = True) -> Callable[[Command], Command]:
    """Add the options of measuring commands, passed as ``options``: a Sampling, or a Measuring without repeats."""

    def decorate(command: Command) -> Command:
        return with_options(
            _gathered(Sampling if repeats_cells else Measuring, "options", command),
            budget_option(default_budget),
            *(confidence_option, html_option, json_option, resume_option, launch_option, servers_option),
            *((impact_option, neighbour_option) if repeats_cells else ()),
            *(keep_option, seed_option, quiet_option),
            *((precision_option,) if repeats_cells else ()),
        )

    return decorate
