"""``strakes compare A B``: is B faster, slower or the same as A?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from strakes.cli.numbers import NumberRange
from strakes.cli.options import OUTPUT, Output, confidence_option, json_option, write_json
from strakes.cli.say import say, say_sentences

if TYPE_CHECKING:
    from strakes.survey.comparison import Comparison

FAILED_STATUS = 1


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--margin",
    type=NumberRange(0.0, 0.5, max_open=True),
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="Largest difference that counts as SAME, as a share.",
)
@confidence_option
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="KEY",
    help="Allow the runs to differ in KEY, such as backend, because that is what you compare.",
)
@click.option(
    "--cell", "cells", multiple=True, metavar="PATTERN", help="Use only cells whose id matches, such as '*:write'."
)
@click.option(
    "--fail-on", metavar="LIST", help="Exit with status 1 on any of these results, such as slower:5%,inconclusive."
)
@json_option
@click.option("--html", type=OUTPUT, help="Write the comparison as an HTML page to FILE (- is standard output).")
def command(
    a: str,
    b: str,
    margin: float,
    confidence: float,
    factors: tuple[str, ...],
    cells: tuple[str, ...],
    fail_on: str | None,
    json: Output | None,
    html: Output | None,
) -> int:
    """Compare run B with run A, cell by cell: FASTER, SLOWER, SAME or INCONCLUSIVE.

    A and B are run ids from strakes runs, "latest", or "latest~1" for the one before it. Only cells that did the same
    work are compared. Two file systems are better compared in one run: strakes study NAME DIR --against DIR2. To find
    small differences, make several runs of each in turn, eight or more, and separate them by commas: A1,A2,...
    B1,B2,... Each run then counts as one value.
    """
    from strakes.base.errors import BadInputError
    from strakes.base.language import ENGLISH, current, english
    from strakes.runs.store import Store
    from strakes.survey.compare_fail_on import failures, parse_fail_on
    from strakes.survey.compare_runs import compare_runs
    from strakes.survey.comparison_text import render, to_document

    conditions = parse_fail_on(fail_on) if fail_on is not None else ()
    store = Store()
    for side in (a, b):
        if not all(map(str.strip, side.split(","))):
            remedy = "Give A and B as one run each, or as several separated by commas: strakes compare A1,A2 B1,B2"
            raise BadInputError("the list of runs has an empty place", where=repr(side), remedy=remedy)
    first, second = ([store.open(run.strip()) for run in side.split(",")] for side in (a, b))

    def compared() -> Comparison:
        return compare_runs(first, second, margin=margin, confidence=confidence, factors=factors, only=cells)

    with english():  # what programs read
        in_english = compared()
    comparison = in_english if current() == ENGLISH else compared()
    met = failures(in_english, conditions)
    if html is not None:
        from strakes.survey.comparison_page import render_comparison_page

        html.write(render_comparison_page(comparison))
    if write_json(json, {**to_document(in_english), "failures": list(met)}, html):
        say_sentences(render(comparison))
        for text in met:
            say(f"failed: {text}", err=True)
    return FAILED_STATUS if met else 0
