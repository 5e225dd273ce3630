"""Compare a survey's answers with the true rates of its simulated file system (world)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from bench.truth.world import World
from strakes.model.answers import Answer
from strakes.model.cell import Cell
from strakes.model.plan import Phase
from strakes.runs.run import Run
from strakes.stats.grades import GOOD_ENOUGH

# Smallest log ratio that counts as a difference: settings that differ by less than 10 % count as equal.
LEAST = math.log(1.1)
# Tolerance of log ratios, because clocks and amounts are rounded.
_TOLERANCE = 1e-3


@dataclass
class Tally:
    """Counts over many surveys: answers and wrong answers by grade; planted and found differences."""

    surveys: int = 0
    false_sure: int = 0
    given: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    planted: int = 0
    found: int = 0

    def add(self, run: Run, answers: tuple[Answer, ...], world: World) -> None:
        rates = _rates(run, world)
        self.surveys += 1
        wrong_before = self.wrong["sure"]
        for answer in answers:
            levels = {answer.measure: rates[answer.measure]}
            levels |= {one.measure: rates[one.measure] for one in answer.others}
            spread = max(levels.values()) - min(levels.values())
            wrong = is_wrong(answer, levels)
            self.given[answer.grade] += 1
            self.wrong[answer.grade] += wrong
            if spread > LEAST:
                self.planted += 1
                self.found += answer.grade in ("sure", "likely") and not wrong
        self.false_sure += self.wrong["sure"] > wrong_before

    def share_wrong(self, *grades: str) -> float:
        """Return the share of wrong answers among the answers with the given grades (0 without answers)."""
        given = sum(self.given[grade] for grade in grades)
        return sum(self.wrong[grade] for grade in grades) / given if given else 0.0

    @property
    def answered(self) -> float:
        """Share of questions with an answer other than "undecided"."""
        every = self.given.total()
        return (every - self.given["undecided"]) / every if every else 0.0


def is_wrong(answer: Answer, levels: dict[str, float]) -> bool:
    """Return whether an answer is wrong. ``levels``: measure -> true log rate (larger is better).

    "Alike" is wrong if a setting differs from the chosen setting by more than the stated factor. "Sure" and "likely"
    are wrong if the chosen setting is not better than the setting in ``against``, or if any setting is better by more
    than ``GOOD_ENOUGH``.
    """
    if answer.grade == "undecided":
        return False
    if answer.grade == "alike":
        chosen = levels[answer.measure]
        farthest = max(abs(level - chosen) for level in levels.values())
        return farthest > math.log(answer.within or 1.0) + _TOLERANCE
    chosen, against = levels[answer.measure], levels[answer.against.measure]
    return chosen <= against + _TOLERANCE or max(levels.values()) - chosen > math.log(GOOD_ENOUGH) + _TOLERANCE


def _rates(run: Run, world: World) -> dict[str, float]:
    return {
        cell.measure_id(measure.suffix): math.log(world.rate(_phase(cell, measure.phase), cell.plan.ranks))
        for cell in run.cells
        for measure in cell.measures
        if not measure.is_side
    }


def _phase(cell: Cell, name: str) -> Phase:
    return next(phase for phase in cell.plan.phases if phase.name == name)
