"""``strakes runs``: list the runs in the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from strakes.base.foreign_text import for_terminal
from strakes.base.units import counted
from strakes.cli.numbers import WholeNumber
from strakes.cli.say import local_time, print_json, say

if TYPE_CHECKING:
    from strakes.runs.run import RunSummary

# More columns than any row needs.
_LONGEST_LINE_COLUMNS = 100_000


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write a JSON list, oldest first, each run with its id.")
@click.option("--limit", type=WholeNumber(min=1), help="List only the newest N runs.")
def command(as_json: bool, limit: int | None) -> None:
    """List the runs in the store, oldest first."""
    from strakes.runs.store import Store

    store = Store()
    runs = store.runs()
    shown = runs[-limit:] if limit else runs
    if as_json:
        from dataclasses import asdict

        print_json([{**asdict(run), "path": str(run.path)} for run in shown])
    elif not runs:
        say(f"No runs yet in {store.root}. Make one: strakes survey DIR")
    else:
        _print_table(shown)
        if len(shown) < len(runs):
            older = len(runs) - len(shown)
            say(f"{counted(older, 'older run')} {'is' if older == 1 else 'are'} not shown.")


def _print_table(runs: Sequence[RunSummary]) -> None:
    import sys
    from datetime import datetime

    from rich import box
    from rich.console import Console
    from rich.table import Table

    # Never truncate in a pipe: one line for each run.
    console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 1000)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for head in ("id", "when", "what", "target", "file system", "status"):
        table.add_column(head, no_wrap=True)
    for run in runs:
        when = f"{local_time(datetime.fromisoformat(run.created)):%Y-%m-%d %H:%M}" if run.created else ""
        cells = (run.id, when, _what(run), run.target, run.file_system, run.status)
        table.add_row(*map(for_terminal, cells))
    if console.measure(table, options=console.options.update(width=_LONGEST_LINE_COLUMNS)).maximum <= console.width:
        console.print(table)
        return
    # Users copy ids, so never truncate or wrap them. They begin with the time, which is omitted here.
    for run in runs:
        head, place = f"{run.id}  {run.status}", f"  {_what(run)}  {run.target}  {run.file_system}"
        click.echo(for_terminal(head))
        click.echo(for_terminal(place))


def _what(run: RunSummary) -> str:
    return run.kind if run.name == run.kind else f"{run.kind} {run.name}".strip()
