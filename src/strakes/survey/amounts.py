"""How long phases are and which cells take part: long enough for what is claimed, as many as the budget has room for.

Pure. A rate of some milliseconds on a few megabytes is that of caches and of starting, so where the budget is short
cells are left out before phases become too short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strakes.analysis.collect import ENOUGH_CELLS
from strakes.analysis.statements import blocks_to_decide
from strakes.errors import BadInputError
from strakes.findings.cell import Cell
from strakes.plan import MetadataPhase, Phase
from strakes.statistics.interval import smallest_runs
from strakes.studies.lasting import visit_s
from strakes.studies.study import LASTING_S, Context, Pilot
from strakes.survey.request import Request
from strakes.units import counted, format_bytes, format_seconds, typed_bytes, typed_seconds

# Share of the budget for measuring; the rest goes to the pilot, the confirmation and clean-up.
MEASURE_SHARE = 0.7
# Where work takes longer than the pilot made it seem, measuring may take this much, if that decides what would be left
# open.
LATE_SHARE = 0.85
# A phase costs more than its timed section: preparing, dropping caches, removing files.
_OVERHEAD = 1.3
# Operations on names that are there are faster than making them, on every file system.
_QUICK = 0.5
_MAKING = ("file-create", "dir-create")
# Blocks beyond the smallest number that decides anything: one that disagrees is then no end of it, and a change during
# the run shows as one.
_SPARE_BLOCKS = 2
# Findings of each cell, at most: they share the error, and the more they are, the more blocks it takes to decide any.
_STATEMENTS = 2
# At most this share of the time is set aside for what visits take beside their phases.
_MOST_BESIDE = 0.8
_SHORTEST_PHASE_S = 0.01
_LONGEST_PHASE_S = 5.0
# Below this a survey leaves out cells rather than time. Behind a network write-back and round trips take longer to
# settle; memory has nothing that has to settle. On a local disk a short survey compares how work begins, in many
# blocks: with phases that last in two minutes there is room for three cells, which decide and confirm little, and a
# neighbour who comes and goes is not seen (docs/statistics.md, "What phases that last would cost two minutes"). A
# longer one spends its time on phases that last before it measures more.
LONG_ENOUGH_S = 0.07
LONG_ENOUGH_MEMORY_S = 0.03
_OF_BUDGET = 1 / 1200
# Of the time for measuring, at most, what a few phases that last may take where all others are shorter.
LASTING_SHARE = 0.45
# Where phases of all that matters most would be shorter than this share of what is long enough, whole studies are left
# out, the first of these last: in the second order where the first leaves fewer cells than ENOUGH_CELLS, of which a run
# cannot tell how sure they are, or no names, or no data.
_TOO_SHORT = 0.5
_FOREMOST = (("transfer-size", "lasting-rates"), ("transfer-size", "processes-per-node", "lasting-rates"))
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class Load:
    """What one block of cells takes: ``phases`` as long as one that makes something, and ``beside_s``.

    ``lasting_s``: what cells take in all that are not visited in every block.
    """

    cells: int
    phases: float
    beside_s: float
    least_runs: int
    lasting_s: float = 0.0

    def of_phases(self, phase_s: float, blocks: int) -> float:
        """Return the budget in seconds that so many blocks with phases of this length need."""
        return (blocks * (self.phases * _OVERHEAD * phase_s + self.beside_s) + self.lasting_s) / MEASURE_SHARE


def load_of(cells: Sequence[Cell], pilot: Pilot) -> Load:
    """Return what a block of these cells takes."""
    usual = [cell for cell in cells if not cell.visits]
    phases = sum(_weight(phase) for cell in usual for phase in cell.plan.phases)
    lasting_s = sum(cell.visits * visit_s(cell, pilot) for cell in cells if cell.visits)
    least_runs = max((cell.least_runs for cell in usual), default=0)
    return Load(len(usual), max(1.0, phases), len(usual) * pilot.overhead_s, least_runs, lasting_s)


def phase_seconds(request: Request, load: Load) -> float:
    """Return how long one phase may take so that every cell gets enough runs within the budget."""
    blocks = _blocks(request, load)
    measuring_s = request.budget_s * MEASURE_SHARE - load.lasting_s
    # Where making and removing its directory is most of a visit, short phases leave room for enough of them.
    beside_s = min(_MOST_BESIDE * measuring_s, blocks * load.beside_s)
    seconds = (measuring_s - beside_s) / (blocks * load.phases * _OVERHEAD)
    return max(_SHORTEST_PHASE_S, min(seconds, _LONGEST_PHASE_S))


def long_enough_s(file_system: str, budget_s: float, *, remote: bool) -> float:
    """Return how long phases are to be in seconds before more is measured.

    >>> [long_enough_s("xfs", budget_s, remote=False) for budget_s in (60.0, 300.0, 3600.0)]
    [0.07, 0.25, 0.5]
    """
    if file_system in MEMORY_FILE_SYSTEMS:
        return LONG_ENOUGH_MEMORY_S
    return LASTING_S if remote else max(LONG_ENOUGH_S, min(_OF_BUDGET * budget_s, LASTING_S))


def with_fewer_studies(request: Request, context: Context, planned: Context, cells: Sequence[Cell]) -> Context:
    """Return what was planned, or, where its phases are too short, the context with fewer studies and longer phases.

    ``cells``: those that matter most, with all that last.
    """
    in_memory = context.file_system in MEMORY_FILE_SYSTEMS
    least_s = _TOO_SHORT * (LONG_ENOUGH_MEMORY_S if in_memory else LONG_ENOUGH_S)
    if request.full or planned.phase_s >= least_s:
        return planned
    for foremost in _FOREMOST:
        kept, left_out = _fitting(request, cells, context.pilot, least_s, foremost)
        kinds = {isinstance(phase, MetadataPhase) for cell in kept for phase in cell.plan.phases}
        if len(kept) >= ENOUGH_CELLS and len(kinds) > 1:
            phase_s = min(phase_seconds(request, load_of(kept, context.pilot)), LASTING_S)
            return replace(context, phase_s=phase_s, least_priority=planned.least_priority, left_out=left_out)
    return planned


def _fitting(
    request: Request, cells: Sequence[Cell], pilot: Pilot, phase_s: float, foremost: Sequence[str]
) -> tuple[list[Cell], frozenset[str]]:
    """Return the cells for which there is time with phases of this length, and the parts for which there is none.

    Spare blocks may make these a fifth shorter.
    """
    parts: dict[str, list[Cell]] = {}
    for cell in sorted(cells, key=lambda cell: foremost.index(cell.study) if cell.study in foremost else len(foremost)):
        parts.setdefault(cell.part, []).append(cell)
    kept: list[Cell] = []
    for part in parts.values():
        load = load_of([*kept, *part], pilot)
        fewest = max(fewest_blocks(request.confidence, load.cells), load.least_runs)
        if load.of_phases(phase_s, fewest) <= request.budget_s:
            kept += part
    return kept, frozenset(parts.keys() - {cell.part for cell in kept})


def asked_phase_s(request: Request, context: Context) -> float | None:
    """Return how long phases are by what was asked for, by the pilot's rates; None where nothing was."""
    asked = [request.phase_s] if request.phase_s is not None else []
    if request.data_per_rank is not None:
        slower = min(context.pilot.write_bytes_per_s, context.pilot.read_bytes_per_s)
        asked.append(request.data_per_rank * context.team / slower)
    # What grows over many visits, or is made before a drill, has its own pace.
    paced = any(study.visits_in_sequence or study.interrupts_service for study in request.studies)
    if request.files is not None and not paced:
        asked.append(request.files / context.pilot.creates_per_s)
    return max(asked, default=None)


def _budget_s(request: Request, load: Load, phase_s: float) -> float:
    """Return the budget in seconds with which cells of this load have phases of this length."""
    return load.of_phases(phase_s, _blocks(request, load))


def with_amounts(request: Request, context: Context, loads: dict[int, Load]) -> Context:
    """Return the context with the length of phases, and with the least important cells that take part.

    ``loads``: what cells up to each priority take. Raises BadInputError where what was asked for does not fit into the
    budget, with a budget that suffices.
    """
    asked_s = asked_phase_s(request, context)
    usual_s = request.budget_s - loads[min(loads)].lasting_s / MEASURE_SHARE
    wanted_s = asked_s or long_enough_s(context.file_system, usual_s, remote=context.remote)
    fitting = [level for level, load in loads.items() if _budget_s(request, load, wanted_s) <= request.budget_s]
    priority = max(loads) if request.full else max(fitting, default=min(loads))
    load = loads[priority]
    if asked_s is None:
        return replace(context, phase_s=phase_seconds(request, load), least_priority=priority)
    fewest = max(smallest_runs(request.confidence), load.least_runs)
    needed_s = load.of_phases(asked_s, fewest)
    if needed_s > request.budget_s:
        words = {"phase_s": "--phase", "data_per_rank": "--data-per-rank", "files": "--files"}
        raise BadInputError(
            "the amounts asked for do not fit into the budget",
            where=f"{' and '.join(words[name] for name in request.amounts())} with --budget "
            f"{typed_seconds(request.budget_s)}",
            why=f"{counted(load.cells, 'cell')} with phases of {format_seconds(asked_s)}, each {fewest} times for an "
            f"interval, take about {typed_seconds(needed_s, up=True)}",
            remedy=f"Give --budget {typed_seconds(needed_s, up=True)}, or smaller amounts"
            + ("." if request.kind != "survey" else ", or measure one study: strakes study list."),
        )
    return replace(context, phase_s=asked_s, least_priority=priority)


def refuse_without_room(
    request: Request, room: tuple[int, int], team: int, further: Sequence[tuple[str, str]] = ()
) -> None:
    """Raise BadInputError, with what would fit, for all amounts at once of which there is no room on the target.

    ``room``: the most bytes and files that one plan may put there. ``further``: other reasons, each with its remedy.
    """
    most_bytes, most_files = room
    refused: list[tuple[str, str]] = []
    per_rank, files = request.data_per_rank, request.files
    if per_rank is not None and per_rank * team > most_bytes:
        why = (
            f"--data-per-rank {format_bytes(per_rank)} is more than may be used here: of {counted(team, 'rank')} that "
            f"is {format_bytes(per_rank * team)}, and strakes uses at most {format_bytes(most_bytes)}"
        )
        least = f"Give at most --data-per-rank {typed_bytes(most_bytes // team)}, or fewer --ranks."
        refused.append((why, least))
    if files is not None and files >= most_files:
        most = counted(most_files - 1, "file")
        why = f"--files {files:,} is more than may be made here: strakes makes at most {most}"
        refused.append((why, f"Give at most --files {most_files - 1}."))
    refused += further
    if refused:
        raise BadInputError(
            "the amounts asked for do not fit",
            where=str(request.directory),
            why="; ".join(why for why, _ in refused),
            remedy=" ".join(remedy for _, remedy in refused),
        )


def fewest_blocks(confidence: float, cells: int) -> int:
    """Return the fewest blocks over so many cells that can decide what is stated of them.

    >>> fewest_blocks(0.9, 1), fewest_blocks(0.9, 14)
    (5, 12)
    """
    return blocks_to_decide(confidence, _STATEMENTS * cells) if cells > 1 else smallest_runs(confidence)


def _blocks(request: Request, load: Load) -> int:
    return max(fewest_blocks(request.confidence, load.cells) + _SPARE_BLOCKS, load.least_runs + 1)


def _weight(phase: Phase) -> float:
    return _QUICK if isinstance(phase, MetadataPhase) and phase.operation not in _MAKING else 1.0
