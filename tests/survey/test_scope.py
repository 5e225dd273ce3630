"""The scope sentence counts clients as the file system does."""

from __future__ import annotations

import pytest

from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.plan import Plan
from strakes.survey.analysis_scope import scope_of


def cell(ranks: int, backend: str) -> Cell:
    phase = MetadataPhase("create", "file-create", "unique", 10, backend=backend)
    return Cell("metadata-ops", "create", {}, Plan(ranks, (phase,)))


def data(ranks: int) -> Cell:
    phase = TransferPhase("write", "write", "file-per-process", "segmented", 1024, 1024)
    return Cell("transfer-size", "write", {}, Plan(ranks, (phase,)))


@pytest.mark.parametrize(
    ("cells", "nodes", "begin"),
    [
        ([cell(4, "posix")], {"n1": 4}, "one client measured: 4 ranks on node n1;"),
        ([data(4)], {"n1": 2, "n2": 2}, "2 clients (one on each node) measured: 4 ranks on 2 nodes (n1, n2);"),
        (
            [cell(1, "cephfs"), cell(12, "cephfs")],
            {"n1": 12},
            "1 to 12 clients measured (each rank is a client, through libcephfs) on node n1;",
        ),
        ([cell(12, "cephfs"), data(2)], {"n1": 12}, "metadata: 12 clients measured"),
    ],
)
def test_mounts_and_ranks_without_one_are_counted_as_clients(
    cells: list[Cell], nodes: dict[str, int], begin: str
) -> None:
    text = scope_of(cells, sorted({one.plan.ranks for one in cells}), {"host": "n1", "engine": {"nodes": nodes}})
    assert text.startswith(begin)
    assert "data: one client, through the mount" in text or not begin.startswith("metadata")
