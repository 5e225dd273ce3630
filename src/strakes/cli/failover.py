"""``strakes failover``: plan, check, rehearse and test two servers that take over from each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from strakes.base.errors import BadInputError, StrakesError
from strakes.base.files import default_root
from strakes.base.foreign_text import shell_line
from strakes.base.units import counted, format_seconds
from strakes.cli import options
from strakes.cli.failover_text import print_check, print_drill, print_rehearsal, print_timeline, print_trials
from strakes.cli.fault_options import FaultOptions, has_sessions
from strakes.cli.options import DIRECTORY, PATH, SECONDS, AtServers, Group, Json, argument, option, write_document
from strakes.cli.say import remark, say, say_errors, say_text
from strakes.control import drill_pair
from strakes.control.drill_journal import read_all, try_all
from strakes.failover import check, rehearse
from strakes.failover.plan import write_plan
from strakes.failover.setup import read_live, read_plan
from strakes.lab.ha_pair import Pair
from strakes.lab.manager import status
from strakes.model.recovery_clients import Timing

if TYPE_CHECKING:
    from strakes.control.drill_outcome import DrillOutcome

Moments = Annotated[bool, option("Print every event with its time.", default=False)]

# Maximum number of files of a drill. 671,000 lines with their checksums have 64 MiB, the limit of a command's output.
_MOST_FILES = 500_000


@click.group(cls=Group)
def command() -> None:
    """Keep a metadata service, or another service, running on a pair of servers.

    The pair is built with DRBD, Corosync and Pacemaker. strakes writes their configuration, checks it and predicts
    what each failure will do. strakes is never in the data path.
    """


@command.part("plan")
def plan_command(
    *,
    description: Path = argument("CLUSTER.toml", type=PATH),
    output: Path = option("Directory to write the plan to.", "-o", "--output", type=PATH, required=True, metavar="DIR"),
    replace: bool = option("Overwrite an earlier plan.", default=False),
) -> None:
    """Write the whole configuration of two servers, and a run-book in plain words.

    examples/failover has descriptions to start from.
    """
    cluster, files = write_plan(description, output, replace=replace)
    width = max(len(file.path) for file in files)
    for file in files:
        lines = f"{counted(len(file.lines), 'line')} explained" if file.lines else ""
        click.echo(f"{file.path:<{width}}  {lines}".rstrip())
    nodes = " and ".join(node.name for node in cluster.nodes)
    say()
    say(f"{cluster.name}: {cluster.file_system.kind} on {nodes}. Read {output / 'RUNBOOK.md'} first; then:")
    say_text("\n".join(f"  strakes failover {part} {shell_line([str(output)])}" for part in ("check", "rehearse")))


@command.part("check")
def check_command(
    *,
    directory: Path | None = argument("[DIR|FILE]", required=False, type=PATH),
    live: bool = option("Check the running cluster that this machine is a node of, instead of a plan.", default=False),
    json: Json,
) -> int:
    """Find known mistakes in the configuration of a cluster.

    DIR contains files of a cluster: the configuration of a node (etc/corosync, etc/drbd.d ...), its CIB, crm or pcs
    commands, pcs config output, or a plan. FILE is one such file. Exits with status 1 if an error is found.
    """
    if (directory is None) == (not live):
        raise click.UsageError("give either DIR, the directory of a plan, or --live")
    result = check.check(read_plan(directory) if directory else read_live())
    if write_document(json, check.document(result)):
        print_check(result)
    return 1 if result.failed else 0


@command.part("rehearse")
def rehearse_command(
    *,
    directory: Path = argument("DIR|FILE", type=PATH),
    singles: bool = option("Show single failures only.", default=False),
    json: Json,
) -> int:
    """Predict the effect of each failure, and of each pair of failures, on the cluster in DIR.

    Pacemaker's own policy engine decides from the cluster's configuration. strakes models cables, switches, power and
    disks. If only a CIB is given, the output lists the assumptions. Exits with status 1 if split brain is possible, or
    a simulation exceeds the time limit.
    """
    result = rehearse.rehearse(read_plan(directory), doubles=not singles)
    if write_document(json, rehearse.document(result)):
        print_rehearsal(result)
    split = any(scene.split_brain for scene in (*result.singles, *result.doubles))
    return 1 if split or result.not_simulated else 0


@command.part("drill")
def drill_command(
    *,
    directory: Path = argument("DIR", type=DIRECTORY),
    clients: int = option(
        "Number of clients that create files.", "-n", "--clients", type=options.WholeNumber(1, 1000), default=10
    ),
    rate: float = option(
        "Files per second that each client creates.", type=options.NumberRange(0.1, 1000), default=10.0
    ),
    before: float = option("Time from the first file to the fault.", type=SECONDS, default="5s"),
    after: float = option("Time from the fault to the last file.", type=SECONDS, default="30s"),
    restore_after: float | None = option(
        "Undo the fault this long after it was caused. Without this option it is undone when the clients end, at most "
        "60 s after the last file.",
        type=SECONDS,
    ),
    dry_run: bool = option("Print what would be done, and do nothing.", default=False),
    moments: Moments,
    servers: AtServers,
    fault: FaultOptions,
    json: Json,
) -> int:
    """Cause a fault on a live system, and measure how long clients wait.

    Meanwhile clients write files in DIR and fsync each file. Afterwards every acknowledged file must exist with the
    right contents. On CephFS every client is a session of libcephfs; elsewhere it is a thread that uses this machine's
    mount. The fault is undone at the end, even if strakes is killed or the clients hang. Exits with status 1 if an
    acknowledged file is missing or damaged, if clients hang although the fault is undone, or if the servers are not in
    the same state as before.
    """
    from strakes.control import drill_outcome
    from strakes.control.drill_run import Drill, play

    timing = Timing(before, after, restore_after)
    if (files := clients * rate * timing.seconds) > _MOST_FILES:
        what, why = "this drill would create too many files", f"it would create {files:,.0f}, but may {_MOST_FILES:,}"
        raise BadInputError(what, why=why, remedy="Use fewer --clients, a lower --rate or a shorter time.")
    striking = fault.make(directory, servers)
    drill = Drill(directory, clients, rate, timing, has_sessions(directory), servers)
    remark(f"{drill.text}; after {before:g} s: {striking.text}")
    when = f"when the clients have ended; if they hang, {format_seconds(timing.undone_within_s)} after the fault"
    when = when if restore_after is None else f"{format_seconds(restore_after)} after that"
    remark(f"{when}: {striking.undo.text}" if striking.undo else "this fault has no undo")
    if dry_run:
        return 0
    fault.require_consent(directory)

    def show(outcome: DrillOutcome) -> None:
        if write_document(json, drill_outcome.document(outcome)):
            print_drill(outcome, moments=moments)

    outcome = play(drill, striking, default_root(), remark, show)
    return 1 if outcome.lost or outcome.lacking else 0


@command.part("undo")
def undo_command(*, forget: bool = option("Leave the faults as they are, and forget them.", default=False)) -> int:
    """Undo the faults of drills that were killed.

    Every strakes command does this when it starts. Exits with status 1 if a fault could not be undone, if its drill is
    still running, or if a record is damaged.
    """
    failed, damaged = False, list[StrakesError]()
    for pending in read_all(default_root())[0] if forget else ():  # A fault stays on record if this cannot be printed.
        say(f"{pending.fault}: {f'to undo it by hand, {pending.undo.text}' if pending.begun else 'it did not begin'}")
    for pending, done, error in try_all(default_root(), damaged.append, needed=not forget):
        failed |= bool(error)
        outcome = "forgotten" if forget and done else done or error
        say(f"{pending.fault} (by {pending.owner}): {outcome or 'undone meanwhile'}")
    return 1 if say_errors(damaged) or failed else 0


@command.part("pair")
def pair_command(
    *,
    name: str = argument("[NAME]", default="ha"),
    fault: tuple[str, ...] = option(
        "Cause only this fault. May be repeated.",
        type=click.Choice(["power-off", "cut-one", "cut-all", "service-hung"]),
        default=(),
    ),
    repeat: int = option("Cause each fault N times.", type=options.WholeNumber(1, 100), default=5),
    moments: Moments,
    json: Json,
) -> int:
    """Test the two servers of the lab NAME (strakes lab up ha) with real faults.

    The test powers off a node, cuts one and then both heartbeat links, and makes the service hang. Clients send records
    meanwhile. Every acknowledged record must be there afterwards, and two nodes must never serve at the same time. Each
    fault is undone, even if strakes is killed. Exits with status 1 if a record is missing or the wrong node serves.
    """
    lab = status(name)
    if lab is None or lab.kind != "ha" or lab.condition not in ("up", "degraded"):
        raise BadInputError(f"no lab {name} with a pair of nodes is running", remedy="Start one: strakes lab up ha")
    trials = drill_pair.run_trials(lab.directory, Pair(lab.facts), fault, repeat, default_root(), remark)
    if write_document(json, drill_pair.document(trials)):
        for trial in trials if moments else ():
            print_timeline(trial.line, moments=True)
        print_trials(trials)
    return 0 if all(trial.good for trial in trials) else 1
