"""Where reads of new data came from is said only as far as the client can tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strakes.findings.results import Measured
from strakes.studies.compose import read_from
from strakes.studies.transfer_size import TransferSize
from studies.world import flat, measured


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
