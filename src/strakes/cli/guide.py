"""``strakes report guide``: a page of advice for users, from measurements."""

from __future__ import annotations

import click

from strakes.cli.options import OUTPUT, Output


@click.command("guide")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("-o", "--output", type=OUTPUT, default="-", help="Write to FILE.  [default: standard output]")
def command(run: str | None, output: Output) -> int:
    """Write a Markdown page of advice for users of a file system, from a finished survey or study.

    RUN is a run id from strakes runs, or a file written by strakes export. The default is the run that strakes advise
    would use. Nothing is measured. Every line names its evidence, and the page lists the unknowns.
    """
    from strakes.report.guide import render_guide
    from strakes.runs.run import told_as_damage
    from strakes.survey.analysis_build import results_of
    from strakes.tuning.advise_choose import size_classes
    from strakes.tuning.advise_paste import class_layouts
    from strakes.tuning.advise_source import run_to_advise_from
    from strakes.tuning.portraits import build_portrait

    stored = run_to_advise_from(run)
    with told_as_damage(stored):
        results = results_of(stored)
        layouts = class_layouts(size_classes("write", results), str(results.facts.get("file_system", "")))
        page = render_guide(build_portrait(stored), [(layout.title, layout.text) for layout in layouts])
    output.write(page)
    return 0
