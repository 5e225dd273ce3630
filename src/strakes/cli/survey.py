"""``strakes survey DIR``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from strakes.cli.options import (
    DIRECTORY,
    amount_options,
    batch_option,
    compare_with_option,
    like_option,
    like_run,
    measuring_options,
    precision_option,
)


@click.command("survey")
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@measuring_options("2m")
@precision_option
@amount_options
@like_option
@compare_with_option
@batch_option
def command(directory: Path, like: str | None, **options: Any) -> int:
    """Measure the file system under DIR and say how to use it well.

    A survey works only in a directory of its own inside DIR, uses at most 80 % of the free space, and removes its
    files at the end. It prints a summary and writes an HTML report. Exit status: 0 measured, 1 the file system
    failed, 2 DIR cannot be used, 3 this machine lacks something, 130 interrupted (also by --neighbour).
    """
    from strakes.cli.measure import measure
    from strakes.studies.registry import SURVEY

    run = like_run(like, **{name: options[name] for name in ("data_per_rank", "files", "phase_s")})
    return measure(kind="survey", name="survey", studies=SURVEY, directory=directory, full=False, like=run, **options)
