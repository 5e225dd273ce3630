"""``strakes clean DIR``: remove the files of killed runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.foreign_text import for_terminal
from strakes.cli.options import DIRECTORY, as_json_option
from strakes.cli.say import print_json, say

if TYPE_CHECKING:
    from strakes.targets.clean import CleanReport
    from strakes.targets.removal import Left


@click.command()
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@click.option("--force", is_flag=True, help="Also remove what a running measurement is using.")
@as_json_option
def command(directory: Path, dry_run: bool, force: bool, as_json: bool) -> int:
    """Remove what interrupted runs left in DIR, and nothing else.

    Only directories that have a marker of strakes and belong to you or root are removed, except the directories of
    running measurements. Exits with status 1 if something could not be removed.
    """
    from strakes.targets.clean import clean

    report = clean(directory, dry_run=dry_run, force=force)
    if as_json:
        from dataclasses import asdict

        print_json({"dry_run": dry_run, **asdict(report)})
    else:
        _print(report, directory, dry_run=dry_run)
    return 1 if report.left else 0


def _print(report: CleanReport, directory: Path, *, dry_run: bool) -> None:
    for path in report.removed:
        say(f"{'would remove' if dry_run else 'removed'} {for_terminal(path)}")
    _print_left("in use, not touched (--force removes it)", report.skipped_live)
    _print_left("not made by strakes, not touched", report.ignored)
    _print_left("could not be removed", report.left)
    if not (report.removed or report.skipped_live or report.ignored or report.left):
        say(f"No files of strakes in {for_terminal(directory)}.")


def _print_left(label: str, entries: Sequence[Left]) -> None:
    for entry in entries:
        say(f"{label}: {for_terminal(entry.path)}: {for_terminal(entry.why)}")
