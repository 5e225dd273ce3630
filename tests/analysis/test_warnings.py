"""What a run is warned of."""

from __future__ import annotations

import random

import pytest

from strakes.analysis.levels import Levels
from strakes.analysis.warnings import drift, intervals, shape
from strakes.findings.cell import Cell
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.population import Population
from strakes.studies.study import Study
from studies.world import context, flat, results_of, visits_of


@pytest.mark.parametrize(("study", "codes"), [(MetadataOps(), ["drift"]), (Population(), [])])
def test_rates_that_fall_are_drift_unless_it_is_the_population_that_grows(study: Study, codes: list[str]) -> None:
    cells = [one for one in study.cells(context()) if isinstance(one, Cell)]
    visits = visits_of(cells, flat, 12, 0.01)
    for visit in visits:
        for one in visit["samples"]:
            one["operations_per_s"] *= 0.95 ** visit["block"]
    assert [warning.code for warning in drift(results_of(cells, visits))] == codes


def test_no_number_of_runs_is_promised_where_runs_form_two_groups() -> None:
    cells = [cell for cell in MetadataOps().cells(context()) if isinstance(cell, Cell)]
    visits = visits_of(cells, flat, 22, 0.01)
    chance = random.Random(3)
    for visit in visits:
        if chance.random() < 0.5:
            for sample in visit["samples"]:
                sample["operations_per_s"] *= 0.6
    results = results_of(cells, visits)
    grouped = {cell for warning in shape(results, 0.0) for cell in warning.cells}
    told = intervals(results, 0.1, Levels((), 0.0), grouped)
    promised = {cell for warning in told if "would be enough" in warning.text for cell in warning.cells}
    assert grouped and told and not promised & grouped
