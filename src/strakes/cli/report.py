"""``strakes report``: the report of a stored run, one of its figures, or a page of advice."""

from __future__ import annotations

from pathlib import Path

import click

from strakes.cli.options import OUTPUT, Output, Report, StoredRun, TextOutput, argument, command_named, option
from strakes.cli.say import say, say_text


@command_named("report")
def command(run: StoredRun, report: Report) -> int:
    """Write the report of RUN again from the store; nothing is measured.

    RUN is a run id from strakes runs, the beginning of one, "latest" (the default), or "latest~1" for the one
    before it.
    """
    from strakes.cli.measure import conclude
    from strakes.runs.store import Store
    from strakes.tuning.accept_judge import render

    stored = Store().open(run)
    if conclude(stored, report) and (answers := stored.answers) is not None:
        with Store.told_as_damage(stored):
            say_text(f"\n{render(answers)}")
    return 0


@command_named("figure")
def figure(
    *,
    run: StoredRun,
    name: str | None = argument("[FIGURE]", required=False),
    output: Output | None = option(
        "Write to FILE (.svg, .png or .pdf).  [default: FIGURE.svg]", "-o", "--output", type=OUTPUT
    ),
) -> int:
    """Write FIGURE of RUN to a file. Without FIGURE, list the figures of RUN.

    RUN is as in strakes report: an id, the beginning of one, "latest" (the default) or "latest~1". If only FIGURE is
    given, it is taken from the latest run.
    """
    from strakes.report.static_figure import find_figure, name_figures, write_figure
    from strakes.runs.store import Store
    from strakes.tuning.portraits import build_portrait

    if name is None and run[:1].isalpha() and not run.startswith("latest"):  # ids of runs begin with a digit
        run, name = "latest", run
    portrait = build_portrait(stored := Store().open(run))
    if name is None:
        for known, figure in name_figures(portrait).items():
            say(f"{known:<24} {figure.title}")
        return 0
    figure = find_figure(portrait, name)
    path = Path(f"{name}.svg") if output is None else output.path
    if path is None:
        raise click.UsageError("A figure is not written to standard output: give -o FILE.", click.get_current_context())
    with Store.told_as_damage(stored):
        write_figure(figure, portrait, path)
    say(path)
    return 0


@command_named("guide")
def guide(*, output: TextOutput, run: str | None = argument("[RUN]", required=False)) -> int:
    """Write a Markdown page of advice for users of a file system, from a finished survey or study.

    RUN is a run id from strakes runs, or a file written by strakes export. The default is chosen as by strakes advise:
    $STRAKES_PORTRAIT, else the newest finished survey or study with at least one answer, else the run that the site has
    published. Nothing is measured. Every line names its evidence, and the page lists the unknowns.
    """
    from strakes.report.guide import render_guide
    from strakes.runs.store import Store
    from strakes.survey.analysis_build import results_of
    from strakes.tuning.advise_choose import size_classes
    from strakes.tuning.advise_paste import class_layouts
    from strakes.tuning.advise_source import run_to_advise_from
    from strakes.tuning.portraits import answers_anything, build_portrait

    stored = run_to_advise_from(run, answers_anything)
    with Store.told_as_damage(stored):
        results = results_of(stored)
        layouts = class_layouts(size_classes("write", results), str(results.facts.get("file_system", "")))
        page = render_guide(build_portrait(stored), [(layout.title, layout.text) for layout in layouts])
    output.write(page)
    return 0
