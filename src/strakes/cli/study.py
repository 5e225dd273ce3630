"""``strakes study NAME DIR``: one study by itself, with every level of its factors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from strakes.cli.options import measuring_options, precision_option
from strakes.errors import BadInputError


@click.command("study")
@click.argument("name")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path), required=False)
@measuring_options("5m")
@precision_option
def command(name: str, directory: Path | None, **options: Any) -> int:
    """Run the study NAME on DIR; "strakes study list" lists them."""
    from strakes.cli.measure import measure
    from strakes.studies.registry import STUDIES, study_named

    if name == "list":
        for study in STUDIES:
            click.echo(f"{study.name:<20} {study.source}  {study.question}")
        return 0
    if directory is None:
        raise BadInputError("no DIR given", remedy=f"strakes study {name} DIR")
    return measure(kind="study", name=name, studies=(study_named(name),), directory=directory, full=True, **options)
