"""Schedule trials in randomised, interleaved rounds (blocks) until all questions are answered or the time is up."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Any

from strakes.model.cell import Cell
from strakes.model.results import Results
from strakes.runs.impact import UNLIMITED, Impact
from strakes.runs.records import Visit
from strakes.stats.claims import LOOK_ERROR, judge
from strakes.stats.contrasts import FEWEST_BLOCKS as FEWEST_COMMON
from strakes.stats.grades import LOOKS, settled_at
from strakes.studies.study import Study
from strakes.survey.amounts import FEWEST_BLOCKS, WANTED_BLOCKS
from strakes.survey.analysis_answers import answers_of, bounds_of, choices_of, claims_of, questions_of
from strakes.survey.analysis_collect import collect
from strakes.survey.verdicts import Verdict

# Assume that the first trial of a cell takes twice the planned time of its phases.
_FIRST_GUESS = 2.0
# Maximum number of trials of a cell. The interval of a median from 60 trials is a quarter as wide as from 5 trials.
MOST_RUNS = 60
# Number of rounds between interim analyses after round 10. With twice the number, a decision can come 5 rounds later.
_LOOK_EVERY = 5


class Schedule:
    """Choice of the cells to measure next, in rounds (blocks) of random order.

    A cell is open (measured again) until all questions about it are answered. Without questions, it is open until its
    interval is as narrow as ``precision`` (relative half-width). ``verdicts``: if given, only cells of selected
    questions are open. ``visits_s``: expected seconds of each cell's first trial.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        studies: Sequence[Study],
        precision: float,
        seed: int,
        phase_s: float,
        verdicts: Sequence[Verdict] = (),
        visits_s: Mapping[str, float] | None = None,
    ) -> None:
        self._cells = {cell.key: cell for cell in cells}
        self._durations_s: dict[str, list[float]] = {cell.key: [] for cell in cells}
        self._studies = studies
        self._precision = precision
        self._seed = seed
        self._phase_s = phase_s
        self._dropped: set[str] = set()
        self._closed: set[str] = set()
        self._settled_claims: set[str] = set()
        self._visited: set[tuple[int, str]] = set()
        self._verdicts = verdicts
        self._visits_s = visits_s or {}
        self.planned: set[int] = set()
        self._postponed: set[int] = set()
        self.limit = UNLIMITED
        self.block = 0

    def record(self, visit: Visit) -> None:
        """Count a finished trial of this run, including trials from before the run was resumed."""
        self._visited.add((visit.block, visit.cell))
        self.block = max(self.block, visit.block)
        if visit.ended_well and visit.impact == self.limit:
            self._durations_s[visit.cell].append(visit.elapsed_s)

    def take(self, visit: Visit, visits: Sequence[Visit]) -> None:
        """Count the latest trial. After a change of the load limit, count only trials with the new limit."""
        if visit.impact == self.limit:
            self.record(visit)
        else:
            self.under(visit.impact, visits)

    def under(self, limit: Impact, visits: Sequence[Visit]) -> None:
        """Set the load limit, and count only the trials in ``visits`` that had this limit."""
        if limit == self.limit:
            return
        self.limit = limit
        self._durations_s = {key: [] for key in self._cells}
        for visit in visits:
            if visit.is_measurement and visit.cell in self._cells:
                self.record(visit)

    def look(self, visits: Sequence[Visit], confidence: float, facts: Mapping[str, Any]) -> None:
        """Make an interim analysis if one is due. Stop measuring the cells of answered questions."""
        if self.block not in LOOKS and (self.block <= max(LOOKS) or self.block % _LOOK_EVERY):
            return
        cells = list(self._cells.values())
        results = collect(cells, [visit for visit in visits if visit.is_measurement], confidence, facts)
        questions = questions_of(self._studies, results)
        settled = settled_at(choices_of(questions, results), self.block)
        alike = {answer.id for answer in answers_of(questions, results) if answer.grade == "alike"}
        claims = claims_of(self._studies, results)
        if self.block in LOOKS:
            judged = judge(bounds_of(claims, results), LOOK_ERROR)
            self._settled_claims |= {
                claim.id for claim, one in zip(claims, judged, strict=True) if one is not None and one.grade == "sure"
            }
        asked = {measure for question in questions for option in question.options for measure in option.measures}
        asked |= {measure for claim in claims for measure in claim.measures}
        still_open = {
            measure
            for index, question in enumerate(questions)
            if index not in settled and question.id not in alike
            for option in question.options
            for measure in option.measures
        } | {measure for claim in claims if claim.id not in self._settled_claims for measure in claim.measures}
        self._closed = {
            cell.key
            for cell in cells
            if self.runs(cell.key) >= min(LOOKS)
            and not any(cell.measure_id(measure.suffix) in still_open for measure in cell.measures)
            and self._is_precise(cell, asked, results)
        }

    def _is_precise(self, cell: Cell, asked: Collection[str], results: Results) -> bool:
        for measure in cell.measures:
            identifier = cell.measure_id(measure.suffix)
            if measure.is_side or identifier in asked:
                continue
            estimate = results.get(identifier).estimate
            if estimate is None or estimate.low is None or estimate.high is None:
                return False
            if estimate.high - estimate.low > 2 * self._precision * estimate.median:
                return False
        return True

    def runs(self, key: str) -> int:
        """Return how many trials of a measurement count."""
        return len(self._durations_s[key])

    def open_cells(self) -> list[Cell]:
        """Return the measurements that need more trials, in the order of their declaration."""
        planned = {key for index in self.planned for key in self._verdicts[index].cells}
        wanted = planned if self._verdicts else self._cells.keys() - self._dropped
        return [
            cell
            for key, cell in self._cells.items()
            if key in wanted and key not in self._closed and self.runs(key) < MOST_RUNS
        ]

    def plan(self, remaining_s: float) -> None:
        """Select further questions while the remaining time suffices for their trials."""
        blocks = WANTED_BLOCKS if not self.planned else FEWEST_BLOCKS
        for index, verdict in enumerate(self._verdicts):
            if index in self.planned:
                continue
            open_ = {cell.key for cell in self.open_cells()}
            new = [self._cells[key] for key in verdict.cells if key not in open_]
            needed_s = sum(blocks * self.expected_s(cell) for cell in new)
            needed_s += self.needed_s(FEWEST_BLOCKS if index in self._postponed else WANTED_BLOCKS)
            if needed_s <= remaining_s or not self.planned:
                self.planned.add(index)
                self._closed.difference_update(verdict.cells)

    def expected_s(self, cell: Cell) -> float:
        """Return the expected seconds of a trial: the median of earlier trials, or an estimate."""
        if durations_s := self._durations_s[cell.key]:
            return median(durations_s)
        if cell.key in self._visits_s:
            return self._slowness() * self._visits_s[cell.key] / self.limit.share
        return max(_FIRST_GUESS * self._phase_s * len(cell.plan.phases), cell.plan.stop_seconds()) / self.limit.share

    def _slowness(self) -> float:
        ratios = [median(taken_s) / self._visits_s[key] for key, taken_s in self._durations_s.items() if taken_s]
        return median(ratios) if ratios else 1.0

    def next_block(self) -> list[Cell]:
        """Return the measurements left in the current round or, if none is left, a new round in random order."""
        rest = [cell for cell in self._order(self.block) if (self.block, cell.key) not in self._visited]
        if self.block == 0 or not rest:
            self.block += 1
            rest = self._order(self.block)
        return rest

    def _order(self, block: int) -> list[Cell]:
        cells = self.open_cells()
        random.Random(f"{self._seed}/{block}").shuffle(cells)
        return cells

    def fit(self, remaining_s: float) -> list[Cell]:
        """Drop the least important cells until the remaining time suffices for all others. Return the dropped cells.

        Cells of priority 1 are never dropped. With ``verdicts``, the last selected questions are postponed instead.
        """
        dropped: list[Cell] = []
        if self._verdicts:
            while len(self.planned) > 1 and self.needed_s(min(LOOKS)) > remaining_s:
                last = max(self.planned)
                self.planned.remove(last)
                self._postponed.add(last)
            return dropped
        while self.needed_s() > remaining_s:
            candidates = [
                cell for cell in self.open_cells() if cell.priority > 1 and self.runs(cell.key) < FEWEST_BLOCKS
            ]
            if not candidates:
                break
            worst = max(candidates, key=lambda cell: (cell.priority, self.expected_s(cell)))
            self._dropped.add(worst.key)
            dropped.append(worst)
        return dropped

    def needed_s(self, blocks: int = FEWEST_BLOCKS) -> float:
        """Return the expected seconds until all open measurements have ``blocks`` trials."""
        return sum(max(0, blocks - self.runs(cell.key)) * self.expected_s(cell) for cell in self.open_cells())

    def lacking(self) -> list[Cell]:
        """Return the cells with too few trials for a comparison, except cells whose trials all failed."""
        failed = {key for _, key in self._visited if not self.runs(key)}
        return [cell for key, cell in self._cells.items() if self.runs(key) < FEWEST_COMMON and key not in failed]
