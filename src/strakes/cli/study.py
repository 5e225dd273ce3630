"""``strakes study NAME DIR``: one study by itself, with every level of its factors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from strakes.cli.options import DIRECTORY, libcephfs_option, measuring_options, precision_option
from strakes.errors import BadInputError


@click.command("study")
@click.argument("name")
@click.argument("directory", metavar="DIR", type=DIRECTORY, required=False)
@measuring_options("5m")
@precision_option
@libcephfs_option
@click.option("--against", metavar="DIR2", type=click.Path(path_type=Path), help="Measure DIR2 too, in turn with DIR, and compare.")
@click.option("--like", metavar="RUN", help="Take the plans of that run, so that compare can hold the two against each other.")
@click.option("--files", type=click.IntRange(min=1), metavar="N", help="How many files a population grows to.")
def command(name: str, directory: Path | None, against: Path | None, like: str | None, files: int | None, **options: Any) -> int:
    """Run the study NAME on DIR; "strakes study list" lists them.

    With --against every cell is measured on both file systems in every block; the report says which is faster, with intervals.
    """
    from strakes.cli.measure import measure
    from strakes.store import Store
    from strakes.studies.against import Against
    from strakes.studies.registry import STUDIES, study_named

    if name == "list":
        for study in STUDIES:
            click.echo(f"{study.name:<20} {study.source}  {study.question}")
        return 0
    if directory is None:
        raise BadInputError("no DIR given", remedy=f"strakes study {name} DIR")
    study = study_named(name)
    if study not in STUDIES:
        raise BadInputError(f"{name!r} is no study of the catalogue", remedy="strakes study list shows them.")
    if against is not None and study.visits_in_sequence:
        raise BadInputError(f"{name} cannot be measured in turn with another", remedy="Measure both, one after the other.")
    return measure(
        kind="study",
        name=name,
        studies=(study if against is None else Against(study),),
        directory=directory,
        full=True,
        against=against,
        like=None if like is None else Store().open(like),
        files=files,
        **options,
    )
