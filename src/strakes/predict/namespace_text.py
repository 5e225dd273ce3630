"""The sharing of a tree among metadata targets, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from strakes.foreign_text import shell_line
from strakes.predict.namespace import NamespacePlan, Walk
from strakes.report.numbers import percent
from strakes.units import counted, format_seconds

_MOST_NAMED = 20
_FEW = 5


def render_namespace(
    plan: NamespacePlan, walk: Walk, commands: Sequence[tuple[str, ...]], *, since_s: float
) -> Iterator[str]:
    """Yield the lines; ``since_s``: what changed so long ago counts as changed."""
    root = shell_line([str(plan.root)])
    if not plan.entries:
        yield f"Nothing is below {root}: there is nothing to share."
        yield from _say_walk(walk)
        return
    entries, lately = counted(plan.entries, "entry", "entries"), _say_time(since_s)
    if plan.changed:
        yield f"{entries} below {root}, {plan.changed:,} of them changed in the last {lately}: those are weighed."
    else:
        yield f"{entries} below {root}, none of them changed in the last {lately}: all entries are weighed."
    yield from _say_walk(walk)
    count = len(plan.shares)
    yield (
        f"{counted(count, 'metadata target')}: the busiest has {_share(plan.most)} of the load, a fair share is "
        f"{_share(1 / count)}."
    )
    for share in plan.shares:
        below = counted(len(share.directories), "directory", "directories")
        yield f"target {share.target}: {_share(share.load)} of the load, {below}"
        yield from (f"  {shell_line([str(path)])}" for path in share.directories[:_MOST_NAMED])
        if len(share.directories) > _MOST_NAMED:
            yield f"  and {len(share.directories) - _MOST_NAMED} more; --json names all"
    path, load = plan.largest
    if count > 1 and load > 1 / count:
        yield (
            f"{shell_line([str(path)])} by itself has {_share(load)} of the load, more than a fair share. Spread that "
            "directory over several targets (lfs mkdir -c, ceph.dir.pin.distributed), or share its parts: give it as "
            "DIR."
        )
    if count > 1 and any(share.directories for share in plan.shares):
        yield ""
        if not commands:
            yield "This file system has no command that puts a directory on a metadata target."
        else:
            yield "To put them there, in bash (moving takes time; do it when the tree is quiet):"
            yield from (f"  {shell_line(command)}" for command in commands)


def _say_walk(walk: Walk) -> Iterator[str]:
    """Yield how the numbers are known, and what is not in them."""
    read = f"{counted(walk.read, 'directory', 'directories')} read just now, in {format_seconds(walk.took_s)}"
    if walk.told:
        yield (
            f"How it is known: counters of CephFS (ceph.dir.rentries, ceph.dir.rctime) for "
            f"{counted(walk.told, 'directory', 'directories')} and all below, which may lag behind changes; "
            f"and {read}. Where anything below such a directory changed, all of it counts as changed."
        )
    else:
        yield f"How it is known: {read}."
    if not walk.whole:
        yield "Counting ended by --limit: what was not reached is missing. Give a larger --limit."
    if walk.unread:
        yield f"Could not be read, and so count as empty: {_named(walk.unread)}"
    if walk.mounts:
        yield f"Left out, because other file systems are mounted there: {_named(walk.mounts)}"


def _named(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - _FEW} more; --json names all" if len(paths) > _FEW else ""
    return shell_line([str(path) for path in paths[:_FEW]]) + more


def _share(share: float) -> str:
    return percent(round(share, 2 if share >= 0.01 else 4))


def _say_time(seconds: float) -> str:
    return counted(round(seconds / 86400), "day") if seconds >= 86400 else format_seconds(seconds)
