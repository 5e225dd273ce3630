"""Findings of the study `nodes`: scaling with the number of nodes, and slow nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from strakes.base.units import GIB, MIB
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Phase
from strakes.model.portrait import Finding
from strakes.studies.nodes import NodesStudy
from strakes.studies.processes_per_node import ProcessesPerNode
from strakes.studies.study import Study
from strakes.studies.writers import Writers
from studies.world import cells_of, results_of, skipped_of, visits_of

HOSTS = {"n1": 2, "n2": 2, "n3": 2, "n4": 2}
STUDY = NodesStudy()


def findings(rate_of_node: float, limit: float, slow: Mapping[str, float] | None = None) -> dict[str, Finding]:
    """Return the findings by id for a simulated file system.

    ``rate_of_node``: bytes per second for each node, up to ``limit`` for all.
    ``slow``: factor of the time by node.
    """
    cells = cells_of(STUDY, nodes=HOSTS, most_ranks=8)

    def rates(phase: Phase, ranks: int) -> float:
        return 10_000.0 if isinstance(phase, MetadataPhase) else min(limit, rate_of_node * ranks / 2)

    visits = visits_of(cells, rates, 12, 0.01)
    for visit in visits:
        for sample in visit["samples"]:
            hosts = list(HOSTS)[: len(sample["ranks"]) // 2]
            ends = [(slow or {}).get(host, 1.0) for host in hosts for _ in range(2)]
            sample["columns"] = ["rank", "start_s", "end_s", "operations"]
            sample["ranks"] = [[rank, 0.0, end, 100] for rank, end in enumerate(ends)]
            sample["nodes"] = [{"host": host} for host in hosts]
    facts: dict[str, Any] = {"remote": True, "memory_bytes": 24 * GIB, "nodes": {"processes": HOSTS}}
    return {one.id: one for one in STUDY.findings(results_of(cells, visits, facts))}


def test_a_single_node_is_skipped() -> None:
    (skipped,) = skipped_of(STUDY)
    assert "--hosts" in skipped.reason


@pytest.mark.parametrize(
    ("study", "setting", "expected"),
    [(STUDY, "nodes", {(1, 2, 2), (2, 4, 2), (4, 8, 2)}), (Writers(), "writers", {(1, 8, 2), (2, 8, 2)})],
)
def test_every_level_has_the_same_number_of_ranks_on_each_node(study: Study, setting: str, expected: object) -> None:
    cells = cells_of(study, nodes=HOSTS, most_ranks=8)
    assert {(one.settings[setting], one.plan.ranks, one.plan.ranks_per_node) for one in cells} == expected


@pytest.mark.parametrize("operation", ["write", "read", "create"])
def test_the_slowest_node_is_named(operation: str) -> None:
    found = findings(500 * MIB, 5000 * MIB, {"n3": 2.0})[f"nodes-slowest-{operation}"]
    assert found.verdict == "measured" and "n3 is slow" in found.statement and "50%" in found.statement


def test_no_node_of_equal_nodes_is_called_slow() -> None:
    assert "No node is shown" in findings(500 * MIB, 5000 * MIB)["nodes-slowest-write"].statement


def test_processes_of_one_node_do_not_spill_over_to_the_next() -> None:
    assert [one.plan.ranks for one in cells_of(ProcessesPerNode(), nodes=HOSTS, most_ranks=8)] == [1, 2]
