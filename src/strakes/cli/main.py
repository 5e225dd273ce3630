"""Which commands exist, and how every way a command can end becomes a message and an exit status."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from strakes import __version__
from strakes.cli.signals import orderly_signals
from strakes.errors import BadInputError, EnvironmentLacksError, InterruptedByUser, StrakesError

USAGE_STATUS = BadInputError.exit_status
COMPLETION = "_STRAKES_COMPLETE"  # set by the shell's completion function
BROKEN_PIPE_STATUS = 141  # what a shell reports for a program that SIGPIPE ended


class Entry(NamedTuple):
    """Where a command is (``module:attribute``) and its line in the help, so that the help imports no command."""

    location: str
    summary: str


COMMANDS = {
    "survey": Entry("strakes.cli.survey:command", "Characterise the file system under DIR: the main job."),
    "study": Entry("strakes.cli.study:command", "Run one study of the catalogue."),
    "run": Entry("strakes.cli.run:command", "Run a workload described in a file."),
    "reproduce": Entry("strakes.cli.reproduce:command", "Measure a published study again, its values beside ours."),
    "accept": Entry("strakes.cli.accept:command", "Answer stated needs: PASS, FAIL or UNKNOWN, with evidence."),
    "compare": Entry("strakes.cli.compare:command", "Compare two runs: faster, slower or the same, with intervals."),
    "report": Entry("strakes.cli.report:command", "Render the report of a finished run again."),
    "runs": Entry("strakes.cli.runs:command", "List the runs in the store."),
    "jobs": Entry("strakes.cli.jobs:command", "List, watch and cancel measurements submitted as jobs."),
    "history": Entry("strakes.cli.history:command", "Show the same measurement over months, and what changed."),
    "import": Entry("strakes.cli.import_:command", "Take results of IOR, mdtest, fio and others into the store."),
    "export": Entry("strakes.cli.export:command", "Write a run for other tools: JSON, CSV, Parquet, OpenMetrics."),
    "target": Entry("strakes.cli.target:command", "Show what is known about the file system under DIR."),
    "advise": Entry("strakes.cli.advise:command", "Settings for one application, from what was measured."),
    "guide": Entry("strakes.cli.guide:command", "Write the page that tells users how to use a file system."),
    "tune": Entry("strakes.cli.tune:command", "Search the best settings for one application, by experiment."),
    "knobs": Entry("strakes.cli.knobs:command", "Read and change settings of a file system, and put them back."),
    "doctor": Entry("strakes.cli.doctor:command", "Check what this machine has and lacks."),
    "clean": Entry("strakes.cli.clean:command", "Remove what an interrupted run left in DIR."),
    "failover": Entry("strakes.cli.failover:command", "Plan, check and rehearse the fail-over of a pair of servers."),
    "completion": Entry("strakes.cli.completion:command", "Print what makes your shell complete commands and options."),
    "lab": Entry("strakes.cli.lab:command", "Start a disposable real system on this machine, and remove it."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else _load(cmd_name, entry)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:
            raise click.UsageError(f"no such command: {args[0]}{_suggestion(args[0])}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, _protect_optional_value(rest)


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="strakes", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """strakes measures how a file system really behaves, says how to use it well, and proves the advice.

    Start with: strakes survey DIR
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> int:
    """The ``strakes`` command."""
    if instruction := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "strakes", COMPLETION, instruction)
    return run(sys.argv[1:])


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit status. Prints every error, raises none.

    A command's own return value is its exit status where it is an int.
    """
    with orderly_signals():
        try:
            status = _invoke(list(arguments))
            sys.stdout.flush()
            return status
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "strakes"
            _complain(BadInputError(error.format_message(), where=command, remedy=f"See: {command} --help"))
            return USAGE_STATUS
        except click.ClickException as error:
            _complain(BadInputError(error.format_message()))
            return USAGE_STATUS
        except (KeyboardInterrupt, click.Abort) as error:
            _complain(InterruptedByUser("interrupted"), error)
            return InterruptedByUser.exit_status
        except StrakesError as error:
            _complain(error)
            return error.exit_status
        except Exception as error:  # noqa: BLE001 - the outermost place: a bug becomes a message and a log
            if isinstance(error, BrokenPipeError) and _nobody_reads_stdout():
                _silence_stdout()
                return BROKEN_PIPE_STATUS
            from strakes.cli.crash import write_crash_log

            _complain(
                StrakesError(
                    f"strakes itself failed: {type(error).__name__}",
                    why=str(error),
                    remedy=f"Please report it with this log: {write_crash_log(error, arguments)}",
                ),
                error,
            )
            return StrakesError.exit_status


def _invoke(arguments: list[str]) -> int:
    # Not click's own main(): that one takes any broken pipe, also the engine's, for a closed standard output.
    try:
        with cli.make_context("strakes", arguments) as ctx:
            _put_back_knobs(arguments)
            _put_right_faults(arguments)
            result = cli.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    return result if isinstance(result, int) else 0


def _put_back_knobs(arguments: list[str]) -> None:
    """Settings that a killed strakes left changed are put back before anything else is done."""
    # Asking for help does nothing, and ``strakes knobs`` shows and restores them itself.
    if not arguments or arguments[0] in ("knobs", "--help", "-h") or {"--help", "-h"} & set(arguments):
        return
    import os

    from strakes.places import default_root

    try:
        journals = [name for name in os.listdir(default_root() / "knobs" / "open") if name.endswith(".jsonl")]
    except (OSError, StrakesError):
        return
    if journals:
        from strakes.knobs.restore import restore_abandoned

        try:
            restore_abandoned(default_root(), lambda text: click.echo(f"strakes: {text}", err=True))
        except StrakesError as error:
            click.echo(f"strakes: settings of an ended strakes could not be put back: {error}", err=True)


def _put_right_faults(arguments: list[str]) -> None:
    """So are faults of drills that were killed together with their guards."""
    if arguments[:2] == ["failover", "undo"] or {"--help", "-h"} & set(arguments):
        return
    from strakes.places import default_root

    try:
        if not os.listdir(default_root() / "drills"):
            return
    except (OSError, StrakesError):
        return
    from strakes.failover.drill.journal import put_right_abandoned

    try:
        put_right_abandoned(default_root(), lambda text: click.echo(f"strakes: {text}", err=True))
    except StrakesError as error:
        click.echo(f"strakes: the fault of an ended drill could not be undone: {error}", err=True)


def _load(name: str, entry: Entry) -> click.Command:
    from importlib import import_module

    module, _, attribute = entry.location.partition(":")
    try:
        command = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise EnvironmentLacksError(
            f"the command {name} cannot be loaded",
            why=str(error),
            remedy="Install strakes again: pip install . (in a checkout: rm -r .venv, then ./strakes).",
        ) from error
    assert isinstance(command, click.Command)
    return command


def _suggestion(word: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, COMMANDS, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _protect_optional_value(arguments: list[str]) -> list[str]:
    """``--resume`` may stand without its RUN: a path or a directory after it is DIR, not a run.

    >>> _protect_optional_value(["--resume", "/scratch", "--seed", "1"]), _protect_optional_value(["--resume", "20260101-1"])
    (['--resume=', '/scratch', '--seed', '1'], ['--resume', '20260101-1'])
    """
    from os.path import isdir

    protected = list(arguments)
    for index, word in enumerate(arguments[:-1]):
        following = arguments[index + 1]
        if word == "--resume" and ("/" in following or isdir(following)):
            protected[index] = "--resume="
    return protected


def _complain(error: StrakesError, cause: BaseException | None = None) -> None:
    """``cause``: what it stands for; its notes say what else went wrong on the way out."""
    click.echo(f"strakes: error: {error.what}", err=True)
    notes = [("also", note) for note in getattr(cause or error, "__notes__", ())]
    for label, text in (("where", error.where), ("why", error.why), ("next", error.remedy), *notes):
        if text:
            click.echo(f"  {label}: {text}", err=True)


def _nobody_reads_stdout() -> bool:
    poll = select.poll()
    poll.register(1, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _silence_stdout() -> None:
    """Let the interpreter's own last flush go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
