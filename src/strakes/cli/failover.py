"""``strakes failover``: plan, check and rehearse a pair of servers that take over from each other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from strakes.base.errors import BadInputError
from strakes.base.units import counted
from strakes.cli.fault_options import AskedFault, fault_options, has_sessions, require_consent
from strakes.cli.numbers import NumberRange, WholeNumber
from strakes.cli.options import (
    DIRECTORY,
    PATH,
    SECONDS,
    Command,
    Output,
    PathType,
    json_option,
    servers_option,
    write_document,
)
from strakes.cli.say import say

if TYPE_CHECKING:
    from strakes.control.drill_contents import Reader
    from strakes.targets.command import Servers


def clients_option(usual: int, most: int, text: str) -> Callable[[Command], Command]:
    """Return the option ``--clients``, the number of clients."""
    numbers = WholeNumber(1, most)
    return click.option("-n", "--clients", type=numbers, default=usual, show_default=True, help=text)


def rate_option(most: int, text: str) -> Callable[[Command], Command]:
    """Return the option ``--rate``, the operations of each client per second."""
    numbers = NumberRange(0.1, most)
    return click.option("--rate", type=numbers, default=10.0, show_default=True, help=text)


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Keep a metadata service, or another service, running on a pair of servers.

    The pair is built with DRBD, Corosync and Pacemaker. strakes writes their configuration, checks it and predicts
    what each failure will do. strakes is never in the data path.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command.command("plan")
@click.argument("description", metavar="CLUSTER.toml", type=PATH)
@click.option(
    "-o",
    "--output",
    "directory",
    metavar="DIR",
    required=True,
    type=PATH,
    help="Directory to write the plan to.",
)
@click.option("--replace", is_flag=True, help="Overwrite an earlier plan.")
def plan_command(description: Path, directory: Path, replace: bool) -> None:
    """Write the whole configuration of a pair, and a run-book in plain words.

    examples/failover has descriptions to start from.
    """
    from strakes.failover.plan import write_plan

    cluster, files = write_plan(description, directory, replace=replace)
    width = max(len(file.path) for file in files)
    for file in files:
        lines = f"{counted(len(file.lines), 'line')} explained" if file.lines else ""
        click.echo(f"{file.path:<{width}}  {lines}".rstrip())
    nodes = " and ".join(node.name for node in cluster.nodes)
    say()
    say(f"{cluster.name}: {cluster.file_system.kind} on {nodes}. Read {directory / 'RUNBOOK.md'} first; then:")
    click.echo(f"  strakes failover check {directory}\n  strakes failover rehearse {directory}")


@command.command("check")
@click.argument("directory", metavar="[DIR|FILE]", required=False, type=PATH)
@click.option(
    "--live", is_flag=True, help="Check the running cluster that this machine is a node of, instead of a plan."
)
@click.option(
    "--rules", "list_rules", is_flag=True, help="List the rules with their reasons and sources, and check nothing."
)
@json_option
def check_command(directory: Path | None, live: bool, list_rules: bool, json: Output | None) -> int:
    """Find mistakes that have cost others their service or their data.

    DIR has any files of a cluster: the configuration of a node (etc/corosync, etc/drbd.d ...), its CIB, crm or pcs
    commands, pcs config output, or a plan. It may be a single file. Exits with status 1 if an error is found.
    """
    from strakes.cli.failover_text import print_check, print_rules
    from strakes.failover.check import check, document
    from strakes.failover.setup import read_live, read_plan

    if list_rules:
        print_rules()
        return 0
    if (directory is None) == (not live):
        raise click.UsageError("give either DIR, the directory of a plan, or --live")
    result = check(read_plan(directory) if directory else read_live())
    if write_document(json, document(result)):
        print_check(result)
    return 1 if result.failed else 0


@command.command("rehearse")
@click.argument("directory", metavar="DIR|FILE", type=PATH)
@click.option(
    "--all", "every", is_flag=True, help="Show every pair of failures, including pairs that the service survives."
)
@click.option("--singles", is_flag=True, help="Show single failures only.")
@json_option
def rehearse_command(directory: Path, every: bool, singles: bool, json: Output | None) -> int:
    """Predict the effect of each failure, and of each pair of failures, on the cluster in DIR.

    Pacemaker's own policy engine decides, with this configuration; strakes models cables, switches, power and disks. A
    CIB alone is enough: the output lists the assumptions. Exits with status 1 if split brain is possible.
    """
    from strakes.cli.failover_text import print_rehearsal
    from strakes.failover.rehearse import document, rehearse
    from strakes.failover.setup import read_plan

    result = rehearse(read_plan(directory), doubles=not singles, progress=_show_progress)
    if write_document(json, document(result)):
        print_rehearsal(result, every=every)
    return 1 if any(scene.split_brain for scene in (*result.singles, *result.doubles)) else 0


@command.command("drill")
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@fault_options
@servers_option
@clients_option(10, 1000, "Number of clients that create files.")
@rate_option(1000, "Files per second that each client creates.")
@click.option("--before", type=SECONDS, default="5s", show_default=True, help="Time from the first file to the fault.")
@click.option("--after", type=SECONDS, default="30s", show_default=True, help="Time from the fault to the last file.")
@click.option(
    "--restore-after",
    type=SECONDS,
    help="Undo the fault this long after it was caused. Without this option it is undone when the clients end, at most "
    "60 s after the last file.",
)
@click.option(
    "--on-the-mount",
    is_flag=True,
    help="On CephFS, run the clients as threads on the mount. To the servers they are then one client.",
)
@click.option(
    "--read-on",
    metavar="HOST",
    help="Host that reads the files back, reached with --servers.  [default: this machine, through its mount]",
)
@click.option(
    "--read-in",
    type=PathType(path_type=PurePosixPath),
    metavar="DIR",
    help="Path of DIR on that host.  [default: DIR]",
)
@click.option("--alerts", type=PATH, help="Read alerts from lines that are appended to FILE during the drill.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
@click.option(
    "--yes-this-interrupts-service",
    "agreed",
    is_flag=True,
    help="Confirm that the drill may interrupt the service. Required, except with --dry-run.",
)
@click.option("--moments", is_flag=True, help="Print every event with its time.")
@json_option
def drill_command(
    directory: Path,
    clients: int,
    rate: float,
    before: float,
    after: float,
    restore_after: float | None,
    on_the_mount: bool,
    read_on: str | None,
    read_in: PurePosixPath | None,
    alerts: Path | None,
    dry_run: bool,
    agreed: bool,
    moments: bool,
    json: Output | None,
    fault: AskedFault,
    servers: Servers | None,
) -> int:
    """Cause a fault on a live system, and measure how long clients wait.

    Meanwhile clients write files in DIR, each with fsync; afterwards every acknowledged file must be there, with the
    right content. On CephFS every client is a session of libcephfs, elsewhere a thread on this machine's mount. The
    fault is undone at the end, even if strakes is killed or the clients hang. Exits with status 1 if an acknowledged
    file is missing or damaged, if clients hang although the fault is undone, or if the servers are not in the same
    state as before.
    """
    from strakes.base.files import default_root
    from strakes.cli.failover_text import print_drill
    from strakes.control.drill_connections import AlertListener
    from strakes.control.drill_outcome import document
    from strakes.control.drill_run import ClientsHang, Drill, play
    from strakes.model.recovery_clients import Timing

    reader = _reader(directory, read_on, read_in, servers)
    striking = fault.make(directory, servers=servers)
    sessions = not on_the_mount and has_sessions(directory)
    drill = Drill(directory, clients, rate, Timing(before, after, restore_after), sessions, servers, reader)
    say(f"strakes: {drill.text}; after {before:g} s: {striking.text}", err=True)
    say(
        f"strakes: {drill.timing.undone_when}: {striking.undo.text}"
        if striking.undo
        else "strakes: this fault has no undo",
        err=True,
    )
    if dry_run:
        return 0
    require_consent(directory, agreed)
    arriving = AlertListener(alerts) if alerts else None
    try:
        outcome = play(drill, striking, default_root(), _tell, arriving)
    except ClientsHang as error:
        if error.outcome is not None:
            print_drill(error.outcome, moments=moments)
        raise
    if write_document(json, document(outcome)):
        print_drill(outcome, moments=moments)
    return 1 if outcome.lost or outcome.lacking else 0


def _reader(directory: Path, host: str | None, place: PurePosixPath | None, servers: Servers | None) -> Reader | None:
    from strakes.control.drill_contents import Reader

    if host is None:
        if place is not None:
            raise BadInputError("--read-in needs --read-on", remedy="Name the client that has the files there.")
        return None
    if servers is None:
        raise BadInputError(
            "--read-on needs --servers", where=host, remedy='Say how it is reached: --servers "ssh {host}".'
        )
    return Reader(host, servers, place or PurePosixPath(directory.absolute()))


@command.command("undo")
def undo_command() -> int:
    """Undo the faults of drills that were killed.

    Every strakes command does this when it starts; this one also retries what failed before. Exits with status 1 if a
    fault could not be undone.
    """
    from strakes.base.files import default_root
    from strakes.control.drill_journal import try_all

    failed = False
    for pending, done, error in try_all(default_root()):
        failed = failed or error is not None
        say(f"{pending.fault} (by {pending.owner}): {done or error or 'undone meanwhile'}")
    return 1 if failed else 0


@command.command("pair")
@click.argument("name", default="ha")
@click.option(
    "--fault",
    "faults",
    type=click.Choice(["power-off", "cut-one", "cut-all", "service-hung"]),
    multiple=True,
    help="Cause only this fault. May be repeated.",
)
@click.option(
    "--repeat",
    type=WholeNumber(1, 100),
    default=5,
    show_default=True,
    help="Cause each fault N times. An interval needs at least 5.",
)
@clients_option(4, 100, "Number of clients that send records.")
@rate_option(100, "Records per second that each client sends.")
@click.option("--moments", is_flag=True, help="Print every event with its time, alerts included.")
@json_option
def pair_command(
    name: str,
    faults: tuple[str, ...],
    repeat: int,
    clients: int,
    rate: float,
    moments: bool,
    json: Output | None,
) -> int:
    """Test the pair of the lab NAME (strakes lab up ha) with real faults.

    It powers off a node, cuts one heartbeat link, cuts both, and makes the service hang. Clients send
    records meanwhile. Every acknowledged record must be there afterwards, and two nodes must never serve
    at the same time. Each fault is undone, even if strakes is killed. Exits with status 1 if a record is missing or
    the wrong node serves.
    """
    from strakes.base.files import default_root
    from strakes.cli.failover_text import print_timeline, print_trials
    from strakes.control.drill_pair import PAIR_FAULTS, Pace, document, rows, run_trials
    from strakes.lab.ha_pair import Pair
    from strakes.lab.manager import status

    lab = status(name)
    if lab is None or lab.kind != "ha" or lab.condition not in ("up", "degraded"):
        raise BadInputError(f"no pair {name} is running", remedy="Start one: strakes lab up ha")
    trials = run_trials(
        name,
        Pair(lab.facts),
        faults or tuple(PAIR_FAULTS),
        repeat,
        Pace(clients, rate),
        default_root(),
        _tell,
    )
    if write_document(json, document(trials)):
        for trial in trials if moments else ():
            print_timeline(trial.line, moments=True)
        print_trials(rows(trials))
    return 0 if all(trial.good for trial in trials) else 1


def _tell(text: str) -> None:
    say(f"strakes: {text}", err=True)


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        told = f"{done} of {counted(total, 'failure')}"
        click.echo(f"\r{told}" if done < total else "\r" + " " * 40 + "\r", nl=False, err=True)
