"""``lfs mkdir`` and ``lfs setdirstripe``: put a directory, and what is made in it, on metadata targets; for root."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import checked

_REMEDY = "strakes target DIR lists the metadata targets there are."


def mkdir(path: str, *, targets: Sequence[int] = (), count: int | None = None, hash_type: str = "") -> Command[None]:
    """Make a directory on targets by number, or striped over ``count`` (-1, or more than there are: all)."""
    return Command(("lfs", "mkdir", *_options(count, targets, hash_type), path), _read_made)


def set_default(
    path: str,
    *,
    count: int,
    targets: Sequence[int] = (),
    hash_type: str = "",
    max_inherit: int | None = None,
    max_inherit_rr: int | None = None,
) -> Command[None]:
    """Say what new subdirectories of an existing directory get; a target of -1 leaves the choice to Lustre."""
    levels = [] if max_inherit is None else [f"--max-inherit={max_inherit}"]
    turns = [] if max_inherit_rr is None else [f"--max-inherit-rr={max_inherit_rr}"]
    return Command(
        ("lfs", "setdirstripe", "-D", *_options(count, targets, hash_type), *levels, *turns, path), _read_set
    )


def _options(count: int | None, targets: Sequence[int], hash_type: str) -> list[str]:
    options = [] if count is None else ["-c", str(count)]
    if targets:
        options += ["-i", ",".join(map(str, targets))]
    return options + (["-H", hash_type] if hash_type else [])


def _read_made(done: Completed) -> None:
    checked(done, "the directory was not made", remedy=_REMEDY)


def _read_set(done: Completed) -> None:
    checked(done, "the placement of subdirectories was not set", remedy=_REMEDY)
