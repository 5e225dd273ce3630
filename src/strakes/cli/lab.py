"""``strakes lab``: disposable real file systems on this machine."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import click

from strakes.base.errors import BadInputError, StrakesError, did_you_mean
from strakes.base.units import format_bytes, typed_bytes, typed_seconds
from strakes.cli.options import BYTES, SECONDS, AsJson, Group, Parsed, WholeNumber, argument, option, write_json
from strakes.cli.say import remark, say, say_errors, say_rows
from strakes.lab.kind import KINDS, load
from strakes.lab.manager import all_labs, down, labs_to_remove, node_command, status
from strakes.lab.manager import up as bring
from strakes.lab.options import LabOption, options_of
from strakes.runs.watchdog import SHARED


class _UpGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(KINDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in KINDS:
            raise click.UsageError(f"no such kind of lab: {cmd_name}. {did_you_mean(cmd_name, KINDS)}", ctx)
        return _up_command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Kinds"):
            formatter.write_dl([(name, kind.summary) for name, kind in KINDS.items()])


@click.group(cls=Group)
def command() -> None:
    """Start a real, disposable file system on this machine, and remove it without a trace.

    A lab uses the packages of the distribution, needs no configuration, cannot be reached from outside the machine, and
    keeps its data in one directory that is removed with it.
    """


@command.group(cls=_UpGroup, subcommand_metavar="KIND [OPTIONS]")
def up() -> None:
    """Start a lab and print its mount point.

    strakes lab up KIND --help lists the options of a kind.
    """


@command.part("status")
def status_command(*, name: str | None = argument("[NAME]", required=False), as_json: AsJson) -> int:
    """Show the labs and their state; JSON also has processes, options and connection details."""
    errors: list[StrakesError] = []
    labs = all_labs(errors.append) if name is None else tuple(filter(None, [status(name)]))
    write_json(as_json, [asdict(lab) for lab in labs])
    for lab in () if as_json else labs:
        say(f"{lab.name}: {lab.condition}{f' ({lab.detail})' if lab.detail else ''}")
        rows = [("kind", lab.kind)]
        if lab.condition in ("up", "degraded"):
            rows.append(("mounted on", lab.mount_point))
        if lab.condition == "stale":
            rows += [("left in", lab.directory), ("remove it", f"strakes lab down {lab.name}")]
        for process in lab.processes:
            alive = f"process {process.pid}, {format_bytes(process.memory_bytes)}"
            rows.append((process.role, alive if process.alive else "not running"))
        say_rows(rows, "  ")
    if not (labs or errors or as_json):
        say(f"{name} is not up." if name else "No lab is up. Start one: strakes lab up ceph")
    return say_errors(errors)


@command.part("mount")
def mount_command(*, name: str = argument("NAME")) -> None:
    """Print the mount point of the lab NAME."""
    lab = status(name)
    if lab is None or lab.condition not in ("up", "degraded"):
        remedy = f"Start it: strakes lab up {lab.kind if lab else name}"
        raise BadInputError(f"{name} is not up", why=lab.detail if lab else "", remedy=remedy)
    say(lab.mount_point)


@command.part("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def exec_command(
    *,
    name: str = argument("NAME"),
    node: str = argument("NODE"),
    words: tuple[str, ...] = argument("COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED),
) -> int:
    """Run a command on a node of a lab.

    For example: strakes lab exec ha mds-a crm_mon -1. Labs of the kinds ha, hosts and slurm have nodes. strakes itself
    is available on every node.
    """
    argv = node_command(name, node, words)
    SHARED.is_unlimited = True
    os.execvp(argv[0], argv)


@command.part("down")
def down_command(
    *,
    name: str | None = argument("[NAME]", required=False),
    every: bool = option("Remove every lab.", "--all", default=False),
    force: bool = option("Remove the lab even if its file system is in use.", default=False),
) -> int:
    """Remove the lab NAME and everything in it.

    This removes its processes, mounts, devices, networks, control groups and files. NAME may be left out if there is
    only one lab.
    """
    if name is not None and every:
        raise click.UsageError("give a NAME or --all, not both")
    labs = labs_to_remove(name, every=every)
    errors: list[StrakesError] = []
    for lab in labs:
        try:
            say(f"{lab} has been removed." if down(lab, force=force, say=remark) else f"{lab} was not up.")
        except StrakesError as error:
            errors.append(error)
    if not labs:
        say("No lab is up.")
    return say_errors(errors)


def _up_command(kind: str) -> click.Command:
    declared = options_of(load(kind).options_type)
    named = f"Name of the lab, to run several of one kind.  [default: {kind}]"
    parameters: list[click.Parameter] = [
        *(_option_of(field, form, default) for field, (form, default) in declared.items()),
        click.Option(["--install"], is_flag=True, help="Install missing packages with apt-get (as root)."),
        click.Option(["--name"], metavar="NAME", default=kind, help=named),
    ]

    def bring_up(*, name: str, install: bool, **chosen: object) -> None:
        lab, already = bring(kind, name, load(kind).options_type(**chosen), install=install, say=remark)
        if already:
            remark(f"{name} is already running{f', but {lab.detail}' if lab.detail else ''}")
        else:
            remark(f"{name} is ready after {lab.ready_after_s:.1f} s; remove it with: strakes lab down {name}")
        say(lab.mount_point)

    return click.Command(kind, params=parameters, help=KINDS[kind].summary, callback=bring_up)


def _option_of(field: str, option: LabOption, default: Any) -> click.Option:
    whole = WholeNumber(int(option.least or 0), None if option.most is None else int(option.most))
    settings: dict[str, Any] = {"show_default": default is not None, "metavar": option.metavar or None}
    types = {"choice": click.Choice(option.choices), "count": whole, "size": BYTES, "seconds": SECONDS}
    settings["type"] = types.get(option.form)
    if option.form == "flag":
        settings = {"is_flag": True}
    elif option.form == "by-id":
        settings |= {"multiple": True, "show_default": False, "type": _by_id(option.metavar, whole)}
    if default and option.form in ("size", "seconds"):
        default = (typed_bytes if option.form == "size" else typed_seconds)(default)
    return click.Option([f"--{field.replace('_', '-')}"], default=default, help=option.help, **settings)


def _by_id(metavar: str, limits: WholeNumber) -> Parsed[tuple[int, int]]:
    def read(text: str) -> tuple[int, int]:
        number, _, limit = text.partition("=")
        if not (number.isdecimal() and limit.isdecimal()):
            raise BadInputError(f"expected {metavar}, such as 0=100, not {text!r}")
        return WholeNumber(0).convert(number, None, None), limits.convert(limit, None, None)

    return Parsed(metavar, read)
