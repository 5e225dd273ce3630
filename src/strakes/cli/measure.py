"""Run the requested measurements, store their findings, write the report and print the summary."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from strakes.base.errors import EnvironmentLacksError, InterruptedByUser
from strakes.base.foreign_text import shell_line
from strakes.base.language import ENGLISH, current, english
from strakes.cli.options import Amounts, Measuring, Output, Report, Sampling, prints_summary, write_json
from strakes.cli.progress import LiveProgress
from strakes.cli.say import remark, say_text
from strakes.runs.store import Store
from strakes.survey.request import Request
from strakes.targets.calls import call
from strakes.targets.marker import WORKSPACE_PREFIX
from strakes.tuning.portraits import build_portrait

if TYPE_CHECKING:
    from strakes.model.portrait import Portrait
    from strakes.runs.run import Run
    from strakes.runs.writer import RunWriter
    from strakes.studies.study import Study
    from strakes.tuning.request import TuningRequest

Asked = TypeVar("Asked", "Request", "TuningRequest")


def request_from(
    options: Sampling, kind: str, name: str, directory: Path, studies: tuple[Study, ...], amounts: Amounts | None = None
) -> Request:
    """Return a request to run ``studies`` in full, with every value of each setting."""
    return Request(kind, name, directory, studies, full=True, **(options.for_request() | vars(amounts or Amounts())))


def measure(request: Request, options: Measuring) -> int:
    """Run a request, print its summary, and return 0. If the request is a plan, write a report only with --html."""
    run = perform(request, options)
    conclude(run, options, asked=options.html is not None or request.kind != "run")
    return 0


def conclude(run: Run, report: Report, *, asked: bool = True) -> bool:
    """Store the findings of a run, write JSON and report, and print the summary.

    ``asked``: whether to write the HTML report. Returns False if standard output has JSON instead of the summary.
    """
    from strakes.report.summary import render_summary
    from strakes.runs.run import told_as_damage

    complete = f"The measurements are stored; write their report with: strakes report {run.id}"
    try:
        with told_as_damage(run):
            with english():  # programs read the findings, so they are always in English
                in_english = build_portrait(run)
            portrait = in_english if current() == ENGLISH else build_portrait(run)
            printed, written, findings = prints_summary(report.json, report.html), None, asdict(in_english)
            try:
                write_json(report.json, findings)
                if asked:
                    write_report(portrait, run, report.html)
                    written = report_path(run, report.html)
                run.write("findings.json", findings)
            finally:
                if printed and not isinstance(sys.exception(), KeyboardInterrupt):
                    say_text(render_summary(portrait, written))
    except EnvironmentLacksError as error:
        if str(run.path) in error.where:
            error.remedy = f"{error.remedy} {complete}"
        raise
    except KeyboardInterrupt:
        raise InterruptedByUser("interrupted while the report was written", remedy=complete) from None
    return printed


def perform(request: Request, options: Measuring) -> Run:
    """Run the requested studies and return the stored run. The texts in the run are English."""
    from strakes.survey.runner import perform as run_studies

    return carry_out(run_studies, request, options)


def carry_out(work: Callable[[Asked, Store, LiveProgress], RunWriter], request: Asked, options: Measuring) -> Run:
    """Call the measuring function ``work`` with request, store and progress display. Return the stored run."""
    store = Store()
    with english(), LiveProgress(request.budget_s, quiet=options.quiet) as progress:
        run = store.open(work(request, store, progress).id)
    for place, end in ((request.directory, ""), (getattr(request, "against", None), ".against")):
        if request.keep and place:
            name, later = f"{WORKSPACE_PREFIX}{run.id}{end}", shell_line(["strakes", "clean", str(place)])
            if call("there", str(place / name)):
                remark(f"the files of the last trial are kept in {place / name}; to remove them: {later}")
            else:
                remark(f"{place} was renamed or replaced; the files of the last trial are kept in the directory {name}")
    return run


def analyse(run: Run) -> Portrait:
    """Return the results of a run, and store them as findings.json. The current language must be English."""
    portrait = build_portrait(run)
    run.write("findings.json", asdict(portrait))
    return portrait


def write_report(portrait: Portrait, run: Run, html: Output | None) -> None:
    """Write the report to ``html``, or to the directory of the run if ``html`` is None."""
    from strakes.report.html import render_html

    text = render_html(portrait)
    run.write("report.html", text) if html is None else html.write(text)


def report_path(run: Run, html: Output | None) -> Path:
    """Return the path of the run's HTML report."""
    return run.path / "report.html" if html is None or html.path is None else html.path
