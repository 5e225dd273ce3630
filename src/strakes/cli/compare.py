"""``strakes compare A B``: test whether run B is faster or slower than run A, or the same."""

from __future__ import annotations

from functools import partial

from strakes.base.language import ENGLISH, current, english
from strakes.cli import options
from strakes.cli.options import OUTPUT, FailOn, Json, Output, argument, command_named, option, write_json
from strakes.cli.say import say, say_sentences


@command_named("compare")
def command(
    *,
    a: str = argument("A"),
    b: str = argument("B"),
    margin: float = option(
        "Largest difference that counts as SAME, as a share.",
        type=options.NumberRange(0.0, 0.5, max_open=True),
        default=0.05,
        metavar="SHARE",
    ),
    factors: tuple[str, ...] = option(
        "Compare runs although they differ in the setting KEY, such as backend.", "--factor", default=(), metavar="KEY"
    ),
    confidence: options.Confidence,
    html: Output | None = option("Write the comparison as an HTML page to FILE (- is standard output).", type=OUTPUT),
    fail_on: FailOn,
    json: Json,
) -> int:
    """Compare run B with run A, cell by cell: FASTER, SLOWER, SAME or INCONCLUSIVE.

    A and B are run ids from strakes runs, "latest", or "latest~1" for the one before it. Only cells that did the same
    work are compared. Two file systems are better compared in one run: strakes study NAME DIR --against DIR2. To find
    small differences, make eight or more runs of each, alternately, and separate the ids by commas: A1,A2,...
    B1,B2,... Each run then counts as one value.
    """
    from strakes.runs.store import Store
    from strakes.survey.compare_runs import compare_runs
    from strakes.survey.comparison import failures, parse_fail_on
    from strakes.survey.comparison_page import render_comparison_page
    from strakes.survey.comparison_text import render, to_document

    conditions = parse_fail_on(fail_on) if fail_on else ()
    names = [[name.strip() for name in side.split(",")] for side in (a, b)]
    first, second = ([Store().open(name) for name in side] for side in names)
    compared = partial(compare_runs, first, second, margin=margin, confidence=confidence, factors=factors)
    with Store.told_as_damage(*first, *second):
        with english():  # programs read this document, so it is always in English
            in_english = compared()
        comparison = in_english if current() == ENGLISH else compared()
        met = failures(in_english, conditions)
        shown = html is None or options.write_document(html, render_comparison_page(comparison))
        if write_json(json, {**to_document(in_english), "failures": list(met)}) and shown:
            say_sentences(render(comparison))
            for text in met:
                say(f"failed: {text}", err=True)
    return 1 if met else 0
