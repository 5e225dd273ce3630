"""What a portrait is worth to the search: the prior, the ideal observer, and how they are told."""

from __future__ import annotations

import math

import numpy as np
from bench.tuning.grids import GRIDS, grid_named
from bench.tuning.ideal import observe
from bench.tuning.knowledge import KnowingSearch, portrait_of, prior
from bench.tuning.known import section


def test_a_survey_without_cells_makes_expect_nothing() -> None:
    assert not prior(grid_named("xfs"), ()).any()


def test_what_a_survey_found_faster_is_expected_to_be_faster() -> None:
    grid = grid_named("xfs")
    rates = {65536: 1e6, 1048576: 4e6}
    cells = [
        {"id": f"transfer-size/buffered/{size}:write", "settings": {"transfer_bytes": size}, "median": rate}
        for size, rate in rates.items()
    ]
    known = prior(grid, cells)
    of = [known[number] for number, point in enumerate(grid.space.points) if point[3] == 512 * 1024]
    others = [known[number] for number, point in enumerate(grid.space.points) if point[3] == 65536]
    assert min(of) > max(others)


def test_every_grid_has_a_portrait_of_all_its_settings() -> None:
    for grid in GRIDS:
        assert len(prior(grid, portrait_of(grid))) == len(grid.space.points)


def test_a_search_begins_with_the_default_and_what_is_expected_to_be_best() -> None:
    space = grid_named("xfs").space
    known = np.zeros(len(space.points))
    known[7] = 1.0
    first = KnowingSearch(space, 1, prior=known).next_block(0.0, lambda _trial: 1 / 60)
    assert {space.default, space.points[7]} <= {trial.point for trial in first}


def test_an_ideal_observer_with_good_guesses_finds_the_best_and_without_any_only_by_chance() -> None:
    values = np.log(np.linspace(0.2, 1.0, 100))
    assert observe(values, 0.05, 0.01, 10, 0.95, 20).by_measuring == 1.0
    blind = observe(values, 0.05, math.inf, 10, 0.95, 40)
    assert blind.by_measuring < 0.8
    assert abs(blind.correlation) < 0.2


def test_the_section_says_what_is_lacking() -> None:
    facts = {"evaluation_s": 1.96, "budget": 46.2, "good": 2, "scatter": 0.06, "correlation": 0.16}
    text = section({"xfs": {**facts, "today": 22}})
    assert "22 of 30" in text
    assert "not measured" in text
    assert "takes longer than all evaluations" in text
