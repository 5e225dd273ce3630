"""The study replication-cost: DRBD's counters, comparison with an unreplicated device, and the figures of S2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from strakes.model.phases import MetadataPhase
from strakes.model.plan import Phase
from strakes.model.results import Results
from strakes.studies.against import Against
from strakes.studies.replication_cost import ReplicationCost
from strakes.studies.study import Study
from studies.world import answered, cells_of, context, results_of, skipped_of, visits_of

_SENT_PER_FILE = 4096.0


def run(study: Study, *, counted: bool, blocks: int = 12) -> Results:
    """Return results for a device A with DRBD and a device B without.

    Creations with fsync are five times as fast on B, batches equally fast. ``counted``: DRBD's counters are available.
    """
    cells = cells_of(study)

    def rates(phase: Phase, ranks: int) -> float:
        assert isinstance(phase, MetadataPhase)
        return 200.0 if phase.fsync else 20_000.0

    visits = visits_of(cells, rates, blocks, 0.01)
    for visit in visits:
        on_a = not visit["cell"].startswith("B/")
        first = visit["samples"][0]
        if not on_a and "synced" in visit["cell"]:
            first["elapsed_s"] /= 5
            first["operations_per_s"] *= 5
        if counted and on_a:
            visit["servers"] = {"drbd0": {"data.replicated_bytes": _SENT_PER_FILE * first["operations"]}}
    return results_of(cells, visits)


def said(study: Study, results: Results) -> Mapping[str, Any]:
    return {one.id.removeprefix("replication-cost-"): one for one in study.findings(results)}


def test_the_bytes_of_a_file_are_from_the_counters_of_the_device() -> None:
    study = ReplicationCost()
    found = said(study, run(study, counted=True))
    one = found["bytes-empty file, synced/1"]
    assert one.verdict == "measured" and one.interval.low == one.interval.high == _SENT_PER_FILE
    assert "4,096 bytes" in one.statement and "Zeng et al. published 2,560" in one.statement
    # The finding computes 10,000 files of 4 KiB at 200 MB/s, and quotes the source S2, which contradicts itself.
    arithmetic = found["arithmetic"].statement
    for part in ("would take 0.195 s", "predicted 0.122 s and measured 0.488 s", "47 to 50 MB/s in the table"):
        assert part in arithmetic
    assert found["ratio"].verdict == "unknown"


def test_the_published_table_is_measured_up_to_100_000_files_and_forecast_beyond() -> None:
    study = ReplicationCost()
    found = said(study, run(study, counted=True))
    small, large, forecast = (found[f"table-{row}"] for row in ("10000", "100000", "forecast"))
    # 0.5 s for 10,000 files at 20,000 files a second, and 10 ms in which two ranks wait.
    assert small.verdict == large.verdict == "measured"
    assert "10,000 files are created and synced after 0.51 s, and 39.1 MiB are sent to the peer" in small.statement
    assert "published by Zeng et al.: 4.88 s for 244.1 MiB" in large.statement
    assert forecast.verdict == "forecast" and forecast.interval.low < 500 < forecast.interval.high
    asked = [cell.settings.get("files") for cell in study.cells(context(files=1_000_000, max_items=4_000_000))]
    assert asked[-3:] == [10_000, 100_000, 1_000_000] and skipped_of(study, max_items=50_000)


def test_a_device_without_replication_is_named_as_such() -> None:
    study = ReplicationCost()
    found = said(study, run(study, counted=False))
    assert found["device"].verdict == "unknown" and "not on a replicated device" in found["device"].statement
    assert "arithmetic" not in found and found["table-10000"].verdict == "measured"
    both = Against(ReplicationCost()).findings(run(Against(ReplicationCost()), counted=False))
    assert sum("not on a replicated device" in one.statement for one in both) == 2


def test_against_a_device_without_replication_the_cost_is_a_ratio_and_the_bytes_stay() -> None:
    study = Against(ReplicationCost())
    results = run(study, counted=True)
    answers = answered(study, results)
    ratio = answers["replication-cost/empty file, synced/1:create"]
    assert (ratio.chosen, ratio.grade) == ("B", "sure") and ratio.against.low == pytest.approx(5.0, rel=0.05)
    assert answers["replication-cost/batch/10000:create"].grade == "alike"
    counted = [one.statement for one in study.findings(results) if "bytes are replicated" in one.statement]
    assert len(counted) == 6 and all(one.startswith("A: For each file, 4,096 bytes") for one in counted)
