"""Simulated accelerators on a file system of known latency have the utilisation that arithmetic predicts."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from strakes.findings.sample import Sample
from strakes.launch.engine import LocalEngine
from strakes.plan import Plan, TrainingPhase

SAMPLES = TrainingPhase("generate", "generate", file_count=40, sample_bytes=4096)
EPOCH = replace(
    SAMPLES, name="epoch", operation="train", batch_samples=4, shuffle="samples", verify=True, prefetch_batches=4
)
READ_MS = 50


@pytest.fixture(scope="module")
def slow_reads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("the library needs a C compiler")
    built = tmp_path_factory.mktemp("slow") / "slow.so"
    source = Path(__file__).with_name("slow_reads.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", built, source], check=True)
    return built


@pytest.fixture
def place(tmp_path: Path) -> Path:
    directory = tmp_path / "place"
    directory.mkdir()
    (directory / ".strakes-marker").touch()
    return directory


def epoch_on(place: Path, epoch: TrainingPhase) -> Sample:
    with LocalEngine() as engine:
        result = engine.run(Plan(1, (SAMPLES, epoch)), place, "p1", 120)
    assert (result.ended, result.errors) == ("ok", ())
    sample = result.samples[1]
    assert (sample.operations, sample.bytes) == (40, 40 * 4096)
    return sample


def fed(sample: Sample) -> float:
    return sample.trained["utilisation_percent"]


# A batch of 4 takes a reader at least 200 ms. Hence the upper bounds; a busy machine lowers the utilisation.
@pytest.mark.parametrize(
    ("readers", "low", "high"),
    [
        pytest.param(0, 20, 36, id="by itself: 100 of 200 + 100 ms"),
        pytest.param(1, 35, 55, id="one reader: 100 of 200 ms"),
        pytest.param(4, 70, 100, id="four readers: all the time"),
    ],
)
def test_slow_reads_limit_the_utilisation_of_accelerators_as_predicted(
    slow_reads: Path, place: Path, monkeypatch: pytest.MonkeyPatch, readers: int, low: float, high: float
) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(slow_reads))
    monkeypatch.setenv("SLOW_READS_MS", str(READ_MS))
    prefetched = EPOCH.prefetch_batches if readers else TrainingPhase.prefetch_batches
    epoch = replace(EPOCH, readers=readers, prefetch_batches=prefetched, compute_ns=100_000_000)
    sample = epoch_on(place, epoch)
    assert low < fed(sample) <= high
    assert sample.trained["steps"] == 10
    assert 1.0 <= sample.trained["compute_s"] < 1.5


def test_long_steps_are_fed_all_the_time(place: Path) -> None:
    assert fed(epoch_on(place, replace(EPOCH, compute_ns=100_000_000))) > 90


def test_the_first_epoch_reports_how_much_of_its_data_is_in_the_page_cache(place: Path) -> None:
    warm = epoch_on(place, EPOCH).cache
    assert warm.method != "none"
    assert warm.file_bytes == warm.resident_before_bytes == 40 * 4096
