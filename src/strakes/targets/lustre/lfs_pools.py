"""``lfs pool_list``: pools of data targets, and who is in one."""

from __future__ import annotations

from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import checked, not_understood, target_name

_TOOL = "lfs pool_list"


def pools(file_system: str) -> Command[tuple[str, ...]]:
    """Return the names of a file system's pools, without its own."""
    return Command(("lfs", "pool_list", file_system), read_pools)


def members(file_system: str, pool: str) -> Command[tuple[str, ...]]:
    """Return the names of the targets in a pool."""
    return Command(("lfs", "pool_list", f"{file_system}.{pool}"), read_members)


def read_pools(done: Completed) -> tuple[str, ...]:
    """Read pools' names."""
    heading, *lines = checked(done, "the pools are not known").splitlines() or [""]
    if not heading.startswith("Pools from ") or not heading.endswith(":"):
        raise not_understood(_TOOL, heading)
    prefix = heading.removeprefix("Pools from ").removesuffix(":") + "."
    for line in lines:
        if not line.startswith(prefix) or line == prefix:
            raise not_understood(_TOOL, line)
    return tuple(line.removeprefix(prefix) for line in lines)


def read_members(done: Completed) -> tuple[str, ...]:
    """Read targets' names."""
    heading, *lines = checked(done, "the targets of the pool are not known").splitlines() or [""]
    if not heading.startswith("Pool: "):
        raise not_understood(_TOOL, heading)
    return tuple(target_name(line, _TOOL)[0] for line in lines)
