"""``strakes accept needs.toml DIR``: check whether a file system meets stated needs."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.foreign_text import shell_line
from strakes.cli.options import DIRECTORY, PATH, Sampling, argument, command_named, option, write_json
from strakes.cli.say import remark, say_text


@command_named("accept", budget_s="3m")
def command(
    *,
    needs: Path = argument("NEEDS.toml", type=PATH),
    directory: Path | None = argument("[DIR]", required=False, type=DIRECTORY),
    from_run: str | None = option("Answer from the stored run RUN; measure nothing.", "--from", metavar="RUN"),
    sampling: Sampling,
) -> int:
    """Check every need in NEEDS.toml for the file system under DIR: PASS, FAIL, a forecast or UNKNOWN.

    If the run did not measure with the number of clients that a need states, the answer is a forecast: PREDICTED PASS
    or PREDICTED FAIL. examples/needs-s3.toml is an example. DIR may be left out with --from. Exits with status 1
    if a need is FAIL, else with status 3 if a file cannot be written.
    """
    from strakes.cli.measure import analyse, perform, request_from, write_report
    from strakes.predict.gather import figures_of
    from strakes.report.summary import warnings_in_short
    from strakes.runs.store import Store
    from strakes.studies.registry import study_named
    from strakes.survey.analysis_build import results_of
    from strakes.tuning.accept_judge import FAIL, WIDTH_COLUMNS, judge, render, to_document
    from strakes.tuning.accept_needs import needs_from_toml
    from strakes.tuning.portraits import build_portrait

    title, wanted = needs_from_toml(needs)
    if from_run is not None:
        run = Store().open(from_run)
        if directory is not None and os.path.abspath(directory) != (target := run.manifest["target"]):
            remedy = "Leave out DIR to answer from this run, or leave out --from to measure DIR."
            raise BadInputError("the run measured another directory", where=run.id, why=target, remedy=remedy)
    elif directory is None:
        again = shell_line(["strakes", "accept", str(needs)])
        remedy = f"Give DIR: {again} DIR. Or answer from a stored run: --from RUN."
        raise BadInputError("DIR is missing", remedy=remedy)
    else:
        names = list(dict.fromkeys(need.study for need in wanted if need.study)) or ["open-close"]
        request = request_from(sampling, "accept", title, directory, tuple(map(study_named, names)))
        run = perform(replace(request, full=False), sampling)
    if "total_bytes" not in run.facts:
        remedy = "Choose a run made by strakes survey, strakes study or strakes accept."
        raise BadInputError("the run does not describe its file system", where=run.id, remedy=remedy)
    with Store.told_as_damage(run):
        figures = figures_of([run]) if any(need.study for need in wanted) else ()
        own = run.manifest["kind"] == "accept"
        command = "" if own else shell_line(["strakes", "accept", str(needs), str(run.manifest["target"])])
        answers = judge(wanted, run.facts, results_of(run), figures, command)
        document = to_document(title, run.id, answers)
        portrait = cache(partial(analyse if from_run is None else build_portrait, run))
        status = 0 if from_run is not None else _attempt("verdicts", lambda: run.write("answers.json", document))
        if write_json(sampling.json, document):
            warnings: list[str] = []
            with suppress(StrakesError):
                warnings = warnings_in_short(portrait(), WIDTH_COLUMNS)
            say_text(render(document, warnings))
        if from_run is None or sampling.html is not None:
            lost = _attempt("report", lambda: write_report(portrait(), run, sampling.html), f"strakes report {run.id}")
            status = max(status, lost if sampling.html is not None else 0)
    return 1 if any(answer.verdict == FAIL for answer in answers) else status


def _attempt(what: str, write: Callable[[], object], later: str = "") -> int:
    try:
        write()
    except StrakesError as error:
        remark(f"the {what} could not be written: {error}{f' Later: {later}' if later else ''}")
        return EnvironmentLacksError.exit_status
    return 0
