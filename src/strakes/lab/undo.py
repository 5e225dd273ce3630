"""Removes everything with a lab's mark, whether its ``up`` ended, failed, or was killed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from strakes.base.errors import BadInputError, MeasurementError
from strakes.lab.cgroup import release_groups, remove_groups
from strakes.lab.device import detach_below, release_limits
from strakes.lab.lab_directory import remove_root
from strakes.lab.mounts import mounted_at, mounts_below, networks_below, space_of, unmount
from strakes.lab.network import remove_link
from strakes.lab.process import kill_all, name_of, users_of
from strakes.lab.state import JOURNAL, LabState, read_state
from strakes.targets.removal import empty_directory, remove_empty

_KILL_S = 20.0
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def undo(place: Path, *, force: bool = False) -> bool:
    """Remove the lab in ``place``, whose lock the caller holds; return whether there was one.

    Raises MeasurementError if something could not be removed (the journal stays for another try) and, without
    ``force``, if the kernel's file system of the lab is still in use.
    """
    state = read_state(place)
    if state is None and not _holds_nothing_else(place):
        raise BadInputError(
            "this directory was not made by strakes lab",
            where=str(place),
            remedy="Check what it contains, then remove it yourself.",
        )
    if state is not None:
        _release_mount_point(place, force=force)
        _stop(place, state)
    _remove_directory(place)
    remove_root()
    return state is not None


def _release_mount_point(place: Path, *, force: bool) -> None:
    """Unmount the file system first, so that nothing is lost if it is in use."""
    mount = mounted_at(place / "mnt")
    if mount is None:
        return
    users = [f"{name} (process {pid})" for pid, name in users_of(place / "mnt").items()]
    users += [f"a mount at {other.mount_point}" for other in mounts_below(place / "mnt") if other != mount]
    if mount.file_system.startswith("fuse"):  # these are unmounted when their servers have ended
        why = "" if force or not users else "it is in use"
    else:
        # A mount of a dead server would wait for its dirty pages to be written.
        dead = mount.file_system.startswith("nfs") and space_of(place / "mnt") is None
        why = unmount(mount, detach=force or dead)
    if not why:
        return
    raise MeasurementError(
        f"{place.name} is still in use",
        where=mount.mount_point,
        why=", ".join(users) or why,
        remedy=f"End these uses, or remove the lab anyway: strakes lab down {place.name} --force",
    )


def _stop(place: Path, state: LabState) -> None:
    # Servers that wait for a slow device, and clients that wait for them, do not die before it answers.
    release_limits(place)
    release_groups(state.id)
    records = state.processes if state.this_boot else ()
    undead = kill_all(state.id, records, networks_below(place), _KILL_S)
    if undead:
        named = ", ".join(f"{name_of(pid)} (process {pid})" for pid in undead)
        raise MeasurementError(
            f"not all processes of {place.name} could be ended",
            where=named,
            why="SIGKILL does not end them: the kernel waits for a device, or they belong to another user",
            remedy=f"Solve the cause, then run: strakes lab down {place.name}",
        )
    why = remove_link(state.id)
    left = [f"network link: {why}"] if why else []
    # The servers are dead: accesses to these mounts fail, and keep no process alive.
    for mount in reversed(mounts_below(place)):
        why = unmount(mount, detach=mount.file_system.startswith("fuse"))
        left += [f"{mount.mount_point}: {why}"] if why else []
    left += [f"/dev/{loop}: it is still in use" for loop in detach_below(place)]
    left += remove_groups(state.id)
    if left:
        raise _incomplete(place, "; ".join(left))


def _remove_directory(place: Path) -> None:
    try:
        directory = os.open(place, _OPEN)
    except FileNotFoundError:
        return
    parent = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        left = empty_directory(directory, str(place), spare=JOURNAL)
        if not left:
            with suppress(FileNotFoundError):
                os.unlink(JOURNAL, dir_fd=directory)
            left = remove_empty(parent, place.name, directory, str(place))
        if left:
            raise _incomplete(place, f"{left[0].path}: {left[0].why}")
    finally:
        os.close(directory)
        os.close(parent)


def _incomplete(place: Path, why: str) -> MeasurementError:
    return MeasurementError(
        f"not everything of {place.name} could be removed",
        where=str(place),
        why=why,
        remedy=f"Solve the cause, then run: strakes lab down {place.name}",
    )


def _holds_nothing_else(directory: Path) -> bool:
    """Return whether the directory is missing or empty except for a journal, as after an early kill of ``up``."""
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return True
    return all(name == JOURNAL for name in names)
