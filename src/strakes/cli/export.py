"""``strakes export RUN``: a run for other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from strakes.base.language import english
from strakes.cli.options import OUTPUT, Output

if TYPE_CHECKING:
    from strakes.runs.run import Run

FORMATS = ("json", "csv", "openmetrics", "ior-json", "io500")


@click.command("export")
@click.argument("run", metavar="[RUN]", default="latest")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="json", show_default=True, help="Format to write."
)
@click.option("-o", "--output", type=OUTPUT, default="-", help="Write to FILE.  [default: standard output]")
@english()
def command(run: str, form: str, output: Output) -> int:
    """Write RUN for other tools.

    RUN is a run id from strakes runs, the beginning of one, "latest" (the default), or "latest~1" for the one
    before it.

    json holds the whole run, with latencies over time. csv holds a table with one row per measured value.
    openmetrics holds medians and intervals for Prometheus. ior-json holds writes and reads in the form of IOR's JSON
    summary. io500 holds a run of IO500's phases in the form of its result_summary.txt.
    """
    from strakes.runs.run import told_as_damage
    from strakes.runs.store import Store

    stored = Store().open(run)
    with told_as_damage(stored):
        output.write(_text(stored, form))
    return 0


def _text(stored: Run, form: str) -> str:
    from strakes.base.finite import to_json

    if form == "openmetrics":
        from strakes.interop.export_openmetrics import to_openmetrics

        return to_openmetrics(stored)
    if form == "io500":
        from strakes.interop.export_io500_summary import to_io500_summary

        return to_io500_summary(stored)
    if form == "ior-json":
        from strakes.interop.export_ior_json import to_ior_json

        return to_json(to_ior_json(stored), indent=2) + "\n"
    from strakes.interop.export_rows import to_csv, to_export

    return to_csv(stored) if form == "csv" else to_json(to_export(stored), indent=1) + "\n"
