"""``strakes study reproduce S1 … S5 DIR``: run all studies of one source and compare its values."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.errors import BadInputError
from strakes.base.language import english
from strakes.cli.options import (
    DIRECTORY,
    Amounts,
    Output,
    Sampling,
    amount_options,
    libcephfs_option,
    measuring_options,
    write_json,
)

if TYPE_CHECKING:
    from strakes.model.portrait import Portrait


# Share of the budget for a population, which comes first; the rest also gets what the population does not need.
_SHARE_OF_POPULATION = 0.5
# Studies get at least this many seconds, so that a slow removal of a population does not leave them without a block.
_LEAST_S = 10.0


@click.command()
@click.argument("source", metavar="SOURCE", type=click.Choice(["S1", "S2", "S3", "S4", "S5"], case_sensitive=False))
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@measuring_options("10m")
@amount_options
@libcephfs_option
@click.option(
    "--against",
    metavar="DIR2",
    type=DIRECTORY,
    help="Also measure DIR2, in turn with DIR, as S2 did with its two devices.",
)
@english()
def command(
    source: str,
    directory: Path,
    amounts: Amounts,
    against: Path | None,
    libcephfs: bool,
    options: Sampling,
) -> int:
    """Repeat the measurements of SOURCE at a scale that fits here, and compare its values with yours.

    SOURCE is one of five publications: S1 user-level I/O configuration, S2 metadata devices, S3 floods of small files,
    S4 metadata targets, S5 access patterns. Published values are never mixed with measured ones. Measurements that are
    impossible on DIR are skipped, with the reason. For S3, --files is the number of files at the end of its population.
    """
    from strakes.cli.measure import analyse, perform, report_path, request_from, write_report
    from strakes.model.literature import SOURCES
    from strakes.report.reproduced import render, to_document
    from strakes.studies.against import Against
    from strakes.studies.registry import study_named

    chosen = SOURCES[source.upper()]
    if chosen.grown and options.resume is not None:
        remedy = (
            f"Resume its studies one by one, beginning with: strakes study {chosen.studies[0]} {directory} --resume"
        )
        raise BadInputError(f"{chosen.name} consists of several runs and cannot be resumed as a whole", remedy=remedy)
    if chosen.grown and against is not None:
        remedy = "Compare one of its studies: strakes study small-files DIR --against DIR2."
        why = "one of its studies grows a population of files, which cannot be interleaved"
        raise BadInputError(f"{chosen.name} cannot be interleaved with a second directory", why=why, remedy=remedy)
    done: list[tuple[Portrait, Path]] = []
    began = time.monotonic()
    for names in filter(None, ((chosen.grown,) if chosen.grown else (), chosen.studies)):
        left_s = options.budget_s - (time.monotonic() - began)
        share_s = _SHARE_OF_POPULATION * options.budget_s if names == (chosen.grown,) else max(_LEAST_S, left_s)
        studies = tuple(study_named(name) if against is None else Against(study_named(name)) for name in names)
        is_population = names == (chosen.grown,)
        title = f"{chosen.name} {' '.join(names)}"
        part = replace(options, budget_s=share_s, html=_second(options.html) if is_population else options.html)
        own = replace(amounts, files=None) if chosen.grown and not is_population else amounts
        request = request_from(part, "reproduce", title, directory, studies, full=True, amounts=own)
        run = perform(replace(request, against=against, libcephfs=libcephfs), part)
        portrait = analyse(run)
        write_report(portrait, run, part.html)
        done.insert(0, (portrait, report_path(run, part.html)))
    portraits = [portrait for portrait, _ in done]
    if write_json(options.json, to_document(chosen, portraits)):
        click.echo(render(chosen, portraits, [str(path) for _, path in done]))
    return 0


def _second(html: Output | None) -> Output | None:
    """Return the output for the population's report, next to the main report."""
    if html is None or html.path is None:
        return html
    return Output(html.path.with_stem(f"{html.path.stem}-population"))
