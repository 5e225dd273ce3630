"""The front end gets a probe's log and the timeline of a phase."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from strakes.launch.engine import LocalEngine
from strakes.launch.messages import LoggedOperation
from strakes.plan import Plan, ProbePhase
from strakes.targets.workspace import Workspace


def test_every_operation_of_a_probe_is_in_the_result(tmp_path: Path) -> None:
    phase = ProbePhase("watch", "write-fsync", rate_per_s=100, seconds=0.2, file_bytes=512, log=True)
    with LocalEngine() as engine, Workspace.create(tmp_path, "probe") as workspace:
        result = engine.run(Plan(ranks=2, phases=(phase,)), workspace.path, "c0.v0", limit_s=30)
    assert result.ended == "ok"
    assert sorted((one.rank, one.number) for one in result.log) == [
        (rank, number) for rank in range(2) for number in range(20)
    ]
    assert all(one.acknowledged and one.phase == "watch" for one in result.log)
    assert all(one.due_s <= one.begun_s <= one.ended_s for one in result.log)
    sample = result.samples[0]
    assert sample.operations == 40
    assert abs(min(one.begun_s for one in result.log) - sample.origin_unix_s) < 1


@pytest.mark.parametrize(("each_s", "least", "most"), [(0.1, 6, 30), (1.0, 1, 2)])
def test_a_probes_operations_are_reported_at_the_requested_interval(
    tmp_path: Path, each_s: float, least: int, most: int
) -> None:
    phase = ProbePhase("watch", "write-fsync", rate_per_s=20, seconds=1.5, file_bytes=512, log=True)
    plan, told = Plan(ranks=1, phases=(phase,)), list[Sequence[LoggedOperation]]()
    with LocalEngine() as engine, Workspace.create(tmp_path, "probe") as workspace:
        engine.run(plan, workspace.path, "c0.v0", limit_s=30, on_log=told.append, progress_s=each_s)
    assert sum(map(len, told)) == 30 and least <= len(told) <= most


def test_a_phase_has_a_row_for_each_of_its_seconds(tmp_path: Path) -> None:
    phase = ProbePhase("watch", "file-create", rate_per_s=20, seconds=2.6)
    with LocalEngine() as engine, Workspace.create(tmp_path, "probe") as workspace:
        (sample,) = engine.run(Plan(ranks=1, phases=(phase,)), workspace.path, "c0.v0", limit_s=30).samples
    rows = [dict(zip(sample.timeline["columns"], row, strict=True)) for row in sample.timeline["rows"]]
    assert rows
    assert 0 < sum(row["operations"] for row in rows) <= sample.operations
    assert all(row["took_s"] > 0.9 and row["memory_available_bytes"] > 0 for row in rows)
    latencies = sample.latency_timeline
    rows = [dict(zip(latencies["columns"], row, strict=True)) for row in latencies["rows"]["file-create"]]
    assert sum(row["calls"] for row in rows) == sample.operations
    assert all(0 < row["p50_s"] <= row["p90_s"] <= row["p99_s"] <= row["p999_s"] <= row["slowest_s"] for row in rows)
