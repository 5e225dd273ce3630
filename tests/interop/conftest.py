"""Fixture with finished runs of a simulated file system, for tests of exports and of the history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from strakes.model.cell import Cell
from strakes.runs.run import Run
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.transfer_size import TransferSize
from studies.world import context, flat, store_run, stored, visits_of

MakeRun = Callable[..., Run]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Return a function that stores a run of a survey and opens it.

    ``day``: days since 1 January 2026. ``speed``: factor on all rates. ``noise``: relative scatter of the rates.
    """
    target = tmp_path / 'tar"get'
    target.mkdir()
    studies = (TransferSize(), MetadataOps())
    cells = [cell for study in studies for cell in study.cells(context()) if isinstance(cell, Cell)]

    def make(
        day: int = 0, speed: float = 1.0, noise: float = 0.02, fingerprint: str = "0" * 16, host: str = "n1"
    ) -> Run:
        visits = visits_of(cells, lambda phase, ranks: speed * flat(phase, ranks), blocks=6, noise=noise)
        return store_run(
            target,
            cells,
            stored(visits),
            {"path": str(target), "file_system": "xfs", "remote": False, "memory_bytes": 2**34},
            environment={"host": host, "kernel": "6.1"},
            measured_at=datetime(2026, 1, 1, 3, 0, tzinfo=UTC) + timedelta(days=day),
            fingerprint=fingerprint,
            studies=[study.name for study in studies],
        )

    return make
