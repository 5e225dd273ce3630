"""``lfs getstripe``: how the data of a file, or of a directory's new files, is spread; as YAML and as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from strakes.targets.command import Command, Completed
from strakes.targets.description import Layout, LayoutComponent
from strakes.targets.lustre.output import checked, key_values, not_understood, number

_TOOL = "lfs getstripe"
# A stripe in the table of the text form: target, object (decimal, hexadecimal), group.
_STRIPE = re.compile(r"^\s+(0x[0-9a-f]+|\d+)\s+(?:\d+\s+0x[0-9a-f]+\s+(?:0x[0-9a-f]+|\d+)|N/A\s+N/A\s+N/A)(?: \*)?$")
_STRIPE_HEADING = re.compile(r"^\s+obdidx\s")
_NO_LAYOUT = " has no stripe info"

Form = Literal["yaml", "text"]


def file_layout(path: str, form: Form = "yaml") -> Command[Layout]:
    """Return the layout of a file."""
    flags = ["-y"] if form == "yaml" else []
    return Command(("lfs", "getstripe", *flags, path), _reader(form))


def directory_layout(path: str, form: Form = "yaml") -> Command[Layout]:
    """Return the layout that new files in a directory get."""
    flags = ["-d", "-y"] if form == "yaml" else ["-d"]
    return Command(("lfs", "getstripe", *flags, path), _reader(form))


def _reader(form: Form) -> Callable[[Completed], Layout]:
    return read_yaml if form == "yaml" else read_text


def read_yaml(done: Completed) -> Layout:
    """Return the one layout of YAML output. Raises StrakesError."""
    return _Parser(checked(done, "the layout cannot be read").splitlines()).only()


def read_text(done: Completed) -> Layout:
    """Return the one layout of text output. Raises StrakesError."""
    layouts = read_listing(done)
    if len(layouts) != 1:
        raise not_understood(_TOOL, f"{len(layouts)} layouts")
    return layouts[0][1]


def read_listing(done: Completed) -> tuple[tuple[str, Layout], ...]:
    """All layouts of text output by the paths they stand under (none for a directory's alone). Raises StrakesError."""
    listing: list[tuple[str, list[str]]] = []
    for line in checked(done, "the layout cannot be read").splitlines():
        if line.endswith(_NO_LAYOUT):
            listing.append((line.removesuffix(_NO_LAYOUT), []))
        elif _is_path(line):
            listing.append((line, []))
        elif line:
            if not listing:
                listing.append(("", []))
            listing[-1][1].append(line)
    return tuple((name, _Parser(lines).only() if lines else Layout()) for name, lines in listing)


def _is_path(line: str) -> bool:
    if not line or line[0] in " \t-":
        return False
    return not any(key.startswith(_PREFIXES) or key in _DIRECTORY_KEYS for key, _ in key_values(line))


@dataclass
class _Leaf:
    """The values of a plain layout, or of one component, as they come in."""

    values: dict[str, str] = field(default_factory=dict)
    targets: list[int] = field(default_factory=list)
    targets_follow: bool = False

    def layout(self) -> Layout:
        count = self._number("stripe_count")
        pattern = _pattern(self.values.get("pattern", ""))
        # Older versions have no key of its own for a metadata target.
        first = self._number("mdt_index" if "mdt_index" in self.values else "stripe_offset")
        if count is None or first is None or (self.targets_follow and len(self.targets) != count):
            raise not_understood(
                _TOOL, f"stripe_count: {count}, stripe_offset: {first}, and {len(self.targets)} stripes"
            )
        size = self._number("stripe_size")
        pool = self.values.get("pool", "")
        return Layout(size, count, None if first == -1 else first, pool, pattern, targets=tuple(self.targets))

    def _number(self, key: str) -> int | None:
        text = self.values.get(key)
        return None if text is None else number(text, _TOOL)


@dataclass
class _Part(_Leaf):
    """A component: a layout with an extent."""

    def component(self) -> LayoutComponent:
        begin = self._number("e_start")
        end = self.values.get("e_end")
        if begin is None or end is None:
            raise not_understood(_TOOL, "a component without its extent")
        mirror = self.values.get("mirror_id", "N/A")
        return LayoutComponent(
            begin,
            None if end == "EOF" else number(end, _TOOL),
            self.layout(),
            0 if mirror == "N/A" else number(mirror, _TOOL),
        )


# Both forms have the same keys, with and without "lmm_" or "lcme_"; others are not needed.
_LEAF_KEYS = frozenset({"stripe_count", "stripe_size", "pattern", "stripe_offset", "mdt_index", "pool"})
_PART_KEYS = frozenset({"e_start", "e_end", "mirror_id"})
# By these a line of text is known not to be a path.
_PREFIXES = ("lmm_", "lcm_", "lcme_")
_DIRECTORY_KEYS = _LEAF_KEYS | {"composite_header", "components"}


def _plain(key: str) -> str:
    return key.removeprefix("lmm_").removeprefix("lcme_").removeprefix("lcm_").removeprefix("extent.")


class _Parser:
    """One layout from the lines of either form."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._whole = _Leaf()
        self._parts: list[_Part] = []
        self._announced: int | None = None
        for line in lines:
            self._take(line)

    def only(self) -> Layout:
        if self._announced is None:
            return self._whole.layout()
        if len(self._parts) != self._announced:
            raise not_understood(_TOOL, f"{self._announced} components announced, {len(self._parts)} told")
        components = tuple(part.component() for part in self._parts)
        targets = tuple(target for component in components for target in component.layout.targets)
        return Layout(components=components, targets=targets)

    def _take(self, line: str) -> None:
        leaf = self._parts[-1] if self._parts else self._whole
        if stripe := _STRIPE.match(line):
            leaf.targets.append(number(stripe[1], _TOOL))
            return
        if _STRIPE_HEADING.match(line):
            leaf.targets_follow = True
            return
        if not line.strip():
            return
        pairs = list(key_values(line))
        if not pairs:
            raise not_understood(_TOOL, line)
        for key, value in pairs:
            if key == "lmm_objects":
                leaf.targets_follow = True
            elif key == "l_ost_idx":
                leaf.targets.append(number(value.rstrip(","), _TOOL))
            elif key == "lcm_entry_count":
                self._announced = number(value, _TOOL)
            elif key == "lcme_id":
                leaf = _Part()
                self._parts.append(leaf)
            elif (plain := _plain(key)) in _LEAF_KEYS or plain in _PART_KEYS:
                if plain in leaf.values:
                    raise not_understood(_TOOL, line)
                leaf.values[plain] = value


# As older versions write them (lustre_user.h: LOV_PATTERN_RAID0, _MDT, _OVERSTRIPING).
_PATTERNS = {"1": "raid0", "0x1": "raid0", "100": "mdt", "0x100": "mdt", "201": "overstriped", "0x201": "overstriped"}


def _pattern(text: str) -> str:
    if text == "raid0,overstriped":
        return "overstriped"
    return _PATTERNS.get(text, text)
