"""``strakes accept needs.toml DIR``: is each stated need met?"""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Any

import click

from strakes.cli.options import Output, measuring_options, precision_option
from strakes.errors import BadInputError

FAILED_STATUS = 1


@click.command("accept")
@click.argument("needs", metavar="NEEDS.toml", type=click.Path(path_type=Path))
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--from", "from_run", metavar="RUN", help="Answer from that run; nothing is measured.")
@measuring_options("3m")
@precision_option
def command(needs: Path, directory: Path | None, from_run: str | None, json: Output | None, **options: Any) -> int:
    """Answer every need of NEEDS.toml for the file system under DIR: PASS, FAIL or UNKNOWN, with evidence.

    examples/needs-s3.toml is a list to begin with. Exit status 1 when a need is not met.
    """
    from strakes.accept.judge import FAIL, judge
    from strakes.accept.needs import needs_from_toml
    from strakes.accept.show import render, to_document
    from strakes.cli.measure import perform
    from strakes.portrait.build import results_of
    from strakes.store import Store
    from strakes.studies.registry import study_named

    title, wanted = needs_from_toml(needs)
    if from_run is None:
        if directory is None:
            raise BadInputError("no DIR given", remedy=f"strakes accept {needs} DIR, or --from RUN")
        # Capacity needs no measurement; what does is measured together, interleaved.
        names = list(dict.fromkeys(need.study for need in wanted if need.study)) or ["open-close"]
        studies = tuple(study_named(name) for name in names)
        _, run = perform(kind="accept", name=title, studies=studies, directory=directory, full=False, **options)
    else:
        run = Store().open(from_run)
    facts = next((event["facts"] for event in run.events if event["event"] == "facts"), None)
    if facts is None:
        raise BadInputError("that run says nothing of its file system", where=run.id, remedy="Take one of strakes survey, study or accept.")
    answers = judge(wanted, facts, results_of(run))
    if json is not None:
        json.write(json_module.dumps(to_document(title, run.id, answers), indent=1, allow_nan=False))
    if json is None or json.path is not None:
        click.echo(render(title, run.id, answers))
    return FAILED_STATUS if any(one.verdict == FAIL for one in answers) else 0
