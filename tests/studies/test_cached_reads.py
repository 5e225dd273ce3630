"""Reads and look-ups answered by a cache of the client are named, and give no headline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from strakes.base.units import MIB
from strakes.model.phases import TransferPhase
from strakes.model.plan import Phase
from strakes.studies.compose import from_memory, from_own_cache
from strakes.studies.overview import Overview
from strakes.studies.transfer_size import TransferSize
from studies.world import flat, measured


def test_a_file_that_all_ranks_read_comes_from_the_device_once() -> None:
    cell = next(cell for cell in measured(TransferSize(), flat).measured if cell.settings.get("io") == "buffered")
    seen = cell.observations[0]
    cache = replace(seen.sample.cache, method="cachestat", file_bytes=1_000_000, resident_before_bytes=0)
    sample = replace(seen.sample, bytes=4_000_000, cache=cache)
    seen = replace(seen, sample=sample, servers={"vda": {"data.read_bytes": 1_000_000.0}})
    read = replace(cell, settings={**cell.settings, "operation": "read"}, observations=(seen,))
    assert not from_own_cache(read, {"file_system": "xfs"})


CEPH = {"file_system": "fuse.ceph-fuse", "remote": True}
NODES: dict[str, Any] = {"nodes": {"n1": 2, "n2": 2}, "most_ranks": 4, "file_system": "fuse.ceph-fuse"}


def by_size(phase: Phase, ranks: int) -> float:
    assert isinstance(phase, TransferPhase)
    return 400.0 * MIB * min(1.0, phase.transfer_bytes / MIB)


def test_reads_from_the_clients_own_cache_are_no_headlines() -> None:
    study = TransferSize()
    results = measured(study, by_size, facts=CEPH, file_system="fuse.ceph-fuse")
    cached = {cell.id for cell in results.measured if from_own_cache(cell, CEPH)}
    assert cached == {cell.id for cell in results.where(operation="read", io="buffered")} != set()
    shown = [results.get(line.cell).settings for line in study.headlines(results)]
    # Headlines show the largest requests, but no reads from the cache.
    expected = {("write", "buffered"), ("write", "direct"), ("read", "direct")}
    assert {(each["operation"], each["io"]) for each in shown} == expected
    assert {each["transfer_bytes"] for each in shown} == {8 * MIB}


def test_attributes_of_a_local_file_system_come_from_the_kernels_caches() -> None:
    facts = {"file_system": "xfs", "remote": False}
    results = measured(Overview(), lambda phase, ranks: 1e6, facts=facts)
    assert {cell.settings["operation"] for cell in results.measured if from_memory(cell, facts)} == {"file-stat"}
    for cell in results.measured:
        seen = cell.observations[0]
        objects = replace(seen, sample=replace(seen.sample, effective={"backend": "s3"}))
        assert not from_memory(replace(cell, observations=(objects,)), facts)


def test_with_several_nodes_each_reads_the_data_of_another() -> None:
    reads = measured(TransferSize(), by_size, facts=CEPH, **NODES).where(operation="read")
    assert all(cell.elsewhere for cell in reads) and not any(from_own_cache(cell, CEPH) for cell in reads)
