"""lasting-rates: large calls and names in phases that last, a few of them, where most phases of a survey are bursts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from strakes.findings.cell import Cell, Measure
from strakes.findings.portrait import Figure, Finding, Headline, Point, Series, Setting, SkippedCell
from strakes.findings.results import Measured, Results
from strakes.plan import MetadataPhase, Phase, Plan, Stop, TransferPhase
from strakes.studies.compose import from_memory, from_own_cache, read_from
from strakes.studies.study import BANDWIDTH, FEW_VISITS, LASTING_S, Context, Pilot, Study, longer_making
from strakes.studies.transfer_size import FEWEST_CALLS, SURVEY_LEVELS, TransferSize
from strakes.targets.caches import own_cache
from strakes.units import counted, format_bytes

# Phases end after this time. There is more to do than the first rates get done by then: they are rough, and what is
# measured may become faster.
_PHASE_S = 0.65
_AMPLE = 2.0
# What phases take is not all that a visit takes.
_OVERHEAD = 1.3
_CROWD = 16


class LastingRates(Study):
    """The figures that a survey puts first, each in a few phases of more than half a second."""

    name = "lasting-rates"
    title = "Rates that last"
    question = "How fast are large calls, file creation and removal when they last?"
    source = "strakes"
    in_survey = True

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return what the time for them is enough for, what is asked most often first."""
        phase_s = max(context.phase_s, _PHASE_S)
        ample = replace(context, phase_s=_AMPLE * phase_s)
        buffered, direct = (self._data(ample, direct=direct) for direct in (False, True))
        # A cache that cannot be dropped answers buffered reads.
        cached = own_cache(context.file_system) and not context.shift
        first, last = (direct, buffered) if cached else (buffered, direct)
        cells = [_ended(cell, phase_s, context.pilot) for cell in (*first, *self._names(ample), *last)]
        if context.full:
            return cells
        left_s = context.lasting_s
        kept: list[Cell | SkippedCell] = []
        for cell in cells:
            takes_s = FEW_VISITS * visit_s(cell, context.pilot)
            if takes_s <= left_s:
                left_s -= takes_s
                kept.append(replace(cell, visits=FEW_VISITS))
            elif context.lasting_s:
                kept.append(self.skipped("a larger --budget measures it, too", **cell.settings))
        return kept

    def _data(self, context: Context, *, direct: bool) -> list[Cell]:
        amount = context.amount_bytes(context.team)
        fitting = [size for size in SURVEY_LEVELS if FEWEST_CALLS * size <= amount]
        if not fitting or (direct and not context.direct_io):
            return []
        cell = TransferSize().cell_of(context, fitting[-1], amount, direct=direct)
        io = cell.settings["io"]
        return [replace(cell, study=self.name, key=f"{self.name}/{io}", priority=1)]

    def _names(self, context: Context) -> list[Cell]:
        ranks, crowd = context.team, min(_CROWD, context.most_ranks or _CROWD)
        if context.max_items < 16 * crowd:
            return []
        items = context.items(ranks)
        operations = ("file-create", *(("file-stat",) if context.remote else ()), "file-remove")
        names = [MetadataPhase(name, name, "unique", items) for name in operations]
        create = MetadataPhase("create", "file-create", "shared", context.items(crowd))
        settings: dict[str, Setting] = {"ranks": ranks, "directory": "unique"}
        measures = tuple(Measure(name, "operations_per_s", {"operation": name}) for name in operations)
        each = Measure("create", "seconds_per_item", {"operation": "create and close"})
        return [
            Cell(self.name, f"{self.name}/names", settings, Plan(ranks, tuple(names), context.seed), measures),
            Cell(self.name, f"{self.name}/crowd", {"ranks": crowd}, Plan(crowd, (create,), context.seed), (each,)),
        ]

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the bandwidth of large calls."""
        points = tuple(
            Point(f"{cell.settings['operation']}, {cell.settings['io']}", cell.id)
            for cell in results.where()
            if "io" in cell.settings and cell.estimate is not None
        )
        lines = (Series("large calls", points),) if points else ()
        return [self.figure(lines, ("calls", "", "category"), BANDWIDTH)]

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return none: too few runs to compare."""
        return []

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return all, unless this node's memory or cache answered."""
        return [
            Headline(_label(cell, results), cell.id)
            for cell in results.where()
            if not from_memory(cell, results.facts) and not from_own_cache(cell, results.facts)
        ]


def _label(cell: Measured, results: Results) -> str:
    operation, ranks = cell.settings["operation"], float(cell.settings["ranks"])
    if "io" in cell.settings:
        how = "to fsync" if operation == "write" else read_from(cell, results.facts)
        return (
            f"{operation}, {cell.settings['io']} ({format_bytes(float(cell.settings['transfer_bytes']))} calls, {how})"
        )
    if cell.unit == "s":
        return f"create and close one file on each of {counted(ranks, 'rank')}"
    return f"{operation} ({counted(ranks, 'rank')})"


def _ended(cell: Cell, phase_s: float, pilot: Pilot) -> Cell:
    """Return the cell with phases that end after this time; later where that makes what follows last, too."""
    followed = {
        "write": pilot.read_bytes_per_s / pilot.write_bytes_per_s,
        "file-create": pilot.removes_per_s / pilot.creates_per_s if len(cell.plan.phases) > 1 else 1.0,
    }
    phases = tuple(
        replace(phase, stop=Stop("stonewall", round(phase_s * _longer(followed.get(phase.operation, 1.0)), 3)))
        for phase in cell.plan.phases
        if isinstance(phase, TransferPhase | MetadataPhase)
    )
    return replace(cell, plan=replace(cell.plan, phases=phases))


def _longer(faster: float) -> float:
    """Return how many phases making takes where what follows is so many times as fast: one where no more would help."""
    longer = longer_making(faster)
    return longer if faster * LASTING_S <= longer * _PHASE_S else 1.0


def visit_s(cell: Cell, pilot: Pilot) -> float:
    """Return about how long one visit takes in seconds, by the pilot's rates."""
    return sum(_phase_s(phase, cell.plan.ranks, pilot) for phase in cell.plan.phases) * _OVERHEAD + pilot.overhead_s


def _phase_s(phase: Phase, ranks: int, pilot: Pilot) -> float:
    if isinstance(phase, TransferPhase):
        rate = pilot.write_bytes_per_s if phase.operation == "write" else pilot.read_bytes_per_s
        return min(phase.stop.seconds or math.inf, phase.operations(ranks) * phase.transfer_bytes / rate)
    assert isinstance(phase, MetadataPhase)
    quick = max(pilot.creates_per_s, pilot.removes_per_s)
    rate = pilot.creates_per_s if phase.operation == "file-create" else quick
    return min(phase.stop.seconds or math.inf, phase.operations(ranks) / rate)
