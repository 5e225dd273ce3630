"""``strakes runs``: the runs in the store, and changes of repeated measurements."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import UTC, datetime
from os.path import abspath

from strakes.base.errors import BadInputError
from strakes.cli.options import SECONDS, AsJson, FailOn, Json, argument, command_named, option, write_json
from strakes.cli.say import print_table, say, say_sentences


@command_named("runs")
def command(as_json: AsJson) -> None:
    """List the runs in the store, oldest first."""
    from strakes.runs.store import Store

    store = Store()
    runs = store.runs()
    if not write_json(as_json, [{**asdict(run), "path": str(run.path)} for run in runs]):
        return
    if not runs:
        say(f"No runs yet in {store.root}. Make one: strakes survey DIR")
        return
    rows = []
    for run in runs:
        when = f"{datetime.fromisoformat(run.created).astimezone():%Y-%m-%d %H:%M}" if run.created else ""
        what = run.kind if run.name == run.kind else f"{run.kind} {run.name}".strip()
        rows.append((run.id, when, what, run.target, run.file_system, run.status))
    print_table(("id", "when", "what", "target", "file system", "status"), rows, whole=True)


@command_named("history")
def history(
    *,
    name: str = argument("[NAME|DIR]", default=""),
    since: float | None = option("Judge only changes in the last TIME, such as 14d.", type=SECONDS),
    fail_on: FailOn,
    json: Json,
) -> int:
    """Show how figures of a repeated measurement changed: SLOWER, FASTER, NO CHANGE SHOWN or INCONCLUSIVE.

    Runs with the same DIR and options are one repeated measurement. NAME selects measurements by name, such as survey,
    transfer-size or ior; a path selects them by directory. A figure is SLOWER or FASTER if its level changed; an
    outlier is not a change. The test needs at least ten runs, five of them after the change, and corrects for the
    number of figures. A figure whose amount of work varied by more than a factor of 2 has several lines.
    """
    from strakes.runs.store import Store
    from strakes.stats.ratios import Verdict
    from strakes.survey.comparison import parse_fail_on
    from strakes.survey.history_judge import failures, gather, judged
    from strakes.survey.history_text import render, to_document

    conditions = parse_fail_on(fail_on) if fail_on else ()
    name, target = ("", abspath(name)) if "/" in name else (name, "")
    store = Store()
    with Store.told_as_damage(where=str(store.root)):
        series = gather(store, name, target, lambda error: say(f"left out: {error}", err=True))
        if not series:
            if not any(run.status == "complete" and name in ("", run.name) for run in store.runs()):
                what, remedy = f"no run{f' named {name}' if name else ''} is stored", "Make one: strakes survey DIR"
                raise BadInputError(what, where=str(store.root), remedy=remedy)
            say("No measurement has been repeated yet. To start a history, repeat a run with the same DIR and options.")
            return 1 if any(condition.verdict is Verdict.INCONCLUSIVE for condition in conditions) else 0
        start = None if since is None else datetime.fromtimestamp(max(0.0, time.time() - since), UTC)
        histories = judged(series, since=start)
        met = failures(histories, conditions)
        if write_json(json, to_document(histories, met)):
            say_sentences(render(histories))
            for text in met:
                say(f"failed: {text}", err=True)
    return 1 if met else 0
