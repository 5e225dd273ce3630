"""``strakes report figure``: one figure of a run as a file."""

from __future__ import annotations

from pathlib import Path

import click

from strakes.base.language import english
from strakes.cli.options import OUTPUT, Output


@click.command("figure")
@click.argument("run", metavar="[RUN]", default="latest")
@click.argument("name", metavar="[FIGURE]", required=False)
@click.option("-o", "--output", type=OUTPUT, help="Write to FILE (.svg, .png or .pdf).  [default: FIGURE.svg]")
@english()
def command(run: str, name: str | None, output: Output | None) -> int:
    """Write FIGURE of RUN to a file. Without FIGURE, list the figures of RUN.

    RUN is a run id from strakes runs, the beginning of one, "latest" (the default), or "latest~1" for the one
    before it.
    """
    from strakes.report.static_figure import find_figure, name_figures, write_figure
    from strakes.runs.store import Store
    from strakes.tuning.portraits import build_portrait

    portrait = build_portrait(Store().open(run))
    if name is None:
        for known, figure in name_figures(portrait).items():
            click.echo(f"{known:<24} {figure.title}")
        return 0
    figure = find_figure(portrait, name)
    path = output.path if output is not None else Path(f"{name}.svg")
    if path is None:
        raise click.UsageError("A figure is not written to standard output: give -o FILE.", click.get_current_context())
    write_figure(figure, portrait, path)
    click.echo(path)
    return 0
