"""Choose the cells that fit the file system and the budget. A pilot measurement gives the rates for planning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.machine import memory_sizes
from strakes.base.units import GIB, KIB, counted, format_bytes, format_seconds
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase
from strakes.model.portrait import SkippedCell
from strakes.runs.choice import processes
from strakes.runs.launch import Launch
from strakes.studies.study import MORE_BUDGET, Context, Pilot
from strakes.survey.amounts import (
    LONG_ENOUGH_MEMORY_S,
    LONG_ENOUGH_S,
    MEASURE_SHARE,
    MEMORY_FILE_SYSTEMS,
    WANTED_BLOCKS,
    asked_phase_s,
    load_of,
    refuse_without_room,
    with_amounts,
)
from strakes.survey.request import Request
from strakes.survey.verdicts import visit_s
from strakes.targets.description import Description, Striping

# Maximum share of the free space that a plan may fill, even at the user's request.
FREE_SHARE = 0.8
# Default maximum share of the free space for a plan. On XFS, 1 MiB writes were four times slower if plans filled 70 %.
CHOSEN_SHARE = 0.25
# Default maximum data of a plan as a share of the available memory.
MEMORY_SHARE = 0.25
# Maximum data of a plan on tmpfs and ramfs as a share of the available memory. The data occupy memory twice.
MEMORY_SHARE_IN_MEMORY = 0.1
_MOST_ITEMS = 1_000_000
_MOST_STATED_ITEMS = 1 << 40
_SMALLEST_TARGET_BYTES = 1024 * KIB
# Optimistic rates, in bytes and files per second. A request that exceeds the budget even at these rates is refused.
_FAST = Pilot(1e9, 1e9, 1e5)
# Assumed seconds of a trial outside its phases: 0 to decide whether to refuse a request, 0.1 to propose a budget.
_BESIDE_PHASES_S = (0.0, 0.1)
# A trial has fixed work if it takes more than this multiple of its planned time. A time limit would end it earlier.
_OUTSIZED_TIMES = 4.0
# Share of the budget for trials with a time limit. Twice the share would leave no time for trials with fixed work.
_SHARE_BESIDE_OUTSIZED = 0.5
# Longest phase of a study, in seconds. On CephFS, phases of 2 s and of 0.9 s scattered equally (14 and 13 %).
_LONGEST_PHASE_S = 1.0


def limits(
    facts: Mapping[str, Any], memory_available_bytes: int, full: bool, files: int | None = None, *, stated: bool = False
) -> tuple[int, int]:
    """Return the maximum bytes and files that one trial may create in the directory.

    ``stated``: whether the user gave the amounts. Raises BadInputError if the directory has too little free space.
    """
    in_memory = facts["file_system"] in MEMORY_FILE_SYSTEMS
    # FUSE file systems without statfs() report sizes of 0.
    free_bytes = facts["free_bytes"] if facts["total_bytes"] else memory_available_bytes
    share = MEMORY_SHARE_IN_MEMORY if in_memory else MEMORY_SHARE
    memory_cap = memory_available_bytes * share if not full or in_memory else 1024 * GIB
    if stated and not in_memory:
        memory_cap = free_bytes
    free_share = FREE_SHARE if full or stated else CHOSEN_SHARE
    max_bytes = int(min(free_share * free_bytes, memory_cap))
    items_cap = _MOST_STATED_ITEMS if stated else max(_MOST_ITEMS, 2 * (files or 0))
    free_inodes = facts["free_inodes"] if facts["total_inodes"] else items_cap  # btrfs and others do not count inodes
    max_items = int(min(FREE_SHARE * free_inodes, items_cap))
    if max_bytes < _SMALLEST_TARGET_BYTES or max_items < 64:
        what, least = "there are too few free inodes to measure", "100 inodes (each file and directory takes one)"
        free = f"{counted(free_inodes, 'inode')} free"
        if max_bytes < _SMALLEST_TARGET_BYTES:
            what, least = "there is too little free space to measure", format_bytes(_SMALLEST_TARGET_BYTES / free_share)
            free = f"{format_bytes(free_bytes)} free; strakes uses at most {free_share:.0%}"
        why = " ".join((f"{free}.", *facts.get("quotas", ())))
        remedy = f"Free {least} there, or choose another directory."
        raise BadInputError(what, where=str(facts["path"]), why=why, remedy=remedy)
    return max_bytes, max_items


def room_of(request: Request, facts: Mapping[str, Any]) -> tuple[int, int]:
    """Return the maximum bytes and files that one trial of this request may create."""
    beyond = request.full or request.data_per_rank is not None or request.phase_s is not None
    return limits(facts, memory_available_bytes(), beyond, request.files, stated=request.kind == "run")


def refuse_amounts(request: Request, facts: Mapping[str, Any], cpus: int) -> None:
    """Raise BadInputError if requested data or files exceed the space. The error names the largest values that fit.

    ``facts``: facts about the file system.
    """
    room = room_of(request, facts)
    further = []
    for overhead_s in _BESIDE_PHASES_S if request.phase_s is not None else ():
        known = {**facts, "cpus": cpus, "memory_bytes": memory_sizes().get("MemTotal", 0)}
        phases_alone = replace(request, data_per_rank=None, files=None)
        try:
            make_context(phases_alone, known, replace(_FAST, overhead_s=overhead_s), room)
        except BadInputError as error:
            further = [(error.why, error.remedy)]
        else:
            break
    refuse_without_room(request, room, team_size(cpus, request.launch), further)


def make_context(
    request: Request,
    facts: Mapping[str, Any],
    pilot: Pilot,
    room: tuple[int, int],
    description: Description | None = None,
) -> Context:
    """Return the parameters of all studies, including the longest phases that fit the budget.

    Raises BadInputError if requested data or files do not fit the file system or the budget.
    """
    context = Context(
        file_system=facts["file_system"],
        remote=facts["remote"],
        direct_io=facts["direct_io"],
        cpus=facts["cpus"],
        most_ranks=most_ranks(request.launch),
        memory_bytes=facts["memory_bytes"],
        max_bytes=room[0],
        max_items=room[1],
        phase_s=0.1,
        pilot=pilot,
        seed=request.seed,
        full=request.full,
        description=description,
        files=request.files,
        data_per_rank=request.data_per_rank,
        nodes=(facts.get("nodes") or {}).get("processes", {}),
        striping=Striping(**facts["striping"]) if facts.get("striping") else None,
        no_striping=facts.get("no_striping", ""),
    )
    refuse_without_room(request, room, context.team)
    if chooses_phases(request, context):
        return _longest_phases(request, context)
    trial, _ = choose_cells(request, context)
    loads = {
        priority: load_of([cell for cell in trial if cell.priority <= priority], context.pilot.overhead_s)
        for priority in sorted({cell.priority for cell in trial})
    }
    return with_amounts(request, context, loads) if loads else context


def chooses_phases(request: Request, context: Context) -> bool:
    """Return whether phases get as long as the budget allows: in full runs without a requested amount of work."""
    paced = any(study.visits_in_sequence or study.interrupts_service for study in request.studies)
    return request.full and not paced and asked_phase_s(request, context) is None


def _longest_phases(request: Request, context: Context) -> Context:
    shortest_s = LONG_ENOUGH_MEMORY_S if context.file_system in MEMORY_FILE_SYSTEMS else LONG_ENOUGH_S
    phase_s = _LONGEST_PHASE_S
    while phase_s > shortest_s:
        longer = replace(context, phase_s=phase_s)
        cells, _ = choose_cells(request, longer)
        visits_s = [visit_s(cell, longer.pilot, phase_s) for cell in cells]
        usual_s = [
            taken_s
            for cell, taken_s in zip(cells, visits_s, strict=True)
            if taken_s <= longer.pilot.overhead_s + _OUTSIZED_TIMES * phase_s * len(cell.plan.phases)
        ]
        share = 1.0 if len(usual_s) == len(visits_s) else _SHARE_BESIDE_OUTSIZED
        if WANTED_BLOCKS * sum(usual_s) <= share * MEASURE_SHARE * request.budget_s:
            return longer
        phase_s /= 1.5
    return replace(context, phase_s=shortest_s)


def team_size(cpus: int, launch: Launch) -> int:
    """Return the number of ranks if a study does not vary it: the user's number, or one per processor (2 to 4)."""
    return most_ranks(launch) or max(2, min(cpus, 4))


def most_ranks(launch: Launch) -> int | None:
    """Return the maximum number of ranks of a cell, or None without a limit."""
    return launch.ranks if launch.launcher == "local" else processes(launch)


def choose_cells(request: Request, context: Context) -> tuple[list[Cell], list[SkippedCell]]:
    """Return the measurements that fit the file system and the budget, and all other measurements with reasons."""
    cells: list[Cell] = []
    skipped: list[SkippedCell] = []
    available_bytes = memory_available_bytes() if request.kind == "run" else None
    for study in request.studies:
        for cell in study.cells(context):
            if isinstance(cell, SkippedCell):
                skipped.append(cell)
            elif reason := context.why_too_large(cell.plan, available_bytes):
                skipped.append(SkippedCell(cell.study, cell.settings, reason))
            elif cell.priority > context.least_priority:
                skipped.append(SkippedCell(cell.study, cell.settings, why_left_out(context)))
            else:
                inside = _through_libcephfs(cell) if request.libcephfs else cell
                cells.append(inside)
                skipped += [
                    SkippedCell(
                        cell.study,
                        {**cell.settings, **measure.settings},
                        "libcephfs has no call that creates with fsync",
                    )
                    for measure in cell.measures
                    if measure not in inside.measures and measure.metric == "operations_per_s"
                ]
    if request.libcephfs and cells and not any(cell.plan.inside_ceph() for cell in cells):
        names = ", ".join(dict.fromkeys(cell.study for cell in cells))
        raise BadInputError(
            f"--libcephfs would have no effect on {names}",
            why="libcephfs serves only metadata operations, but all cells here move data, which goes through the mount",
            remedy="Leave out --libcephfs, or measure metadata: strakes study metadata-ops DIR --libcephfs.",
        )
    return cells, skipped


def why_left_out(context: Context) -> str:
    """Return the text that explains why less important measurements are left out."""
    return f"{MORE_BUDGET}: more important cells take {format_seconds(context.phase_s)} per phase"


def _through_libcephfs(cell: Cell) -> Cell:
    """Let a cell use libcephfs instead of the mount. Return it unchanged if it moves data or needs fsync.

    Cells that move data keep the mount, because caches of libcephfs cannot be dropped.
    """
    phases = [phase for phase in cell.plan.phases if isinstance(phase, MetadataPhase) and not phase.fsync]
    names = {phase.name for phase in phases}
    left_out = {phase.name for phase in cell.plan.phases} - names
    others = any(not isinstance(phase, MetadataPhase) for phase in cell.plan.phases)
    if others or not phases or not left_out <= {measure.phase for measure in cell.measures}:
        return cell
    plan = replace(cell.plan, phases=tuple(replace(phase, backend="cephfs") for phase in phases))
    return replace(cell, plan=plan, measures=tuple(measure for measure in cell.measures if measure.phase in names))


def memory_available_bytes() -> int:
    """Return the available memory in bytes. Raises BadInputError if the kernel does not report it."""
    available = memory_sizes().get("MemAvailable")
    if available is None:
        remedy = "Use a Linux kernel of version 3.14 or later."
        raise BadInputError("no MemAvailable", where="/proc/meminfo", remedy=remedy)
    return available
