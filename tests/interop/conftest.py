"""Fixture: finished runs of a simulated file system, for the tests of exports and of the history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from strakes.findings.cell import Cell
from strakes.store import Run, Store
from strakes.store.records import FactsFound
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.transfer_size import TransferSize
from studies.world import context, flat, stored, visits_of

MakeRun = Callable[..., Run]
# The columns of the engine's latency time line.
LATENCY_COLUMNS = ["t_s", "calls", "p50_s", "p90_s", "p99_s", "p999_s", "slowest_s"]


def latency_rows(seconds: int) -> dict[str, list[list[float]]]:
    """Return latency rows of two kinds of calls; latencies grow with every second."""
    slower = [
        [second, 100 * second, *(second * share for share in (0.5, 0.9, 0.99, 0.999, 1.0))]
        for second in range(1, seconds + 1)
    ]
    return {"write": slower, "gather": slower[:1]}


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Return a function that stores a run of a survey and opens it.

    ``day`` counts from 1 January 2026, ``speed`` multiplies all rates, and ``noise`` is their relative scatter. With
    ``seconds`` the first measured phase of every visit has a latency time line of that length.
    """
    target = tmp_path / 'tar"get'
    target.mkdir()
    studies = (TransferSize(), MetadataOps())
    cells = [cell for study in studies for cell in study.cells(context()) if isinstance(cell, Cell)]

    def make(
        day: int = 0, speed: float = 1.0, noise: float = 0.02, fingerprint: str = "0" * 16, seconds: int = 0
    ) -> Run:
        options = {
            "fingerprint": fingerprint,
            "studies": [study.name for study in studies],
            "confidence": 0.9,
            "relative_half_width": 0.1,
            "budget_s": 60.0,
            "command": f"strakes survey {target}",
        }
        when = datetime(2026, 1, 1, 3, 0, tzinfo=UTC) + timedelta(days=day)
        with Store().create(
            "survey", "survey", target, options, {"host": "n1", "kernel": "6.1"}, measured_at=when
        ) as writer:
            writer.write_cells(cells)
            facts = {"path": str(target), "file_system": "xfs", "remote": False, "memory_bytes": 2**34}
            writer.append_event(FactsFound(facts))
            visits = visits_of(cells, lambda phase, ranks: speed * flat(phase, ranks), blocks=6, noise=noise)
            measured = {cell.key: cell.measures[0].phase for cell in cells}
            for number, record in enumerate(visits if seconds else []):
                first = next(one for one in record["samples"] if one["name"] == measured[record["cell"]])
                first |= {
                    "origin_unix_s": when.timestamp() + 60 * number,
                    "latency_timeline": {"row_s": 1.0, "columns": LATENCY_COLUMNS, "rows": latency_rows(seconds)},
                }
            for visit in stored(visits):
                writer.append_visit(visit)
            writer.finish("complete")
            return Store().open(writer.id)

    return make
