"""The stated origin of reads (device, cache, other node) does not exceed the client's knowledge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strakes.base.units import MIB
from strakes.model.phases import TransferPhase
from strakes.model.plan import Phase
from strakes.model.results import Measured
from strakes.studies.compose import from_own_cache, read_from
from strakes.studies.overview import Overview
from strakes.studies.transfer_size import TransferSize
from studies.world import answered, flat, measured


def cell_with(cache: dict[str, Any]) -> Measured:
    """Return a buffered cell whose first run had this state of the page cache."""
    cell = next(cell for cell in measured(TransferSize(), flat).measured if cell.settings.get("io") == "buffered")
    seen = cell.observations[0]
    told = replace(seen, sample=replace(seen.sample, cache=replace(seen.sample.cache, **cache)))
    return replace(cell, observations=(told,))


@pytest.mark.parametrize(
    ("file_system", "method", "resident", "told"),
    [
        ("xfs", "cachestat", 0, "after cache drop"),
        ("xfs", "cachestat", 500_000, "partly from this node's cache"),
        ("xfs", "", 0, "possibly from a cache"),
        # These clients have a private cache, which cannot be dropped.
        ("gpfs", "cachestat", 0, "possibly from a cache"),
        ("fuse.glusterfs", "cachestat", 0, "possibly from a cache"),
        ("fuse.ceph-fuse", "cachestat", 0, "possibly from a cache"),
    ],
)
def test_a_cache_is_called_dropped_only_if_that_was_observed(
    file_system: str, method: str, resident: int, told: str
) -> None:
    cell = cell_with({"method": method, "file_bytes": 1_000_000, "resident_before_bytes": resident})
    assert read_from(cell, {"file_system": file_system}) == told


def test_a_file_that_all_ranks_read_comes_from_the_device_once() -> None:
    cell = cell_with({"method": "cachestat", "file_bytes": 1_000_000, "resident_before_bytes": 0})
    seen = cell.observations[0]
    seen = replace(
        seen, sample=replace(seen.sample, bytes=4_000_000), servers={"vda": {"data.read_bytes": 1_000_000.0}}
    )
    read = replace(cell, settings={**cell.settings, "operation": "read"}, observations=(seen,))
    assert not from_own_cache(read, {"file_system": "xfs"})


CEPH = {"file_system": "fuse.ceph-fuse", "remote": True}
NODES: dict[str, Any] = {"nodes": {"n1": 2, "n2": 2}, "most_ranks": 4, "file_system": "fuse.ceph-fuse"}


def by_size(phase: Phase, ranks: int) -> float:
    """Return a rate in B/s that grows with the request size up to 1 MiB."""
    assert isinstance(phase, TransferPhase)
    return 400.0 * MIB * min(1.0, phase.transfer_bytes / MIB)


def test_an_answer_on_reads_from_the_clients_own_cache_says_so() -> None:
    study = TransferSize()
    results = measured(study, by_size, facts=CEPH, file_system="fuse.ceph-fuse")
    cached = {cell.id for cell in results.measured if from_own_cache(cell, CEPH)}
    assert cached == {cell.id for cell in results.where(operation="read", io="buffered")} != set()
    answers = answered(study, results)
    assert answers["read-buffered"].remark == "from this client's cache"
    assert answers["write-buffered"].remark == answers["read-O_DIRECT"].remark == ""


def test_an_answer_from_the_kernels_dentry_cache_says_so() -> None:
    facts = {"file_system": "xfs", "remote": False}
    answers = answered(Overview(), measured(Overview(), lambda phase, ranks: 1e6, facts=facts))
    assert answers["directories-file-stat"].remark == "from this client's cache"
    assert answers["directories-file-create"].remark == ""


def test_with_several_nodes_each_reads_the_data_of_another() -> None:
    results = measured(TransferSize(), by_size, facts=CEPH, **NODES)
    reads = results.where(operation="read")
    assert {read_from(cell, CEPH) for cell in reads} == {"written by another node"}
    assert not any(from_own_cache(cell, CEPH) for cell in reads)
