"""Cells of which some wander by themselves: what half of them do not do shows in no median over all."""

from __future__ import annotations

import numpy as np

from strakes.analysis.collect import unlike_correlations, with_dependence
from strakes.findings.portrait import CellEstimate
from strakes.findings.results import Measured, Observation, Results
from strakes.findings.sample import Sample
from strakes.statistics.interval import median
from strakes.statistics.stopping import StoppingRule

CELLS, BLOCKS = 16, 16


def survey(wandering: int, seed: int) -> tuple[Measured, ...]:
    generator = np.random.default_rng(seed)
    series = generator.standard_normal((CELLS, BLOCKS))
    for block in range(1, BLOCKS):
        series[:wandering, block] = 0.9 * series[:wandering, block - 1] + 0.44 * series[:wandering, block]
    return tuple(figure(cell, values) for cell, values in enumerate(np.exp(0.05 * series).tolist()))


def figure(cell: int, values: list[float]) -> Measured:
    name, settings = f"cell{cell}:write", {"operation": "write"}
    runs = tuple(
        Observation(block, "measure", value, 1, Sample("write"), at_s=float(CELLS * block + cell))
        for block, value in enumerate(values)
    )
    estimate = CellEstimate(
        name, "transfer-size", settings, median(values), None, None, 0.9, len(values), "B/s", "", tuple(values)
    )
    return Measured(name, "transfer-size", settings, "B/s", runs, estimate)


def test_cells_that_wander_beside_others_are_noticed() -> None:
    assert sum(bool(unlike_correlations(survey(8, seed), {}, ())) for seed in range(20)) >= 18


def test_of_independent_cells_hardly_ever_more_resemble_their_run_before_than_chance_allows() -> None:
    assert sum(bool(unlike_correlations(survey(0, seed), {}, ())) for seed in range(100)) <= 4


def test_cells_whose_levels_take_turns_are_explained() -> None:
    measured = survey(8, 1)
    assert unlike_correlations(measured, {}, ())
    assert not unlike_correlations(measured, {}, [each.id for each in measured[:8]])


def test_intervals_of_cells_that_may_wander_are_wider() -> None:
    measured = survey(8, 1)
    unlike = unlike_correlations(measured, {}, ())
    results = Results(measured, 0.9, {})
    usual, wider = (with_dependence(results, StoppingRule(), {}, found) for found in ({}, unlike))
    assert all(
        before.correlation <= after.correlation for before, after in zip(usual.measured, wider.measured, strict=True)
    )
    assert wider.correlation > 0.5
