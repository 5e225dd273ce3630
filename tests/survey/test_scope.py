"""The scope sentence counts clients as the file system does."""

from __future__ import annotations

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


HERE = {"host": "n1"}


def test_ranks_on_one_mount_are_one_client() -> None:
    assert scope_of([cell(4, "posix")], [4], HERE).startswith("one client measured: 4 ranks on node n1;")


def test_every_rank_without_a_mount_is_a_client() -> None:
    text = scope_of([cell(1, "cephfs"), cell(12, "cephfs")], [1, 12], HERE)
    assert text.startswith("1 to 12 clients measured (each rank is a client, through libcephfs) on node n1;")
    assert "one client" not in text


def test_data_through_the_mount_is_reported_separately_from_metadata_clients() -> None:
    text = scope_of([cell(12, "cephfs"), data(2)], [2, 12], HERE)
    assert text.startswith("metadata: 12 clients measured") and "data: one client, through the mount" in text


def test_each_node_with_a_mount_is_one_client() -> None:
    text = scope_of([data(4)], [4], {"host": "n1", "engine": {"nodes": {"n1": 2, "n2": 2}}})
    assert text.startswith("2 clients (one on each node) measured: 4 ranks on 2 nodes (n1, n2);")
