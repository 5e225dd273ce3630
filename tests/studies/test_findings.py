"""Answers and findings of studies on simulated file systems of known behaviour."""

from __future__ import annotations

import pytest

from strakes.base.units import KIB, MIB
from strakes.model.phases import AMOUNT, MetadataPhase, TransferPhase
from strakes.model.plan import Phase
from strakes.model.portrait import Finding
from strakes.model.results import Results
from strakes.studies.access_patterns import AccessPatterns
from strakes.studies.data_per_process import DataPerProcess
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.open_close import OpenClose
from strakes.studies.overview import Overview, with_advised
from strakes.studies.processes_per_node import ProcessesPerNode
from strakes.studies.study import Pilot, Study
from strakes.studies.transfer_size import TransferSize
from strakes.survey.analysis_answers import judged
from studies.world import Rates, answered, cells_of, measured, results_of, skipped_of, visits_of


def finding(study: Study, results: Results, identifier: str) -> Finding:
    found = [*study.findings(results), *judged(study.claims(results), results)]
    return next(one for one in found if one.id == identifier)


def saturating_at_one_mebibyte(phase: Phase, ranks: int) -> float:
    if not isinstance(phase, TransferPhase):
        return 20_000.0
    return 1000.0 * MIB * min(1.0, phase.transfer_bytes / MIB)


@pytest.mark.parametrize(
    ("study", "rate", "question", "chosen", "against", "ratio"),
    [
        (TransferSize(), saturating_at_one_mebibyte, "write-buffered", "1 MiB", "4 KiB", 256),
        (ProcessesPerNode(), lambda phase, ranks: 300.0 * MIB * min(ranks, 4), "write", "4", "1", 4),
        # The total rate is constant, so 16 ranks take 16 times as long.
        (OpenClose(), lambda phase, ranks: 10_000.0, "create", "1 rank", "16 ranks", 16),
        (
            MetadataOps(),
            lambda phase, ranks: 10_000.0 if phase.directory == "shared" else 20_000.0,
            "file-create-directories",
            "one per rank",
            "one shared directory",
            2,
        ),
    ],
)
def test_the_least_demanding_of_the_best_settings_is_chosen(
    study: Study, rate: Rates, question: str, chosen: str, against: str, ratio: float
) -> None:
    answer = answered(study, measured(study, rate))[question]
    assert (answer.chosen, answer.grade, answer.against.option) == (chosen, "sure", against)
    assert answer.against.ratio == pytest.approx(ratio, rel=0.05)
    assert answer.against.low < answer.against.ratio < answer.against.high


def test_the_least_demanding_of_equal_settings_is_chosen() -> None:
    study = TransferSize()
    answer = answered(study, measured(study, lambda phase, ranks: 1000.0 * MIB))["write-buffered"]
    assert (answer.chosen, answer.grade) == ("4 KiB", "alike")
    assert answer.within is not None and answer.within <= 1.1


def test_the_overview_answers_every_question_of_a_small_file_system() -> None:
    def rate(phase: Phase, ranks: int) -> float:
        if isinstance(phase, MetadataPhase):
            return 10_000.0 * (0.5 if phase.directory == "shared" else 1.0)
        assert isinstance(phase, TransferPhase)
        slower = 0.5 if phase.access == "strided" else 1.0
        return saturating_at_one_mebibyte(phase, ranks) * slower * (4.0 if phase.direct else 1.0)

    study = Overview()
    answers = answered(study, measured(study, rate, striping=None, noise=0.05))
    chosen = {name: (answer.chosen, answer.grade) for name, answer in answers.items()}
    assert chosen["request-size-write"] == ("1 MiB", "sure") and chosen["direct-write"] == ("8 MiB O_DIRECT", "sure")
    assert chosen["strides-read"] == ("contiguous", "sure")
    assert chosen["directories-file-create"] == ("one per process", "sure")
    assert chosen["processes-write"][1] == "alike" and chosen["files-write"][1] == "alike"
    assert len(answers) == 14


def test_rates_of_advised_settings_are_headlines() -> None:
    def rate(phase: Phase, ranks: int) -> float:
        if isinstance(phase, MetadataPhase):
            return 1000.0 * ranks
        assert isinstance(phase, TransferPhase)
        return 1e9 * (0.5 if phase.transfer_bytes > MIB or phase.operation == "read" else 1.0)

    study = Overview()
    results = measured(study, rate, striping=None, noise=0.02)
    usual = study.headlines(results)
    labels = [line.label for line in with_advised(usual, results, list(answered(study, results).values()))]
    advised = [label for label in labels if label not in {line.label for line in usual}]
    assert advised[-1] == "create, own directories, 16 processes"
    assert labels[labels.index(advised[-1]) - 1] == "create, own directories"


def test_all_cells_of_the_overview_move_the_same_amount() -> None:
    cells = cells_of(Overview())
    moving = [cell for cell in cells if any(isinstance(phase, TransferPhase) for phase in cell.plan.phases)]
    assert len({cell.plan.bytes_on_target() for cell in moving}) == 1
    plain = [cell.plan.phases for cell in cells if cell.layout is None]
    assert len(set(plain)) == len(plain)
    left_out = [one.settings for one in skipped_of(Overview(), data_per_rank=MIB)]
    assert len(left_out) > 1 and all(left_out.count(settings) == 1 for settings in left_out)


@pytest.mark.parametrize("rate", [10e6, 70e6, 1e9])
def test_the_amounts_of_the_overview_fit_the_time_limit_of_a_phase(rate: float) -> None:
    for cell in cells_of(Overview(), phase_s=0.2, pilot=Pilot(rate, 2 * rate, 100.0)):
        for phase in cell.plan.phases:
            if isinstance(phase, TransferPhase):
                amount = phase.block_bytes * phase.segments * cell.plan.ranks
                assert amount / rate <= (phase.stop.seconds or 0)


def test_data_per_process_does_not_guess_the_cache_knee() -> None:
    study = DataPerProcess()
    found = finding(study, measured(study, saturating_at_one_mebibyte), "data-per-process-knee")
    assert found.verdict == "unknown" and "48 GiB" in found.needs


def test_the_cache_knee_is_found_from_the_cached_bytes() -> None:
    study = DataPerProcess()
    cells = cells_of(study, full=True)
    visits = visits_of(cells, lambda phase, ranks: 1000.0 * MIB, 6, 0.01)
    for visit in visits:
        for sample in visit["samples"]:
            # At most 64 MiB of the file are in the page cache.
            sample["cache"] = {"method": "cachestat", "resident_before_bytes": min(sample["bytes"], 64 * MIB)}
    found = finding(study, results_of(cells, visits), "data-per-process-knee")
    assert found.verdict == "measured" and "With 256 MiB instead of 64 MiB per rank" in found.statement


def test_metadata_ops_creates_files_again_in_a_directory_after_it_removed_as_many() -> None:
    (cell,) = (one for one in cells_of(MetadataOps()) if "churned-create" in {part.name for part in one.plan.phases})
    phases = {phase.name: phase for phase in cell.plan.phases if isinstance(phase, MetadataPhase)}
    again, removed = phases["churned-create"], phases["file-remove"]
    assert (again.files, again.directory, again.items) == (removed.files, removed.directory, removed.items)
    assert removed.stop == AMOUNT


def test_access_patterns_refutes_a_claim_that_is_wrong_here() -> None:
    study = AccessPatterns()
    results = measured(study, lambda phase, ranks: 100.0 * MIB * (phase.transfer_bytes / (64 * KIB)) ** 0.5)  # type: ignore[union-attr]
    refuted = finding(study, results, "access-patterns-s5-2")
    assert (refuted.verdict, refuted.grade) == ("does-not", "sure") and "does not hold here" in refuted.statement


def test_noise_leaves_a_close_call_inconclusive() -> None:
    study = AccessPatterns()
    results = measured(study, lambda phase, ranks: 1000.0 * MIB, blocks=6, noise=0.3)
    found = finding(study, results, "access-patterns-s5-2")
    assert (found.verdict, found.grade) == ("inconclusive", "undecided") and "leaning to" in found.statement


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
    assert verdicts[1] == verdicts[2] == verdicts[3] == "holds" and verdicts[4] == verdicts[6] == "does-not"
