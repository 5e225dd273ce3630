"""``strakes clean DIR``: remove the files of killed runs."""

from __future__ import annotations

from dataclasses import asdict

from strakes.cli.options import AsJson, Directory, command_named, option, write_json
from strakes.cli.say import say


@command_named("clean")
def command(
    *,
    directory: Directory,
    dry_run: bool = option("Show what would be removed, and remove nothing.", default=False),
    force: bool = option("Also remove what a running measurement is using.", default=False),
    as_json: AsJson,
) -> int:
    """Remove the directories strakes-* that interrupted runs left in DIR, and nothing else.

    Only directories that have a marker of strakes and belong to you or root are removed, except the directories of
    running measurements. Exits with status 1 if something could not be removed.
    """
    from strakes.targets.clean import clean

    report = clean(directory, dry_run=dry_run, force=force)
    status = 1 if report.left else 0
    lists = {"skipped_live": report.skipped_live, "left": report.left, "ignored": report.ignored}
    named = {name: [entry._asdict() for entry in found] for name, found in lists.items()}
    if not write_json(as_json, {"dry_run": dry_run, **asdict(report), **named}):
        return status
    lines = [f"{'would remove' if dry_run else 'removed'} {path}" for path in report.removed]
    for label, entries in (
        ("in use, not touched (--force removes it)", report.skipped_live),
        ("not yours or not made by strakes, not touched", report.ignored),
        ("could not be removed", report.left),
    ):
        lines += [f"{label}: {entry.path}: {entry.why}" for entry in entries]
    for line in lines or [f"There are no files of strakes in the directory {directory}"]:
        say(line)
    return status
