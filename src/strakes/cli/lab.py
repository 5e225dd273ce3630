"""``strakes lab``: disposable real file systems on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import for_terminal
from strakes.cli.numbers import WholeNumber
from strakes.cli.options import BYTES, SECONDS
from strakes.cli.say import print_json, say
from strakes.lab.kind import KINDS, load

if TYPE_CHECKING:
    from strakes.lab.manager import LabStatus
    from strakes.lab.options import LabOption

_METAVARS = {"count": "N", "size": "SIZE", "seconds": "TIME"}


class ByIdType(click.ParamType[tuple[int, int]]):
    """The number of a server and its limit, such as ID=IOPS."""

    def __init__(self, option: LabOption) -> None:
        self.name = option.metavar
        self._least, self._most = int(option.least or 0), option.most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return the number of the server and its limit."""
        if isinstance(value, tuple):
            return value
        number, _, limit = str(value).partition("=")
        if not (number.isdecimal() and limit.isdecimal()):
            self.fail(f"expected {self.name}, such as 0=100, not {value!r}", param, ctx)
        if int(limit) < self._least or (self._most is not None and int(limit) > self._most):
            bounds = f"at least {self._least}" if self._most is None else f"{self._least} to {self._most:g}"
            self.fail(f"{limit!r} is out of range: {bounds}", param, ctx)
        return int(number), int(limit)


class UpGroup(click.Group):
    """A group with one command for each kind of lab, with the options of that kind."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all kinds of lab."""
        return list(KINDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this kind, or None."""
        return _up_command(cmd_name) if cmd_name in KINDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of kinds of lab."""
        with formatter.section("Kinds"):
            formatter.write_dl([(name, kind.summary) for name, kind in KINDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raises UsageError that lists the kinds."""
        if args[0] not in KINDS:
            raise click.UsageError(f"no such kind of lab: {args[0]}; the kinds are {', '.join(KINDS)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Start a real, disposable file system on this machine, and remove it without a trace.

    A lab uses the packages of the distribution, needs no configuration, cannot be reached from outside the machine, and
    keeps its data in one directory that is removed with it.
    """
    _help_alone(ctx)


@command.group(cls=UpGroup, invoke_without_command=True, subcommand_metavar="KIND [OPTIONS]")
@click.pass_context
def up(ctx: click.Context) -> None:
    """Start a lab and print its mount point.

    strakes lab up KIND --help lists the options of a kind.
    """
    _help_alone(ctx)


@command.command("status")
@click.argument("name", required=False)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Write a JSON list that also has processes, options and connection details.",
)
def status_command(name: str | None, as_json: bool) -> None:
    """Show the labs and their state."""
    from strakes.lab.manager import all_labs, status

    labs = all_labs() if name is None else tuple(filter(None, [status(name)]))
    if as_json:
        from dataclasses import asdict

        print_json([asdict(lab) for lab in labs])
    elif labs:
        for lab in labs:
            _print_status(lab)
    else:
        say(f"{name} is not up." if name else "No lab is up. Start one: strakes lab up ceph")


@command.command("mount")
@click.argument("name")
def mount_command(name: str) -> None:
    """Print the mount point of the lab NAME."""
    from strakes.lab.manager import status

    lab = status(name)
    if lab is None or lab.condition not in ("up", "degraded"):
        remedy = f"Start it: strakes lab up {lab.kind if lab else name}"
        raise BadInputError(f"{name} is not up", why=lab.detail if lab else "", remedy=remedy)
    say(lab.mount_point)


@command.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("name")
@click.argument("node")
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_command(name: str, node: str, words: tuple[str, ...]) -> int:
    """Run a command on a node of a lab.

    For example: strakes lab exec ha mds-a crm_mon -1. Labs of the kinds ha, hosts and slurm have nodes. strakes itself
    is available on every node.
    """
    import os

    from strakes.base.processes import python_module
    from strakes.lab.manager import status

    lab = status(name)
    commands = lab.facts.get("commands", {}) if lab else {}
    if node not in commands:
        why = f"its nodes are: {', '.join(commands)}" if commands else "it is not up, or its kind has no nodes"
        remedy = "strakes lab status lists the labs. Kinds with nodes: ha, hosts, slurm."
        raise BadInputError(f"{name} has no node {node}", why=why, remedy=remedy)
    own = python_module("strakes") if words[0] == "strakes" else words[:1]
    os.execvp(commands[node][0], [*commands[node], *own, *words[1:]])


@command.command("down")
@click.argument("name", required=False)
@click.option("--all", "every", is_flag=True, help="Remove every lab.")
@click.option("--force", is_flag=True, help="Remove the lab even if its file system is in use.")
def down_command(name: str | None, every: bool, force: bool) -> None:
    """Remove the lab NAME and everything in it.

    This removes its processes, mounts, devices, networks, control groups and files. NAME may be left out if there is
    only one lab.
    """
    from strakes.lab.manager import down

    for lab in _chosen(name, every=every):
        say(f"{lab} has been removed." if down(lab, force=force) else f"{lab} was not up.")


def _help_alone(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _chosen(name: str | None, *, every: bool) -> Sequence[str]:
    from strakes.lab.manager import names

    if name is not None:
        if every:
            raise click.UsageError("give a NAME or --all, not both")
        return (name,)
    labs = names()
    if not labs:
        say("No lab is up.")
    elif len(labs) > 1 and not every:
        raise BadInputError(
            "there is more than one lab", why=", ".join(labs), remedy="Give the NAME of one of them, or --all."
        )
    return labs


def _up_command(kind: str) -> click.Command:
    from strakes.lab.options import options_of

    summary = KINDS[kind].summary
    parameters: list[click.Parameter] = [
        click.Option(["--" + field.replace("_", "-")], default=_written(option, default), **_settings(option))
        for field, (option, default) in options_of(load(kind).options_type).items()
    ]
    made = click.Command(kind, params=parameters, help=summary, callback=_up_callback(kind))
    for option in (
        click.option("--install", is_flag=True, help="Install missing packages with apt-get (as root)."),
        click.option(
            "--name",
            metavar="NAME",
            default=kind,
            show_default=True,
            help="Name of the lab, to run several of one kind.",
        ),
    ):
        option(made)
    return made


def _settings(option: LabOption) -> dict[str, Any]:
    if option.form == "flag":
        return {"is_flag": True, "help": option.help}
    common: dict[str, Any] = {
        "help": option.help,
        "show_default": option.form != "by-id",
        "metavar": option.metavar or _METAVARS.get(option.form),
    }
    if option.form == "count":
        return {
            **common,
            "type": WholeNumber(int(option.least or 0), int(option.most) if option.most is not None else None),
        }
    if option.form == "choice":
        return {**common, "type": click.Choice(option.choices)}
    if option.form == "by-id":
        return {**common, "type": ByIdType(option), "multiple": True}
    return {**common, "type": BYTES if option.form == "size" else SECONDS}


def _written(option: LabOption, default: object) -> object:
    """Return the default of a size or time as a user writes it, with its unit; other defaults unchanged."""
    from strakes.base.units import format_bytes

    if option.form == "size" and isinstance(default, int):
        return format_bytes(default).replace(" ", "")
    return f"{default:g}s" if option.form == "seconds" else default


def _up_callback(kind: str) -> Any:
    def bring_up(*, name: str, install: bool, **chosen: Any) -> None:
        from strakes.lab.manager import up as bring

        options = load(kind).options_type(**chosen)
        lab, already = bring(kind, name, options, install=install, say=lambda text: say(f"strakes: {text}", err=True))
        if already:
            degraded = f", but {lab.detail}" if lab.detail else ""
            say(f"strakes: {name} is already running{degraded}", err=True)
        else:
            say(
                f"strakes: {name} is ready after {lab.ready_after_s:.1f} s; remove it with: strakes lab down {name}",
                err=True,
            )
        say(lab.mount_point)

    return bring_up


def _print_status(lab: LabStatus) -> None:
    from strakes.base.units import format_bytes

    say(f"{lab.name}: {lab.condition}{f' ({lab.detail})' if lab.detail else ''}")
    rows = (
        [("kind", lab.kind), ("mounted on", lab.mount_point)]
        if lab.condition in ("up", "degraded")
        else [("kind", lab.kind)]
    )
    if lab.condition == "stale":
        rows += [("left in", lab.directory), ("remove it", f"strakes lab down {lab.name}")]
    rows += [
        (
            process.role,
            f"process {process.pid}, {format_bytes(process.memory_bytes)}" if process.alive else "not running",
        )
        for process in lab.processes
    ]
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        click.echo(for_terminal(f"  {label:<{width}}  {text}"))
