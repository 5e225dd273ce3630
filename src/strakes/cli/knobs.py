"""``strakes knobs``: read, change and restore settings of file systems."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from strakes.base.files import default_root
from strakes.cli import options
from strakes.cli.options import AsJson, AtServers, Directory, Group, MaybeDirectory, argument, option, write_json
from strakes.cli.say import print_table, say, say_errors
from strakes.control.knob import Knob, catalogue
from strakes.control.knob_bindings import remembering
from strakes.control.knob_change import Change, Reading, in_force, read, set_values
from strakes.control.knob_hold import records
from strakes.control.knob_journal import open_journals
from strakes.control.knob_restore import lost, restore, shown
from strakes.runs.watchdog import write_error


@click.group(cls=Group)
def command() -> None:
    """Read and change settings of a file system, its servers and the kernel, and put them back.

    Every change is written to a journal in the store before it is made. A value is put back only if it is still the one
    that strakes set; a value that somebody else has changed since is reported and left alone.
    """


@command.part("list")
def list_command(
    *,
    directory: MaybeDirectory,
    names: tuple[str, ...] = argument("[NAME]...", nargs=-1),
    servers: AtServers,
    as_json: AsJson,
) -> None:
    """List the settings of the file system under DIR with their values.

    NAME selects settings. Without DIR, list all settings that strakes knows, without values. The JSON has
    the value on each node and server.
    """
    from strakes.targets.registry import detect

    used: dict[str, Mapping[str, str]] = {}
    if directory is None:
        readings = tuple(Reading(knob) for knob in catalogue())
    else:
        target = detect(directory, servers)
        readings, ask = read(target, names), remembering(target.run)
        # If a setting has no value, its default applies. Only the servers report this default.
        used = {reading.knob.name: in_force(target, reading.knob, ask) for reading in readings if not reading.why}
    told = [(asdict(one.knob), dict(one.values), one.why, used.get(one.knob.name, {})) for one in readings]
    document = [knob | {"values": values, "why": why, "in_force": now} for knob, values, why, now in told]
    if not write_json(as_json, document):
        return
    rows, absent, by_hand = [], {}, {}
    for reading in readings:
        knob = reading.knob
        if not knob.changeable:
            restart = f"; takes effect after a restart of {knob.restart}" if knob.restart else ""
            by_hand[knob.name] = f"{_meaning(knob)} {knob.how_to_set}{restart}"
        elif directory is not None and reading.why:
            absent[knob.name] = reading.why
        else:
            second = knob.file_systems[0].removeprefix("fuse.").replace("*", "the kernel")
            if directory is not None:
                second = effective_text(reading, used.get(knob.name, {}))
            rows.append((knob.name, second, f"{knob.range_text} {knob.unit}".strip(), _meaning(knob)))
    if rows:
        print_table(("setting", "value" if directory else "of", "takes", "meaning"), rows)
    for title, texts in (("Not available here", absent), ("Only changeable by hand", by_hand)):
        if texts:
            say()
            say(f"{title}:")
        for name, text in texts.items():
            say(f"  {name}: {text}")


@command.part("set")
def set_command(
    *,
    directory: Directory,
    values: tuple[str, ...] = argument("NAME=VALUE...", nargs=-1, required=True),
    servers: AtServers,
) -> int:
    """Change settings until strakes knobs restore is called.

    Shows the value that is really in force, because some systems silently adjust a value. If one setting is refused,
    the earlier ones are put back. Exits with status 1 if a value in force is not the one you gave.
    """
    from strakes.targets.registry import detect

    def show(change: Change) -> None:
        for name, setting in change.items():
            now = dict.fromkeys(setting.knob.shown(value) for value in setting.values.values())
            say(f"{name}: {', '.join(now)}" + (f" in {len(setting.values)} places" if len(setting.values) > 1 else ""))
        for text in (*(f"  but {remark}" for remark in change.remarks), *change.moved):
            say(text)
        say("Put back with: strakes knobs restore")

    wanted = options.assignments(values, "osc.max_rpcs_in_flight=16")
    return 1 if set_values(detect(directory, servers), wanted, show).remarks else 0


@command.part("restore")
def restore_command(
    *,
    directory: MaybeDirectory,
    keep: bool = option("Leave the values as they are now and forget the old ones.", default=False),
) -> int:
    """Put back the settings changed by strakes knobs set or by a killed command, even if their journal is lost.

    With DIR, put back only settings changed for DIR. Exits with status 1 if an old value could not be put back, or if a
    journal or a record is damaged.
    """
    done = restore(default_root(), target=None if directory is None else os.path.realpath(directory), keep=keep)
    try:
        for restored in done:
            say(restored)
    except OSError:  # Old values of settings that others have changed are in no journal any more.
        write_error(map(str, done))
        raise
    if not all(restored.done for restored in done):
        say("For the settings that are not put back, repeat: strakes knobs restore")
    damaged = _print_rest(directory, is_empty=not done)
    return 0 if all(restored.good for restored in done) and not damaged else 1


@command.part("journal")
def journal_command(*, directory: MaybeDirectory) -> None:
    """Show the settings that strakes has changed and not yet put back.

    Each change has its time and the command that made it. With DIR, show only those changed for DIR.
    """
    target = None if directory is None else os.path.realpath(directory)
    states = [state for state in open_journals(default_root())[0] if target in (None, state.target)]
    without = [record for record in lost(default_root()) if target in (None, record.target)]
    for state in states:
        when = datetime.fromtimestamp(state.created_unix_s)
        until = "until strakes knobs restore" if state.held else f"by {state.owner} ({state.life()})"
        say(f"{state.id}: {when:%Y-%m-%d %H:%M:%S}, {until}: {' '.join(state.command)}")
        for entry in state.entries:
            change = " -> ".join(map(shown, (entry.before, entry.effective if entry.known else entry.wanted)))
            outcome = f", {entry.outcome}" if entry.outcome else ""
            say(f"  {entry.place.knob}: {change}{outcome} ({entry.place.name_with_host})")
    for record in without:
        say(f"the journal of {record.place.knob} is lost; strakes knobs restore puts back {shown(record.before)}")
    _print_rest(directory, is_empty=not states and not without)


def effective_text(reading: Reading, used: Mapping[str, str]) -> str:
    """Return up to four configured values of a setting as text, or the servers' values if it is not configured."""
    if used and all(value is None for value in reading.values.values()):
        in_use = dict.fromkeys(reading.knob.shown(value) for value in used.values())
        return f"{', '.join(in_use)} (not set; in use by the daemons)"
    values = [reading.knob.shown(value) for value in dict.fromkeys(reading.values.values())]
    return f"{len(values)} different values: {', '.join(values[:4])}" if len(values) > 1 else "".join(values)


def _meaning(knob: Knob) -> str:
    return knob.meaning + (f" (the {knob.counterpart} of StorNext)" if knob.counterpart else "")


def _print_rest(directory: Path | None, *, is_empty: bool) -> bool:
    damaged = say_errors((*open_journals(default_root())[1], *records(default_root())[1])) > 0
    if is_empty and not damaged:
        say(f"No settings{f' of {directory}' if directory else ''} to put back in the store {default_root()}.")
        left = {each.target for each in open_journals(default_root())[0]}
        if left := left | {each.target for each in lost(default_root())}:
            say(f"Settings are still changed for {', '.join(sorted(left))}: strakes knobs restore")
    return damaged
