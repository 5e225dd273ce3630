"""``strakes runs``: the runs in the store, batch jobs, and changes of repeated measurements."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from os.path import abspath
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.errors import BadInputError, InterruptedByUser, MeasurementError, StrakesError
from strakes.base.files import open_regular
from strakes.base.language import english
from strakes.cli.options import DIRECTORY, SECONDS, AsJson, Cells, FailOn, Json, argument, option, takes, write_json
from strakes.cli.say import local_time, print_json, print_table, say, say_lines, say_sentences

if TYPE_CHECKING:
    from strakes.runs.jobs import Job, Jobs
    from strakes.runs.run import RunSummary


@click.command()
@takes()
def command(as_json: AsJson) -> None:
    """List the runs in the store, oldest first."""
    from strakes.runs.store import Store

    store = Store()
    runs = store.runs()
    if as_json:
        print_json([{**asdict(run), "path": str(run.path)} for run in runs])
    elif not runs:
        say(f"No runs yet in {store.root}. Make one: strakes survey DIR")
    else:
        _print(runs)


def _print(runs: Sequence[RunSummary]) -> None:
    rows = []
    for run in runs:
        when = f"{local_time(datetime.fromisoformat(run.created)):%Y-%m-%d %H:%M}" if run.created else ""
        what = run.kind if run.name == run.kind else f"{run.kind} {run.name}".strip()
        rows.append((run.id, when, what, run.target, run.file_system, run.status))
    print_table(("id", "when", "what", "target", "file system", "status"), rows, whole=True)


_LOOK_EVERY_S = 2.0
# A shared file system may show the last output of a job some seconds after the queue shows its end.
_LAST_WORDS_S = 10.0
_MOST_SHOWN_BYTES = 1 << 20  # at a time


@click.command()
@takes()
def jobs(
    *,
    as_json: AsJson,
    job: str | None = argument("[JOB]", required=False),
    cancelled: bool = option("Cancel JOB cleanly; its measurements are kept.", "--cancel", default=False),
) -> int:
    """List the jobs submitted with --batch; with JOB, watch that one until it ends.

    Ctrl-C stops watching, not the job. Exits with the exit status of the job.
    """
    from strakes.runs.batch import cancel
    from strakes.runs.jobs import Jobs

    jobs = Jobs()
    if job is not None:
        chosen = jobs.find(job)
        if not cancelled:
            return _watch(jobs, chosen)
        cancel(chosen)
    elif cancelled:
        remedy = "Give its number: strakes runs jobs JOB --cancel"
        raise BadInputError("the job to cancel is missing", remedy=remedy)
    else:
        _list(jobs.all(), as_json=as_json)
    return 0


def _list(jobs: list[Job], *, as_json: bool) -> None:
    from strakes.runs.batch import state_of
    from strakes.runs.choice import how_to_get

    states = {job.id: state_of(job) for job in jobs}
    if as_json:
        print_json([{**asdict(job), "state": states[job.id]} for job in jobs])
        return
    for job in jobs:
        ended = "" if job.status is None else f", exit status {job.status}"
        say(f"{job.id:>8}  {states[job.id].lower()}{ended}  {job.name}  {job.run or 'no run yet'}")
    if not jobs:
        lacking = how_to_get("slurm")
        needs = f"They need Slurm, which this machine lacks: {lacking}"
        say(f"No jobs. {needs if lacking else 'Submit one: strakes survey DIR --launcher slurm --batch -N4'}")


def _watch(jobs: Jobs, job: Job) -> int:
    """Print the output of a job from its beginning until it ends; return its exit status."""
    from strakes.runs.batch import state_of

    shown, last_state, killed_at = 0, "", 0.0
    try:
        while True:
            state = state_of(job)
            if state != last_state and state not in ("ENDED", "KILLED"):
                say(f"strakes: job {job.id}: {state.lower()}", err=True)
                last_state = state
            shown = _show_more(Path(job.output), shown)
            job = jobs.find(job.id)
            if job.status is not None:
                break
            if state == "KILLED":
                killed_at = killed_at or time.monotonic()
                if time.monotonic() - killed_at > _LAST_WORDS_S:
                    raise _killed(job)
            time.sleep(_LOOK_EVERY_S)
    except KeyboardInterrupt:
        remedy = f"Watch it again: strakes runs jobs {job.id}"
        raise InterruptedByUser("stopped watching; the job continues", where=f"job {job.id}", remedy=remedy) from None
    _show_more(Path(job.output), shown)
    return job.status or 0


def _killed(job: Job) -> MeasurementError:
    resume = f"The measurements of run {job.run} are kept. Submit the same command with --resume {job.run}."
    return MeasurementError(
        f"job {job.id} has left the queue without an exit status",
        where=job.output,
        why="it was cancelled or killed, or its node failed",
        remedy=resume if job.run else "Submit it again.",
    )


def _show_more(output: Path, shown: int) -> int:
    """Print the output after the first ``shown`` bytes; return the number of bytes shown by now."""
    try:
        with open_regular(output) as file:
            file.seek(shown)
            while more := file.read(_MOST_SHOWN_BYTES):
                say_lines(more.decode(errors="replace"))
                shown += len(more)
    except FileNotFoundError:
        pass
    return shown


@click.command("history")
@takes()
@english()
def history(
    *,
    name: str = argument("[NAME]", default=""),
    target: Path | None = option("Use only runs on this directory.", type=DIRECTORY, metavar="DIR"),
    since: float | None = option("Judge only changes in the last TIME, such as 14d.", type=SECONDS),
    cells: Cells,
    fail_on: FailOn,
    json: Json,
) -> int:
    """Show how figures of a repeated measurement changed: SLOWER, FASTER, NO CHANGE SHOWN or INCONCLUSIVE.

    Runs with the same DIR and options are one repeated measurement. NAME selects measurements of that name, such as
    survey, transfer-size or ior. A figure is SLOWER or FASTER when its level changed. An outlier
    does not count as a change. The test needs at least ten runs, five of them after the change; it is corrected for
    the number of figures.
    """
    from strakes.runs.store import Store
    from strakes.stats.ratios import Verdict
    from strakes.survey.compare_fail_on import parse_fail_on
    from strakes.survey.history_gather import gather
    from strakes.survey.history_judge import failures, judged
    from strakes.survey.history_text import render, to_document

    conditions = parse_fail_on(fail_on) if fail_on else ()
    store = Store()
    left_out: list[StrakesError] = []
    series = gather(store, name, abspath(target) if target else "", cells, left_out.append)
    for error in left_out:
        say(f"left out: {error}", err=True)
    if not series and any(run.status == "complete" and name in ("", run.name) for run in store.runs()):
        say("No measurement has been repeated yet. To start a history, repeat one with the same DIR and options.")
        return 1 if any(condition.verdict is Verdict.INCONCLUSIVE for condition in conditions) else 0
    if not series:
        remedy = "List the runs with strakes runs, or make a first one with strakes survey DIR."
        raise BadInputError(f"no run{f' named {name}' if name else ''} is stored", where=str(store.root), remedy=remedy)
    start = None if since is None else datetime.fromtimestamp(max(0.0, time.time() - since), UTC)
    histories = judged(series, since=start)
    met = failures(histories, conditions)
    if write_json(json, to_document(histories, met)):
        say_sentences(render(histories))
        for text in met:
            say(f"failed: {text}", err=True)
    return 1 if met else 0
