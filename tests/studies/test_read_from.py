"""Where reads of new data came from is said only as far as the client can tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strakes.analysis.statements import proposals, state
from strakes.findings.cell import Cell
from strakes.findings.results import Measured
from strakes.plan import Phase, TransferPhase
from strakes.studies.compose import from_own_cache, read_from
from strakes.studies.transfer_size import TransferSize
from strakes.units import KIB, MIB
from studies.world import context, flat, measured


def cell_with(cache: dict[str, Any]) -> Measured:
    """Return a buffered cell whose reads met this page cache."""
    cell = next(cell for cell in measured(TransferSize(), flat).measured if cell.settings.get("io") == "buffered")
    seen = cell.observations[0]
    told = replace(seen, sample=replace(seen.sample, cache=replace(seen.sample.cache, **cache)))
    return replace(cell, observations=(told,))


@pytest.mark.parametrize(
    ("file_system", "method", "resident", "told"),
    [
        ("xfs", "cachestat", 0, "after cache drop"),
        ("xfs", "cachestat", 500_000, "partly from this node's cache"),
        ("xfs", "", 0, "whatever cache answered"),
        # Their clients have a cache that nobody can drop.
        ("gpfs", "cachestat", 0, "whatever cache answered"),
        ("fuse.glusterfs", "cachestat", 0, "whatever cache answered"),
        ("fuse.ceph-fuse", "cachestat", 0, "whatever cache answered"),
    ],
)
def test_a_cache_is_called_dropped_only_where_it_was_seen_to_be(
    file_system: str, method: str, resident: int, told: str
) -> None:
    cell = cell_with({"method": method, "file_bytes": 1_000_000, "resident_before_bytes": resident})
    assert read_from(cell, {"file_system": file_system}) == told


CEPH = {"file_system": "fuse.ceph-fuse", "remote": True}
NODES: dict[str, Any] = {"nodes": {"n1": 2, "n2": 2}, "most_ranks": 4, "file_system": "fuse.ceph-fuse"}


def by_size(phase: Phase, ranks: int) -> float:
    """Return rates that grow with the size of calls up to 1 MiB."""
    assert isinstance(phase, TransferPhase)
    return 400.0 * MIB * min(1.0, phase.transfer_bytes / MIB)


def test_nothing_is_stated_of_reads_that_the_clients_own_cache_may_have_answered() -> None:
    results = measured(TransferSize(), by_size, facts=CEPH, file_system="fuse.ceph-fuse")
    cached = {cell.id for cell in results.measured if from_own_cache(cell, CEPH)}
    assert cached == {cell.id for cell in results.where(operation="read", io="buffered")} != set()
    stated = state([TransferSize()], results, {})
    (line,) = [finding for finding in stated.findings if not cached.isdisjoint(finding.evidence)]
    assert line.verdict == "unknown"
    assert not line.claims
    assert set(line.evidence) == cached
    # What is advised of reads is what those past the cache show.
    advised = [advice for _, advice in proposals([TransferSize()], results)]
    assert {advice.setting for advice in advised} == {"transfer size, writes", "transfer size, O_DIRECT reads"}
    assert all(cached.isdisjoint(advice.evidence) for advice in advised)


@pytest.mark.parametrize("file_system", ["xfs", "lustre"])
def test_of_all_other_file_systems_as_much_is_stated_as_ever(file_system: str) -> None:
    facts = {"file_system": file_system, "remote": file_system == "lustre"}
    stated = state([TransferSize()], measured(TransferSize(), by_size, facts=facts), {})
    assert "reads-from-own-cache" not in {finding.id for finding in stated.findings}
    assert "transfer-size-read-buffered" in {finding.id for finding in stated.findings}


def test_where_several_nodes_take_part_each_reads_what_another_one_wrote() -> None:
    results = measured(TransferSize(), by_size, facts=CEPH, **NODES)
    reads = results.where(operation="read")
    assert {read_from(cell, CEPH) for cell in reads} == {"written by another node"}
    assert not any(from_own_cache(cell, CEPH) for cell in reads)
    assert "reads-from-own-cache" not in {finding.id for finding in state([TransferSize()], results, {}).findings}


def test_a_short_survey_measures_past_a_cache_that_answers() -> None:
    def sizes(**changes: Any) -> set[tuple[object, object]]:
        cells = [cell for cell in TransferSize().cells(context(**changes)) if isinstance(cell, Cell)]
        return {(cell.settings["io"], cell.settings["transfer_bytes"]) for cell in cells if cell.priority == 1}

    direct = ("direct", 64 * KIB)
    assert direct in sizes(file_system="fuse.ceph-fuse")
    assert direct not in sizes(file_system="xfs")
    assert direct not in sizes(**NODES)
