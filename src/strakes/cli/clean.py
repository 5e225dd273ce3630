"""``strakes clean DIR``: remove the files of killed runs."""

from __future__ import annotations

from dataclasses import asdict

import click

from strakes.cli.options import AsJson, Directory, option, takes
from strakes.cli.say import print_json, say


@click.command()
@takes()
def command(
    *,
    directory: Directory,
    dry_run: bool = option("Show what would be removed, and remove nothing.", default=False),
    force: bool = option("Also remove what a running measurement is using.", default=False),
    as_json: AsJson,
) -> int:
    """Remove what interrupted runs left in DIR, and nothing else.

    Only directories that have a marker of strakes and belong to you or root are removed, except the directories of
    running measurements. Exits with status 1 if something could not be removed.
    """
    from strakes.targets.clean import clean

    report = clean(directory, dry_run=dry_run, force=force)
    if as_json:
        print_json({"dry_run": dry_run, **asdict(report)})
        return 1 if report.left else 0
    for path in report.removed:
        say(f"{'would remove' if dry_run else 'removed'} {path}")
    for label, entries in (
        ("in use, not touched (--force removes it)", report.skipped_live),
        ("not made by strakes, not touched", report.ignored),
        ("could not be removed", report.left),
    ):
        for entry in entries:
            say(f"{label}: {entry.path}: {entry.why}")
    if not (report.removed or report.skipped_live or report.ignored or report.left):
        say(f"No files of strakes in {directory}.")
    return 1 if report.left else 0
