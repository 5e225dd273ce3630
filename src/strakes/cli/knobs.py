"""``strakes knobs``: read, change and restore settings of file systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import for_terminal
from strakes.cli.options import DIRECTORY, as_json_option, servers_option
from strakes.cli.say import local_time, print_json, say

if TYPE_CHECKING:
    from strakes.control.knob import Knob
    from strakes.control.knob_change import Reading
    from strakes.control.knob_journal import JournalState
    from strakes.targets.command import Servers
    from strakes.targets.target import Target

_DIR = click.argument("directory", metavar="DIR", type=DIRECTORY)
_MAY_DIR = click.argument("directory", metavar="[DIR]", required=False, type=DIRECTORY)


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Read and change settings of a file system, its servers and the kernel, and put them back.

    Every change is written to a journal in the store before it is made. A value is put back only if it is still the one
    that strakes set; a value that somebody else has changed since is reported and left alone.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command.command("list")
@_MAY_DIR
@servers_option
@as_json_option
def list_command(directory: Path | None, servers: Servers | None, as_json: bool) -> None:
    """List the settings of the file system under DIR with their values.

    Without DIR, list all settings that strakes knows, without values.
    """
    from strakes.control.knob_change import Reading, in_force, read
    from strakes.control.knob_loader import catalogue

    if directory is None:
        readings, used = tuple(Reading(knob) for knob in catalogue()), {}
    else:
        target = _target(directory, servers)
        readings = read(target)
        # The servers report the values in force, which an unset setting lacks.
        used = {reading.knob.name: in_force(target, reading.knob) for reading in readings if not reading.why}
    if as_json:
        print_json([{**_document(reading), "in_force": dict(used.get(reading.knob.name, {}))} for reading in readings])
    else:
        _print_list(readings, with_values=directory is not None, used=used)


@command.command("get")
@_DIR
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@servers_option
@as_json_option
def get_command(directory: Path, names: Sequence[str], servers: Servers | None, as_json: bool) -> int:
    """Show the value of each setting, in every place that has one.

    Exits with status 1 if a setting has no value here.
    """
    from strakes.control.knob_change import in_force, read

    target = _target(directory, servers)
    readings = [(reading, in_force(target, reading.knob)) for reading in read(target, names)]
    if as_json:
        print_json([{**_document(reading), "in_force": dict(used)} for reading, used in readings])
    else:
        for reading, used in readings:
            say(f"{reading.knob.name}: {_value_text(reading) or 'no value: ' + reading.why}")
            places = [
                f"{place}: {reading.knob.shown(value)}"
                for place, value in reading.values.items()
                if len(reading.values) > 1
            ]
            places += [f"{daemon} uses {reading.knob.shown(value)}" for daemon, value in used.items()]
            for line in places:
                say(f"  {line}")
    return 1 if any(reading.why for reading, _ in readings) else 0


@command.command("set")
@_DIR
@click.argument("values", metavar="NAME=VALUE...", nargs=-1, required=True)
@click.option("--keep", is_flag=True, help="Keep the new values for good: nothing puts the old values back.")
@servers_option
@as_json_option
def set_command(directory: Path, values: Sequence[str], keep: bool, servers: Servers | None, as_json: bool) -> int:
    """Change settings until strakes knobs restore puts the old values back.

    Shows the value that is really in force, because some systems silently adjust a value. If one setting is refused,
    the earlier ones are put back. Exits with status 1 if a value in force is not the one you gave.
    """
    from strakes.control.knob_change import set_values

    change = set_values(_target(directory, servers), _pairs(values), keep=keep)
    if as_json:
        effective = {
            name: {
                "wanted": effective.wanted,
                "values": dict(effective.values),
                "in_force": dict(effective.in_force),
                "as_wanted": effective.as_wanted,
            }
            for name, effective in change.items()
        }
        print_json({"journal": change.journal, "kept": keep, "effective": effective, "remarks": change.remarks})
        return 1 if change.remarks else 0
    for name, setting in change.items():
        shown = dict.fromkeys(setting.knob.shown(value) for value in setting.values.values())
        say(f"{name}: {', '.join(shown)}" + (f" in {len(setting.values)} places" if len(setting.values) > 1 else ""))
    for remark in change.remarks:
        say(f"  but {remark}")
    say("The new values stay; the old ones are forgotten." if keep else "Put back with: strakes knobs restore")
    return 1 if change.remarks else 0


@command.command("restore")
@_MAY_DIR
@click.option("--keep", is_flag=True, help="Leave the values as they are now and forget the old ones.")
@as_json_option
def restore_command(directory: Path | None, keep: bool, as_json: bool) -> int:
    """Put back the settings that strakes knobs set or a killed command changed.

    With DIR, put back only those changed for DIR, and those whose journal is lost. Exits with status 1 if an old value
    could not be put back, or if a journal or a record is damaged.
    """
    from strakes.base.files import default_root
    from strakes.control.knob_restore import restore

    done = restore(default_root(), target=_plain_path(directory), keep=keep)
    if as_json:
        from dataclasses import asdict

        print_json([asdict(restored) for restored in done])
    else:
        for restored in done:
            say(str(restored))
    damaged = _print_damaged()
    if not done and not damaged and not as_json:
        say("No settings to put back.")
    return 0 if all(restored.good for restored in done) and not damaged else 1


@command.command("journal")
@_MAY_DIR
@as_json_option
def journal_command(directory: Path | None, as_json: bool) -> None:
    """Show the settings that strakes has changed and not yet put back.

    Each change has its time and the command that made it. With DIR, show only those changed for DIR.
    """
    from strakes.base.files import default_root
    from strakes.control.knob_journal import open_journals

    states, _ = open_journals(default_root())
    chosen = [state for state in states if directory is None or state.target == _plain_path(directory)]
    if as_json:
        print_json([_state_document(state) for state in chosen])
        return
    for state in chosen:
        _print_state(state)
    if not chosen:
        say("strakes has no changed settings to put back.")
    _print_damaged()


def _target(directory: Path, servers: Servers | None) -> Target:
    from strakes.targets.registry import detect

    return detect(directory, servers)


def _plain_path(directory: Path | None) -> str | None:
    """Return the resolved path, as journals name the target."""
    import os

    return None if directory is None else os.path.realpath(directory)


def _pairs(words: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise BadInputError(
                f"expected NAME=VALUE, not {word!r}", remedy="Write, for example, osc.max_rpcs_in_flight=16."
            )
        if name in pairs:
            raise BadInputError(f"{name} is given twice", remedy="Give it one value.")
        pairs[name] = value
    return pairs


def _document(reading: Reading) -> dict[str, object]:
    knob = reading.knob
    read = f"read {knob.file}" if knob.file else " ".join(knob.read)
    return {
        "name": knob.name,
        "meaning": knob.meaning,
        "kind": knob.kind,
        "unit": knob.unit,
        "least": knob.least,
        "most": knob.most,
        "choices": list(knob.choices),
        "where": knob.where,
        "changeable": knob.changeable,
        "needs_root": knob.root,
        "restart": knob.restart,
        "how_to_read": "" if knob.by_hand else read,
        "how_to_set": knob.how_to_set,
        "adjusts": knob.adjusts,
        "counterpart": knob.counterpart,
        "file_systems": list(knob.file_systems),
        "source": knob.source,
        "values": dict(reading.values),
        "why_no_value": reading.why,
    }


def _value_text(reading: Reading) -> str:
    """Return the value, or the first four values if places differ."""
    values = list(dict.fromkeys(reading.values.values()))
    if not values:
        return ""
    if len(values) == 1:
        return reading.knob.shown(values[0])
    return f"{len(values)} different values: " + ", ".join(reading.knob.shown(value) for value in values[:4])


def _effective_text(reading: Reading, used: Mapping[str, str]) -> str:
    """Return the configured value, or the value that the servers use if none is configured."""
    own = any(value is not None for value in reading.values.values())
    values = dict.fromkeys(reading.knob.shown(value) for value in used.values())
    return _value_text(reading) if own or not values else f"{', '.join(values)} (not set; in use by the daemons)"


def _print_list(readings: Sequence[Reading], *, with_values: bool, used: Mapping[str, Mapping[str, str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    columns = ("setting", "value", "takes", "meaning") if with_values else ("setting", "of", "takes", "meaning")
    table = Table(*columns, box=box.SIMPLE_HEAD, show_edge=False)
    table.columns[0].no_wrap = True
    by_hand: list[Reading] = []
    absent: list[Reading] = []
    for reading in readings:
        knob = reading.knob
        if not knob.changeable:
            by_hand.append(reading)
        elif with_values and reading.why:
            absent.append(reading)
        else:
            second = (
                _effective_text(reading, used.get(knob.name, {}))
                if with_values
                else knob.file_systems[0].removeprefix("fuse.").replace("*", "the kernel")
            )
            takes = f"{knob.range_text} {knob.unit}".strip()
            texts = (for_terminal(text) for text in (second, takes, _meaning(knob)))
            table.add_row(for_terminal(knob.name), *texts)
    import sys

    console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 160)
    if table.row_count:
        console.print(table)
    _print_rest(absent, "Not available here", lambda reading: reading.why)
    _print_rest(by_hand, "Only changeable by hand", _by_hand)


def _meaning(knob: Knob) -> str:
    counterpart = f" (the {knob.counterpart} of S3)" if knob.counterpart else ""
    return knob.meaning + counterpart


def _by_hand(reading: Reading) -> str:
    restart = f"; takes effect after a restart of {reading.knob.restart}" if reading.knob.restart else ""
    return f"{_meaning(reading.knob)} {reading.knob.how_to_set}{restart}"


def _print_rest(readings: Sequence[Reading], title: str, text: Any) -> None:
    if readings:
        say()
        say(f"{title}:")
        for reading in readings:
            say(f"  {reading.knob.name}: {text(reading)}")


def _state_document(state: JournalState) -> dict[str, object]:
    from dataclasses import asdict

    entries = [
        {
            "knob": entry.place.knob,
            "place": entry.place.name_with_host,
            "before": entry.before,
            "wanted": entry.wanted,
            "effective": entry.effective,
            "outcome": entry.outcome,
            "found": entry.found,
        }
        for entry in state.entries
    ]
    return {
        "id": state.id,
        "path": str(state.path),
        "target": state.target,
        "command": list(state.command),
        "owner": asdict(state.owner),
        "state": _condition(state),
        "created_unix_s": state.created_unix_s,
        "entries": entries,
    }


def _condition(state: JournalState) -> str:
    if state.held:
        return "held"
    return {"alive": "in use", "dead": "abandoned", "elsewhere": "elsewhere"}[state.life()]


def _print_state(state: JournalState) -> None:
    from datetime import UTC, datetime

    explanation = {
        "held": "changed until put back with: strakes knobs restore",
        "in use": f"in use by {state.owner}",
        "abandoned": "its process has ended; the next strakes command puts it back",
        "elsewhere": f"in use or to be put back on host {state.owner.host}",
    }[_condition(state)]
    when = local_time(datetime.fromtimestamp(state.created_unix_s, UTC))
    say(f"{state.id}: {explanation}")
    say(f"  {when:%Y-%m-%d %H:%M:%S}, {' '.join(state.command)}")
    for entry in state.entries:
        now = entry.effective if entry.known else entry.wanted
        change = f"{_or_none(entry.before)} -> {_or_none(now)}"
        outcome = f", {entry.outcome}" if entry.outcome else ""
        say(f"  {entry.place.knob}: {change}{outcome} ({entry.place.name_with_host})")


def _or_none(value: str | None) -> str:
    return "default" if value is None else value


def _print_damaged() -> bool:
    """Print the journals that cannot be read. Return whether any were found."""
    from strakes.base.files import default_root
    from strakes.control.knob_journal import open_journals

    errors = open_journals(default_root())[1]
    for error in errors:
        say(f"{error.what}: {error.where} ({error.why}). {error.remedy}", err=True)
    return bool(errors)
