"""Searches of a stored landscape, which draw from the measured repetitions at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Protocol

from bench.tuning.grids import Grid
from bench.tuning.landscape import Landscape
from bench.tuning.worth import Worth
from strakes.tuning.tune_search import Search, TrialResult
from strakes.tuning.tune_space import Point, SearchSpace

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler


class OutOfBudgetError(Exception):
    """The budget is spent, so another repetition is impossible."""


class Task(Protocol):
    """The part of a landscape that a search may use."""

    @property
    def space(self) -> SearchSpace: ...


class Draws(Protocol):
    """A source of repetitions, with a budget."""

    budget: float
    spent: float

    def value(self, point: Point) -> float:
        """Return the value of a repetition. Raises OutOfBudgetError if the budget is spent."""

    def share(self, point: Point) -> float:
        """Return the quality of a setting / the quality of the best setting."""


class Sampler:
    """Draws measured repetitions and counts them against the budget.

    The held-out repetitions determine the quality of a setting.
    """

    def __init__(self, grid: Grid, landscape: Landscape, seed: int, budget: float) -> None:
        self._grid, self._landscape = grid, landscape
        self._worth = Worth(landscape)
        self._random = random.Random(seed)
        self.budget, self.spent = budget, 0.0

    def value(self, point: Point) -> float:
        """Return a measured value, drawn at random. Raises OutOfBudgetError if the budget is spent."""
        if self.spent + 1 > self.budget + 1e-9:
            raise OutOfBudgetError
        self.spent += 1
        measured = self._landscape.full[self._grid.space.numbers[point]]
        return self._random.choice(list(measured.values()))

    def share(self, point: Point) -> float:
        """Return the quality of a setting / the quality of the best setting."""
        return self._worth.share(self._grid.space.numbers[point])


@dataclass(frozen=True)
class Found:
    """The setting that a search chose, the repetitions spent, and the setting's quality / the best quality."""

    point: Point
    spent: float
    share: float


Method = Callable[[Task, Draws, int], Point]


def tuned(grid: Task, sampler: Draws, seed: int) -> Point:
    """Search as ``strakes tune`` does. The fresh runs of its confirmation also count against the budget."""
    search = Search(grid.space, seed)
    try:
        while trials := search.next_block(sampler.spent / sampler.budget, lambda _trial: 1 / sampler.budget):
            block = search.blocks
            for trial in trials:
                search.told.append(TrialResult(trial, block, sampler.value(trial.point)))
    except OutOfBudgetError:
        pass
    return search.best


def at_random(grid: Task, sampler: Draws, seed: int) -> Point:
    """Measure random settings once each until the budget is spent. Return the setting with the best value."""
    order = list(grid.space.points)
    random.Random(seed).shuffle(order)
    values: dict[Point, float] = {}
    try:
        for point in order:
            values[point] = sampler.value(point)
    except OutOfBudgetError:
        pass
    return max(values, key=lambda point: values[point])


def one_at_a_time(grid: Task, sampler: Draws, seed: int) -> Point:
    """Optimise one factor after another, as Tian et al. (2020) do (see ``strakes study reproduce S1``).

    Every level is measured a few times, while all other factors have their best levels so far.
    """
    space, now = grid.space, grid.space.default
    settings = sum(len(factor.levels) for factor in space.factors if len(factor.levels) > 1)
    repetitions = max(1, int(sampler.budget / settings))
    order = list(range(len(space.factors)))
    random.Random(seed).shuffle(order)
    try:
        for which in order:
            values = {}
            for level in space.factors[which].levels:
                point = (*now[:which], level, *now[which + 1 :])
                if point in space.numbers:
                    values[point] = median(sampler.value(point) for _ in range(repetitions))
            now = max(values, key=lambda point: values[point])
    except OutOfBudgetError:
        pass
    return now


def tpe(grid: Task, sampler: Draws, seed: int) -> Point:
    """Search with Optuna's TPE, one repetition per trial. Return the setting with the best value."""
    from optuna.samplers import TPESampler

    return _by_optuna(grid, sampler, TPESampler(seed=seed, multivariate=True))


def _by_optuna(grid: Task, sampler: Draws, sampler_of_optuna: BaseSampler) -> Point:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=sampler_of_optuna)
    space = grid.space
    study.enqueue_trial({factor.name: factor.levels.index(factor.default) for factor in space.factors})
    while True:
        trial = study.ask()
        # For TPE, ordered factors (sizes and counts) are integers, and all others are categories.
        point = tuple(
            factor.levels[
                trial.suggest_int(factor.name, 0, len(factor.levels) - 1)
                if factor.ordered
                else trial.suggest_categorical(factor.name, list(range(len(factor.levels))))
            ]
            for factor in space.factors
        )
        if point not in space.numbers:
            study.tell(trial, 0.0)
            continue
        try:
            study.tell(trial, sampler.value(point))
        except OutOfBudgetError:
            break
    best = study.best_trial.params
    return tuple(factor.levels[best[factor.name]] for factor in space.factors)


METHODS: dict[str, Method] = {
    "strakes tune": tuned,
    "Optuna TPE alone": tpe,
    "one factor at a time": one_at_a_time,
    "random search": at_random,
}


def searches(method: Method, grid: Task, samplers: Iterable[Draws]) -> list[Found]:
    results = []
    for seed, sampler in enumerate(samplers):
        point = method(grid, sampler, seed)
        results.append(Found(point, sampler.spent, sampler.share(point)))
    return results
