"""``strakes report RUN``: analyse and render a stored run again."""

from __future__ import annotations

import click

from strakes.cli.options import Output, html_option, json_option


@click.command("report")
@click.argument("run", metavar="[RUN]", default="latest")
@json_option
@html_option
def command(run: str, html: Output | None, json: Output | None) -> int:
    """Write the report of RUN again from the store; nothing is measured.

    RUN is a run id from strakes runs, the beginning of one, or "latest" (the default).
    """
    from strakes.cli.measure import publish, show
    from strakes.store import Store

    stored = Store().open(run)
    show(publish(stored, html), stored, html, json)
    return 0
