"""All search methods keep their budget; the search of strakes beats random search."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest
from bench.tuning.grids import GRIDS
from bench.tuning.landscape import PLACE, Landscape, load
from bench.tuning.made_up import MadeUpSampler, made_up
from bench.tuning.resampled import METHODS, Method, Sampler, at_random, searches, tuned
from bench.tuning.worth import Worth

KEPT = [grid for grid in GRIDS if (PLACE / f"{grid.name}.json.gz").exists()]


@pytest.mark.parametrize("name", METHODS)
def test_every_search_keeps_its_budget(name: str) -> None:
    grid = KEPT[0]
    (outcome,) = searches(METHODS[name], grid, [Sampler(grid, load(grid.name), 1, 20.0)])
    assert outcome.spent <= 20 and outcome.point in grid.space.numbers


@pytest.mark.more
def test_on_simulated_landscapes_the_search_beats_random_search() -> None:
    def together(method: Method) -> float:
        total = 0.0
        for seed in range(6):
            landscape = made_up(seed)
            sampler = MadeUpSampler(landscape, seed, 0.15 * len(landscape.space.points))
            total += sampler.share(method(landscape, sampler, seed))
            assert sampler.spent <= sampler.budget + 1e-9
        return total / 6

    assert together(tuned) > max(0.95, together(at_random))


def test_runs_that_were_held_out_judge_the_chosen_setting_without_bias() -> None:
    chance = random.Random(3)

    def run() -> float:
        return math.exp(chance.gauss(0, 0.2))

    shares, flattered = [], []
    for _ in range(30):
        flat = Landscape(
            "made up", [{0: run()} for _ in range(40)], [{block: run() for block in range(1, 9)} for _ in range(40)]
        )
        worth = Worth(flat)
        shares.append(sum(map(worth.share, range(40))) / 40)
        medians = [median(values_by_block.values()) for values_by_block in flat.held]
        flattered.append(sum(medians) / len(medians) / max(medians))
    assert 0.95 < sum(shares) / len(shares) < 1.06 and sum(flattered) / len(flattered) < 0.88
