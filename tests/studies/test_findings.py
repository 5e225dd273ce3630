"""Studies on made-up file systems whose truth is known."""

from __future__ import annotations

import re

import pytest

from strakes.findings.cell import Cell
from strakes.findings.portrait import Finding
from strakes.findings.results import Results
from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.studies.access_patterns import AccessPatterns
from strakes.studies.compose import useful_bounds
from strakes.studies.data_per_process import DataPerProcess
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.open_close import OpenClose
from strakes.studies.processes_per_node import ProcessesPerNode
from strakes.studies.study import Study
from strakes.studies.transfer_size import TransferSize
from strakes.units import KIB, MIB
from studies.world import context, measured, results_of, visits_of


def finding(study: Study, results: Results, identifier: str) -> Finding:
    return next(one for one in study.findings(results) if one.id == identifier)


def saturating_at_one_mebibyte(phase: Phase, ranks: int) -> float:
    assert isinstance(phase, TransferPhase)
    return 1000.0 * MIB * min(1.0, phase.transfer_bytes / MIB)


def test_transfer_size_finds_where_writes_saturate_and_advises_it() -> None:
    study = TransferSize()
    results = measured(study, saturating_at_one_mebibyte)
    found = finding(study, results, "transfer-size-write-buffered")
    assert found.verdict == "measured"
    assert "1 MiB" in found.statement
    advice = next(one for one in study.advice(results) if one.setting == "transfer size, writes")
    assert advice.value == "1 MiB"
    assert advice.chosen == "transfer-size/buffered/1048576:write"


def test_transfer_size_without_direct_io_says_so_and_measures_the_rest() -> None:
    study = TransferSize()
    results = measured(study, saturating_at_one_mebibyte, direct_io=False)
    assert not results.where(io="direct")
    assert results.where(io="buffered")


def test_data_per_process_does_not_guess_the_cache_knee() -> None:
    study = DataPerProcess()
    found = finding(study, measured(study, saturating_at_one_mebibyte), "data-per-process-knee")
    assert found.verdict == "unknown"
    assert "48 GiB" in found.needs


def test_the_cache_knee_is_found_by_what_was_in_the_cache() -> None:
    study = DataPerProcess()
    cells = [one for one in study.cells(context(full=True)) if isinstance(one, Cell)]
    visits = visits_of(cells, lambda phase, ranks: 1000.0 * MIB, 6, 0.01)
    for visit in visits:
        for sample in visit["samples"]:
            # 64 MiB of the page cache are ours.
            sample["cache"] = {"method": "cachestat", "resident_before_bytes": min(sample["bytes"], 64 * MIB)}
    found = finding(study, results_of(cells, visits), "data-per-process-knee")
    assert found.verdict == "measured"
    assert "between 64 MiB and 256 MiB per rank" in found.statement


def test_processes_per_node_finds_the_saturating_number() -> None:
    study = ProcessesPerNode()
    results = measured(study, lambda phase, ranks: 300.0 * MIB * min(ranks, 4))
    assert "4 ranks" in finding(study, results, "processes-per-node-write").statement


def test_of_numbers_of_processes_it_is_said_that_each_has_another_amount_of_data() -> None:
    """All share one amount: where large files are slow, more processes look better."""
    study = ProcessesPerNode()
    results = measured(study, lambda phase, ranks: 300.0 * MIB * min(ranks, 4))
    text = finding(study, results, "processes-per-node-write").statement
    assert "Each rank then has 2 times as much data as with 8 ranks, which may be the reason." in text
    advice = next(one for one in study.advice(results) if one.setting == "processes per node, writes")
    assert advice.reason.endswith("each rank then has 0.5 times as much data as with 2 ranks, which may be the reason")


def test_open_close_states_how_the_cost_grows() -> None:
    study = OpenClose()
    results = measured(study, lambda phase, ranks: 10_000.0)  # one queue for everybody: 16 ranks take 16 times as long
    found = finding(study, results, "open-close-create")
    assert re.fullmatch(
        r"16 ranks take 1\d\.\d\d times as long as 1 to create and close one file each\.", found.statement
    )
    assert found.interval is not None
    assert found.interval.low < 16 < found.interval.high or abs(found.interval.low - 16) < 0.5


def test_metadata_ops_prefers_own_directories_where_sharing_costs() -> None:
    def contended(phase: Phase, ranks: int) -> float:
        assert isinstance(phase, MetadataPhase)
        return 10_000.0 if phase.directory == "shared" else 20_000.0

    study = MetadataOps()
    results = measured(study, contended)
    (advice,) = study.advice(results)
    assert advice.value == "one per rank"
    assert finding(study, results, "metadata-ops-mean").interval is not None


def test_access_patterns_tests_the_claims_of_s5() -> None:
    def strided_hurts(phase: Phase, ranks: int) -> float:
        assert isinstance(phase, TransferPhase)
        rate = 1000.0 * MIB * (0.5 if phase.access == "strided" else 1.0)
        return rate * (1.2 if phase.operation == "read" else 1.0)

    study = AccessPatterns()
    results = measured(study, strided_hurts)
    strided = finding(study, results, "access-patterns-strided-read")
    assert strided.interval is not None
    assert strided.interval.low < 0.51 and strided.interval.high > 0.49
    assert finding(study, results, "access-patterns-s5-2").verdict == "holds"
    assert finding(study, results, "access-patterns-s5-7").verdict == "holds"


def test_access_patterns_refutes_a_claim_that_is_wrong_here() -> None:
    study = AccessPatterns()
    results = measured(study, lambda phase, ranks: 100.0 * MIB * (phase.transfer_bytes / (64 * KIB)) ** 0.5)  # type: ignore[union-attr]
    refuted = finding(study, results, "access-patterns-s5-2")
    assert refuted.verdict == "does-not"
    assert "DOES NOT" in refuted.statement


def test_noise_leaves_a_close_call_inconclusive() -> None:
    study = AccessPatterns()
    results = measured(study, lambda phase, ranks: 1000.0 * MIB, blocks=6, noise=0.3)
    assert finding(study, results, "access-patterns-s5-2").verdict == "inconclusive"


def test_what_seems_enough_is_proposed_against_its_rival_and_the_level_below() -> None:
    study = TransferSize()
    results = measured(study, saturating_at_one_mebibyte, striping=None)
    advice = next(one for one in study.advice(results) if one.setting == "transfer size, writes")
    assert advice.value == "1 MiB"
    rival, below = advice.contests()
    assert (rival.rival, rival.threshold) == ("transfer-size/buffered/8388608:write", 0.9)
    assert (below.rival, below.threshold) == ("transfer-size/buffered/65536:write", 1.0)


def test_the_smallest_level_has_none_below_to_be_better_than() -> None:
    study = TransferSize()
    results = measured(study, lambda phase, ranks: 1000.0 * MIB)
    for advice in study.advice(results):
        assert advice.value == "4 KiB" and len(advice.contests()) == 1


def test_which_level_is_too_small_is_said_where_it_is_not_known_which_suffices() -> None:
    """Two large levels that scatter cannot be told apart, but the smallest is far below both."""

    def rate(phase: Phase, ranks: int) -> float:
        assert isinstance(phase, TransferPhase)
        return (100.0 if phase.transfer_bytes < 64 * KIB else 1000.0) * MIB

    study = TransferSize()
    results = measured(study, rate, noise=0.3, blocks=16)
    partly = finding(study, results, "transfer-size-write-buffered")
    assert partly.verdict == "measured" and "Buffered writes need more than 4 KiB transfers" in partly.statement
    assert {claim.to for claim in partly.claims} == {"transfer-size/buffered/4096:write"}
    assert {(claim.low, claim.high) for claim in partly.claims} == {(1.0, None)}


def test_levels_that_cannot_be_told_apart_are_said_to_differ_little_where_they_do() -> None:
    study = TransferSize()
    results = measured(study, lambda phase, ranks: 1000.0 * MIB, noise=0.1, blocks=12)
    partly = finding(study, results, "transfer-size-write-buffered")
    assert "of the rate of any other setting" in partly.statement
    assert {claim.of for claim in partly.claims} == {"transfer-size/buffered/4096:write"}
    assert all(claim.low is not None and 0.8 <= claim.low <= 1 for claim in partly.claims)


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (0.81, 1.24, "0.81 to 1.24"),
        (0.95, 1.5, "at least 0.95"),
        (0.3, 1.08, "at most 1.08"),
        (0.7, 1.2, None),
        (0.85, 1.3, None),
    ],
)
def test_an_interval_that_holds_one_is_told_by_what_it_rules_out(low: float, high: float, told: str | None) -> None:
    assert useful_bounds(low, high) == told


def test_a_ratio_that_may_be_one_asserts_nothing() -> None:
    study = TransferSize()
    noisy = measured(study, lambda phase, ranks: 1000.0 * MIB, noise=0.5)
    undecided = finding(study, noisy, "transfer-size-write-buffered-to-direct")
    assert undecided.verdict == "inconclusive" and not undecided.claims
    assert undecided.statement.startswith("Not shown either way") and undecided.needs
    steady = finding(
        study, measured(study, lambda phase, ranks: 1000.0 * MIB), "transfer-size-write-buffered-to-direct"
    )
    assert steady.verdict == "measured" and len(steady.claims) == 1


def test_all_seven_statements_of_s5_are_answered() -> None:
    def as_in_s5(phase: Phase, ranks: int) -> float:
        assert isinstance(phase, TransferPhase)
        rate = 1000.0 * MIB * min(ranks, 4)
        if phase.access == "strided":
            rate *= 0.5 + 0.1 * min(4.0, phase.transfer_bytes / MIB)
        elif phase.layout == "shared-file" and phase.access == "segmented" and phase.operation == "read":
            rate *= 1.2 * (1.0 if ranks < 16 else 0.85)
        return rate * (1.2 if phase.operation == "read" else 1.0)

    study = AccessPatterns()
    results = measured(study, as_in_s5, full=True, noise=0.003)
    verdicts = {number: finding(study, results, f"access-patterns-s5-{number}").verdict for number in range(1, 8)}
    assert verdicts == dict.fromkeys(range(1, 8), "holds")
    flat_out = measured(study, lambda phase, ranks: 1000.0 * MIB, full=True, noise=0.003)
    verdicts = {number: finding(study, flat_out, f"access-patterns-s5-{number}").verdict for number in range(1, 8)}
    assert verdicts[1] == verdicts[2] == verdicts[3] == "holds"
    assert verdicts[4] == verdicts[6] == "does-not"


def test_a_survey_does_not_answer_what_it_did_not_ask() -> None:
    study = AccessPatterns()
    found = {one.id for one in study.findings(measured(study, lambda phase, ranks: 1000.0 * MIB))}
    assert "access-patterns-s5-1" in found
    assert "access-patterns-s5-3" not in found
