"""``strakes accept needs.toml DIR``: is each stated need met?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.errors import BadInputError, StrakesError
from strakes.base.language import english
from strakes.cli.options import DIRECTORY, PATH, Sampling, measuring_options, write_json
from strakes.cli.say import say

if TYPE_CHECKING:
    from strakes.runs.run import Run
    from strakes.watch.ring import RingRow

FAILED_STATUS = 1


@click.command("accept")
@click.argument("needs", metavar="NEEDS.toml", type=PATH)
@click.argument("directory", metavar="[DIR]", required=False, type=DIRECTORY)
@click.option("--from", "from_run", metavar="RUN", help="Answer from the stored run RUN; measure nothing.")
@measuring_options("3m")
@english()
def command(needs: Path, directory: Path | None, from_run: str | None, options: Sampling) -> int:
    """Check every need in NEEDS.toml for the file system under DIR: PASS, FAIL, a forecast or UNKNOWN.

    A need for a number of clients that was not measured is answered by a forecast: PREDICTED PASS or PREDICTED FAIL.
    examples/needs-s3.toml is an example. DIR may be left out with --from. Exits with status 1 if a need is FAIL.
    """
    from strakes.cli.measure import analyse, perform, request_from, write_report
    from strakes.model.results import Results
    from strakes.predict.gather import figures_of
    from strakes.runs.run import told_as_damage
    from strakes.runs.store import Store
    from strakes.studies.registry import study_named
    from strakes.survey.analysis_build import results_of
    from strakes.targets.registry import detect
    from strakes.tuning.accept_judge import FAIL, judge, render, to_document
    from strakes.tuning.accept_needs import needs_from_toml

    title, wanted = needs_from_toml(needs)
    watched = any(need.level for need in wanted)
    run: Run | None = None
    if from_run is None and directory is None:
        remedy = f"Give DIR: strakes accept {needs} DIR. Or answer from a stored run: --from RUN."
        raise BadInputError("DIR is missing", remedy=remedy)
    if from_run is None and directory is not None and options.html is None and all(need.level for need in wanted):
        # A watch answers needs for service levels without a measurement. The page would require one.
        path = str(detect(directory, options.servers).path)
        answers = judge(wanted, {}, Results((), options.confidence, {}), (), _watched_minutes(path))
    else:
        if from_run is None:
            assert directory is not None
            # Measure the studies of all needs in one interleaved run. For capacity alone, any short study will do.
            names = list(dict.fromkeys(need.study for need in wanted if need.study)) or ["open-close"]
            studies = tuple(study_named(name) for name in names)
            run = perform(request_from(options, "accept", title, directory, studies, full=False), options)
        else:
            run = Store().open(from_run)
        if "total_bytes" not in run.facts:  # imported runs have no more than a path
            remedy = "Choose a run made by strakes survey, strakes study or strakes accept."
            raise BadInputError("the run does not describe its file system", where=run.id, remedy=remedy)
        minutes = _watched_minutes(str(run.facts.get("path", ""))) if watched else []
        with told_as_damage(run):
            figures = figures_of([run]) if any(need.study for need in wanted) else ()
            answers = judge(wanted, run.facts, results_of(run), figures, minutes)
    document = to_document(title, run.id if run else "", answers)
    if run is not None and from_run is None:
        run.write_answers(document)
    if write_json(options.json, document):
        click.echo(render(title, run.id if run else "", answers))
    status = FAILED_STATUS if any(answer.verdict == FAIL for answer in answers) else 0
    if run is not None and from_run is None:
        try:
            write_report(analyse(run), run, options.html)
        except StrakesError as error:  # the verdicts hold without a report
            say(f"strakes: the report could not be written: {error} Later: strakes report {run.id}", err=True)
    return status


def _watched_minutes(directory: str) -> list[RingRow]:
    """Return the rows that ``strakes watch`` recorded for this directory in the last 30 days."""
    import time
    from dataclasses import replace

    from strakes.base.files import default_root
    from strakes.watch.ring import Ring

    ring = default_root() / "watch"
    if not ring.is_dir():
        return []
    rows = Ring(ring, to_read=True).rows(time.time() - 30 * 86400)
    beginning = f"{directory} probe "
    return [
        replace(row, figures={name: seen for name, seen in row.figures.items() if name.startswith(beginning)})
        for row in rows
    ]
