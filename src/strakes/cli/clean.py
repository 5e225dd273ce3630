"""``strakes clean DIR``: remove what runs that were killed left behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.cli.options import DIRECTORY

if TYPE_CHECKING:
    from strakes.targets.clean import CleanReport
    from strakes.targets.removal import Left


@click.command()
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--force", is_flag=True, help="Remove also what a living run uses.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(directory: Path, dry_run: bool, force: bool, as_json: bool) -> int:
    """Remove what interrupted runs left in DIR, and nothing else.

    Only directories that carry a marker of strakes and belong to you or root are touched; those of living runs are not. Ends with
    status 1 when something could not be removed.
    """
    from strakes.targets.clean import clean

    report = clean(directory, dry_run=dry_run, force=force)
    if as_json:
        import json
        from dataclasses import asdict

        click.echo(json.dumps({"dry_run": dry_run, **asdict(report)}, indent=1))
    else:
        _print(report, directory, dry_run=dry_run)
    return 1 if report.left else 0


def _print(report: CleanReport, directory: Path, *, dry_run: bool) -> None:
    for path in report.removed:
        click.echo(f"{'would remove' if dry_run else 'removed'} {click.format_filename(path)}")
    _print_left("in use, not touched (--force removes it)", report.skipped_live)
    _print_left("not known to be ours, not touched", report.ignored)
    _print_left("could not be removed", report.left)
    if not (report.removed or report.skipped_live or report.ignored or report.left):
        click.echo(f"Nothing of strakes in {directory}.")


def _print_left(label: str, entries: Sequence[Left]) -> None:
    for entry in entries:
        click.echo(f"{label}: {click.format_filename(entry.path)}: {entry.why}")
