"""What a run is warned of."""

from __future__ import annotations

import pytest

from strakes.analysis.warnings import drift
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
