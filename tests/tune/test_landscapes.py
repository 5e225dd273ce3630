"""The landscapes that were measured are whole, and every search of the comparison keeps its budget on them."""

from __future__ import annotations

import pytest
from bench.tuning.grids import GRIDS, Grid
from bench.tuning.landscape import PLACE, load
from bench.tuning.resampled import METHODS, FromRuns, FromSmooth, at_random, searches, tuned
from bench.tuning.smooth import smooth

KEPT = [grid for grid in GRIDS if (PLACE / f"{grid.name}.json.gz").exists()]


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.name)
def test_a_grid_has_300_settings_at_least(grid: Grid) -> None:
    assert len(grid.space.points) >= 300


@pytest.mark.parametrize("grid", KEPT, ids=lambda grid: grid.name)
def test_a_landscape_has_every_setting_and_is_small(grid: Grid) -> None:
    landscape = load(grid.name)
    assert len(landscape.full) == len(grid.space.points) and all(landscape.full) and all(landscape.low)
    assert (PLACE / f"{grid.name}.json.gz").stat().st_size < 1 << 20


@pytest.mark.parametrize("name", METHODS)
def test_every_search_keeps_its_budget(name: str) -> None:
    grid = KEPT[0]
    (found,) = searches(METHODS[name], grid, [FromRuns(load(grid.name), grid, 1, 20.0)])
    assert found.spent <= 20 and grid.space.allows(found.point)


@pytest.mark.long
def test_on_a_measured_landscape_the_search_does_better_than_chance() -> None:
    grid = KEPT[0]
    landscape = smooth(load(grid.name), grid)
    ours, chance = (
        sum(
            one.share
            for one in searches(method, grid, [FromSmooth(landscape, grid, seed, 0.15 * len(grid.space.points)) for seed in range(6)])
        )
        for method in (tuned, at_random)
    )
    assert ours > chance
