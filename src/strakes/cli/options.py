"""Parameter types and options that several commands share; the options' names are the same everywhere."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from strakes.errors import BadInputError, MeasurementError
from strakes.launch.choice import LAUNCHERS, Launch, Launcher
from strakes.launch.impact import Impact, parse_impact
from strakes.targets.command import Servers
from strakes.units import parse_bytes, parse_seconds

Command = TypeVar("Command", bound=Callable[..., object])

MAX_SEED = 2**32 - 1  # as schemas/plan.json


@dataclass(frozen=True)
class Output:
    """Where a document goes: a file, or standard output (``path`` is None)."""

    path: Path | None

    def write(self, text: str) -> None:
        """Write the whole document, a file at once or not at all. Raises MeasurementError when it cannot be written."""
        if self.path is None:
            click.echo(text, nl=not text.endswith("\n"))
            return
        try:
            _replace(self.path, text)
        except OSError as error:
            raise MeasurementError(
                "the result cannot be written",
                where=str(self.path),
                why=error.strerror or str(error),
                remedy="No measurement is lost; write the report again: strakes report latest",
            ) from error


@dataclass(frozen=True)
class Resume:
    """``--resume [RUN]``: ``run`` is None for the newest unfinished run of the same measurement."""

    run: str | None


class BytesType(click.ParamType[int]):
    """A size such as 64KiB; gives bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes."""
        if isinstance(value, int):
            return value
        try:
            size = parse_bytes(str(value))
        except BadInputError as error:
            self.fail(f"{error.what}. {error.remedy}", param, ctx)
        if size < 1:
            self.fail("must be at least one byte", param, ctx)
        return size


class SecondsType(click.ParamType[float]):
    """A duration such as 90s or 2m; gives seconds, more than none."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        if isinstance(value, int | float):
            return float(value)
        try:
            seconds = parse_seconds(str(value))
        except BadInputError as error:
            self.fail(f"{error.what}. {error.remedy}", param, ctx)
        if seconds <= 0:
            self.fail("must be more than zero", param, ctx)
        return seconds


class OutputType(click.ParamType[Output]):
    """A file to be written, or - for standard output; one that cannot be written is refused before the measurement."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        """Return the file, if it can be written."""
        if isinstance(value, Output):
            return value
        if value == "-":
            return Output(None)
        path = Path(value)
        if path.is_dir():
            self.fail(f"{path} is a directory; give a file", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"the directory {path.parent} does not exist", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"{path} is not writable", param, ctx)
        return Output(path)


class ResumeType(click.ParamType[Resume]):
    """A run's id or a unique beginning of it; empty for the newest."""

    name = "run"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Resume:
        """Return the run to resume."""
        return value if isinstance(value, Resume) else Resume(str(value) or None)


class HostsType(click.ParamType[tuple[str, ...]]):
    """Names of hosts, separated by commas."""

    name = "hosts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the names."""
        if isinstance(value, tuple):
            return value
        hosts = tuple(host.strip() for host in str(value).split(","))
        if not all(hosts) or any(host.startswith("-") or " " in host for host in hosts):
            self.fail(f"{value!r} is not a list of hosts such as n1,n2", param, ctx)
        return hosts


class DirectoryType(click.ParamType[Path]):
    """DIR, as it is typed. click.Path would look at it, and wait for ever where its servers are dead."""

    name = "directory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path as it was typed."""
        return Path(os.fsdecode(value)) if isinstance(value, str | bytes) else value


DIRECTORY = DirectoryType()
BYTES = BytesType()
SECONDS = SecondsType()
CONFIDENCE = click.FloatRange(0.5, 0.999)
PRECISION = click.FloatRange(0.005, 0.5)
HOSTS = HostsType()
RANKS = click.IntRange(1, 65536)  # as schemas/plan.json
OUTPUT = OutputType()
RESUME = ResumeType()


def budget_option(default: str) -> Callable[[Command], Command]:
    """``--budget``: ``budget`` in seconds."""
    return click.option(
        "--budget",
        type=SECONDS,
        default=default,
        show_default=True,
        metavar="TIME",
        help="Time to spend on measuring, such as 60s or 5m.",
    )


def confidence_option(command: Command) -> Command:
    """``--confidence``: ``confidence`` as a share."""
    return click.option(
        "--confidence",
        type=CONFIDENCE,
        default=0.9,
        show_default=True,
        metavar="SHARE",
        help="Confidence level of every interval.",
    )(command)


def precision_option(command: Command) -> Command:
    """``--precision``: ``precision`` as a share, the relative half-width to reach."""
    text = "Repeat each cell until its interval is this narrow (relative half-width)."
    return click.option("--precision", type=PRECISION, default=0.1, show_default=True, metavar="SHARE", help=text)(
        command
    )


def html_option(command: Command) -> Command:
    """``--html``: ``html`` is an Output or None."""
    return click.option(
        "--html",
        type=OUTPUT,
        metavar="FILE",
        help="Write the HTML report to FILE  [default: report.html in the run's directory]",
    )(command)


def json_option(command: Command) -> Command:
    """``--json``: ``json`` is an Output or None."""
    return click.option(
        "--json", type=OUTPUT, metavar="FILE", help="Write the findings as JSON to FILE (- is standard output)."
    )(command)


def keep_option(command: Command) -> Command:
    """``--keep``: ``keep`` is a bool."""
    return click.option(
        "--keep", is_flag=True, help="Do not remove the measured files; strakes clean DIR removes them later."
    )(command)


def launch_options(command: Command) -> Command:
    """Everything about who starts the ranks, and where: all of it together is ``launch_from``'s."""
    text = (
        "How ranks are started: as threads on this host (local), or as processes by mpiexec (mpi), by srun "
        "(slurm) or by a command of yours."
    )
    for option in (
        click.option(
            "--launcher-command",
            metavar="WORDS",
            help="Start the ranks with this command, such as 'jsrun -n {ranks} {engine}'.",
        ),
        click.option(
            "--launcher-options",
            metavar="WORDS",
            help="Additional options for mpiexec or srun, quoted as one argument.",
        ),
        click.option(
            "--mpiexec",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The mpiexec to use  [default: the one installed with strakes, else the one in PATH]",
        ),
        click.option("--ranks-per-node", type=RANKS, metavar="N", help="Number of ranks on each host."),
        click.option(
            "--hosts",
            type=HOSTS,
            metavar="A,B",
            help="Hosts to start ranks on  [default: this host; slurm: all hosts of the job]",
        ),
        click.option(
            "-n",
            "--ranks",
            type=RANKS,
            metavar="N",
            help="Use at most N ranks  [default: as many as the plan or study asks for]",
        ),
        click.option("--launcher", type=click.Choice(LAUNCHERS), default="local", show_default=True, help=text),
    ):
        command = option(command)
    return command


def launch_from(
    launcher: Launcher,
    ranks: int | None,
    hosts: tuple[str, ...] | None,
    ranks_per_node: int | None,
    mpiexec: Path | None,
    launcher_options: str | None,
    launcher_command: str | None,
) -> Launch:
    """Return the options of ``launch_options`` as one value. Raises BadInputError where they contradict each other."""
    if launcher_command is not None and launcher == "local":
        launcher = "command"
    for name, value, where in (
        ("--hosts", hosts, ("mpi", "slurm", "command")),
        ("--ranks-per-node", ranks_per_node, ("mpi", "slurm", "command")),
        ("--mpiexec", mpiexec, ("mpi",)),
        ("--launcher-options", launcher_options, ("mpi", "slurm")),
        ("--launcher-command", launcher_command, ("command",)),
    ):
        if value is not None and launcher not in where:
            what = "with --launcher local" if launcher == "local" else f"with --launcher {launcher}"
            raise BadInputError(f"{name} cannot be used {what}", remedy=f"Add --launcher {' or '.join(where)}.")
    if launcher == "command" and launcher_command is None:
        raise BadInputError(
            "--launcher command was given without a command",
            remedy="Add --launcher-command 'jsrun -n {ranks} {engine}'.",
        )
    words = () if launcher_options is None else words_of("--launcher-options", launcher_options)
    return Launch(launcher, ranks, hosts or (), ranks_per_node, mpiexec, words, launcher_command or "")


def words_of(option: str, text: str) -> tuple[str, ...]:
    """Options of another program, given as one word. Raises BadInputError for quotes that do not end."""
    import shlex

    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise BadInputError(f"{option} cannot be read", where=text, why=str(error)) from error


def impact_option(command: Command) -> Command:
    """``--impact``: ``impact`` is an Impact."""

    def limits(_ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> Impact:
        try:
            return parse_impact(words)
        except BadInputError as error:
            raise click.BadParameter(
                f"{error.what}{f' ({error.where})' if error.where else ''}. {error.remedy}"
            ) from error

    text = "Limit the load of all ranks together to 200MiB/s or 5000ops/s. May be given twice, once for each."
    return click.option("--impact", multiple=True, callback=limits, metavar="LIMIT", help=text)(command)


def neighbour_option(command: Command) -> Command:
    """``--neighbour``: ``neighbour`` in seconds, or None."""

    def limit(_ctx: click.Context, _param: click.Parameter, word: str | None) -> float | None:
        from strakes.neighbour.limit import parse_neighbour

        try:
            return None if word is None else parse_neighbour(word)
        except BadInputError as error:
            raise click.BadParameter(f"{error.what}. {error.remedy}") from error

    text = (
        "Protect other users: slow down, and stop if that does not help, when their 99th percentile latency would "
        "exceed the limit, such as p99=20ms."
    )
    return click.option("--neighbour", callback=limit, metavar="LIMIT", help=text)(command)


def batch_option(command: Command) -> Command:
    """``--batch``: ``batch`` is what sbatch is told, or None."""
    text = "Submit the measurement as a Slurm job with these sbatch options, such as '-N 4 -t 30', and return."
    return click.option("--batch", metavar="WORDS", help=text)(command)


def libcephfs_option(command: Command) -> Command:
    """``--libcephfs``: ``libcephfs`` is a bool."""
    text = "On CephFS, do metadata operations through libcephfs, not the mount; each rank is a client of its own."
    return click.option("--libcephfs", is_flag=True, help=text)(command)


def servers_option(command: Command) -> Command:
    """``--servers``: ``servers`` is a template for reaching them, or None."""

    def template(_ctx: click.Context, _param: click.Parameter, words: str | None) -> Servers | None:
        try:
            return None if words is None else Servers(words)
        except BadInputError as error:
            raise click.BadParameter(f"{error.where!r}: {error.why}. {error.remedy}") from error

    text = 'Command that reaches a server, such as "ssh {host} sudo": for counters and settings that only servers have.'
    return click.option("--servers", callback=template, metavar="TEMPLATE", help=text)(command)


def quiet_option(command: Command) -> Command:
    """``--quiet``: ``quiet`` is a bool."""
    return click.option("-q", "--quiet", is_flag=True, help="Do not show progress.")(command)


def resume_option(command: Command) -> Command:
    """``--resume [RUN]``: ``resume`` is a Resume or None."""
    return click.option(
        "--resume",
        type=RESUME,
        is_flag=False,
        flag_value="",
        metavar="[RUN]",
        help="Resume an interrupted run: RUN, or the newest with the same DIR and options.",
    )(command)


def seed_option(command: Command) -> Command:
    """``--seed``: ``seed`` is an int or None (one is drawn, and recorded)."""
    return click.option(
        "--seed",
        type=click.IntRange(0, MAX_SEED),
        metavar="N",
        help="Seed of the random order and data; the same seed repeats both.",
    )(command)


def measuring_options(default_budget: str, *, beside_others: bool = True) -> Callable[[Command], Command]:
    """Every option of a command that measures, in the order of its help. ``beside_others``: also those that spare others."""

    def decorate(command: Command) -> Command:
        for option in (quiet_option, seed_option, keep_option):
            command = option(command)
        for option in (neighbour_option, impact_option) if beside_others else ():
            command = option(command)
        for option in (servers_option, launch_options, resume_option, json_option, html_option, confidence_option):
            command = option(command)
        return budget_option(default_budget)(command)

    return decorate


def _replace(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():  # /dev/stderr, a named pipe
        path.write_text(text, encoding="utf-8")
        return
    path = path.resolve()  # a link stays one
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
