"""``strakes watch``: what changed on a file system in production, when, where, and how sure."""

from __future__ import annotations

from pathlib import Path

import click

from strakes.cli.options import Output, json_option


@click.group("watch")
def command() -> None:
    """Watch a file system in production: what changed, when, where, who causes the load, and how sure that is."""


@command.command("replay")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--time", "time_column", metavar="COL", help="The column with the time: Unix time or ISO 8601.")
@click.option("--value", "value_column", metavar="COL", help="The column with the figure that is watched.")
@click.option("--by", metavar="COL", multiple=True, help="A series for each value of this column; may be repeated.")
@click.option("--cause", metavar="COL", multiple=True, help="A further column that may explain a change.")
@click.option("--worse", type=click.Choice(["down", "up"]), default="down", help="Which way is worse (default: down).")
@click.option(
    "--alarms-a-month", type=click.FloatRange(0.001, 1000), default=1.0, help="False alarms of all series together."
)
@json_option
def replay_command(
    files: tuple[Path, ...],
    time_column: str | None,
    value_column: str | None,
    by: tuple[str, ...],
    cause: tuple[str, ...],
    worse: str,
    alarms_a_month: float,
    json: Output | None,
) -> int:
    """Run the detectors over what was recorded.

    FILE is a CSV file (--time and --value name its columns), or one or several recordings of counters: output of
    lctl get_param after lines that begin with ### and the Unix time, one file a machine.
    """
    import json as json_module

    from strakes.errors import BadInputError
    from strakes.watch.recorded import is_recording, readings
    from strakes.watch.replay import Columns, replay
    from strakes.watch.watch import Watch
    from strakes.watch.watch_text import line, to_document

    if all(map(is_recording, files)):
        watch = Watch(alarms_a_month)
        events = [event for reading in readings(files) for event in watch.add(reading)]
        document = {"schema": 1, "events": to_document(events), "top": watch.top}
        summary = f"{len(files)} recordings: {len({event.key for event in events if event.alarm})} alarms"
    else:
        if len(files) > 1 or not time_column or not value_column:
            remedy = "For example: strakes watch replay year.csv --time start --value rate --by benchmark"
            raise BadInputError("a CSV file needs --time and --value, and is given alone", remedy=remedy)
        columns = Columns(time_column, value_column, by, cause)
        result = replay(files[0], columns, alarms_a_month, worse_up=worse == "up")
        events = list(result.events)
        document = {
            "schema": 1,
            "events": to_document(events),
            "alarms": result.alarms,
            "months": result.months,
            "learning": result.learning,
            "passed_over": result.passed_over,
        }
        rate = result.alarms / result.months if result.months else 0.0
        summary = (
            f"{result.series} series over {result.months:.1f} months: {result.alarms} alarm{'s' * (result.alarms != 1)} without a cause "
            f"({rate:.2f} a month), {sum(bool(event.cause) for event in events)} changes with one; "
            f"{len(result.learning)} series too short, {result.passed_over} rows passed over"
        )
    if json is not None:
        json.write(json_module.dumps(document, indent=1))
    if json is None or json.path is not None:
        for event in events:
            click.echo(line(event))
        click.echo(summary)
    return 0
