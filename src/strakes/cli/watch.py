"""``strakes watch``: what changed on a file system in production, when, where, and how sure."""

from __future__ import annotations

import re
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import for_terminal
from strakes.base.units import counted, parse_seconds
from strakes.cli.numbers import NumberRange
from strakes.cli.options import (
    DIRECTORY,
    PATH,
    AmountType,
    Output,
    OutputType,
    servers_option,
    words_of,
    write_document,
    write_json,
)
from strakes.cli.say import say
from strakes.targets.command import Servers

if TYPE_CHECKING:
    from strakes.model.service_level import ServiceLevel
    from strakes.targets.target import Target
    from strakes.watch.ring import Ring

_STORE_HELP = "Directory with the recorded data.  [default: the directory watch in the store of strakes]"
_LEVEL_HELP = "Service level to judge, such as 'p99 of create <= 20 ms in 99 % of minutes'. May be repeated."


_OUTPUT = OutputType(remedy="Give the name of another file.")
_json_option = click.option("--json", type=_OUTPUT, help="Write the results as JSON to FILE (- is standard output).")
_alarms_option = click.option(
    "--false-alarms-a-month",
    "alarms_a_month",
    type=NumberRange(0.001, 1000),
    default=1.0,
    show_default=True,
    help="Accept this many false alarms from noise a month, all series together; real changes come in addition.",
)


class _WatchGroup(click.Group):
    """``strakes watch DIR`` is ``strakes watch run DIR``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


def _command_words(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Split the command into words. Raises BadParameter if it cannot be run."""
    import shutil

    words = () if value is None else words_of("--command", value)
    if value is not None and not words:
        raise click.BadParameter("it is empty; give a command, such as /usr/local/bin/page-operators")
    if words and shutil.which(words[0]) is None:
        what = f"{words[0]} is not a command that can be run; give a program, such as /usr/bin/logger"
        raise click.BadParameter(what)
    return words


def _check_reaching(servers: Servers) -> None:
    """Raise BadInputError for a template that can reach no server."""
    import shlex
    import shutil

    first = shlex.split(servers.template)[0]
    if shutil.which(first) is None:
        raise BadInputError(f"--servers: {first} is not a command that can be run", where=servers.template)
    if other := re.search(r"(?<!\$)\{(?!host\})\w*\}", servers.template):
        raise BadInputError(f"--servers: {other[0]} has no meaning here, only {{host}} has", where=servers.template)


def _period_s(text: str) -> float:
    """Return a period in seconds. Raises BadInputError for a period without a unit."""
    remedy = "Write, for example, 30d, 12h or 90min."
    if text.strip().isdecimal():
        raise BadInputError(f"{text} has no unit", remedy=remedy)
    try:
        return parse_seconds(text)
    except BadInputError as error:
        raise BadInputError(error.what, remedy=remedy) from error


_PERIOD = AmountType("time", _period_s, "must be more than zero")


def _address_of(metrics: str | None) -> tuple[str, int | None]:
    """Return the address and port for metrics, with port None without --metrics. Raises BadInputError."""
    import socket

    if metrics is None:
        return "", None
    given, _, port = metrics.rpartition(":")
    remedy = "Write, for example, --metrics 9817, --metrics 0.0.0.0:9817 or --metrics [::1]:9817."
    if not re.fullmatch(r"\d{1,5}", port) or int(port) > 65535:
        raise BadInputError(f"--metrics: {port!r} is not a port, a number up to 65535", where=metrics, remedy=remedy)
    address = given[1:-1] if given.startswith("[") and given.endswith("]") else given
    try:
        socket.getaddrinfo(address or None, int(port))
    except (OSError, UnicodeError) as error:
        raise BadInputError(f"--metrics: unknown host {given!r}", where=metrics, remedy=remedy) from error
    return address or "127.0.0.1", int(port)


@click.group("watch", cls=_WatchGroup)
def command() -> None:
    """Watch a file system in production: what changed, when, where, who causes the load, and how sure that is.

    strakes watch DIR... is short for strakes watch run DIR...
    """


@command.command("run")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=DIRECTORY)
@click.option("--store", "store_directory", metavar="DIR", type=PATH, help=_STORE_HELP)
@click.option(
    "--metrics",
    metavar="[ADDRESS:]PORT",
    help="Serve metrics for Prometheus on this port.  [default address: 127.0.0.1]",
)
@click.option(
    "--command",
    "alarm_command",
    metavar="WORDS",
    callback=_command_words,
    help="Run this once for each alarm, with the event as JSON on its standard input.",
)
@click.option("--level", "levels", metavar="TEXT", multiple=True, help=_LEVEL_HELP)
@click.option("--no-probe", is_flag=True, help="Only read counters; write nothing to DIR.")
@_alarms_option
@servers_option
def run_command(
    directories: tuple[Path, ...],
    store_directory: Path | None,
    metrics: str | None,
    alarm_command: tuple[str, ...],
    levels: tuple[str, ...],
    no_probe: bool,
    alarms_a_month: float,
    servers: Servers | None,
) -> int:
    """Watch DIR in the foreground until stopped.

    Reads the counters that it may read, and probes DIR with a few operations a second.
    """
    import os
    import signal
    import threading

    from strakes.base.errors import EnvironmentLacksError
    from strakes.watch.alerts import AlertSender
    from strakes.watch.live import LiveWatch, run_live
    from strakes.watch.metrics import serve
    from strakes.watch.ring import Ring
    from strakes.watch.sources import sources_of
    from strakes.watch.values import line
    from strakes.watch.watch import Watch

    address, port = _address_of(metrics)
    kept_levels = _levels(levels)
    if kept_levels and no_probe:
        raise BadInputError("--level needs the probe", remedy="Leave out --no-probe, or --level.")
    if servers is not None:
        _check_reaching(servers)
    targets = [_target(directory, servers) for directory in directories]
    _require_different(directories, targets)
    # Directories of one file system have the same counters.
    first_of = {(target.mount.major, target.mount.minor): target for target in reversed(targets)}
    sources = [
        source
        for target in targets
        if first_of[target.mount.major, target.mount.minor] is target
        for source in sources_of(target, servers, probed=not no_probe)
    ]
    ring = Ring(_store(store_directory))
    ring.hold()
    for directory in directories:
        # Compare names only, because a call on a directory that hangs would block.
        if Path(os.path.abspath(ring.directory)).is_relative_to(os.path.abspath(directory)):
            say(f"strakes: the store is inside {directory}: when that hangs, nothing can be kept", err=True)
    alerts = AlertSender(alarm_command)
    live = LiveWatch(
        [target.path for target in targets],
        sources,
        ring,
        alerts,
        watch=Watch(alarms_a_month),
        levels=kept_levels,
        probe=not no_probe,
        say=lambda event: say(line(event)),
    )
    if port is not None:
        try:
            number = serve(live.metrics, address, port)
        except (OSError, OverflowError) as error:
            remedy = "Give an address of this host and a free port, such as --metrics 127.0.0.1:9817."
            why = (isinstance(error, OSError) and error.strerror) or str(error)
            raise EnvironmentLacksError(
                "metrics cannot be served", where=str(metrics), why=why, remedy=remedy
            ) from error
        host = f"[{address}]" if ":" in address else address
        say(f"metrics: http://{host}:{number}/metrics")
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, lambda *_: stopping.set())
    say(f"watching {', '.join(map(str, directories))}; kept in {_store(store_directory)}")
    run_live(live, stopping.is_set)
    if waiting := alerts.settle(1.0 if alerts.why else 10.0):
        say(f"strakes: {counted(waiting, 'alarm')} could not be delivered: {alerts.why}", err=True)
    return 0


def _require_different(directories: tuple[Path, ...], targets: list[Target]) -> None:
    """Raise BadInputError if a directory is given twice, even under two names."""
    given: dict[Path, Path] = {}
    for directory, target in zip(directories, targets, strict=True):
        if (first := given.setdefault(target.path, directory)) is not directory:
            what = f"{directory} is given twice" if directory == first else f"{directory} is the same as {first}"
            raise BadInputError(what, where=str(target.path), remedy="Give each directory once.")


def _target(directory: Path, servers: Servers | None) -> Target:
    """Return the target of a directory. If it hangs, print a warning and watch it nevertheless: it may answer later."""
    from strakes.targets.calls import UnansweredError
    from strakes.targets.registry import detect, detect_by_name

    try:
        return detect(directory, servers)
    except UnansweredError as error:
        target = detect_by_name(directory, servers)
        say(f"strakes: {error.what}: {target.mount.mount_point} ({target.mount.file_system})", err=True)
        say(f"  why: {for_terminal(error.why)}", err=True)
        say("  next: Check its servers. It is watched nevertheless, and probed as soon as it answers.", err=True)
        return target


@command.command("report")
@click.option("--since", type=_PERIOD, default="30d", help="Report on the last TIME.  [default: 30d]")
@click.option("--store", "store_directory", metavar="DIR", type=PATH, help=_STORE_HELP)
@click.option("--level", "levels", metavar="TEXT", multiple=True, help=_LEVEL_HELP)
@click.option(
    "--html", "page", type=_OUTPUT, default="watch.html", help="Write the page to FILE.  [default: watch.html]"
)
def report_command(since: float, store_directory: Path | None, levels: tuple[str, ...], page: Output) -> int:
    """Write a page: what changed, when, who caused it, and the service levels.

    The page is one file that works offline.
    """
    import time

    from strakes.watch.page import render_watch_page

    now_s = time.time()
    kept_levels = _levels(levels)
    _spare(page, _store(store_directory))
    page.write(render_watch_page(_kept(store_directory), max(0.0, now_s - since), now_s, kept_levels))
    if page.path is not None:
        say(f"page: {page.path}")
    return 0


@command.command("compare")
@click.option("--before", required=True, metavar="DATE", help="End of the time before, in UTC, such as 2026-11-01.")
@click.option(
    "--after", required=True, metavar="DATE", help="Start of the time after, in UTC, such as 2026-11-02T06:00."
)
@click.option("--over", type=_PERIOD, default="28d", help="Time to compare on each side, at least 3d.  [default: 28d]")
@click.option("--store", "store_directory", metavar="DIR", type=PATH, help=_STORE_HELP)
@_json_option
def compare_command(before: str, after: str, over: float, store_directory: Path | None, json: Output | None) -> int:
    """Compare before and after an upgrade: SLOWER, FASTER, SAME or INCONCLUSIVE.

    Exits with status 1 if a figure is SLOWER.
    """
    import math
    from dataclasses import asdict

    from strakes.watch.gate import FEWEST_DAYS, compare
    from strakes.watch.replay import parse_time
    from strakes.watch.ring import DAY_S

    times = [parse_time(before), parse_time(after)]
    remedy = "Write, for example: --before 2026-11-01 --after 2026-11-02T06:00"
    for option, text, time_s in zip(("--before", "--after"), (before, after), times, strict=True):
        if not math.isfinite(time_s):
            raise BadInputError(f"{option}: {text!r} is no date", remedy=remedy)
    if times[0] > times[1]:
        raise BadInputError(f"--before {before} is later than --after {after}", remedy=remedy)
    if over < FEWEST_DAYS * DAY_S:
        what = f"--over is too short: a day has a rhythm, and {FEWEST_DAYS} days are needed on each side"
        raise BadInputError(what, remedy="Write, for example: --over 7d")
    ring = _kept(store_directory)
    gates = compare(ring.rows(times[0] - over, times[0]), ring.rows(times[1], times[1] + over))
    if not gates:
        raise BadInputError(
            "nothing was recorded in these periods", where=str(ring.directory), remedy="Watch first: strakes watch DIR"
        )
    rows = [{key: None if value != value else value for key, value in asdict(gate).items()} for gate in gates]
    if write_json(json, {"schema": 1, "figures": rows}):
        lacking = [gate for gate in gates if math.isnan(gate.ratio)]
        same = len(lacking) > 1 and len({gate.needs for gate in lacking}) == 1
        for gate in gates:
            if not same or gate not in lacking:
                say(gate)
        if same:
            say(f"{counted(len(lacking), 'figure')}: INCONCLUSIVE; {lacking[0].needs}")
    return 1 if any(gate.verdict == "SLOWER" for gate in gates) else 0


def _levels(texts: tuple[str, ...]) -> list[ServiceLevel]:
    """Parse service levels. Raises BadInputError for an operation that the probe does not do."""
    from strakes.model.service_level import parse_service_level
    from strakes.watch.probing import OPERATIONS

    levels = [parse_service_level(text) for text in texts]
    for level in levels:
        if level.operation not in OPERATIONS.values():
            remedy = f"The probe does these: {', '.join(OPERATIONS.values())}."
            raise BadInputError(f"the probe does no operation {level.operation!r}", remedy=remedy)
    return levels


def _spare(output: Output | None, *used: Path) -> None:
    """Raise BadInputError if the output would overwrite its input."""
    if output is None or output.path is None:
        return
    path = output.path.resolve()
    for place in used:
        if path == place.resolve() or (place.is_dir() and path.parent == place.resolve()):
            raise BadInputError(
                "the result would overwrite its input", where=str(output.path), remedy="Give the name of another file."
            )


def _kept(directory: Path | None) -> Ring:
    """Return the recorded data of a watch. Raises BadInputError if nothing was recorded."""
    from strakes.watch.ring import Ring

    store = _store(directory)
    if not any(store.glob("*.jsonl")):
        remedy = "Watch first: strakes watch DIR. Or name the store of that watch, with --store."
        raise BadInputError("no data of strakes watch is stored there", where=str(store), remedy=remedy)
    return Ring(store, to_read=True)


def _store(directory: Path | None) -> Path:
    from strakes.base.files import default_root

    return directory or default_root() / "watch"


@command.command("replay")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@click.option("--time", "time_column", metavar="COL", help="Column with the time: Unix time, ISO 8601, or a date.")
@click.option("--value", "value_column", metavar="COL", help="Column with the figure to watch.")
@click.option(
    "--by", metavar="COL", multiple=True, help="Make a series for each value of this column; may be repeated."
)
@click.option(
    "--equals", is_flag=True, help="The series should behave alike, such as data targets: name one that falls behind."
)
@click.option(
    "--worse",
    type=click.Choice(["down", "up"]),
    default="down",
    help="Direction that is worse; up for latencies.  [default: down]",
)
@_alarms_option
@_json_option
def replay_command(
    files: tuple[Path, ...],
    time_column: str | None,
    value_column: str | None,
    by: tuple[str, ...],
    equals: bool,
    worse: str,
    alarms_a_month: float,
    json: Output | None,
) -> int:
    """Find changes in recorded data, as strakes watch would have.

    FILE is a CSV file (--time and --value name its columns), or one recording of counters for each machine: output of
    lctl get_param, each after a line of ### and the Unix time.
    """
    from dataclasses import asdict

    from strakes.watch.recorded import Contents, is_recording, readings
    from strakes.watch.replay import Columns, replay
    from strakes.watch.values import line
    from strakes.watch.watch import Watch

    lacking: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    _spare(json, *files)
    if all(map(is_recording, files)):
        if time_column or value_column or by or equals:
            what = "--time, --value, --by and --equals are for CSV files; a recording has no columns"
            raise BadInputError(what, where=str(files[0]), remedy="Leave them out.")
        watch, contents, events = Watch(alarms_a_month), Contents(), []
        for reading in readings(files):
            contents.add(reading)
            events += watch.add(reading)
        lacking = contents.lacking()
        document: dict[str, object] = {"top": watch.top, "lacking": lacking}
        # Keep the last version of each event.
        events = list({event.key: event for event in events}.values())
        alarms = sum(event.alarm for event in events)
        summary = f"{counted(len(files), 'recording')}, {contents.span}: {counted(alarms, 'alarm')}"
    else:
        remedy = "For example: strakes watch replay year.csv --time start --value rate --by benchmark"
        if len(files) > 1:
            what = "several files are read only if all are recordings, which begin with ### and the Unix time"
            raise BadInputError(what, remedy=f"Give a CSV file alone. {remedy}")
        if not time_column or not value_column:
            what = "this is no recording, which begins with ### and the Unix time; a CSV file needs --time and --value"
            raise BadInputError(what, where=str(files[0]), remedy=remedy)
        columns = Columns(time_column, value_column, by)
        result = replay(files[0], columns, alarms_a_month, worse_up=worse == "up", equals=equals)
        events = list(result.events)
        document = {
            "alarms": result.alarms,
            "months": result.months,
            "learning": result.learning,
            "passed_over": result.passed_over,
        }
        notes, summary = result.notes, result.summary
    listed = [{**asdict(event), "alarm": event.alarm} for event in events]
    if write_document(json, dumps({"schema": 1, "events": listed, **document}, indent=1)):
        for text in (*map(line, events), *(f"not watched: {text}" for text in lacking), *notes, summary):
            say(text)
    return 0
