"""Comparison with ``juicefs bench``: both do the same work, and only operations of both give a ratio."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.engine import run_plan
from bench.juicefs import ITEMS, MDTEST_OPERATIONS, Amounts, Pair, as_mdtest, measured, plan_of, rates_in, table

from strakes.base.units import KIB, MIB
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.runs.engine import LocalEngine
from strakes.targets.workspace import Workspace

PRINTED = """\
Benchmark finished!
BlockSize: 1.0 MiB, BigFileSize: 64 MiB, SmallFileSize: 128 KiB, SmallFileCount: 100, NumThreads: 2
+------------------+----------------+---------------+
|       ITEM       |      VALUE     |      COST     |
+------------------+----------------+---------------+
|   Write big file |    79.00 MiB/s |   1.62 s/file |
|    Read big file |   332.00 MiB/s |   0.39 s/file |
| Write small file |   86.0 files/s | 23.26 ms/file |
|  Read small file |  212.0 files/s |  9.43 ms/file |
|        Stat file | 1612.0 files/s |  1.24 ms/file |
|   FUSE operation | 4000 operations|    1.00 ms/op |
+------------------+----------------+---------------+
"""


def test_the_output_of_juicefs_bench_is_read() -> None:
    rates = {"write": 79.0 * MIB, "read": 332.0 * MIB, "small-create": 86.0, "small-read": 212.0, "stat": 1612.0}
    assert rates_in(PRINTED) == rates


def test_the_plan_is_the_work_of_juicefs_bench() -> None:
    phases = {phase.name: phase for phase in plan_of(Amounts(2, 64 * MIB, 100)).phases}
    for name in ITEMS.values():
        phase = phases[name]
        if isinstance(phase, TransferPhase):
            assert (phase.block_bytes, phase.transfer_bytes, phase.sync, phase.time_open) == (
                64 * MIB,
                MIB,
                "close",
                True,
            )
        else:
            assert isinstance(phase, MetadataPhase)
            assert (phase.items, phase.file_bytes, phase.directory) == (100, 128 * KIB, "shared")


def test_the_engine_accepts_the_plan(tmp_path: Path) -> None:
    with Workspace.create(tmp_path, "bench") as workspace, LocalEngine() as engine:
        result = engine.run(plan_of(Amounts(2, 2 * MIB, 3)), workspace.path, "bench", 60.0)
    refused = [error.what for error in result.errors]
    # Without the privilege to drop caches the plan fails with that error and no other.
    assert result.ended == "ok" or all("drop" in what for what in refused), refused


def test_the_engine_runs_the_phases_of_mdtest(tmp_path: Path) -> None:
    with LocalEngine() as engine:
        samples = run_plan(engine, as_mdtest(Amounts(2, MIB, 3)), tmp_path)
    assert {sample.name: sample.operations for sample in samples} == dict.fromkeys(MDTEST_OPERATIONS, 6)


@pytest.mark.parametrize("blocks", [1, 9])
def test_only_operations_of_both_give_a_ratio(tmp_path: Path, blocks: int) -> None:
    pair = Pair("peer", lambda _: {"write": 30.0 * MIB, "stat": 20.0}, lambda _: {"write": 10.0 * MIB})
    rates = measured([pair], tmp_path, blocks, seed=1)
    (row,) = table(rates).splitlines()[2:]
    bounds = "3.00 (3.00–3.00)" if blocks > 1 else "3.00 (too few pairs)"
    assert row == f"| peer | write | 30 MiB/s | 10 MiB/s | {bounds} | {blocks} |"
    assert not list(tmp_path.iterdir())
