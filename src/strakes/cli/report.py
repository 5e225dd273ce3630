"""``strakes report RUN``: analyse and render a stored run again."""

from __future__ import annotations

import click

from strakes.cli.options import Output, compare_with_option, html_option, json_option


@click.command("report")
@click.argument("run", metavar="[RUN]", default="latest")
@json_option
@html_option
@compare_with_option
def command(run: str, html: Output | None, json: Output | None, compare_with: str | None) -> int:
    """Write the report of RUN again from the store; nothing is measured.

    RUN is a run id from strakes runs, the beginning of one, "latest" (the default), or "latest~1" for the one
    before it.
    """
    from strakes.cli.measure import conclude, list_of
    from strakes.runs.store import Store

    conclude(Store().open(run), html, json, list_of(compare_with))
    return 0
