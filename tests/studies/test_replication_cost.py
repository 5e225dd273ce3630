"""replication-cost says what DRBD counted, holds it against a device without replication, and keeps S2's figures apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from strakes.findings.cell import Cell
from strakes.findings.results import Results
from strakes.plan import MetadataPhase, Phase
from strakes.studies.against import Against
from strakes.studies.replication_cost import ReplicationCost
from strakes.studies.study import Study
from studies.world import answered, context, results_of, visits_of

_SENT_PER_FILE = 4096.0


def run(study: Study, *, counted: bool) -> Results:
    """Synchronous creates take five times as long with replication, and everything else as long as without; DRBD is at A."""
    cells = [one for one in study.cells(context()) if isinstance(one, Cell)]

    def rates(phase: Phase, ranks: int) -> float:
        assert isinstance(phase, MetadataPhase)
        return 200.0 if phase.fsync else 20_000.0

    visits = visits_of(cells, rates, 12, 0.01)
    for visit in visits:
        on_a = not visit["cell"].startswith("B/")
        first = visit["samples"][0]
        if not on_a and "/0/" not in visit["cell"]:
            first["elapsed_s"] /= 5
            first["operations_per_s"] *= 5
        if counted and on_a:
            visit["servers"] = {"drbd0": {"data.replicated_bytes": _SENT_PER_FILE * first["operations"]}}
    return results_of(cells, visits)


def said(study: Study, results: Results) -> Mapping[str, Any]:
    return {one.id: one for one in study.findings(results)}


def test_bytes_of_a_file_are_those_that_the_device_counted() -> None:
    study = ReplicationCost()
    found = said(study, run(study, counted=True))
    one = found["replication-cost-bytes-1/1"]
    assert one.verdict == "measured" and one.interval.low == one.interval.high == _SENT_PER_FILE
    assert "4,096 bytes" in one.statement and "S2: 2,560, published" in one.statement
    # 10,000 files of 4 KiB each at 200 MB/s, beside S2's own prediction and what it measured, and where it contradicts itself.
    arithmetic = found["replication-cost-arithmetic"].statement
    assert (
        "0.195 s by the bytes" in arithmetic
        and "0.122 s predicted, 0.488 s measured" in arithmetic
        and "imply 47 to 50" in arithmetic
    )
    assert found["replication-cost-ratio"].verdict == "unknown"


def test_without_counters_nothing_is_said_of_bytes() -> None:
    study = ReplicationCost()
    found = said(study, run(study, counted=False))
    assert found["replication-cost-bytes-1/1"].verdict == "unknown" and "replication-cost-arithmetic" not in found


def test_against_a_device_without_replication_the_cost_is_a_ratio_and_the_bytes_stay() -> None:
    study = Against(ReplicationCost())
    results = run(study, counted=True)
    found, answers = said(study, results), answered(study, results)
    ratio = answers["replication-cost/1/1:create"]
    assert (ratio.chosen, ratio.grade) == ("B", "sure") and ratio.against.low == pytest.approx(5.0, rel=0.05)
    assert answers["replication-cost/0/1:create"].grade == "alike"
    counted = [one.statement for one in found.values() if "are replicated for a file" in one.statement]
    assert len(counted) == 6 and all(one.startswith("A: 4,096 bytes") for one in counted)
    assert not any("unknown" in one.statement for one in found.values())


def test_published_values_are_marks_of_their_own() -> None:
    study = ReplicationCost()
    (figure,) = study.figures(run(study, counted=True))
    assert {reference.label for reference in figure.references} == {
        "S2, published: predicted at 200 MB/s",
        "S2, published: measured",
    }
    assert [round(point[1]) for reference in figure.references for point in reference.points] == [81_920, 20_492]
