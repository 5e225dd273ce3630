"""``lfs getdirstripe``: the metadata targets of a directory, and of its new subdirectories; as YAML and as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from strakes.errors import BadInputError
from strakes.targets.command import Command, Completed
from strakes.targets.description import Placement
from strakes.targets.lustre.output import checked, key_values, not_understood, number

_TOOL = "lfs getdirstripe"
# A stripe in the table of the text form: target and object.
_STRIPE = re.compile(r"^\s*(\d+)\t+\s*\[0x[0-9a-f]+:0x[0-9a-f]+:0x[0-9a-f]+\]\s*$")
_STRIPE_HEADING = re.compile(r"^mdtidx\t")

Form = Literal["yaml", "text"]


@dataclass(frozen=True)
class DirStripe:
    """A directory's stripes: a ``count`` of 0 is none, all of it is on the target ``offset``.

    As a default for new subdirectories: a count of -1 is every target, an offset of -1 any, ``max_inherit`` the levels
    it is handed down (-1: all), ``max_inherit_rr`` those where the targets take turns.
    """

    count: int
    offset: int
    hash: str
    flags: tuple[str, ...]
    targets: tuple[int, ...]
    max_inherit: int | None = None
    max_inherit_rr: int | None = None


def dir_stripe(path: str, form: Form = "yaml") -> Command[DirStripe]:
    """Return the stripes of a directory."""
    return Command(("lfs", "getdirstripe", *(["-y"] if form == "yaml" else []), path), read_dir_stripe)


def default_stripe(path: str, form: Form = "yaml") -> Command[DirStripe]:
    """Return what a new subdirectory of a directory gets."""
    return Command(("lfs", "getdirstripe", *(["-y"] if form == "yaml" else []), "-D", path), read_default)


def read_dir_stripe(done: Completed) -> DirStripe:
    """Either form. Raises StrakesError."""
    stripe = _read(done)
    if len(stripe.targets) != stripe.count and not (stripe.count == 0 and stripe.targets in ((), (stripe.offset,))):
        raise not_understood(_TOOL, f"lmv_stripe_count: {stripe.count}, and {len(stripe.targets)} stripes")
    return stripe


def read_default(done: Completed) -> DirStripe:
    """Either form. Raises StrakesError."""
    return _read(done)


def _read(done: Completed) -> DirStripe:
    values: dict[str, str] = {}
    targets = []
    for line in checked(done, "the placement is not known").splitlines():
        if stripe := _STRIPE.match(line):
            targets.append(int(stripe[1]))
            continue
        pairs = list(key_values(line))
        if not pairs and line.strip() and not _STRIPE_HEADING.match(line):
            raise not_understood(_TOOL, line)
        for key, value in pairs:
            if key == "l_mdt_idx":
                targets.append(number(value, _TOOL))
            elif key in values:
                raise not_understood(_TOOL, line)
            elif key.startswith("lmv_"):
                values[key] = value
    if not values and not targets:
        # To lfs a file is no error here.
        raise BadInputError("the placement is not known", where=done.argv[-1], why="it is not a directory on Lustre")
    words = values.get("lmv_hash_type", "").split(",")
    needed = [values.get(f"lmv_{key}") for key in ("stripe_count", "stripe_offset")]
    if None in needed or not words[0]:
        raise not_understood(_TOOL, ", ".join(sorted(values)))
    count, offset = (number(text or "", _TOOL) for text in needed)
    inherit = [values.get(f"lmv_{key}") for key in ("max_inherit", "max_inherit_rr")]
    levels, turns = (None if text is None else number(text, _TOOL) for text in inherit)
    return DirStripe(count, offset, words[0], tuple(words[1:]), tuple(targets), levels, turns)


def placement(own: DirStripe, default: DirStripe) -> Placement:
    """Return what a directory's stripes and its default mean together.

    A target chosen by hand does not show: such a directory reads as "inherit", for its subdirectories follow it.
    """
    if own.count > 1:
        striped_below = default.count > 1 or default.count == -1
        return Placement("automatic", own.targets, own.count, own.hash, inherited=striped_below)
    if default.offset == -1 and default.count != 0:
        return Placement("automatic", (own.offset,), default.count, inherited=True)
    return Placement("inherit", (own.offset,), 1, inherited=True)
