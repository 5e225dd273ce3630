"""``lfs setstripe``: give a directory's new files a layout. Lustre lowers counts silently: read the result back."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.errors import BadInputError
from strakes.targets.command import Command, Completed
from strakes.targets.description import Layout, LayoutComponent
from strakes.targets.lustre.output import checked
from strakes.units import GIB, KIB, MIB

_REMEDY = "Stripe sizes are multiples of 64 KiB below 4 GiB; strakes target DIR lists the targets and pools there are."


def setstripe(path: str, wanted: Layout) -> Command[None]:
    """Set a layout; an empty one takes away what was set. Raises BadInputError for what ``lfs`` cannot express."""
    options = [*_components(wanted.components)] if wanted.components else [*_options(wanted)]
    return Command(("lfs", "setstripe", *(options or ["-d"]), path), read_nothing)


def read_nothing(done: Completed) -> None:
    """Check that it succeeded."""
    checked(done, "the layout was not set", remedy=_REMEDY)


def _components(components: tuple[LayoutComponent, ...]) -> Iterator[str]:
    reached: int | None = 0
    for part in components:
        if part.mirror or part.layout.components:
            raise BadInputError(
                "no such layout can be set", why="mirrors, and components within components, are not set by strakes"
            )
        if part.begin != reached:
            raise BadInputError(
                "no such layout can be set", why=f"a component begins at {part.begin}, the one before ends at {reached}"
            )
        reached = part.end
        yield from ("-E", "-1" if part.end is None else _size(part.end), *_options(part.layout))


def _options(wanted: Layout) -> Iterator[str]:
    if wanted.pool:
        yield from ("-p", wanted.pool)
    if wanted.pattern == "mdt":
        # What is on the metadata target has no stripes.
        yield from ("-L", "mdt")
        return
    if wanted.pattern == "overstriped":
        if wanted.stripe_count is None:
            raise BadInputError("no such layout can be set", why="overstriping needs a stripe count")
        yield from ("-C", str(wanted.stripe_count))
    elif wanted.pattern not in ("", "raid0"):
        raise BadInputError("no such layout can be set", why=f"lfs setstripe knows no pattern {wanted.pattern!r}")
    elif wanted.stripe_count is not None:
        yield from ("-c", str(wanted.stripe_count))
    if wanted.stripe_size_bytes is not None:
        yield from ("-S", _size(wanted.stripe_size_bytes))
    if wanted.targets:
        yield from ("-o", ",".join(map(str, wanted.targets)))
    elif wanted.first_target is not None:
        yield from ("-i", str(wanted.first_target))


def _size(size: int) -> str:
    for unit, letter in ((GIB, "G"), (MIB, "M"), (KIB, "K")):
        if size and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)
