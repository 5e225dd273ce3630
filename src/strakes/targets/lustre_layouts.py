"""Layouts of files and placements of directories, read and set by ``lfs``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.units import GIB, KIB, MIB
from strakes.targets.answers import not_understood, understood
from strakes.targets.command import Command, Completed
from strakes.targets.description import Layout, LayoutComponent, Placement
from strakes.targets.lustre_tool import checked, key_values, succeeding

_GETSTRIPE, _GETDIRSTRIPE = "lfs getstripe", "lfs getdirstripe"
# A line in the stripe table of ``lfs getstripe``: target, object (decimal, hexadecimal), group.
_STRIPE = re.compile(r"^\s+(0x[0-9a-f]+|\d+)\s+(?:\d+\s+0x[0-9a-f]+\s+(?:0x[0-9a-f]+|\d+)|N/A\s+N/A\s+N/A)(?: \*)?$")
_STRIPE_HEADING = re.compile(r"^\s+obdidx\s")
# Some versions of lfs print keys with a prefix, as in lmm_stripe_count.
_PREFIX = re.compile(r"^(?:lmm_|lcme_|lcm_)?(?:extent\.)?")
_LAYOUT_KEYS = frozenset({"stripe_count", "stripe_size", "pattern", "stripe_offset", "mdt_index", "pool"})
_KEYS = _LAYOUT_KEYS | {"e_start", "e_end", "mirror_id"}
# First words of the lines of ``lfs getstripe`` that are not the path of a file.
_NO_PATH = ("lmm_", "lcm_", "lcme_", *_LAYOUT_KEYS, "composite_header", "components")


def getstripe(*words: str) -> Command[Layout]:
    """Return the command that prints the layout of a file or, with "-d", the layout of new files in a directory."""
    return Command(("lfs", "getstripe", *words), read_layout)


@understood(_GETSTRIPE)
def read_layout(done: Completed) -> Layout:
    """Parse the layout in the output of ``lfs getstripe``. Raises StrakesError for unknown output."""
    text = checked(done, "the layout cannot be read").splitlines()
    lines = [line for line in text if line.strip() and not line.endswith(" has no stripe info") and not _is_path(line)]
    return _layout_in(lines) if lines or not text else Layout()


def _is_path(line: str) -> bool:
    return line[0] not in " \t-" and not any(key.startswith(_NO_PATH) for key, _ in key_values(line))


@dataclass
class _Part:
    values: dict[str, str] = field(default_factory=dict)
    targets: list[int] = field(default_factory=list)
    listed: bool = False

    def take(self, key: str, value: str) -> None:
        self.listed |= key == "objects"
        if key == "l_ost_idx":
            self.targets.append(int(value.rstrip(","), 0))
        elif key in self.values:
            raise not_understood(_GETSTRIPE, f"{key}: {value}")
        elif key in _KEYS:
            self.values[key] = value

    def layout(self) -> Layout:
        count, size = self._number("stripe_count"), self._number("stripe_size")
        # For data on a metadata target, older versions of lfs print stripe_offset instead of mdt_index.
        first = self._number("mdt_index" if "mdt_index" in self.values else "stripe_offset")
        if count is None or first is None or (self.listed and len(self.targets) != count):
            what = f"stripe_count: {count}, stripe_offset: {first}, and {len(self.targets)} stripes"
            raise not_understood(_GETSTRIPE, what)
        pool, pattern = self.values.get("pool", ""), self.values.get("pattern", "")
        pattern = "overstriped" if pattern == "raid0,overstriped" else pattern
        return Layout(size, count, None if first == -1 else first, pool, pattern, targets=tuple(self.targets))

    def component(self) -> LayoutComponent:
        begin, end = self._number("e_start"), self._number("e_end")
        if begin is None or "e_end" not in self.values:
            raise not_understood(_GETSTRIPE, "a component without its extent")
        return LayoutComponent(begin, end, self.layout(), self._number("mirror_id") or 0)

    def _number(self, key: str) -> int | None:
        text = self.values.get(key, "N/A")
        return None if text in ("N/A", "EOF") else int(text, 0)


def _layout_in(lines: Sequence[str]) -> Layout:
    parts = [_Part()]
    announced: int | None = None
    for line in lines:
        if stripe := _STRIPE.match(line):
            parts[-1].targets.append(int(stripe[1], 0))
            continue
        if _STRIPE_HEADING.match(line):
            parts[-1].listed = True
            continue
        pairs = [(_PREFIX.sub("", key), value) for key, value in key_values(line)]
        if not pairs:
            raise not_understood(_GETSTRIPE, line)
        for key, value in pairs:
            if key == "entry_count":
                announced = int(value, 0)
            elif key == "id":
                parts.append(_Part())
            else:
                parts[-1].take(key, value)
    if announced is None:
        return parts[-1].layout()
    components = tuple(part.component() for part in parts[1:])
    if len(components) != announced:
        raise not_understood(_GETSTRIPE, f"{announced} components announced, {len(components)} listed")
    targets = tuple(target for component in components for target in component.layout.targets)
    return Layout(components=components, targets=targets)


# Stripe sizes are multiples of this number of bytes, and below 4 GiB (lfs-setstripe(1)).
STRIPE_UNIT_BYTES = 64 * KIB
_REMEDY = "Give a stripe size below 4 GiB in multiples of 64 KiB. strakes target DIR lists the targets and pools."


def setstripe(path: str, wanted: Layout) -> Command[None]:
    """Return the command to set a layout (to remove it if ``wanted`` is empty). Raises BadInputError if impossible."""
    return succeeding(("lfs", "setstripe", *(options_of(wanted) or ["-d"]), path), "the layout was not set", _REMEDY)


def nearest_stripe(size: int) -> int:
    """Return the valid stripe size that is nearest to ``size``, both in bytes.

    >>> nearest_stripe(100 * KIB) // KIB, nearest_stripe(1) // KIB, nearest_stripe(5 * GIB) // KIB
    (128, 64, 4194240)
    """
    units = (size + STRIPE_UNIT_BYTES // 2) // STRIPE_UNIT_BYTES
    return min(max(1, units), 4 * GIB // STRIPE_UNIT_BYTES - 1) * STRIPE_UNIT_BYTES


def options_of(wanted: Layout) -> list[str]:
    """Return a layout as options of ``lfs setstripe``. Raises BadInputError if ``lfs`` has no options for it."""
    mirrors = dict.fromkeys(part.mirror for part in wanted.components)
    options = [] if mirrors else [*_options(wanted)]
    for mirror in mirrors:
        options += ["-N"] if len(mirrors) > 1 else []
        for part in wanted.components:
            if part.mirror == mirror:
                options += ("-E", "-1" if part.end is None else _size(part.end), *_options(part.layout))
    return options


def layout_from(text: str) -> Layout:
    """Parse options of ``lfs setstripe`` as a layout. Raises BadInputError if they are not valid."""
    words = text.split()
    plain = Layout()
    parts: list[LayoutComponent] = []
    mirror, begin = 0, 0
    while words:
        option = words.pop(0)
        if option == "-N":
            mirror, begin = mirror + 1, 0
            continue
        if option not in ("-E", *_READ) or not words:
            raise BadInputError("invalid options of lfs setstripe", where=text, why=f"{option} is not valid")
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


def _number(text: str) -> int:
    unit = {"G": GIB, "M": MIB, "K": KIB}.get(text[-1:], 1)
    try:
        return int(text if unit == 1 else text[:-1]) * unit
    except ValueError:
        raise BadInputError("invalid options of lfs setstripe", where=text, why="the value is not a number") from None


_READ: dict[str, tuple[str, Callable[[str], object]]] = {
    "-c": ("stripe_count", _number),
    "-C": ("stripe_count", _number),
    "-S": ("stripe_size_bytes", _number),
    "-i": ("first_target", _number),
    "-o": ("targets", lambda value: tuple(map(_number, value.split(",")))),
    "-p": ("pool", str),
    "-L": ("pattern", str),
}


def _with(layout: Layout, option: str, value: str) -> Layout:
    name, read = _READ[option]
    given: dict[str, Any] = {name: read(value)} | ({"pattern": "overstriped"} if option == "-C" else {})
    return replace(layout, **given)


def _options(wanted: Layout) -> Iterator[str]:
    if wanted.pool:
        yield from ("-p", wanted.pool)
    if wanted.pattern == "mdt":
        # Lustre does not stripe data on a metadata target, so omit the stripe count and size.
        yield from ("-L", "mdt")
        return
    if wanted.pattern == "overstriped":
        yield from ("-C", str(wanted.stripe_count))
    elif wanted.pattern not in ("", "raid0"):
        why = f"lfs setstripe knows no pattern {wanted.pattern!r}"
        raise BadInputError("this layout is not possible on Lustre", why=why)
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


# A line in the stripe table of ``lfs getdirstripe``: target and object.
_DIRECTORY_STRIPE = re.compile(r"^\s*(\d+)\t\s*\[0x[0-9a-f]+:0x[0-9a-f]+:0x[0-9a-f]+\]\s*$")
_DIRECTORY_STRIPE_HEADING = re.compile(r"^mdtidx\t")


@dataclass(frozen=True)
class DirStripe:
    """The stripes of a directory, or the default stripes of its new subdirectories.

    ``count`` 0: the directory is not striped, and is on the target ``offset``. In default stripes, a ``count`` of -1
    means all targets, and an ``offset`` of -1 any target.
    """

    count: int
    offset: int
    hash: str
    targets: tuple[int, ...]


def dir_stripe(*words: str) -> Command[DirStripe]:
    """Return the command that prints the stripes of a directory or, with "-D", the default for new subdirectories."""
    return Command(("lfs", "getdirstripe", *words), read_default if "-D" in words else read_dir_stripe)


def read_dir_stripe(done: Completed) -> DirStripe:
    """Parse the stripes of a directory. Raises StrakesError if the output is invalid or lacks a stripe."""
    stripe = read_default(done)
    if len(stripe.targets) != stripe.count:
        raise not_understood(_GETDIRSTRIPE, f"lmv_stripe_count: {stripe.count}, and {len(stripe.targets)} stripes")
    return stripe


@understood(_GETDIRSTRIPE)
def read_default(done: Completed) -> DirStripe:
    """Parse the default stripes of a directory. Raises StrakesError if the output is invalid."""
    values: dict[str, str] = {}
    targets = []
    for line in checked(done, "the placement is unknown").splitlines():
        pairs = dict(key_values(line))
        if stripe := _DIRECTORY_STRIPE.match(line):
            targets.append(int(stripe[1]))
        elif values.keys() & pairs or not (pairs or not line.strip() or _DIRECTORY_STRIPE_HEADING.match(line)):
            raise not_understood(_GETDIRSTRIPE, line)
        values |= pairs
    if not values and not targets:
        # If the path is not a directory on Lustre, lfs prints nothing and reports no error.
        raise BadInputError("the placement is unknown", where=done.argv[-1], why="not a directory on Lustre")
    count, offset, hash_type = (values.get(f"lmv_{key}", "") for key in ("stripe_count", "stripe_offset", "hash_type"))
    if not (count and offset and hash_type):
        raise not_understood(_GETDIRSTRIPE, ", ".join(sorted(values)))
    # Remove flags, which lfs may append to the name of the hash, for example during a migration.
    return DirStripe(int(count, 0), int(offset, 0), hash_type.partition(",")[0], tuple(targets))


def placement(own: DirStripe, default: DirStripe) -> Placement:
    """Return the placement of a directory from its own stripes and the default stripes of its subdirectories.

    lfs does not report whether an administrator chose the target. A directory on one target counts as "automatic" if
    Lustre chooses the targets of its subdirectories, and otherwise as "inherit".
    """
    if own.count > 1:
        striped_below = default.count > 1 or default.count == -1
        return Placement("automatic", own.targets, own.count, own.hash, inherited=striped_below)
    if default.offset == -1 and default.count != 0:
        return Placement("automatic", (own.offset,), default.count, inherited=True)
    return Placement("inherit", (own.offset,), 1, inherited=True)


_WHICH_TARGETS = "List the metadata targets: strakes target DIR"


def mkdir(path: str, *, targets: Sequence[int] = (), count: int | None = None) -> Command[None]:
    """Return the command that makes a directory on ``targets``, or on ``count`` targets (-1: all). Only for root."""
    where = ("-i", ",".join(map(str, targets))) if targets else ("-c", str(count))
    return succeeding(("lfs", "mkdir", *where, path), "the directory was not made", _WHICH_TARGETS)


def set_default(path: str, count: int | None) -> Command[None]:
    """Return the command that stripes new subdirectories over ``count`` targets (-1: all)."""
    argv = ("lfs", "setdirstripe", "-D", "-c", str(count), path)
    return succeeding(argv, "the placement of subdirectories was not set", _WHICH_TARGETS)
