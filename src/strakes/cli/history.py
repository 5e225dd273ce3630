"""``strakes runs history``: changes of a repeated measurement."""

from __future__ import annotations

from pathlib import Path

import click

from strakes.base.language import english
from strakes.cli.options import DIRECTORY, SECONDS, Output, json_option, write_json
from strakes.cli.say import say, say_sentences

FAILED_STATUS = 1


@click.command("history")
@click.argument("name", metavar="[NAME]", default="")
@click.option("--target", metavar="DIR", type=DIRECTORY, help="Use only runs on this directory.")
@click.option(
    "--cell", "cells", multiple=True, metavar="PATTERN", help="Use only cells whose id matches, such as '*:write'."
)
@click.option("--since", type=SECONDS, help="Judge only changes in the last TIME, such as 14d.")
@click.option(
    "--fail-on", metavar="LIST", help="Exit with status 1 on any of these results, such as slower:5%,inconclusive."
)
@json_option
@english()
def command(
    name: str,
    target: Path | None,
    cells: tuple[str, ...],
    since: float | None,
    fail_on: str | None,
    json: Output | None,
) -> int:
    """Show how figures of a repeated measurement changed: SLOWER, FASTER, NO CHANGE SHOWN or INCONCLUSIVE.

    Runs with the same DIR and options are one repeated measurement. NAME selects measurements of that name, such as
    survey, transfer-size or ior. A figure is SLOWER or FASTER when its level changed. An outlier
    does not count as a change. The test needs at least ten runs, five of them after the change; it is corrected for
    the number of figures.
    """
    import time
    from datetime import UTC, datetime
    from os.path import abspath

    from strakes.base.errors import BadInputError, StrakesError
    from strakes.runs.store import Store
    from strakes.stats.ratios import Verdict
    from strakes.survey.compare_fail_on import parse_fail_on
    from strakes.survey.history_gather import gather
    from strakes.survey.history_judge import failures, judged
    from strakes.survey.history_text import render, to_document

    conditions = parse_fail_on(fail_on) if fail_on is not None else ()
    store = Store()
    left_out: list[StrakesError] = []
    series = gather(store, name, abspath(target) if target else "", cells, left_out.append)
    for error in left_out:
        say(f"left out: {error}", err=True)
    if not series and any(run.status == "complete" and name in ("", run.name) for run in store.runs()):
        say("No measurement has been repeated yet. To start a history, repeat one with the same DIR and options.")
        return FAILED_STATUS if any(condition.verdict is Verdict.INCONCLUSIVE for condition in conditions) else 0
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
    return FAILED_STATUS if met else 0
