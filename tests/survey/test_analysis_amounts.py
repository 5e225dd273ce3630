"""Clients and amounts of data and files that a run states, and warnings about caches and short phases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strakes.base.units import GIB, MIB
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.plan import Phase, Plan
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.transfer_size import TransferSize
from strakes.survey.analysis_amounts import amount_warnings, amounts_of, too_short
from strakes.survey.analysis_answers import answers_of
from strakes.survey.analysis_collect import longer_work
from strakes.survey.analysis_scope import scope_of
from strakes.survey.pilot import LONGER
from studies.world import cells_of, measured, results_of, stored, visits_of


def rates(creates: float, stats: float, data: float) -> Any:
    def rate(phase: Phase, ranks: int) -> float:
        if isinstance(phase, MetadataPhase):
            return stats if phase.operation == "file-stat" else creates
        return data * MIB

    return rate


def codes(results: Any) -> dict[str, tuple[str, ...]]:
    return {warning.code: warning.cells for warning in amount_warnings(results)}


@pytest.mark.parametrize(
    ("remote", "stats", "flagged"),
    [(False, 1_249_034.0, True), (False, 20_000.0, True), (True, 1_249_034.0, True), (True, 20_000.0, False)],
)
def test_stats_answered_from_the_memory_of_this_node_are_flagged(remote: bool, stats: float, flagged: bool) -> None:
    facts = {"remote": remote, "file_system": "any"}
    results = measured(MetadataOps(), rates(5_000.0, stats, 1.0), facts=facts)
    cells = codes(results).get("names-from-memory", ())
    assert any(cell.endswith(":file-stat") for cell in cells) == flagged
    assert not any("create" in cell or "remove" in cell for cell in cells)
    labels = [line.label for line in MetadataOps().headlines(results)]
    # A rate that comes from the client's cache is no headline.
    expected = ["file-create", *(() if flagged else ("file-stat",)), "file-remove"]
    assert [label.partition(" (")[0] for label in labels] == expected


def test_the_amounts_of_data_and_of_files_are_stated() -> None:
    assert "48 MiB per process" in amounts_of(measured(TransferSize(), rates(1, 1, 1000.0)))
    assert "metadata phases worked on" in amounts_of(measured(MetadataOps(), rates(50_000.0, 50_000.0, 1.0)))


@pytest.mark.parametrize(("data", "short"), [(100_000.0, True), (200.0, True), (50.0, False)])
def test_phases_too_short_for_a_steady_state_are_flagged(data: float, short: bool) -> None:
    found = codes(measured(TransferSize(), rates(1, 1, data), facts={"remote": False, "file_system": "ext4"}))
    assert ("short-phases" in found) == short


@pytest.mark.parametrize(("times", "burst"), [(9.7, True), (1.7, False)])
def test_answers_about_rates_that_do_not_last_are_undecided(times: float, burst: bool) -> None:
    def rate(phase: Phase, ranks: int) -> float:
        return 1000.0 * MIB * ranks * (phase.transfer_bytes**0.3 if isinstance(phase, TransferPhase) else 1)

    study = TransferSize()
    cells = cells_of(study)
    visits = visits_of(cells, rate, 12, 0.01)
    long = [{**visits[-1], "visit": len(visits), "purpose": "pilot", "cell": LONGER + visits[-1]["cell"]}]
    long[0]["samples"] = [
        {**one, "bytes_per_s": one["bytes_per_s"] / times, "elapsed_s": 1.0} for one in long[0]["samples"]
    ]
    plain = results_of(cells, visits)
    found = longer_work(cells, stored([*visits, *long]), plain)
    assert {name: ratio for name, (ratio, _) in found.items()} == pytest.approx(
        {"write": times, "read": times}, rel=0.05
    )
    results = replace(plain, facts={**plain.facts, "longer": found})
    assert ({answer.grade for answer in answers_of(study.questions(results), results)} == {"undecided"}) == burst
    assert ("burst" in codes(results)) == burst


def test_a_sustained_rate_is_not_called_short() -> None:
    results = measured(TransferSize(), rates(1, 1, 1000.0), facts={"longer": {"write": (1.1, 0.6), "read": (1.1, 0.4)}})
    assert {name.rpartition(":")[2] for name in too_short(results)} == {"read"}


def test_stats_answered_from_memory_are_not_reported_as_bursts() -> None:
    results = measured(MetadataOps(), rates(5_000.0, 1_249_034.0, 1.0), facts={"remote": False, "file_system": "any"})
    remembered = codes(results)["names-from-memory"]
    assert remembered and not set(remembered) & set(too_short(results))


@pytest.mark.parametrize(
    ("remote", "memory", "flagged"), [(True, 16 * GIB, True), (True, 16 * MIB, False), (False, 16 * GIB, False)]
)
def test_bandwidths_that_fit_into_caches_of_servers_are_flagged(remote: bool, memory: int, flagged: bool) -> None:
    facts = {"remote": remote, "file_system": "any", "memory_bytes": memory}
    results = measured(TransferSize(), rates(1, 1, 1000.0), facts=facts)
    told = [warning for warning in amount_warnings(results) if warning.code == "fits-servers-memory"]
    assert bool(told) == flagged
    for warning in told:
        assert "--data-per-rank" in warning.remedy and set(warning.cells) == {cell.id for cell in results.measured}


def cell(ranks: int, backend: str) -> Cell:
    phase = MetadataPhase("create", "file-create", "unique", 10, backend=backend)
    return Cell("metadata-ops", "create", {}, Plan(ranks, (phase,)))


def data(ranks: int) -> Cell:
    phase = TransferPhase("write", "write", "file-per-process", "segmented", 1024, 1024)
    return Cell("transfer-size", "write", {}, Plan(ranks, (phase,)))


@pytest.mark.parametrize(
    ("cells", "nodes", "begin"),
    [
        ([cell(4, "posix")], {"n1": 4}, "one client measured: 4 processes on node n1"),
        ([data(4)], {"n1": 2, "n2": 2}, "2 clients (one on each node) measured: 4 processes on 2 nodes (n1, n2)"),
        (
            [cell(1, "cephfs"), cell(12, "cephfs")],
            {"n1": 12},
            "1 to 12 clients measured on node n1 (through libcephfs, where each rank is a client)",
        ),
        ([cell(12, "cephfs"), data(2)], {"n1": 12}, "metadata: 12 clients measured"),
    ],
)
def test_mounts_and_ranks_without_a_mount_are_counted_as_clients(
    cells: list[Cell], nodes: dict[str, int], begin: str
) -> None:
    text = scope_of(cells, sorted({one.plan.ranks for one in cells}), {"host": "n1", "engine": {"nodes": nodes}})
    assert text.startswith(begin)
    assert "data: one client measured (data goes through the mount)" in text or not begin.startswith("metadata")
