"""``strakes export RUN``: write a run in a format that other tools read."""

from __future__ import annotations

import click

from strakes.cli.options import StoredRun, TextOutput, command_named, option


@command_named("export")
def command(
    *,
    output: TextOutput,
    run: StoredRun,
    form: str = option(
        "Format to write.", "--format", type=click.Choice(("json", "csv", "openmetrics", "io500")), default="json"
    ),
) -> int:
    """Write RUN for other tools.

    RUN is as in strakes report: an id, the beginning of one, "latest" (the default) or "latest~1".

    json holds the whole run, with latencies over time. csv holds a table with one row per measured value.
    openmetrics holds medians and intervals for Prometheus. io500 holds a run of IO500's phases in the form of its
    result_summary.txt.
    """
    from strakes.base.finite import to_json
    from strakes.interop.export_io500_summary import to_io500_summary
    from strakes.interop.export_openmetrics import to_openmetrics
    from strakes.interop.export_rows import to_csv, to_export
    from strakes.runs.store import Store

    stored = Store().open(run)
    texts = {"csv": to_csv, "openmetrics": to_openmetrics, "io500": to_io500_summary}
    with Store.told_as_damage(stored):
        output.write(texts[form](stored) if form in texts else to_json(to_export(stored), indent=1) + "\n")
    return 0
