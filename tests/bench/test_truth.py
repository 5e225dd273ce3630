"""Whole surveys on a simulated engine and clock: with planted truths nothing false is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.truth.__main__ import EQUAL, line, noise_named, verdicts
from bench.truth.judge import Verdict, judge
from bench.truth.noise import five
from bench.truth.planted import truth_named, truths
from bench.truth.simulated import portrait_of, survey

from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.open_close import OpenClose
from strakes.studies.processes_per_node import ProcessesPerNode
from strakes.studies.study import Study
from strakes.studies.transfer_size import TransferSize

FEW: tuple[Study, ...] = (TransferSize(), ProcessesPerNode(), OpenClose(), MetadataOps())
USUAL = "log-normal, 3 %"


def judged(truth: str, noise: str, seed: int, place: Path) -> Verdict:
    run = survey(truth_named(truth), noise_named(noise), seed, FEW, place)
    return judge(run, portrait_of(run), truth_named(truth), noise_named(noise))


@pytest.mark.parametrize("noise", [noise.name for noise in five()])
def test_of_equal_cells_nothing_false_is_said(noise: str, tmp_path: Path) -> None:
    """At most one survey in ten may err, and these few were seen not to: the same seeds give the same surveys."""
    assert judged(EQUAL, noise, 1, tmp_path).false == ()


@pytest.mark.parametrize(
    "truth", ["saturation at 4 ranks", "64 KiB as good as 1 MiB", "client cache", "server cache", "slow first 48 s"]
)
def test_a_planted_truth_is_said_and_nothing_false(truth: str, tmp_path: Path) -> None:
    verdict = judged(truth, USUAL, 1, tmp_path)
    assert verdict.false == ()
    assert verdict.told


def test_the_same_seed_gives_the_same_survey(tmp_path: Path) -> None:
    first, second = (judged("saturation at 4 ranks", USUAL, 7, tmp_path / name) for name in ("a", "b"))
    assert first == second


def test_a_false_sentence_is_found(tmp_path: Path) -> None:
    """What is true of one file system is held against another."""
    run = survey(truth_named("client cache"), noise_named(USUAL), 1, FEW, tmp_path)
    assert judge(run, portrait_of(run), truth_named(EQUAL), noise_named(USUAL)).false


@pytest.mark.long
@pytest.mark.parametrize("noise", [noise.name for noise in five()])
def test_surveys_of_equal_cells_err_no_more_often_than_stated(noise: str) -> None:
    surveys = verdicts(EQUAL, noise, 200, 2)
    assert sum(bool(one.false) for one in surveys) <= 20, line(EQUAL, noise, surveys)


@pytest.mark.long
@pytest.mark.parametrize("truth", [truth.name for truth in truths() if truth.name != EQUAL])
def test_surveys_of_a_planted_truth_hardly_err(truth: str) -> None:
    surveys = verdicts(truth, "log-normal, 5 %", 100, 2)
    assert sum(bool(one.false) for one in surveys) <= 5, line(truth, "log-normal, 5 %", surveys)
