"""The sharing of a tree among metadata targets, for a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from strakes.predict.namespace import NamespacePlan
from strakes.units import counted

_MOST_NAMED = 20


def render_namespace(plan: NamespacePlan, commands: Sequence[tuple[str, ...]], *, whole: bool) -> Iterator[str]:
    """Yield the lines."""
    if plan.changed:
        yield f"{counted(plan.entries, 'entry', 'entries')} below {plan.root}, {plan.changed:,} changed lately"
    else:
        yield f"{counted(plan.entries, 'entry', 'entries')} below {plan.root}, none changed lately, so all count alike"
    if not whole:
        yield "Counting ended by --limit: what was not reached is missing. Give a larger --limit."
    count = len(plan.shares)
    what = f"{count} metadata target{'s' if count > 1 else ''}"
    yield f"{what}: the busiest has {plan.most:.0%} of the load, a fair share is {1 / count:.0%}."
    for share in plan.shares:
        below = counted(len(share.directories), "directory", "directories")
        yield f"target {share.target}: {share.load:.0%} of the load, {below}"
        yield from (f"  {path}" for path in share.directories[:_MOST_NAMED])
        if len(share.directories) > _MOST_NAMED:
            yield f"  and {len(share.directories) - _MOST_NAMED} more; --json names all"
    if count > 1:
        yield ""
        if not commands:
            yield "This file system has no command that puts a directory on a metadata target."
        else:
            yield "To put them there (moving takes time; do it when the tree is quiet):"
            yield from (f"  {shlex.join(command)}" for command in commands)
