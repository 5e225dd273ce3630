"""``strakes watch``: find out what changed on a file system in production, when, where, and how sure that is."""

from __future__ import annotations

import os
import re
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from strakes.base.errors import BadInputError, EnvironmentLacksError, did_you_mean
from strakes.base.files import default_root
from strakes.base.interrupts import limited
from strakes.base.processes import words_of
from strakes.base.units import counted, format_duration
from strakes.cli import options
from strakes.cli.options import DIRECTORY, OUTPUT, PATH, SECONDS, Json, Output, Parsed, argument, option, write_json
from strakes.cli.say import LineWriter, remark, say
from strakes.model.service_level import ServiceLevel, parse_service_level
from strakes.targets.command import Servers, end_running

if TYPE_CHECKING:
    from strakes.targets.target import Target

FalseAlarms = Annotated[
    float,
    option(
        "Number of false alarms per month to accept, for all series together.",
        type=options.NumberRange(0.001, 1000),
        default=1.0,
    ),
]
StoreDirectory = Annotated[
    Path,
    option(
        "Directory with the recorded data.  [default: the directory watch in the store of strakes]",
        "--store",
        type=PATH,
        default=lambda: default_root() / "watch",
        metavar="DIR",
    ),
]


def _level(text: str) -> ServiceLevel:
    from strakes.watch.probing import OPERATIONS

    level = parse_service_level(text)
    if level.operation not in OPERATIONS.values():
        remedy = did_you_mean(level.operation, OPERATIONS.values())
        raise BadInputError(f"the probe does not perform the operation {level.operation!r}", remedy=remedy)
    return level


Levels = Annotated[
    tuple[ServiceLevel, ...],
    option(
        "Service level to judge, such as 'p99 of create <= 20 ms in 99 % of minutes'. May be repeated.",
        "--level",
        default=(),
        type=Parsed("text", _level),
    ),
]


def _runnable(text: str) -> tuple[str, ...]:
    words = words_of("--command", text)
    if shutil.which(words[0]) is None:
        raise BadInputError(f"the command {text!r} cannot be run; give a program, such as /usr/bin/logger")
    return words


def _address(metrics: str) -> tuple[str, int]:
    found = re.fullmatch(r"(?:(\[[^][]+\]|[^][]*):)?(\d{1,5})", metrics)
    if found is None or int(found[2]) > 65535:
        remedy = "Write, for example, --metrics 9817, --metrics 0.0.0.0:9817 or --metrics [::1]:9817."
        raise BadInputError(f"{metrics!r} is no address and port number (0 to 65535)", remedy=remedy)
    return (found[1] or "").strip("[]") or "127.0.0.1", int(found[2])


@click.group("watch", cls=options.DefaultGroup)
def command() -> None:
    """Watch a file system in production: what changed, when, where, who causes the load, and how sure that is.

    strakes watch DIR... is short for strakes watch run DIR...
    """


@command.part("run")
def run_command(
    *,
    directories: tuple[Path, ...] = argument("DIR...", nargs=-1, required=True, type=DIRECTORY),
    metrics: tuple[str, int] | None = option(
        "Serve metrics for Prometheus on this port.  [default address: 127.0.0.1]",
        type=Parsed("address", _address),
        metavar="[ADDRESS:]PORT",
    ),
    alarm_command: tuple[str, ...] | None = option(
        "Run this command once for each alarm, with the event as JSON on its standard input.",
        "--command",
        type=Parsed("words", _runnable),
    ),
    no_probe: bool = option("Only read counters; write nothing to DIR.", default=False),
    store: StoreDirectory,
    levels: Levels,
    false_alarms_a_month: FalseAlarms,
    servers: options.AtServers,
) -> int:
    """Watch DIR in the foreground until stopped.

    Reads all counters that your permissions allow, and probes DIR with a few operations a second.
    """
    import signal
    import threading

    from strakes.runs.watchdog import SHARED
    from strakes.watch.alerts import AlertSender
    from strakes.watch.live import LiveWatch, run_live
    from strakes.watch.metrics import Metrics, serve
    from strakes.watch.ring import Ring
    from strakes.watch.sources import sources_of
    from strakes.watch.values import line
    from strakes.watch.watch import Watch

    if levels and no_probe:
        raise BadInputError("--level needs the probe", remedy="Leave out --no-probe, or --level.")
    shown = Metrics()
    if metrics is not None:
        address, port = metrics
        where = f"[{address}]" if ":" in address else address
        try:
            say(f"metrics: http://{where}:{serve(shown, address, port, remark)}/metrics")
        except (OSError, OverflowError, UnicodeError) as error:
            remedy = "Give an address of this host and a free port, such as --metrics 127.0.0.1:9817."
            why = (isinstance(error, OSError) and error.strerror) or str(error)
            what, where = "metrics cannot be served", f"{where}:{port}"
            raise EnvironmentLacksError(what, where=where, why=why, remedy=remedy) from error
    found = (_target(directory, servers) for directory in directories)
    targets = list({target.path: target for target in found}.values())
    # Directories on one file system have the same counters, so read these only once.
    first_of = {(target.mount.major, target.mount.minor): target for target in reversed(targets)}
    sources = [source for one in first_of.values() for source in sources_of(one, servers, probed=not no_probe)]
    ring = Ring(store)
    ring.hold()
    for directory in directories:
        # Resolve the path without system calls, which would block on a dead mount.
        if Path(os.path.abspath(ring.directory)).is_relative_to(os.path.abspath(directory)):
            remark(f"the store is inside {directory}: when this directory hangs, nothing can be stored")

    alerts, lines = AlertSender(alarm_command or ()), LineWriter()
    live = LiveWatch(
        [target.path for target in targets],
        sources,
        ring,
        alerts,
        watch=Watch(false_alarms_a_month),
        levels=levels,
        probe=not no_probe,
        metrics=shown,
        say=lambda event: lines.say(line(event)),
    )
    stopping = threading.Event()

    def stop(*_: object) -> None:
        stopping.set()
        end_running()  # A tool may hang.

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    say(f"watching {', '.join(map(str, directories))}; kept in {store}")
    SHARED.is_unlimited = True
    try:
        run_live(live, stopping.is_set)
    finally:
        if waiting := alerts.settle(1.0 if alerts.why else 11.0):
            lines.say(f"strakes: {counted(waiting, 'alarm')} could not be delivered: {alerts.why}")
    lost = ring.lost + len(ring.late)
    text = f"{counted(lost, 'line')} could not be stored: {ring.why}"
    lines.say(f"stopped; {text if lost else 'strakes watch report shows what was measured'}")
    lines.settle()
    return 0


def _target(directory: Path, servers: Servers | None) -> Target:
    from strakes.targets.calls import UnansweredError
    from strakes.targets.registry import detect, detect_unanswering

    try:
        target = detect(directory, servers)
        target.require_answers()
        return target
    except UnansweredError as error:
        error.remedy = "Check the servers of DIR. The watch begins anyway; the probe starts when DIR answers."
        for line in error.lines():
            say(line, err=True)
        return detect_unanswering(directory, servers)


_REPLAY_S = 3600.0  # Maximum processor time of a replay in seconds. 2 million disks take 13 s (measured).


def _too_large(why: str) -> BadInputError:
    remedy = "Replay parts of the recording, or report on a shorter time: --since."
    return BadInputError("the recorded data is too large", where="strakes watch", why=why, remedy=remedy)


@command.part("report")
@limited(_REPLAY_S, _too_large)
def report_command(
    *,
    levels: Levels,
    store: StoreDirectory,
    since: float = option("Report on the last TIME.", type=SECONDS, default="30d"),
    html: Output = option("Write the page to FILE.", "-o", "--html", type=OUTPUT, default="watch.html"),
) -> int:
    """Write a page: what changed, when, who caused it, and the service levels.

    The page is one file that works offline.
    """
    from strakes.runs.store_files import files_in
    from strakes.watch.page import render_watch_page
    from strakes.watch.ring import Ring

    now_s = time.time()
    if not files_in(store, ".jsonl"):
        remedy = "Watch first: strakes watch DIR. Or give the directory of the data: --store."
        raise BadInputError("this directory contains no data of strakes watch", where=str(store), remedy=remedy)
    html.write(render_watch_page(Ring(store, to_read=True), max(0.0, now_s - since), now_s, levels))
    if html.path is not None:
        say(f"page: {html.path}")
    return 0


@command.part("replay")
@limited(_REPLAY_S, _too_large)
def replay_command(
    *,
    false_alarms_a_month: FalseAlarms,
    files: tuple[Path, ...] = argument("FILE...", nargs=-1, required=True, type=PATH),
    time: str | None = option("Column with the time: Unix time, ISO 8601, or a date.", metavar="COL"),
    value: str | None = option("Column with the figure to watch.", metavar="COL"),
    by: tuple[str, ...] = option(
        "Make a series for each value of this column; may be repeated.", default=(), metavar="COL"
    ),
    worse: str = option(
        "Direction that is worse; up for latencies.", type=click.Choice(["down", "up"]), default="down"
    ),
    json: Json,
) -> int:
    """Find changes in recorded data by the methods of strakes watch.

    FILE is a CSV file, whose columns --time and --value name. Or each FILE is a recording of the counters of one
    machine: outputs of lctl get_param, each after a line with ### and the Unix time.
    """
    from strakes.watch.clocks import clocks_ahead
    from strakes.watch.recorded import Contents, is_recording, last_versions, readings
    from strakes.watch.replay import Columns, replay
    from strakes.watch.values import line
    from strakes.watch.watch import Watch

    first = str(files[0])
    document: dict[str, object]
    if all(map(is_recording, files)):
        if time or value or by:
            what = "--time, --value and --by are for CSV files; a recording has no columns"
            raise BadInputError(what, where=first, remedy="Leave out these options.")
        watch, contents = Watch(false_alarms_a_month), Contents()
        ahead_s = clocks_ahead(readings(files)) if len(files) > 1 else {}
        noted = map(contents.add, readings(files, ahead_s))
        events, left_out = last_versions(event for reading in noted for event in watch.add(reading))
        alarms = counted(sum(event.alarm for event in events), "alarm")
        document = {"top": watch.top, "lacking": (lacking := contents.lacking()), "clocks_ahead_s": ahead_s}
        notes = [f"not watched: {text}" for text in lacking]
        for name, seconds in ahead_s.items():
            differs = f"{format_duration(abs(seconds))} {'ahead' if seconds > 0 else 'behind'}"
            notes.append(f"the clock of {name} is about {differs}: its times are corrected")
        notes += [f"later events are left out: {left_out}"] * bool(left_out)
        notes.append(f"{counted(len(files), 'recording')}, {contents.span}: {alarms}")
    else:
        remedy = "For example: strakes watch replay year.csv --time start --value rate --by benchmark"
        if len(files) > 1:
            what = "several files must all be recordings: the first line of each is ### and a Unix time"
            raise BadInputError(what, remedy=f"Give only one CSV file. {remedy}")
        if not time or not value:
            what = "a CSV file needs --time and --value (a recording begins with ### and needs neither)"
            raise BadInputError(what, where=first, remedy=remedy)
        columns = Columns(time, value, by)
        result = replay(files[0], columns, false_alarms_a_month, worse_up=worse == "up")
        events, notes = list(result.events), [*result.notes, result.summary]
        document = {key: getattr(result, key) for key in ("alarms", "months", "learning", "passed_over")}
    listed = [{**asdict(event), "alarm": event.alarm} for event in events]
    if write_json(json, {"schema": 1, "events": listed, **document}):
        for text in (*map(line, events), *notes):
            say(text)
    return 0
