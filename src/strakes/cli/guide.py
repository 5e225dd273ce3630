"""``strakes guide``: the page "how to use our file system", from what was measured."""

from __future__ import annotations

import click

from strakes.cli.options import OUTPUT, Output


@click.command("guide")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("-o", "--output", type=OUTPUT, default="-", help="The file  [default: standard output]")
def command(run: str | None, output: Output) -> int:
    """Write the page that tells the users of a file system how to use it, as Markdown, from a finished survey or study.

    RUN is an id as strakes runs lists it, or a file that strakes export wrote; without it the one that strakes advise would take. Nothing
    is measured: every line says what it stands on, and what is not known is listed.
    """
    from strakes.advise.choose import size_classes
    from strakes.advise.paste import class_layouts
    from strakes.advise.source import run_to_advise_from
    from strakes.portrait.build import build_portrait, results_of
    from strakes.report.guide import render_guide

    stored = run_to_advise_from(run)
    results = results_of(stored)
    layouts = class_layouts(size_classes("write", results), str(results.facts.get("file_system", "")))
    output.write(render_guide(build_portrait(stored), [(one.title, one.text) for one in layouts]))
    return 0
