"""Rules about commands that a node runs by itself, and that work against the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.rules.command_rows import COMMAND_ROWS, CommandRow
from strakes.failover.rules.commands import Command, commands_run
from strakes.failover.rules.node_row import uses
from strakes.failover.rules.possessions import Possessions, possessions_of
from strakes.failover.rules.rule import OWN, Severity, rule
from strakes.failover.setup import Setup

_LONGEST = 90


def _concerns(row: CommandRow, command: Command, owned: Possessions) -> bool:
    """Tell whether a command names something of the cluster's, where its row asks for that."""
    words = [part for word in command.words[1:] for part in (word, word.partition("=")[2]) if part]
    paths = [word for word in words if word.startswith("/")]
    if row.names == "disk":
        return any(owned.has_disk(word) for word in words)
    if row.names == "place":
        return any(owned.place_around(word) for word in paths)
    if row.names == "pool":
        return bool(owned.pools & {word.partition("/")[0] for word in words})
    if row.names == "group":
        named = [word for word in words[0:] if not word.startswith("-") and word not in ("y", "ey", "ay", "n")]
        groups = {re.sub(r"^/dev/", "", word).partition("/")[0] for word in named}
        return bool(owned.groups & groups) or not named
    if row.names == "unit":
        units = {word if "." in word else f"{word}.service" for word in words}
        return bool(owned.units & units)
    if row.names == "address":
        return bool(owned.addresses & {word.partition("/")[0] for word in words})
    if row.names == "array":
        return bool(owned.arrays & set(words)) or bool(owned.arrays and {"-s", "--scan", "-As"} & set(words))
    return True


def _against(setup: Setup, severity: Severity) -> Iterator[str]:
    owned = possessions_of(setup)
    rows = [row for row in COMMAND_ROWS if row.severity == severity and uses(setup, row.only_with)]
    for command in commands_run(setup):
        for row in rows:
            wanted = row.scripts if command.when == "script" else not row.timed or command.when == "timed"
            if wanted and re.fullmatch(row.text, command.text) and _concerns(row, command, owned):
                yield f"{command.where}: {command.text[:_LONGEST]}: {row.because}"
                break


@rule("pacemaker").error(
    reason="It runs on every node that has the file, at boot or repeatedly, no matter which node serves at that "
    "moment.",
    remedy="Remove the command from rc.local, cron, the unit or the udev rule; leave it to Pacemaker, or to a person.",
    source=OWN,
)
def started_by_a_script(setup: Setup) -> Iterator[str]:
    """Find commands that take from the cluster what it has."""
    yield from _against(setup, "error")


@rule("pacemaker").warning(
    reason="A command that helps once, by hand, does harm when every node runs it regularly.",
    remedy="Remove the command from cron or the timer; run it by hand, on one node after the other.",
    source=OWN,
)
def repair_command_scheduled(setup: Setup) -> Iterator[str]:
    """Find commands that are seldom meant to run by themselves."""
    yield from _against(setup, "warning")
