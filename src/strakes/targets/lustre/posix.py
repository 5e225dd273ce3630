"""The few POSIX calls on Lustre that could wait for a dead server, as commands, which have a limit of time."""

from __future__ import annotations

import re

from strakes.targets.calls import Sizes
from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import checked, not_understood, refusal

_SIZES = re.compile(
    r"^Block size: (\d+)\s+Fundamental block size: (\d+)\n"
    r"Blocks: Total: (\d+)\s+Free: \d+\s+Available: (\d+)\n"
    r"Inodes: Total: (\d+)\s+Free: (\d+)$",
    re.MULTILINE,
)


def sizes(path: str) -> Command[Sizes]:
    """Ask for the room."""
    return Command(("stat", "-f", path), read_sizes)


def read_sizes(done: Completed) -> Sizes:
    """Read it."""
    match = _SIZES.search(checked(done, "the size of the file system is unknown"))
    if match is None:
        raise not_understood("stat -f", done.stdout)
    block, unit, total, free, inodes, free_inodes = map(int, match.groups())
    return Sizes(block, total * unit, free * unit, inodes, free_inodes)


def is_directory(path: str) -> Command[bool]:
    """Raise StrakesError when there is nothing of the name."""

    def read(done: Completed) -> bool:
        return checked(done, "there is nothing to look at", path) == "directory\n"

    return Command(("stat", "-c", "%F", path), read)


def make_directory(path: str) -> Command[None]:
    """Make a directory."""

    def read(done: Completed) -> None:
        # mkdir ends with 1 whatever happened.
        checked(done, "the directory was not made")

    return Command(("mkdir", path), read)


def make_file(path: str) -> Command[None]:
    """Make an empty file."""

    def read(done: Completed) -> None:
        if done.status != 0:
            raise refusal(done, "no file can be made with this layout")

    return Command(("touch", path), read)


def remove_file(path: str) -> Command[None]:
    """Remove a file."""

    def read(done: Completed) -> None:
        checked(done, "a file of strakes could not be removed")

    return Command(("rm", "-f", path), read)
