"""Start labs, report their status, and remove them with all of their processes, mounts and devices."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError, did_you_mean
from strakes.base.files import closing
from strakes.base.processes import lock_holder, python_module
from strakes.lab.cgroup import release_groups, remove_groups
from strakes.lab.device import detach_below, release_limits, require_sys
from strakes.lab.kind import CLIENT, Lab, load
from strakes.lab.mounts import mounted_at, mounts_below, networks_below, space_of, unmount
from strakes.lab.options import LabOptions, require_bounds
from strakes.lab.packages import require_packages
from strakes.lab.process import is_alive, kill_all, memory_of, name_of, users_of
from strakes.lab.site import LabSite
from strakes.lab.state import (
    JOURNAL,
    LabJournal,
    LabState,
    ProcessRecord,
    all_directories,
    directory_of,
    open_guarded,
    read_state,
    remove_root,
    removed_meanwhile,
    working_in,
)
from strakes.targets.child import OPEN_DIRECTORY
from strakes.targets.removal import empty_directory, remove_empty

# "degraded": a server has ended. "working": a command is starting or removing the lab. "stale": unusable, because the
# start was killed, the machine was restarted or the mount is gone.
Condition = Literal["up", "degraded", "working", "stale"]
Say = Callable[[str], None]
_START_TIMES = 3
_KILL_S = 20.0


@dataclass(frozen=True, kw_only=True)
class ProcessStatus(ProcessRecord):
    """A process of a lab, with its present status. ``memory_bytes``: resident memory (RSS)."""

    alive: bool
    memory_bytes: int


@dataclass(frozen=True, kw_only=True)
class LabStatus(LabState):
    """The recorded state of a lab, and its present condition. ``detail``: a problem in words, or ""."""

    condition: Condition
    detail: str
    directory: str
    mount_point: str
    processes: tuple[ProcessStatus, ...]


def up(kind: str, name: str, options: LabOptions, *, install: bool, say: Say) -> tuple[LabStatus, bool]:
    """Start a lab. Return the status of the lab, and whether it was already up.

    Raises BadInputError if the lab is up with other options, and EnvironmentLacksError if the machine lacks something.
    """
    lab_class = load(kind)
    require_bounds(options)
    place = directory_of(name)
    already = _already_up(place, kind, options)
    if already:
        return already, True
    if lab_class.needs_root and os.geteuid() != 0:
        why = "the lab mounts file systems and sets up networks"
        raise EnvironmentLacksError(f"a lab of the kind {kind} needs root", why=why, remedy="Run the command as root.")
    require_sys()
    lab_class.check(options, place)
    require_packages(kind, lab_class.packages_for(options), install=install, say=say)
    for _ in range(_START_TIMES):
        with working_in(place, make=True):
            already = _already_up(place, kind, options)
            if already:
                return already, True
            if not os.listdir(place):
                _start(place, kind, lab_class, options, say)
                if started := status_in(place):
                    return started, False
            undo(place, say=say)
            say(f"{name}: removing remains of an earlier lab with this name")
    raise removed_meanwhile(place)


def down(name: str, *, force: bool, say: Say) -> bool:
    """Remove a lab, and return whether it existed. ``say``: called with a remark on devices that are still in use."""
    lab = directory_of(name)
    with working_in(lab, make=False) as there:
        existed = undo(lab, force=force, say=say) if there else False
    remove_root()
    return existed


def status(name: str) -> LabStatus | None:
    """Return the status of a lab, or None if it does not exist."""
    return status_in(directory_of(name))


def all_labs(complain: Callable[[StrakesError], object]) -> tuple[LabStatus, ...]:
    """Return the status of every lab. ``complain``: called with the error of a damaged or untrusted journal."""
    labs = []
    for place in all_directories():
        try:
            labs.append(status_in(place))
        except BadInputError as error:
            complain(error)
    return tuple(filter(None, labs))


def labs_to_remove(name: str | None, *, every: bool) -> tuple[str, ...]:
    """Return the lab ``name``, ``every`` lab, or the only lab. Raises BadInputError if that is no choice."""
    known = tuple(place.name for place in all_directories())
    if name is not None and name not in known:
        remedy = did_you_mean(name, known, "List the labs: strakes lab status")
        raise BadInputError(f"no lab is named {name}", remedy=remedy)
    if name is None and len(known) > 1 and not every:
        remedy = "Give the NAME of one of them, or --all."
        raise BadInputError("there are several labs, and no NAME was given", why=", ".join(known), remedy=remedy)
    return known if name is None else (name,)


def node_command(name: str, node: str, words: Sequence[str]) -> list[str]:
    """Return the local command that runs ``words`` on a node. Raises BadInputError if the lab has no such node."""
    lab = status(name)
    commands = lab.facts.get("commands", {}) if lab and lab.condition in ("up", "degraded") else {}
    if node not in commands:
        why = f"its nodes are: {', '.join(commands)}" if commands else "this lab is down, or its kind has no nodes"
        remedy = "List the labs with strakes lab status. Labs of the kinds ha, hosts and slurm have nodes."
        raise BadInputError(f"the lab {name} has no node {node}", why=why, remedy=remedy)
    own = python_module("strakes") if words[0] == "strakes" else words[:1]
    return [*commands[node], *own, *words[1:]]


def _start(place: Path, kind: str, lab_class: type[Lab[LabOptions]], options: LabOptions, say: Say) -> None:
    journal, began_s = LabJournal.create(place, kind, options.document()), time.monotonic()
    try:
        site = LabSite(place, journal, say)
        lab = lab_class(site, options)
        lab.up()
        site.wait_until("the file system", lab.ready, limit_s=lab.ready_limit_s)
        lab.slow_down()
        journal.note(ready_after_s=round(time.monotonic() - began_s, 2), facts=lab.facts())
    except BaseException as error:
        try:
            undo(place, force=True, say=say)
        except StrakesError as failure:
            error.add_note(str(failure))
        raise
    finally:
        journal.close()


def _already_up(place: Path, kind: str, options: LabOptions) -> LabStatus | None:
    running = status_in(place)
    if running is None or running.condition not in ("up", "degraded"):
        return None
    wanted = options.document()
    unlike = [name for name in wanted if wanted[name] != running.options.get(name)]
    if kind == running.kind and not unlike:
        return running
    why = f"it differs in: {', '.join(unlike)}" if kind == running.kind else f"it is of the kind {running.kind}"
    what = f"the lab {place.name} is already running with different settings"
    remedy = f"Remove this lab first (strakes lab down {place.name}), or give the new lab a --name."
    raise BadInputError(what, where=running.mount_point, why=why, remedy=remedy)


def status_in(place: Path) -> LabStatus | None:
    """Return the status of the lab in a directory, or None if there is none."""
    state = read_state(place)
    if state is None:
        return None
    processes = []
    for process in state.processes:
        alive = state.this_boot and is_alive(process)
        memory = memory_of(process.pid) if alive else 0
        processes.append(ProcessStatus(**vars(process), alive=alive, memory_bytes=memory))
    condition, detail = _condition(place, state)
    known = {**vars(state), "processes": tuple(processes), "directory": str(place), "mount_point": str(place / "mnt")}
    return LabStatus(**known, condition=condition, detail=detail)


def _condition(place: Path, state: LabState) -> tuple[Condition, str]:
    if state.ready_after_s is None:
        if lock_holder(place):
            return "working", f"being started: {state.last_step}"
        return "stale", f"strakes lab up was killed at: {state.last_step or 'the beginning'}"
    if not state.this_boot:
        return "stale", "the machine has been restarted since"
    ended = [process.role for process in state.processes if not is_alive(process)]
    if CLIENT not in ended and mounted_at(place / "mnt") is None:
        return "stale", "the file system is no longer mounted"
    if ended:
        return "stale" if CLIENT in ended else "degraded", f"ended: {', '.join(ended)}"
    return "up", ""


def undo(place: Path, *, force: bool = False, say: Say = lambda _: None) -> bool:
    """Remove the lab in ``place``, whose directory is locked. Return whether the lab existed.

    Raises MeasurementError if a part cannot be removed or, without ``force``, if the file system is in use.
    """
    state = read_state(place)
    # If the start of a lab is killed early, only an incomplete journal remains. Other files were not made by strakes.
    if state is None and place.exists() and any(name != JOURNAL for name in os.listdir(place)):
        remedy = "Check the contents of the directory, then remove it yourself."
        raise BadInputError("this directory was not made by strakes lab", where=str(place), remedy=remedy)
    if state is not None:
        _release_mount_point(place, force=force)
        _stop(place, state, say)
    _remove_directory(place)
    remove_root()
    return state is not None


def _release_mount_point(place: Path, *, force: bool) -> None:
    mount = mounted_at(place / "mnt")
    if mount is None:
        return
    users = [f"{name} (process {pid})" for pid, name in users_of(place / "mnt").items()]
    users += [f"a mount at {other.mount_point}" for other in mounts_below(place / "mnt") if other != mount]
    if mount.file_system.startswith("fuse"):  # unmounted later, after the FUSE server has ended
        why = "" if force or not users else "it is in use"
    else:
        # If the NFS server is dead, detach the mount. A normal unmount would wait for the write-back of dirty pages.
        dead = mount.file_system.startswith("nfs") and space_of(place / "mnt") is None
        why = unmount(mount, detach=force or dead)
    if why:
        remedy = f"End these processes and mounts, or remove the lab anyway: strakes lab down {place.name} --force"
        what, why = f"the lab {place.name} is still in use", ", ".join(users) or why
        raise MeasurementError(what, where=mount.mount_point, why=why, remedy=remedy)


def _stop(place: Path, state: LabState, say: Say) -> None:
    # A process that waits for a slow device cannot end, so remove the limits first.
    release_limits(place)
    release_groups(state.id)
    records = state.processes if state.this_boot else ()
    if undead := kill_all(state.id, records, networks_below(place), _KILL_S):
        names = ", ".join(f"{name_of(pid)} (process {pid})" for pid in undead)
        why = "they wait for a device seconds after SIGKILL, or they belong to another user"
        raise _not_removed(f"not all processes of {place.name} could be ended", names, why, place)
    left: list[str] = []
    # The FUSE servers have ended, so an access to their mounts fails and does not hang.
    for mount in reversed(mounts_below(place)):
        why = unmount(mount, detach=mount.file_system.startswith("fuse"))
        left += [f"{mount.mount_point}: {why}"] if why else []
    if loops := detach_below(place):
        busy = ", ".join(f"/dev/{loop}" for loop in loops)
        say(f"{busy}: still in use. Linux detaches it as soon as the last process that uses it ends.")
    left += remove_groups(state.id)
    if left:
        raise _not_removed(f"not everything of {place.name} could be removed", str(place), "; ".join(left), place)


def _remove_directory(place: Path) -> None:
    with (
        suppress(FileNotFoundError),
        closing(open_guarded(place.parent)) as parent,
        closing(os.open(place.name, OPEN_DIRECTORY, dir_fd=parent)) as directory,
    ):
        left = empty_directory(directory, str(place), spare=JOURNAL)
        if not left:
            with suppress(FileNotFoundError):
                os.unlink(JOURNAL, dir_fd=directory)
            left = remove_empty(parent, place.name, directory, str(place))
        if left:
            raise _not_removed(f"not everything of {place.name} could be removed", left[0].path, left[0].why, place)


def _not_removed(what: str, where: str, why: str, place: Path) -> MeasurementError:
    remedy = f"Remove the cause, then run: strakes lab down {place.name}"
    return MeasurementError(what, where=where, why=why, remedy=remedy)
