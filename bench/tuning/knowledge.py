"""A portrait as the tuner's prior: what a survey of two minutes says of the settings of a grid, and searches from it.

The rule for the prior is that of the first trial (yardstick.md). The logarithm of a rate is a sum over the factors that
the survey varies too; what it does not measure is flat.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.tuning.grids import Grid
from bench.tuning.landscape import PLACE, Landscape
from bench.tuning.resampled import Draws, OutOfBudgetError, Task
from strakes.tune.search import Rules, Search, Trial, TrialResult
from strakes.tune.space import Point
from strakes.tune.surrogate import Array, Evaluation, Numbers, Surrogate

PORTRAITS = PLACE / "portraits.json"
PORTRAIT_S = 120.0
# How much of what the prior says is believed; the same as in the first trial.
_BELIEVED = 0.7
# A budget of some dozen evaluations leaves little for a confirmation, which chooses nothing.
SHORT_CONFIRMATION = {"explore_until": 0.8, "race_until": 0.95}


def portrait_of(grid: Grid, *, part: bool = False) -> Sequence[Mapping[str, Any]]:
    """Cells of writing of the survey that was kept; ``part``: what it had after 30 s, where that was kept."""
    kept = json.loads(PORTRAITS.read_text(encoding="utf-8"))[grid.name]
    cells: Sequence[Mapping[str, Any]] = kept["cells_30s"] if part and "cells_30s" in kept else kept["cells"]
    return cells


def evaluation_s(grid: Grid, landscape: Landscape) -> float:
    """Seconds of one evaluation: of the blocks that have neither cheap runs nor only some settings."""
    return float(sum(landscape.facts["block_s"][1:3]) / (2 * len(grid.space.points)))


def prior(grid: Grid, cells: Sequence[Mapping[str, Any]]) -> Array:
    """Logarithm of what each setting is expected to be worth, less the mean."""
    rates = {cell["id"]: math.log(cell["median"]) for cell in cells}

    def curve(start: str, name: str) -> Callable[[float], float]:
        points = sorted(
            (math.log(cell["settings"][name]), rates[cell["id"]]) for cell in cells if cell["id"].startswith(start)
        )
        if len(points) < 2:
            return lambda _level: 0.0
        places, values = zip(*points, strict=True)
        return lambda level: float(np.interp(math.log(level), places, values))

    def ratio(one: str, other: str) -> float:
        return rates[one] - rates[other] if one in rates and other in rates else 0.0

    transfer, writers = curve("transfer-size/buffered/", "transfer_bytes"), curve("processes-per-node/", "ranks")
    stripes = curve("striping/", "stripe_count")
    direct = ratio("transfer-size/direct/1048576:write", "transfer-size/buffered/1048576:write")
    shared = ratio("access-patterns/sfsa/1048576:write", "access-patterns/mfwa/1048576:write")

    def value(point: Point) -> float:
        settings = grid.space.settings(point)
        return (
            transfer(float(settings["transfer_bytes"]))
            + writers(float(settings["writers"]))
            + (stripes(float(settings["stripe_count"])) if "stripe_count" in settings else 0.0)
            + (direct if "direct" in str(settings["interface"]) else 0.0)
            + (shared if settings["files"] == "shared" else 0.0)
        )

    values = np.array([value(point) for point in grid.space.points])
    result: Array = values - values.mean()
    return result


@dataclass
class KnowingSearch(Search):
    """Begins with the settings that the prior puts on top, and has the surrogate learn what differs from it."""

    prior: Array = field(default_factory=lambda: np.zeros(0))

    def _spread_out(self, count: int) -> list[Point]:
        # Half of the first settings are the prior's foremost, equals by chance; the others are spread out as ever.
        chance = np.random.default_rng([self.seed, 2]).random(len(self.prior)) * 1e-6
        foremost = [self.space.points[int(number)] for number in np.argsort(-(self.prior + chance))]
        spread = super()._spread_out(count)
        return list(dict.fromkeys([spread[0], *foremost[: count // 2], *spread]))[:count]

    def _runs(self, observations: Sequence[TrialResult]) -> list[Evaluation]:
        return [
            Evaluation(run.setting, run.value / math.exp(_BELIEVED * self.prior[run.setting]), run.block, run.low)
            for run in super()._runs(observations)
        ]

    @property
    def surrogate(self) -> Surrogate:
        return _Told(super().surrogate, _BELIEVED * self.prior)


class _Told(Surrogate):
    """A surrogate of what differs from a prior, with the prior added again."""

    def __init__(self, inner: Surrogate, prior: Array) -> None:
        self._inner, self._prior = inner, prior

    def mean(self, settings: Numbers | None = None) -> Array:
        """As :meth:`Surrogate.mean`."""
        return self._inner.mean(settings) + (self._prior if settings is None else self._prior[settings])

    def samples(self, settings: Numbers, count: int, generator: np.random.Generator) -> Array:
        """As :meth:`Surrogate.samples`."""
        return self._inner.samples(settings, count, generator) + self._prior[settings]


def searched(
    task: Task, sampler: Draws, seed: int, known: Array | None, rules: Mapping[str, float] | None = None
) -> Point:
    """Search as strakes does, from ``known`` where it is given."""
    chosen = Rules(low_share=task.low_share, **(rules or {}))  # type: ignore[arg-type]
    search = Search(task.space, seed, chosen) if known is None else KnowingSearch(task.space, seed, chosen, prior=known)

    def cost(trial: Trial) -> float:
        return (task.low_share if trial.low else 1.0) / sampler.budget

    try:
        while trials := search.next_block(sampler.spent / sampler.budget, cost):
            block = search.blocks
            for trial in trials:
                search.tell(TrialResult(trial, block, sampler.value(trial.point, low=trial.low)))
    except OutOfBudgetError:
        pass
    return search.best
