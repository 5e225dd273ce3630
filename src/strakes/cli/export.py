"""``strakes export RUN``: a run for other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from strakes.cli.options import OUTPUT, Output

if TYPE_CHECKING:
    from strakes.store import Run

FORMATS = ("json", "csv", "parquet", "openmetrics", "ior-json", "io500", "io500-json")
_OVER_TIME = ("csv", "parquet", "openmetrics")


@click.command("export")
@click.argument("run", metavar="[RUN]", default="latest")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="json", show_default=True, help="Format to write."
)
@click.option(
    "-o", "--output", type=OUTPUT, default="-", help="Write to FILE.  [default: standard output; Parquet needs a file]"
)
@click.option(
    "--over-time",
    is_flag=True,
    help="Instead, write the latency percentiles of every second (csv, parquet, openmetrics; json always has them)",
)
def command(run: str, form: str, output: Output, over_time: bool) -> int:
    """Write RUN for other tools.

    RUN is a run id from strakes runs, the beginning of one, "latest" (the default), or "latest~1" for the one
    before it.

    json holds the whole run. csv and parquet hold a table with one row per measured value. openmetrics holds medians
    and intervals for Prometheus. ior-json holds writes and reads in the form of IOR's JSON summary. io500 holds a run
    of IO500's phases in the form of its result_summary.txt; io500-json is the same with intervals.

    Latencies over time are kept for phases that take more than 2 s; in long phases a row covers more than a second.
    openmetrics writes them with timestamps, for promtool tsdb create-blocks-from openmetrics.
    """
    from strakes.store import Store
    from strakes.store.run import told_as_damage

    if over_time and form not in _OVER_TIME:
        raise click.UsageError(f"--over-time needs --format {', '.join(_OVER_TIME)}", click.get_current_context())
    stored = Store().open(run)
    with told_as_damage(stored):
        _write(stored, form, output, over_time=over_time)
    return 0


def _write(stored: Run, form: str, output: Output, *, over_time: bool) -> None:
    from strakes.interop.exports import over_time as latencies
    from strakes.interop.exports import rows

    table = latencies if over_time else rows
    if form == "parquet":
        if output.path is None:
            raise click.UsageError(
                "Parquet cannot be written to standard output; give --output FILE", click.get_current_context()
            )
        from strakes.interop.exports.parquet import write_parquet

        write_parquet(table.to_csv(stored), table.COLUMNS, output.path)
    elif form == "csv":
        output.write(table.to_csv(stored))
    else:
        output.write(latencies.to_openmetrics(stored) if over_time else _text(stored, form))


def _text(stored: Run, form: str) -> str:
    from strakes.finite import to_json

    if form == "openmetrics":
        from strakes.interop.exports.openmetrics import to_openmetrics

        return to_openmetrics(stored)
    if form == "io500":
        from strakes.interop.exports.io500_summary import to_io500_summary

        return to_io500_summary(stored)
    if form == "ior-json":
        from strakes.interop.exports.ior_json import to_ior_json as to_document
    elif form == "io500-json":
        from strakes.interop.exports.io500_summary import to_io500_json as to_document
    else:
        from strakes.interop.exports.document import to_export as to_document
    return to_json(to_document(stored), indent=1 if form == "json" else 2) + "\n"
