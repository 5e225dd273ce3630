"""The sharing of a tree among metadata targets, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from strakes.foreign_text import shell_line
from strakes.predict.namespace import NamespacePlan, Walk
from strakes.report.numbers import percent
from strakes.units import counted, format_seconds

_MOST_NAMED = 20


def render_namespace(plan: NamespacePlan, walk: Walk, commands: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of the report."""
    weighed = "recent changes" if plan.changed else "all entries, as none changed lately"
    yield (
        f"{counted(plan.entries, 'entry', 'entries')} below {shell_line([str(plan.root)])}, {plan.changed:,} changed "
        f"lately. Weighed: {weighed}."
    )
    yield from _walk_lines(walk)
    fair = 1 / len(plan.shares)
    for share in plan.shares:
        below = counted(len(share.directories), "directory", "directories")
        yield f"target {share.target}: {_share(share.load)} of the load (a fair share is {_share(fair)}), {below}"
        yield from (f"  {shell_line([str(path)])}" for path in share.directories[:_MOST_NAMED])
        if len(share.directories) > _MOST_NAMED:
            yield f"  and {len(share.directories) - _MOST_NAMED} more; --json names all"
    path, load = plan.largest
    if load > fair:
        yield (
            f"{shell_line([str(path)])} alone has {_share(load)} of the load. Spread that directory over several "
            "targets (lfs mkdir -c, ceph.dir.pin.distributed), or give it as DIR to share its parts."
        )
    if commands:
        yield "Commands that place them, for bash (moving takes time; run them when the tree is quiet):"
        yield from (f"  {shell_line(command)}" for command in commands)
    else:
        yield "This file system has no command that puts a directory on a metadata target."


def _walk_lines(walk: Walk) -> Iterator[str]:
    read = f"{counted(walk.read, 'directory', 'directories')} read in {format_seconds(walk.took_s)}"
    if walk.told:
        yield (
            f"Counted by CephFS (ceph.dir.rentries, ceph.dir.rctime) for {counted(walk.told, 'tree')}, {read}. If "
            "anything in such a tree changed, all of it counts as changed."
        )
    else:
        yield f"{read}."
    if not walk.whole:
        yield "Counting ended by --limit; the rest is missing. Give a larger --limit."
    if walk.unread:
        yield f"Could not be read, and so count as empty: {_named(walk.unread)}"
    if walk.mounts:
        yield f"Left out, because other file systems are mounted there: {_named(walk.mounts)}"


def _named(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return shell_line([str(path) for path in paths[:_MOST_NAMED]]) + more


def _share(share: float) -> str:
    return percent(round(share, 2 if share >= 0.01 else 4))
