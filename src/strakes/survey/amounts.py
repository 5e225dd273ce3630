"""Choose the measurements, and the length of their phases, so that enough repetitions fit the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from strakes.base.errors import BadInputError
from strakes.base.units import counted, format_bytes, format_seconds, typed_bytes, typed_seconds
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Phase
from strakes.studies.study import PER_RANK_STEP, Context
from strakes.survey.request import Request

# Share of the budget for repeated trials. The rest is for the creation of directories and the removal of files.
MEASURE_SHARE = 0.92
# Planned and minimum number of repetitions. At a scatter of 15 %, 12 repetitions detect a difference of 30 % with a
# power of 90 %. The power of 8 repetitions is 70 % (bench/truth).
WANTED_BLOCKS, FEWEST_BLOCKS = 12, 8
# A trial takes 30 % longer than its phases, because it also makes directories, drops caches and removes files.
OVERHEAD = 1.3
# An operation on an existing file takes about half as long as its creation, on all measured file systems.
_QUICK = 0.5
_MAKING = ("file-create", "dir-create")
# Minimum length of phases in seconds, on disks and in memory. Shorter phases mostly measure their own start-up.
LONG_ENOUGH_S, LONG_ENOUGH_MEMORY_S = 0.07, 0.02
_SHORTEST_PHASE_S, _LONGEST_PHASE_S = 0.01, 2.0
# Maximum share of the time for work outside the phases, such as creating files. At least 30 % are for the phases.
_MOST_BESIDE = 0.7
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class Load:
    """Work of one trial of each cell. ``phases``: number (short ones: 1/2). ``beside_s``: seconds outside phases."""

    cells: int
    phases: float
    beside_s: float

    def budget_s(self, phase_s: float, blocks: int) -> float:
        """Return the budget in seconds for ``blocks`` rounds of trials with phases of ``phase_s`` seconds."""
        return blocks * (self.phases * OVERHEAD * phase_s + self.beside_s) / MEASURE_SHARE

    def phase_s(self, budget_s: float, blocks: int) -> float:
        """Return the longest phase, in seconds, for which ``blocks`` rounds of trials fit the budget."""
        block_s = budget_s * MEASURE_SHARE / blocks
        beside_s = min(self.beside_s, _MOST_BESIDE * block_s)
        return max(_SHORTEST_PHASE_S, min((block_s - beside_s) / (self.phases * OVERHEAD), _LONGEST_PHASE_S))


def load_of(cells: Sequence[Cell], overhead_s: float) -> Load:
    """Return the load of one trial of each cell. ``overhead_s``: seconds per trial outside its phases."""
    phases = sum(weight(phase) for cell in cells for phase in cell.plan.phases)
    return Load(len(cells), max(1.0, phases), len(cells) * overhead_s)


def weight(phase: Phase) -> float:
    """Return the relative duration of a phase: 0.5 for metadata operations on existing files, else 1."""
    return _QUICK if isinstance(phase, MetadataPhase) and phase.operation not in _MAKING else 1.0


def asked_phase_s(request: Request, context: Context) -> float | None:
    """Return the seconds that the longest phase needs for the requested time, data or files (None: no request)."""
    asked = [request.phase_s] if request.phase_s is not None else []
    if request.data_per_rank is not None:
        slower = min(context.pilot.write_bytes_per_s, context.pilot.read_bytes_per_s)
        asked.append(request.data_per_rank * context.team / slower)
    paced = any(study.visits_in_sequence or study.interrupts_service for study in request.studies)
    if request.files is not None and not paced:
        asked.append(request.files / context.pilot.creates_per_s)
    return max(asked, default=None)


def with_amounts(request: Request, context: Context, loads: Mapping[int, Load]) -> Context:
    """Return ``context`` with the chosen length of phases, and the priority of the least important cells to measure.

    ``loads``: for each priority, the load of all cells of at least this importance. If the requested amounts do not fit
    into the budget, raises BadInputError that names a sufficient budget.
    """
    asked_s = asked_phase_s(request, context)
    wanted_s = asked_s or (LONG_ENOUGH_MEMORY_S if context.file_system in MEMORY_FILE_SYSTEMS else LONG_ENOUGH_S)
    fitting = [level for level, load in loads.items() if load.budget_s(wanted_s, WANTED_BLOCKS) <= request.budget_s]
    priority = max(loads) if request.full else max(fitting, default=min(loads))
    load = loads[priority]
    if asked_s is None:
        return replace(context, phase_s=load.phase_s(request.budget_s, WANTED_BLOCKS), least_priority=priority)
    least = Load(2, 2 * load.phases / load.cells, 2 * load.beside_s / load.cells) if request.full else load
    needed_s = least.budget_s(asked_s, FEWEST_BLOCKS)
    if needed_s > request.budget_s:
        given_s = request.whole_budget_s or request.budget_s
        enough = typed_seconds(needed_s * given_s / request.budget_s, up=True)
        words = {"phase_s": "--phase", "data_per_rank": "--data-per-rank", "files": "--files"}
        raise BadInputError(
            "the requested amounts of work do not fit into the budget",
            where=f"{' and '.join(words[name] for name in request.amounts())} with --budget {typed_seconds(given_s)}",
            why=f"measuring {counted(least.cells, 'cell')} {FEWEST_BLOCKS} times each, with phases of "
            f"{format_seconds(asked_s)}, takes about {typed_seconds(needed_s, up=True)}",
            remedy=f"Give --budget {enough}, or smaller amounts"
            + ("." if request.kind != "survey" else ", or measure one study: strakes study list."),
        )
    return replace(context, phase_s=asked_s, least_priority=priority)


def refuse_without_room(
    request: Request, room: tuple[int, int], team: int, further: Sequence[tuple[str, str]] = ()
) -> None:
    """Raise BadInputError if the requested data or files exceed the space. The error names the largest values that fit.

    ``room``: maximum bytes and files of one plan. ``further``: (reason, remedy) of each other problem to report.
    """
    most_bytes, most_files = room
    refused: list[tuple[str, str]] = []
    per_rank, files = request.data_per_rank, request.files
    if per_rank is not None and per_rank * team > most_bytes:
        why = (
            f"--data-per-rank {format_bytes(per_rank)} is too large: {counted(team, 'rank')} need "
            f"{format_bytes(per_rank * team)} together, and strakes uses at most {format_bytes(most_bytes)} here"
        )
        most = typed_bytes(most_bytes // team // PER_RANK_STEP * PER_RANK_STEP)
        refused.append((why, f"Give at most --data-per-rank {most}, or fewer --ranks."))
    if files is not None and files >= most_files:
        most = counted(most_files - 1, "file")
        why = f"--files {files:,} is too large: strakes creates at most {most} here"
        refused.append((why, f"Give at most --files {most_files - 1}."))
    refused += further
    if refused:
        raise BadInputError(
            f"the requested amounts do not fit into the {'free space' if len(refused) > len(further) else 'budget'}",
            where=str(request.directory),
            why="; ".join(why for why, _ in refused),
            remedy=" ".join(remedy for _, remedy in refused),
        )
