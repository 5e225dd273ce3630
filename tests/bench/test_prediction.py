"""The benchmark of forecasts: each rule is exact on a system that follows it, and published series are forecast."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench.prediction import cephfs
from bench.prediction.data import Measured, io500, tables, tasks_of
from bench.prediction.fit import fit
from bench.prediction.judge import forecast

from strakes.predict.levels import Scale
from strakes.predict.population import fitted

DATA = Path(__file__).parent.parent.parent.parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="needs the data of others in ../shared/data")


def system(exponent: float) -> Measured:
    scales = tuple(Scale(nodes, 8 * nodes) for nodes in (10, 20, 40))
    values = tuple(exponent * math.log(scale.ranks) for scale in scales)
    return Measured("A", "A", "write", "data", scales, values, "IO500")


@pytest.mark.parametrize(
    ("rule", "exponent"), [("constant", 0.0), ("linear in ranks", 1.0), ("its own power law", 0.6)]
)
def test_each_rule_is_exact_on_systems_that_follow_it(rule: str, exponent: float) -> None:
    assert forecast(tasks_of(system(exponent))[-1], fitted()).rules[rule] == pytest.approx(0, abs=1e-9)


def test_the_fit_finds_the_scatter_of_systems_and_their_linear_growth() -> None:
    values = np.random.default_rng(1).normal(system(1.0).log_values, 0.1, (200, 3))
    population = fit([replace(system(1.0), log_values=tuple(each)) for each in values])
    assert forecast(tasks_of(system(1.0))[0], population).error < 0.1
    assert population.scatter == pytest.approx(0.1, rel=0.2) and population.wander < 0.1


def test_tables_are_lines_of_sizes_with_equal_clients_or_processes() -> None:
    figures = tables()
    (line,) = (each for each in figures if (each.system, each.name) == ("CubeFS 2022", "seqread, 8 clients"))
    assert [scale.ranks for scale in line.scales] == [8, 32, 128, 512]
    assert len({figure.owner for figure in figures}) > 8
    assert all(0 < figure.weight <= 1 and len(figure.scales) > 1 for figure in figures)


def test_a_real_cephfs_is_forecast_from_its_recorded_levels() -> None:
    scores = cephfs.forecast_again()
    assert len(scores) == 12 and sum(map(cephfs.is_close, scores)) >= 9


@needs_data
def test_the_population_has_only_systems_that_the_readme_of_the_data_allows() -> None:
    figures = io500(DATA)
    assert len({figure.system for figure in figures}) > 15
    assert not any("5888" in scale.text.replace(",", "") for figure in figures for scale in figure.scales)
