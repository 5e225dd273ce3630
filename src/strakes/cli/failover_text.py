"""Print the results of ``strakes failover``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from strakes.base.foreign_text import for_terminal
from strakes.base.text_width import columns, padded
from strakes.base.units import counted
from strakes.cli.say import say

if TYPE_CHECKING:
    from strakes.control.drill_outcome import DrillOutcome
    from strakes.control.drill_pair import Spread, TrialRow
    from strakes.failover.check import Check
    from strakes.failover.rehearsal_world import Scene
    from strakes.failover.rehearse import Rehearsal
    from strakes.failover.timeline import Outage, Timeline

_MOST_CLIENTS = 10
_STYLE = {"error": "red", "warning": "yellow", "note": "cyan"}


def print_check(result: Check) -> None:
    """Print the findings, the verdicts of the cluster's own programs, and the counts."""
    for found in result.findings:
        click.echo(f"{click.style(found.severity, fg=_STYLE[found.severity], bold=True)}: {found.rule}")
        lines = [("where:", place) for place in found.places]
        lines += [("why:", found.reason), ("next:", found.remedy), ("source:", found.source)]
        for label, text in lines:
            say(f"  {label:<7} {text}")
        say()
    for verdict in result.verdicts:
        told = {
            "accepts": f"{verdict.program} accepts it",
            "refuses": f"{verdict.program} REFUSES it",
            "absent": f"{verdict.program} is not installed",
            "unable": f"{verdict.program} could not be asked",
        }
        say(told[verdict.state])
        for line in verdict.text.splitlines():
            say(f"    {line}")
    looked = result.rules - len(result.passed_over)
    errors, warnings, notes = (sum(finding.severity == kind for finding in result.findings) for kind in _STYLE)
    numbers = [counted(looked, "rule"), counted(errors, "error"), counted(warnings, "warning"), counted(notes, "note")]
    say(f"{result.where}: {', '.join(numbers)}")
    if result.passed_over:
        say(f"rules not checked, because the plan has no files for them: {', '.join(result.passed_over)}")


def print_rules() -> None:
    """Print every rule with its reason, remedy and source."""
    from strakes.failover.rule import all_rules

    for rule in all_rules():
        click.echo(f"{rule.name} ({rule.severity})")
        for text in (rule.reason, rule.remedy, rule.source):
            say(f"  {text}")
        say()


def print_rehearsal(result: Rehearsal, *, every: bool) -> None:
    """Print the single failures and the bad pairs of failures; with ``every``, all pairs."""
    _print_scenes("Every single failure", result.singles)
    if result.doubles:
        bad = tuple(
            scene
            for scene in result.doubles
            if scene.ends_the_service or scene.split_brain or scene.cuts_every_heartbeat
        )
        title = (
            "Every pair"
            if every
            else f"Pairs that end the service or cut every heartbeat ({len(bad)} of {len(result.doubles)}; --all)"
        )
        click.echo()
        _print_scenes(title, result.doubles if every else bad)
    for text in result.assumed:
        say(f"assumed: {text}")
    scenes = (*result.singles, *result.doubles)
    split = [scene for scene in scenes if scene.split_brain]
    say()
    single, double = (sum(scene.ends_the_service for scene in group) for group in (result.singles, result.doubles))
    say(f"{counted(len(result.singles), 'single failure')}, {single} {'ends' if single == 1 else 'end'} the service.")
    if result.doubles:
        say(
            f"{counted(len(result.doubles), 'pair of failures', 'pairs of failures')}, {double} "
            f"{'ends' if double == 1 else 'end'} the service."
        )
    say(f"Split brain possible: {f'after {len(split)} of them' if split else 'nowhere'}.")
    say("* strakes models cables, power and disks; Pacemaker's policy engine decides everything else.")


def _print_scenes(title: str, scenes: Sequence[Scene]) -> None:
    import sys

    from rich import box
    from rich.console import Console
    from rich.table import Table

    heads = ("failure", "service", "clients wait", "served by", "powered off", "remarks")
    table = Table(
        *heads,
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for scene in scenes:
        homes = dict.fromkeys(place or "nobody" for place in scene.places.values())
        served = (
            next(iter(homes))
            if len(homes) == 1
            else ", ".join(f"{name} {place or 'nobody'}" for name, place in scene.places.items())
        )
        remarks = "; ".join([*([f"SPLIT BRAIN: {scene.split_brain}"] if scene.split_brain else []), *scene.said])
        failure = ", then ".join(part.text for part in scene.failures) + (" *" if scene.modelled else "")
        wait = "until a person acts" if scene.ends_the_service else scene.wait.text
        table.add_row(failure, scene.ending, wait, served, ", ".join(scene.fenced), remarks)
    Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 200).print(table)


def print_timeline(line: Timeline, *, moments: bool) -> None:
    """Print the waits of clients and the recovery of targets; with ``moments``, also every event."""
    say(f"{line.name}: seconds since the fault")
    if moments:
        for moment in line.moments:
            say(f"  {moment.at_s - line.fault_s:9.1f}  {moment.source}: {moment.text}")
    rows = [
        (
            outage.client,
            f"{outage.operations:,}",
            f"{outage.errors:,}",
            f"{outage.stall_s:.1f}",
            _back(outage),
        )
        for outage in sorted(line.outages, key=lambda outage: (not outage.hit, -outage.stall_s))[:_MOST_CLIENTS]
    ]
    _print_rows(("client", "operations", "errors", "longest wait, s", "back after, s"), rows)
    if len(line.outages) > _MOST_CLIENTS:
        say(f"  … {len(line.outages) - _MOST_CLIENTS} more that waited for a shorter time; --json has them all")
    back = line.back_after_s
    hit = sum(outage.hit for outage in line.outages)
    spared = sum(not outage.hit and outage.known for outage in line.outages)
    unknown = len(line.outages) - hit - spared
    others = "".join(
        f"; {number} of {counted(len(line.outages), 'client')} {what}"
        for number, what in ((spared, "not hit"), (unknown, "with too few operations to judge"))
        if number
    )
    if back:
        say(f"  back: first {back[0]:.1f} s, median {back[1]:.1f} s, last {back[2]:.1f} s{others}")
    else:
        nobody = "  no client was hit" if not unknown else f"  no client is known to be hit{others}"
        say(f"  not back: {len(line.gone)} of {counted(hit, 'client')}{others}" if hit else nobody)
    targets = [
        (
            recovery.target,
            recovery.status,
            *(
                "-" if value is None else f"{value:g}"
                for value in (recovery.duration_s, recovery.clients, recovery.evicted, recovery.replayed)
            ),
        )
        for recovery in line.targets
    ]
    if targets:
        _print_rows(("target", "status", "recovery, s", "clients", "evicted", "replayed"), targets)
    click.echo()


def _back(outage: Outage) -> str:
    if not outage.hit:
        return "not hit" if outage.known else "not known"
    return "-" if outage.back_after_s is None else f"{outage.back_after_s:.1f}"


def print_drill(outcome: DrillOutcome, *, moments: bool) -> None:
    """Print the time line of a drill, and the counts of acknowledged, missing and failed files."""
    print_timeline(outcome.line, moments=moments)
    say(outcome.clients)
    damaged = f", {outcome.damaged:,} of these with other bytes" if outcome.damaged else ""
    acknowledged = f"{counted(outcome.acknowledged, 'file')} acknowledged"
    if outcome.read_by:
        say(f"{acknowledged}, {outcome.lost:,} of them missing afterwards{damaged}")
        say(f"read back by {outcome.read_by}")
    else:
        say(f"{acknowledged}, whether any is missing is unknown: they could not be read back")
    errors = "".join(f", {count:,} {errno}" for errno, count in outcome.errors.items())
    say(
        f"{counted(outcome.failed, 'file')} failed{errors}; of them {outcome.unanswered:,} exist nevertheless, "
        f"{outcome.repeated:,} {'was' if outcome.repeated == 1 else 'were'} made twice"
    )
    for interruption in outcome.interruptions:
        say(str(interruption))
    if outcome.lacking:
        before = click.style("not as before:", fg="red", bold=True)
        click.echo(f"{before} {for_terminal(outcome.lacking)}")


def print_trials(rows: Sequence[TrialRow]) -> None:
    """Print a row for each fault, and the counts of acknowledged and missing records."""
    heads = ("fault", "as expected", "taken over", "powered off after, s", "longest wait, s", "alerts")
    _print_rows(
        heads,
        [
            (
                row.fault,
                f"{row.good} of {row.runs}",
                str(row.took_over),
                "nobody" if row.powered_off is None else _times(row.powered_off),
                "not answered again" if row.outage is None else _times(row.outage),
                str(row.told),
            )
            for row in rows
        ],
    )
    acknowledged, lost = sum(row.acknowledged for row in rows), sum(row.lost for row in rows)
    say()
    say(f"{counted(acknowledged, 'record')} acknowledged, {lost:,} of them missing afterwards")
    seen = [text for row in rows for text in row.split_brain]
    say(f"Split brain: {'; '.join(seen) if seen else 'never seen'}.")


def _times(times: Spread) -> str:
    """Return the median in seconds, with its interval if there is one."""
    if times.interval is None:
        return f"{times.median_s:.1f}"
    return f"{times.median_s:.1f} [{times.interval.low:.1f} - {times.interval.high:.1f}]"


def _print_rows(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    shown = [heads, *(tuple(map(for_terminal, row)) for row in rows)]
    widths = [max(columns(row[column]) for row in shown) for column in range(len(heads))]
    for row in shown:
        cells = [
            padded(text, width, right=column > 0) for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  " + "  ".join(cells))
