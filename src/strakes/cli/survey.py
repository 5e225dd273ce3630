"""``strakes survey DIR``: measure a file system."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from strakes.cli.options import (
    DIRECTORY,
    Amounts,
    Sampling,
    amount_options,
    batch_option,
    compare_with_option,
    like_option,
    like_run,
    measuring_options,
)


@click.command("survey")
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@measuring_options("2m")
@amount_options
@like_option
@compare_with_option
@batch_option
def command(
    directory: Path,
    options: Sampling,
    amounts: Amounts,
    like: str | None,
    compare_with: str | None,
    batch: str | None,
) -> int:
    """Measure the file system under DIR and say how to use it well.

    A survey works only in its own directory inside DIR, uses at most 80 % of the free space, and removes its
    files at the end. It prints a summary and writes an HTML report. Exit status: 0 measured, 1 the file system
    failed, 2 DIR cannot be used, 3 this machine lacks something, 130 interrupted (also by --neighbour).
    """
    from strakes.cli.measure import measure, request_from
    from strakes.studies.registry import SURVEY

    run = like_run(like, amounts.data_per_rank, amounts.files, amounts.phase_s)
    request = request_from(options, "survey", "survey", directory, SURVEY, full=False, amounts=amounts)
    return measure(replace(request, like=run), options, batch=batch, compare_with=compare_with)
