"""The forecast benchmark separates versions of a system; each rule is exact on a system that follows it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from bench.prediction import cephfs
from bench.prediction.data import Measured, cubefs, io500, series, tasks_of
from bench.prediction.fit import fit, population_of
from bench.prediction.judge import forecast, summarise

from strakes.predict.levels import Scale
from strakes.predict.population import fitted

DATA = Path(__file__).parent.parent.parent.parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="needs the data of others in ../shared/data")


def entry(inst: str, nodes: object, rate: float, year: object = 2023, **more: float) -> dict[str, object]:
    phases = {"ior_easy_write": rate, "find": 5.0, **more}
    return {
        "inst": inst,
        "sys": "S",
        "fs": "Lustre ",
        "year": str(year),
        "nodes": nodes,
        "tasks": 10,
        "ph": phases,
        "sub": "",
    }


def figures_of(tmp_path: Path, *entries: dict[str, object]) -> list[Measured]:
    (tmp_path / "io500").mkdir()
    (tmp_path / "io500" / "submissions.json").write_text(json.dumps(entries))
    (tmp_path / "io500" / "releases-2017-2019.csv").write_text("information_system\n")
    return io500(tmp_path)


def system(exponent: float, owner: str = "A", kind: str = "data") -> Measured:
    scales = tuple(Scale(nodes, 8 * nodes) for nodes in (10, 20, 40))
    values = tuple(exponent * math.log(scale.ranks) for scale in scales)
    return Measured(owner, owner, "write", kind, scales, values, "IO500")


def test_submissions_of_one_system_are_joined_only_if_their_years_are_close(tmp_path: Path) -> None:
    later = entry("a ", 40, 2.0, 2024), entry("A", 80, 9.0, 2026), entry("A", None, 1.0), entry("A", 10, 1.0, "E8")
    (figure,) = figures_of(tmp_path, entry("A", 10, 1.0), entry("A", 20, 1.5), *later)
    assert [scale.clients for scale in figure.scales] == [10, 20, 40]
    assert [task.known for task in tasks_of(figure)] == [(0,), (0, 1)]


def test_creates_from_years_with_contradicting_sources_are_ignored(tmp_path: Path) -> None:
    old = [entry("A", nodes, 1.0, 2019, mdtest_easy_write=nodes) for nodes in (10, 20)]
    assert [figure.name for figure in figures_of(tmp_path, *old)] == ["ior_easy_write"]


@pytest.mark.parametrize(
    ("rule", "exponent"), [("constant", 0.0), ("linear in ranks", 1.0), ("its own power law", 0.6)]
)
def test_each_rule_is_exact_on_systems_that_follow_it(rule: str, exponent: float) -> None:
    result = forecast(tasks_of(system(exponent))[-1], fitted())
    assert result.rules[rule] == pytest.approx(0, abs=1e-9)


def test_the_fit_finds_no_deviation_between_equal_systems() -> None:
    population = population_of(fit([system(0.4, str(number)) for number in range(5)]))
    assert population.deviation < 0.1


def test_a_real_cephfs_is_forecast_from_its_recorded_levels() -> None:
    scores = cephfs.forecast_again()
    assert len(scores) == 12 and sum(map(cephfs.is_close, scores)) >= 9


def test_the_tables_of_cubefs_are_read_by_rows_and_by_columns() -> None:
    assert len(cubefs()) == 13 * 8 and {len(figure.scales) for figure in cubefs()} == {4}


@needs_data
def test_published_series_are_forecast_no_worse_than_by_a_constant() -> None:
    results = [forecast(task, fitted()) for figure in series(DATA / "series.csv") for task in tasks_of(figure)]
    told = summarise([each for each in results if len(each.task.known) > 1], [])
    assert told.factor < 1.3 and told.factor < told.rules["constant"]


@needs_data
def test_the_population_has_only_systems_that_the_readme_of_the_data_allows() -> None:
    figures = io500(DATA)
    assert len({figure.system for figure in figures}) > 15
    assert not any("5888" in scale.text.replace(",", "") for figure in figures for scale in figure.scales)
