"""Print the results of ``strakes failover``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from strakes.base.foreign_text import for_terminal
from strakes.base.units import counted
from strakes.cli.say import print_table, say
from strakes.control.drill_pair import FaultTrial
from strakes.failover.check import Check
from strakes.failover.rehearsal_room import Scene
from strakes.failover.rehearse import Rehearsal
from strakes.failover.timeline import Timeline
from strakes.stats.interval import median

if TYPE_CHECKING:
    from strakes.control.drill_outcome import DrillOutcome

_MOST_CLIENTS = 10  # Maximum number of rows in a table. Twice the number would fill a terminal of 24 lines.
_STYLE = {"error": "red", "warning": "yellow", "note": "cyan"}
_SAID = {"accepts": "accepts it", "refuses": "REFUSES it", "absent": "is not installed", "unable": "could not be asked"}


def print_check(result: Check) -> None:
    """Print the findings, the results of the cluster software's own checks, and the number of findings."""
    for found in result.findings:
        click.echo(f"{click.style(found.severity, fg=_STYLE[found.severity], bold=True)}: {found.rule}")
        lines = [("where:", place) for place in found.places]
        lines += [("why:", found.reason), ("next:", found.remedy), ("source:", found.source)]
        for label, text in lines:
            say(f"  {label:<7} {text}")
        say()
    for verdict in result.verdicts:
        say(f"{verdict.program} {_SAID[verdict.state]}")
        for line in verdict.text.splitlines():
            say(f"    {line}")
    numbers = [counted(result.rules - len(result.passed_over), "rule")]
    numbers += [counted(sum(found.severity == kind for found in result.findings), kind) for kind in _STYLE]
    say(f"{result.where}: {', '.join(numbers)}")
    if result.passed_over:
        without = counted(len(result.passed_over), "rule")
        say(f"{without} not checked, because there are no files or answers for them (--json lists their names)")


def print_rehearsal(result: Rehearsal) -> None:
    """Print the predicted effects of single failures and of harmful pairs of failures."""
    if result.nothing:
        say(f"Nothing to rehearse: {result.nothing}.")
        return
    _print_scenes("Every single failure", result.singles)
    if result.doubles:
        bad = [one for one in result.doubles if one.ends_the_service or one.split_brain or one.cuts_every_heartbeat]
        say()
        _print_scenes(f"Pairs that end the service or cut every heartbeat ({len(bad)} of {len(result.doubles)})", bad)
    for text in result.assumed:
        say(f"assumed: {text}")
    say()
    for scenes, names in (
        (result.singles, ("single failure", "single failures")),
        (result.doubles, ("pair of failures", "pairs of failures")),
    ):
        ends = sum(scene.ends_the_service for scene in scenes)
        if scenes:
            say(f"{counted(len(scenes), *names)}, {ends} {'ends' if ends == 1 else 'end'} the service.")
    split = sum(bool(scene.split_brain) for scene in (*result.singles, *result.doubles))
    among = f" (not known of {result.not_simulated}, which exceeded the time limit)" if result.not_simulated else ""
    say(f"Split brain possible: {f'after {split} of these failures' if split else 'nowhere'}{among}.")
    say("* strakes models cables, power and disks; Pacemaker's policy engine decides everything else.")


def _print_scenes(title: str, scenes: Sequence[Scene]) -> None:
    rows = []
    for scene in scenes:
        homes = {name: place or "nobody" for name, place in scene.places.items()}
        served = ", ".join(f"{name} {place}" for name, place in homes.items())
        if len(set(homes.values())) == 1:
            served = next(iter(homes.values()))
        split = [f"SPLIT BRAIN: {scene.split_brain}"] if scene.split_brain else []
        failure = ", then ".join(part.text for part in scene.failures) + (" *" if scene.modelled else "")
        wait = "until a person acts" if scene.ends_the_service else scene.wait.text
        rows.append((failure, scene.ending, wait, served, ", ".join(scene.fenced), "; ".join([*split, *scene.said])))
    say(title)
    print_table(("failure", "service", "clients wait", "served by", "powered off", "remarks"), rows)


def print_timeline(line: Timeline, *, moments: bool) -> None:
    """Print how long clients waited, and how targets recovered. With ``moments``, also print each event."""
    say(f"{line.name}: seconds since the fault")
    for moment in line.moments if moments else ():
        say(f"  {moment.at_s - line.fault_s:9.1f}  {moment.source}: {moment.text}")
    rows = []
    for outage in sorted(line.outages, key=lambda outage: (not outage.hit, -outage.stall_s))[:_MOST_CLIENTS]:
        back = "not hit" if outage.known else "not known"
        if outage.hit:
            back = "not back" if outage.back_after_s is None else f"{outage.back_after_s:.1f}"
        rows.append((outage.client, f"{outage.operations:,}", f"{outage.errors:,}", f"{outage.stall_s:.1f}", back))
    print_table(("client", "operations", "errors", "longest wait, s", "back after, s"), rows)
    if len(line.outages) > _MOST_CLIENTS:
        say(f"  … {len(line.outages) - _MOST_CLIENTS} more clients waited for a shorter time; --json lists them all")
    hit = sum(outage.hit for outage in line.outages)
    spared = sum(not outage.hit and outage.known for outage in line.outages)
    unknown, clients = len(line.outages) - hit - spared, counted(len(line.outages), "client")
    others = f"; {spared} of {clients} not hit" if spared else ""
    if unknown:
        others += f"; {unknown} of {clients} with too few operations to judge"
    if line.back_after_s:
        first, median, last = line.back_after_s
        say(f"  back: first {first:.1f} s, median {median:.1f} s, last {last:.1f} s{others}")
    elif hit:
        say(f"  not back: {len(line.gone)} of {counted(hit, 'client')}{others}")
    else:
        say(f"  no client is known to be hit{others}" if unknown else "  no client was hit")
    targets = []
    for one in line.targets:
        numbers = (one.duration_s, one.clients, one.evicted, one.replayed)
        targets.append((one.target, one.status, *("-" if each is None else f"{each:g}" for each in numbers)))
    if targets:
        print_table(("target", "status", "recovery, s", "clients", "evicted", "replayed"), targets)
    say()


def print_drill(outcome: DrillOutcome, *, moments: bool) -> None:
    """Print the time line of a drill, and the numbers of acknowledged, missing and failed files."""
    print_timeline(outcome.line, moments=moments)
    say(outcome.clients)
    damaged = f" or damaged ({outcome.damaged:,} damaged)" if outcome.damaged else ""
    acknowledged = f"{counted(outcome.acknowledged, 'file')} acknowledged"
    if outcome.read:
        say(f"{acknowledged}, {outcome.lost:,} of them missing{damaged} afterwards")
        say("read back by this machine's mount")
    else:
        say(f"{acknowledged}; they could not be read back, so some may be missing")
    errors = "".join(f", {count:,} {errno}" for errno, count in outcome.errors.items())
    twice = f"{outcome.repeated:,} {'was' if outcome.repeated == 1 else 'were'} made twice"
    failed = f"{counted(outcome.failed, 'file')} failed{errors}"
    say(f"{failed}; of them {outcome.unanswered:,} exist nevertheless, {twice}")
    for interruption in outcome.interruptions:
        say(interruption)
    if outcome.lacking:
        click.echo(f"{click.style('not restored:', fg='red', bold=True)} {for_terminal(outcome.lacking)}")


def print_trials(trials: Sequence[FaultTrial]) -> None:
    """Print a row for each fault, then the numbers of acknowledged and missing records."""
    shown = []
    for fault in dict.fromkeys(trial.fault for trial in trials):
        own = [trial for trial in trials if trial.fault == fault]
        fenced = [after_s for trial in own for after_s in trial.switched_off.values()]
        waits = [trial.outage_s for trial in own if trial.outage_s is not None]
        outage = _range(waits) if len(waits) == len(own) else "not answered again"
        counts = (sum(trial.served_after != trial.served_before for trial in own), sum(trial.told for trial in own))
        good = f"{sum(trial.good for trial in own)} of {len(own)}"
        shown.append((fault, good, str(counts[0]), _range(fenced) if fenced else "nobody", outage, str(counts[1])))
    print_table(("fault", "as expected", "taken over", "powered off after, s", "longest wait, s", "alerts"), shown)
    acknowledged = sum(trial.judgement.acknowledged for trial in trials)
    say()
    lost = sum(len(trial.judgement.lost) for trial in trials)
    say(f"{counted(acknowledged, 'record')} acknowledged, {lost:,} of them missing afterwards")
    seen = [text for trial in trials for text in trial.judgement.split_brain]
    say(f"Split brain: {'; '.join(seen) if seen else 'never seen'}.")


def _range(times_s: Sequence[float]) -> str:
    return f"{median(times_s):.1f} ({min(times_s):.1f} - {max(times_s):.1f})"
