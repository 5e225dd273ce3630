"""Which cell is measured next: randomised interleaved blocks until every interval is reached or the time is gone.

Pure.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from strakes.analysis.collect import metric_value
from strakes.findings.cell import Cell
from strakes.launch.impact import UNLIMITED, Impact
from strakes.statistics.stopping import Judgement, StoppingRule
from strakes.store.records import Visit

# Until its first visit a cell is expected to take as long as its phases were sized for, times this.
_FIRST_GUESS = 2.0
# Runs more of every cell where dropped ones are taken back.
_MORE_RUNS = 6


@dataclass
class CellState:
    """What is known of one cell so far."""

    cell: Cell
    values: dict[str, list[float]] = field(default_factory=dict)
    durations_s: list[float] = field(default_factory=list)

    def runs(self) -> int:
        """Return how many visits were kept."""
        return len(self.durations_s)


class Schedule:
    """Keeps the open cells and their order.

    A block visits every open cell once, in an order drawn from seed and block; of those with a number of visits, some.
    """

    def __init__(self, cells: Sequence[Cell], rule: StoppingRule, seed: int, phase_s: float, min_runs: int) -> None:
        self._states = {cell.key: CellState(cell) for cell in cells}
        self._rule = rule
        self._seed = seed
        self._phase_s = phase_s
        self._least_runs = self._min_runs = min_runs
        self._dropped: set[str] = set()
        # Blocks that went by without a cell of a study that was taken back: its others make as many runs more with it.
        self._missed: dict[str, int] = {}
        self._late: set[str] = set()
        self._visited: set[tuple[int, str]] = set()
        self.limit = UNLIMITED
        self.block = 0

    def record(self, visit: Visit) -> None:
        """Take in one finished visit of purpose ``measure``, live or from the store on resume."""
        state = self._states[visit.cell]
        self._visited.add((visit.block, visit.cell))
        self.block = max(self.block, visit.block)
        if not visit.ended_well or visit.impact != self.limit:
            return
        state.durations_s.append(visit.elapsed_s)
        for measure in state.cell.measures:
            sample = visit.sample(measure.phase)
            if sample is not None and not measure.is_side:
                state.values.setdefault(measure.suffix, []).append(metric_value(measure.metric, sample))

    def take(self, visit: Visit, visits: Sequence[Visit]) -> None:
        """Take in the visit that has just been made, the last of ``visits``, under whatever limit."""
        if visit.impact == self.limit:
            self.record(visit)
        else:
            self.under(visit.impact, visits)

    def under(self, limit: Impact, visits: Sequence[Visit]) -> None:
        """Only visits under this limit count from now on.

        Where it is another one, what is known of the cells is what these visits say.
        """
        if limit == self.limit:
            return
        self.limit = limit
        self._states = {key: CellState(state.cell) for key, state in self._states.items()}
        for visit in visits:
            if visit.is_measurement and visit.cell in self._states:
                self.record(visit)

    def judge(self, key: str, suffix: str) -> Judgement | None:
        """Return what the stopping rule says of one measure of a cell; None before its first run."""
        state = self._states[key]
        values = state.values.get(suffix)
        precision = state.cell.precision
        rule = (
            self._rule
            if precision is None
            else replace(self._rule, relative_half_width=min(precision, self._rule.relative_half_width))
        )
        return rule.judge(values) if values else None

    def width(self, key: str) -> float | None:
        """Return the widest relative half-width of a cell's intervals; None as long as one has none."""
        judgements = [
            self.judge(key, measure.suffix) for measure in self._states[key].cell.measures if not measure.is_side
        ]
        widths = [
            (judgement.estimate.interval.high - judgement.estimate.interval.low) / 2 / judgement.estimate.median
            for judgement in judgements
            if judgement is not None and judgement.estimate.interval is not None and judgement.estimate.median > 0
        ]
        return max(widths) if widths and len(widths) == len(judgements) else None

    def finished(self, key: str) -> bool:
        """Every measure of the cell has its interval (or as many runs as the rule allows)."""
        state = self._states[key]
        if state.cell.visits or state.runs() < self._fewest(state.cell):
            return state.runs() >= self._fewest(state.cell)
        judgements = [self.judge(key, measure.suffix) for measure in state.cell.measures if not measure.is_side]
        return all(judgement is not None and judgement.stop for judgement in judgements)

    def runs(self, key: str) -> int:
        """Count the runs of a cell so far."""
        return self._states[key].runs()

    def open_cells(self) -> list[Cell]:
        """Cells that still want runs, in declared order."""
        return [
            state.cell for key, state in self._states.items() if key not in self._dropped and not self.finished(key)
        ]

    def expected_s(self, cell: Cell) -> float:
        """How long one visit of the cell takes, from its visits so far."""
        state = self._states[cell.key]
        if state.durations_s:
            return median(state.durations_s)
        was_dropped = cell.key in self._dropped or cell.key in self._late
        return self._guess_s(cell) * (self._pace() if was_dropped else 1.0)

    def _guess_s(self, cell: Cell) -> float:
        return max(_FIRST_GUESS * self._phase_s * len(cell.plan.phases), cell.plan.stop_seconds()) / self.limit.share

    def _pace(self) -> float:
        """Return how many times as long as guessed visits of those cells took that have some."""
        paces = [
            median(state.durations_s) / self._guess_s(state.cell)
            for state in self._states.values()
            if state.durations_s and self._guess_s(state.cell) > 0
        ]
        return median(paces) if paces else 1.0

    def _fewest(self, cell: Cell) -> int:
        return cell.visits or max(self._min_runs, cell.least_runs) + self._extra(cell)

    def _extra(self, cell: Cell) -> int:
        return 0 if cell.key in self._late else self._missed.get(cell.study, 0)

    def next_block(self) -> list[Cell]:
        """Return the rest of the running block, else a new one, in its random order; empty when nothing is open."""
        order = self._order(self.block)
        rest = [cell for cell in order if (self.block, cell.key) not in self._visited]
        if self.block == 0 or not rest:
            self.block += 1
            rest = self._order(self.block)
        return rest

    def _order(self, block: int) -> list[Cell]:
        open_cells = self.open_cells()
        cells = [cell for cell in open_cells if not cell.visits or self._is_due(cell, block)] or open_cells
        random.Random(f"{self._seed}/{block}").shuffle(cells)
        return cells

    def _is_due(self, cell: Cell, block: int) -> bool:
        """Whether a cell with a number of visits is: they lie in the blocks that all others need."""
        return self._states[cell.key].runs() * self._min_runs < cell.visits * block

    def fit(self, remaining_s: float) -> list[Cell]:
        """Drop the least important cells that cannot get the smallest number of runs in time; returns what it dropped.

        Only cells that have fewer runs than that are dropped, never those of priority 1: too few runs of what matters
        still say something.
        """
        dropped: list[Cell] = []
        while self.needed_s(least=True) > remaining_s:
            candidates = [
                cell
                for cell in self.open_cells()
                if cell.priority > 1 and self._states[cell.key].runs() < self._least_runs
            ]
            if not candidates:
                break
            worst = max(candidates, key=lambda cell: (cell.priority, self.expected_s(cell)))
            self._dropped.add(worst.key)
            dropped.append(worst)
        return dropped

    def take_back(self, remaining_s: float) -> list[Cell]:
        """Take dropped cells in again, the most important first, that have time after all; returns these.

        Before the first block it was a guess how long a cell takes. Cells that are compared are measured in the same
        blocks, so the others of the study are open again for as many runs.
        """
        taken: list[Cell] = []
        if not any(state.durations_s for state in self._states.values()):
            return taken
        dropped = [self._states[key].cell for key in self._states if key in self._dropped]
        for cell in sorted(dropped, key=lambda cell: (cell.priority, self.expected_s(cell))):
            missed = self._missed.get(cell.study, 0)
            self._dropped.remove(cell.key)
            self._late.add(cell.key)
            self._missed[cell.study] = max(missed, self.block)
            if self.needed_s() <= remaining_s:
                taken.append(cell)
                continue
            self._dropped.add(cell.key)
            self._late.remove(cell.key)
            self._missed[cell.study] = missed
        # More cells mean more statements that share the error, and each then takes more runs: as many as time allows.
        for _ in range(_MORE_RUNS if taken else 0):
            self._min_runs += 1
            if self.needed_s() > remaining_s:
                self._min_runs -= 1
                break
        return taken

    def needed_s(self, *, least: bool = False) -> float:
        """Return how long the runs take that open cells lack of the smallest number.

        ``least``: without those more of every cell that taking cells back added because there was time.
        """
        fewest = self._least_runs if least else self._min_runs
        return sum(
            max(0, (cell.visits or fewest + self._extra(cell)) - self._states[cell.key].runs()) * self.expected_s(cell)
            for cell in self.open_cells()
        )
