"""``lfs setstripe``: give a directory's new files a layout. Lustre lowers counts silently: read the result back.

Options are also how a layout is written for people, ready to paste: ``options_of`` and ``layout_from``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from strakes.errors import BadInputError
from strakes.targets.command import Command, Completed
from strakes.targets.description import Layout, LayoutComponent
from strakes.targets.lustre.output import checked
from strakes.units import GIB, KIB, MIB

_REMEDY = "Stripe sizes are multiples of 64 KiB below 4 GiB; strakes target DIR lists the targets and pools there are."


def setstripe(path: str, wanted: Layout) -> Command[None]:
    """Set a layout; an empty one takes away what was set. Raises BadInputError for what ``lfs`` cannot express."""
    return Command(("lfs", "setstripe", *(options_of(wanted) or ["-d"]), path), read_nothing)


def options_of(wanted: Layout) -> list[str]:
    """Return a layout as options. Raises BadInputError for what ``lfs`` cannot express.

    >>> dom = LayoutComponent(0, 65536, Layout(pattern="mdt")), LayoutComponent(65536, None, Layout(stripe_count=4))
    >>> " ".join(options_of(Layout(components=dom)))
    '-E 64K -L mdt -E -1 -c 4'
    """
    if not wanted.components:
        return [*_options(wanted)]
    mirrors = dict.fromkeys(part.mirror for part in wanted.components)
    options = []
    for mirror in mirrors:
        options += ["-N"] if len(mirrors) > 1 else []
        options += _components(tuple(part for part in wanted.components if part.mirror == mirror))
    return options


def layout_from(text: str) -> Layout:
    """Return the layout that options stand for. Raises BadInputError for what is none.

    >>> layout_from("-C 8 -S 1M") == Layout(stripe_size_bytes=1 << 20, stripe_count=8, pattern="overstriped")
    True
    >>> [part.end for part in layout_from("-E 64K -L mdt -E -1 -c 4").components]
    [65536, None]
    """
    words = text.split()
    plain = Layout()
    parts: list[LayoutComponent] = []
    mirror, begin = 0, 0
    while words:
        option = words.pop(0)
        if option == "-N":
            mirror, begin = mirror + 1, 0
            continue
        if option not in _READ or not words:
            raise BadInputError("not options of lfs setstripe", where=text, why=f"{option} is not understood")
        value = words.pop(0)
        if option == "-E":
            end = None if value == "-1" else _number(value)
            parts.append(LayoutComponent(begin, end, Layout(), mirror))
            begin = end or 0
        elif parts:
            parts[-1] = replace(parts[-1], layout=_with(parts[-1].layout, option, value))
        else:
            plain = _with(plain, option, value)
    return Layout(components=tuple(parts)) if parts else plain


_READ = ("-E", "-c", "-C", "-S", "-i", "-o", "-p", "-L")


def _with(layout: Layout, option: str, value: str) -> Layout:
    if option in ("-c", "-C"):
        layout = replace(layout, stripe_count=_number(value))
        return replace(layout, pattern="overstriped") if option == "-C" else layout
    if option == "-S":
        return replace(layout, stripe_size_bytes=_number(value))
    if option == "-i":
        return replace(layout, first_target=_number(value))
    if option == "-o":
        return replace(layout, targets=tuple(map(_number, value.split(","))))
    return replace(layout, pool=value) if option == "-p" else replace(layout, pattern=value)


def _number(text: str) -> int:
    unit = {"G": GIB, "M": MIB, "K": KIB}.get(text[-1:], 1)
    try:
        return int(text if unit == 1 else text[:-1]) * unit
    except ValueError:
        raise BadInputError("not options of lfs setstripe", where=text, why="it is not a number") from None


def read_nothing(done: Completed) -> None:
    """Check that it succeeded."""
    checked(done, "the layout was not set", remedy=_REMEDY)


def _components(components: tuple[LayoutComponent, ...]) -> Iterator[str]:
    reached: int | None = 0
    for part in components:
        if part.layout.components:
            raise BadInputError("no such layout can be set", why="a component has no components")
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
