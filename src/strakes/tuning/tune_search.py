"""Choose the settings to measure next, from the past trials of a search.

The choice is deterministic: the same past trials and the same seed give the same blocks of trials.

A search has four stages. **Screen**: measure space-filling settings. **Explore**: measure blocks of settings with the
highest joint expected improvement (Ginsbourger, Le Riche and Carraro, Kriging is well-suited to parallelize
optimization, 2010), estimated from posterior samples. **Race**: repeat the best settings in blocks and drop losers.
**Confirm**: alternate the winner and the default in a number of new runs that is fixed in advance.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from strakes.stats.interval import Estimate, smallest_runs
from strakes.stats.ratios import paired_ratio
from strakes.tuning.tune_space import Point, SearchSpace
from strakes.tuning.tune_surrogate import Array, Evaluation, Geometry, Numbers, Surrogate

Stage = Literal["screen", "explore", "race", "confirm"]


@dataclass(frozen=True)
class Trial:
    """One planned measurement of a setting, in one stage of the search."""

    point: Point
    stage: Stage


@dataclass(frozen=True)
class TrialResult:
    """The result of one trial. ``value``: larger is better; None if the trial failed."""

    trial: Trial
    block: int
    value: float | None


@dataclass(frozen=True)
class Confirmation:
    """Plan of the final comparison: the setting to compare with the default, and the number of runs of each."""

    best: Point
    runs: int


# Used shares of the budget when the stages screen, explore and race end. Doubling the first would shorten explore.
_SCREEN_SHARE, _EXPLORE_SHARE, _RACE_SHARE = 0.2, 0.7, 0.85
_FINALISTS, _MOST_CONFIRMING_RUNS = 5, 20  # Maximum numbers of settings in a race, and of final runs per setting.
# Weights of the space-filling design: of the penalty for repeated values, and of a random term.
_USED, _CHANCE = 0.5, 0.3
# Settings are repeated if they are the best setting in at least this share of the posterior samples.
_STAYS_SHARE = 0.02
MOST_TRIALS = 1000  # The final comparison begins after this number of trials. A fit to twice as many takes 20 s.
# Maximum number of settings in a posterior sample. Twice as many take eight times as long.
_MOST_DRAWN = 700
_DRAWS = 400  # Number of posterior samples: a share of samples has a standard error of at most 2.5 %.


@dataclass
class Search:
    """State of a search for the best setting.

    ``told``: results of all trials in chronological order. ``block``: number of trials that are run together.
    """

    space: SearchSpace
    seed: int
    confidence: float = 0.9
    told: list[TrialResult] = field(default_factory=list)
    confirmation: Confirmation | None = None
    block: int = 6

    def __post_init__(self) -> None:
        if (stored := self.confirmation) and not (stored.best in self.space.numbers and stored.runs <= MOST_TRIALS):
            raise ValueError("the stored final comparison is none of this search")
        self._geometry = Geometry(self.space)
        self._fitted: tuple[int, Surrogate] | None = None

    def next_block(self, spent: float, cost: Callable[[Trial], float]) -> list[Trial]:
        """Return the next block of trials in the order to run them. An empty list ends the search.

        ``spent``: share of the budget used so far. ``cost``: function that returns the share that a trial needs.
        """
        stage = self._stage(spent)
        generator = np.random.default_rng([self.seed, self.blocks])
        trials: list[Trial] = []
        if stage == "screen":
            trials = self._screen(cost)
        if stage in ("screen", "explore") and not trials:
            trials = self._explore(generator)
        if stage != "confirm" and not trials and self._any_value():
            trials = self._race(generator)
        if not trials:
            trials = self._confirm(spent, cost)
        random.Random(f"{self.seed}/{self.blocks}").shuffle(trials)
        return trials

    @property
    def blocks(self) -> int:
        """Return the number of blocks of trials that have begun."""
        return self.told[-1].block + 1 if self.told else 0

    @property
    def surrogate(self) -> Surrogate:
        """Return the Gaussian process fitted to all trials before the final comparison."""
        before = [result for result in self.told if result.trial.stage != "confirm"]
        if self._fitted is None or self._fitted[0] != len(before):
            self._fitted = len(before), Surrogate(self._geometry, self._runs(before))
        return self._fitted[1]

    @property
    def best(self) -> Point:
        """Return the confirmed setting, else the setting with the best posterior mean, else the default setting."""
        if self.confirmation is not None:
            return self.confirmation.best
        measured = self._measured()
        if not measured:
            return self.space.default
        means = self.surrogate.mean(np.array([self.space.numbers[point] for point in measured]))
        return measured[int(np.argmax(means))]

    @property
    def gain(self) -> Estimate | None:
        """Return the best setting's rate divided by the default's in the final comparison (None: not compared)."""
        best, default = self.fresh(self.best), self.fresh(self.space.default)
        if self.confirmation is None or self.best == self.space.default or not best.keys() & default.keys():
            return None
        return paired_ratio(best, default, self.confidence)

    def fresh(self, point: Point) -> dict[int, float]:
        """Return the rates of a setting in the final comparison, by block (round of trials)."""
        return {
            result.block: result.value
            for result in self.told
            if result.trial.stage == "confirm" and result.trial.point == point and result.value is not None
        }

    def most_possible(self, confidence: float) -> float:
        """Return the posterior quantile ``confidence`` of the ratio of the best rate to the default rate."""
        numbers, drawn = self.drawn(_DRAWS, Surrogate(self._geometry, self._runs(self.told)))
        default = numbers.index(self.space.numbers[self.space.default])
        return float(np.exp(np.quantile((drawn - drawn[:, [default]]).max(axis=1), confidence)))

    def drawn(self, count: int, surrogate: Surrogate | None = None) -> tuple[list[int], Array]:
        """Return indices of settings, and posterior samples of the settings' log values (one sample per row)."""
        generator = np.random.default_rng([self.seed, 0])
        chosen = self._drawn(generator, *(self.space.numbers[point] for point in (self.space.default, self.best)))
        return [int(number) for number in chosen], (surrogate or self.surrogate).samples(chosen, count, generator)

    def _stage(self, spent: float) -> Stage:
        if self.confirmation is not None or spent >= _RACE_SHARE or len(self.told) >= MOST_TRIALS:
            return "confirm"
        if any(result.trial.stage == "race" for result in self.told) or spent >= _EXPLORE_SHARE:
            return "race"
        if any(result.trial.stage == "explore" for result in self.told) or spent >= _SCREEN_SHARE:
            return "explore" if self._any_value() else "screen"
        return "screen"

    def _screen(self, cost: Callable[[Trial], float]) -> list[Trial]:
        affordable = int(_SCREEN_SHARE / max(1e-9, cost(Trial(self.space.default, "screen"))))
        wanted = max(2 * self.block, min(len(self.space.points) // 3, affordable))
        seen = [result.trial.point for result in self.told if result.trial.stage == "screen"]
        rest = [point for point in self._spread_out(wanted) if point not in seen]
        return [Trial(point, "screen") for point in rest[: self.block]]

    def _spread_out(self, count: int) -> list[Point]:
        levels = self._geometry.levels
        places = levels / [max(1, len(factor.levels) - 1) for factor in self.space.factors]
        by_chance = np.random.default_rng([self.seed, 1]).random(len(levels)) * _CHANCE
        chosen = [self.space.numbers[self.space.default]]
        nearest = np.full(len(levels), np.inf)
        while len(chosen) < min(count, len(levels)):
            nearest = np.minimum(nearest, np.abs(places - places[chosen[-1]]).sum(axis=1))
            used = np.zeros(len(levels))
            for which, factor in enumerate(self.space.factors):
                counts = np.bincount(levels[chosen, which], minlength=len(factor.levels))
                used += counts[levels[:, which]] * len(factor.levels) / len(chosen)
            score = nearest - _USED * used + by_chance
            score[chosen] = -np.inf
            chosen.append(int(np.argmax(score)))
        return [self.space.points[number] for number in chosen]

    def _explore(self, generator: np.random.Generator) -> list[Trial]:
        best = self.space.numbers[self.best]
        numbers = self._drawn(generator, best)
        drawn = self.surrogate.samples(numbers, _DRAWS, generator)
        chosen = [int(np.flatnonzero(numbers == best)[0])]
        while len(chosen) < self.block:
            above = np.maximum(drawn - drawn[:, chosen].max(axis=1, keepdims=True), 0.0).mean(axis=0)
            if above.max() <= 0:
                break
            chosen.append(int(np.argmax(above)))
        return [Trial(self.space.points[int(numbers[place])], "explore") for place in chosen] if len(chosen) > 1 else []

    def _race(self, generator: np.random.Generator) -> list[Trial]:
        raced = [result.trial.point for result in self.told if result.trial.stage == "race"]
        candidates = list(dict.fromkeys(raced)) or self._measured()
        numbers = np.array([self.space.numbers[point] for point in candidates])
        drawn = self.surrogate.samples(numbers, _DRAWS, generator)
        share = np.bincount(drawn.argmax(axis=1), minlength=len(numbers)) / _DRAWS
        order = sorted(range(len(numbers)), key=lambda place: -share[place])
        stay = [candidates[place] for place in order if share[place] >= _STAYS_SHARE][:_FINALISTS]
        return [Trial(point, "race") for point in stay] if len(stay) > 1 else []

    def _confirm(self, spent: float, cost: Callable[[Trial], float]) -> list[Trial]:
        best, default = self.best, self.space.default
        if self.confirmation is None:
            pair = cost(Trial(best, "confirm")) + cost(Trial(default, "confirm"))
            runs = int((1 - spent) / pair) if pair > 0 else _MOST_CONFIRMING_RUNS
            planned = max(smallest_runs(self.confidence) + 1, min(runs, _MOST_CONFIRMING_RUNS))
            self.confirmation = Confirmation(best, 0 if best == default else planned)
        if len(self.fresh(best).keys() & self.fresh(default).keys()) >= self.confirmation.runs:
            return []
        return [Trial(best, "confirm"), Trial(default, "confirm")]

    def _drawn(self, generator: np.random.Generator, *always: int) -> Numbers:
        count = len(self.space.points)
        if count <= _MOST_DRAWN:
            return np.arange(count, dtype=np.int64)
        good = np.argsort(-self.surrogate.mean())[: _MOST_DRAWN // 2]
        others = generator.choice(count, _MOST_DRAWN // 2, replace=False)
        return np.unique(np.concatenate([good, others, np.array(always)])).astype(np.int64)

    def _runs(self, observations: Sequence[TrialResult]) -> list[Evaluation]:
        worst = min((result.value for result in observations if result.value is not None), default=1.0)
        numbers = self.space.numbers
        return [
            Evaluation(numbers[each.trial.point], worst / 2 if each.value is None else each.value, each.block)
            for each in observations
        ]

    def _any_value(self) -> bool:
        return any(result.value is not None for result in self.told)

    def _measured(self) -> list[Point]:
        chosen = [each for each in self.told if each.trial.stage != "confirm" and each.value is not None]
        return list(dict.fromkeys(each.trial.point for each in chosen))
