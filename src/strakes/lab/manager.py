"""Starts and removes labs, and reports their states."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.lab.kind import CLIENT, Lab, load
from strakes.lab.lab_directory import (
    all_directories,
    directory_of,
    is_being_worked_in,
    remove_root,
    removed_meanwhile,
    working_in,
)
from strakes.lab.mounts import mounted_at
from strakes.lab.options import LabOptions, require_bounds
from strakes.lab.packages import require_packages
from strakes.lab.process import is_alive, memory_of
from strakes.lab.site import LabSite
from strakes.lab.state import LabJournal, LabState, read_state
from strakes.lab.undo import undo

# up: all processes run; degraded: some server has ended; working: a command starts or removes it; stale: remains of a
# killed command or from before a reboot.
Condition = Literal["up", "degraded", "working", "stale"]
Say = Callable[[str], None]
_START_TIMES = 3


@dataclass(frozen=True)
class ProcessStatus:
    """One process of a lab as it is now."""

    role: str
    pid: int
    alive: bool
    memory_bytes: int


@dataclass(frozen=True)
class LabStatus:
    """One lab as it is now. ``detail``: the trouble in words."""

    name: str
    kind: str
    condition: Condition
    detail: str
    directory: str
    mount_point: str
    created_unix_s: float
    ready_after_s: float | None
    options: Mapping[str, Any]
    facts: Mapping[str, Any]
    processes: tuple[ProcessStatus, ...]


def up(kind: str, name: str, options: LabOptions, *, install: bool, say: Say) -> tuple[LabStatus, bool]:
    """Bring a lab up; return its status, and whether it was up already.

    Remains of a killed ``up`` or from before a reboot are removed first. Raises BadInputError if it is up with other
    options, EnvironmentLacksError if this machine lacks something; then nothing is left behind.
    """
    lab_class = load(kind)
    require_bounds(options)
    place = directory_of(name)
    already = _already_up(place, kind, options)
    if already:
        return already, True
    if lab_class.needs_root and os.geteuid() != 0:
        raise EnvironmentLacksError(
            f"{kind} needs root here",
            why="it mounts file systems and sets up networks",
            remedy="Run the same command as root.",
        )
    lab_class.check(options, place)
    require_packages(kind, lab_class.packages_for(options), install=install, say=say)
    for _ in range(_START_TIMES):
        with working_in(place, make=True):
            already = _already_up(place, kind, options)
            if already:
                return already, True
            if not os.listdir(place):
                _start(place, kind, lab_class, options, say)
                break
            # This removes the directory, and with it the lock.
            undo(place)
            say(f"{name}: removing what an earlier lab of that name has left behind")
    started = _status(place)
    if started is None:
        raise removed_meanwhile(place)
    return started, False


def down(name: str, *, force: bool) -> bool:
    """Remove a lab; return whether it existed."""
    lab = directory_of(name)
    with working_in(lab, make=False) as there:
        existed = undo(lab, force=force) if there else False
    remove_root()
    return existed


def status(name: str) -> LabStatus | None:
    """Return the status of a lab, or None if it does not exist."""
    return _status(directory_of(name))


def all_labs() -> tuple[LabStatus, ...]:
    """Return every lab that is there."""
    return tuple(lab for place in all_directories() if (lab := _status(place)))


def names() -> tuple[str, ...]:
    """Return the names of all labs, whatever their condition."""
    return tuple(place.name for place in all_directories())


def _start(place: Path, kind: str, lab_class: type[Lab[LabOptions]], options: LabOptions, say: Say) -> None:
    journal, lab_id = LabJournal.create(place, kind, place.name, options.document())
    try:
        site = LabSite(place, place.name, lab_id, journal, say)
        lab = lab_class(site, options)
        lab.up()
        site.wait_until("the file system", lab.ready, limit_s=lab.ready_limit_s)
        lab.slow_down()
        journal.ready(site.elapsed_s, lab.facts())
    except BaseException as error:
        try:
            undo(place, force=True)
        except StrakesError as failure:
            error.add_note(str(failure))
        raise
    finally:
        journal.close()


def _already_up(place: Path, kind: str, options: LabOptions) -> LabStatus | None:
    """Raise BadInputError when it is another lab than the one that is wanted."""
    running = _status(place)
    if running is None or running.condition not in ("up", "degraded"):
        return None
    wanted = options.document()
    unlike = (
        [name for name in wanted if wanted[name] != running.options.get(name)] if kind == running.kind else ["kind"]
    )
    if unlike:
        raise BadInputError(
            f"{place.name} is already running with different settings",
            where=running.mount_point,
            why=f"it differs in: {', '.join(unlike)}" if kind == running.kind else f"it is of the kind {running.kind}",
            remedy=f"Remove it first (strakes lab down {place.name}), or give the new one a --name.",
        )
    return running


def _status(place: Path) -> LabStatus | None:
    state = read_state(place)
    if state is None:
        return None
    processes = []
    for process in state.processes:
        alive = state.this_boot and is_alive(process)
        processes.append(ProcessStatus(process.role, process.pid, alive, memory_of(process.pid) if alive else 0))
    condition, detail = _condition(place, state)
    return LabStatus(
        name=state.name,
        kind=state.kind,
        condition=condition,
        detail=detail,
        directory=str(place),
        mount_point=str(place / "mnt"),
        created_unix_s=state.created_unix_s,
        ready_after_s=state.ready_after_s,
        options=state.options,
        facts=state.facts or {},
        processes=tuple(processes),
    )


def _condition(place: Path, state: LabState) -> tuple[Condition, str]:
    if state.ready_after_s is None:
        if is_being_worked_in(place):
            return "working", f"being started: {state.last_step}"
        return "stale", f"strakes lab up was killed at: {state.last_step or 'the beginning'}"
    if not state.this_boot:
        return "stale", "the machine has been restarted since"
    ended = [process.role for process in state.processes if not is_alive(process)]
    if CLIENT in ended:
        return "stale", f"ended: {', '.join(ended)}"
    if mounted_at(place / "mnt") is None:
        return "stale", "the file system is no longer mounted"
    if ended:
        return "degraded", f"ended: {', '.join(ended)}"
    return "up", ""
