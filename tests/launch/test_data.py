"""Compressibility and duplicate blocks of the data that the engine writes."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path

import pytest

from strakes.launch.engine import LocalEngine
from strakes.plan import MetadataPhase, Plan, SmallFilesPhase, TransferPhase

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / ".strakes-marker").touch()
    return tmp_path


def written(engine: LocalEngine, plan: Plan, place: Path, name: str) -> list[bytes]:
    result = engine.run(plan, place, name, 120, keep=True)
    assert (result.ended, result.errors) == ("ok", ())
    files = [path.read_bytes() for path in sorted((place / name).rglob("*")) if path.is_file()]
    shutil.rmtree(place / name)
    return files


def blocks(files: list[bytes], size: int) -> list[bytes]:
    return [data[at : at + size] for data in files for at in range(0, len(data) - size + 1, size)]


def test_different_visits_and_runs_write_different_data(engine: LocalEngine, place: Path, tmp_path: Path) -> None:
    plan = Plan(
        2,
        (
            TransferPhase("write", "write", "file-per-process", "segmented", 64 * KIB, 256 * KIB),
            MetadataPhase("make", "file-create", "unique", 20, file_bytes=8 * KIB),
            SmallFilesPhase("fill", "accumulate", 4 * KIB, 8 * KIB, files_per_rank=20),
        ),
    )
    other = tmp_path / "other-run"
    other.mkdir()
    (other / ".strakes-marker").touch()
    runs = ((place, "c1.v1"), (place, "c1.v2"), (other, "c1.v1"))
    first, again, elsewhere = (set(blocks(written(engine, plan, *run), 4 * KIB)) for run in runs)
    assert len(first) > 150
    assert not first & again and not first & elsewhere and not again & elsewhere


@pytest.mark.parametrize("percent", [25, 50, 80])
def test_data_is_compressible_as_requested_in_blocks_of_every_size(
    engine: LocalEngine, place: Path, percent: int
) -> None:
    phase = TransferPhase("write", "write", "file-per-process", "segmented", MIB, 2 * MIB, compressible_percent=percent)
    (data,) = written(engine, Plan(1, (phase,)), place, "p1")
    for size in (4 * KIB, 64 * KIB, MIB):
        compressed = sum(min(size, len(zlib.compress(block, 1))) for block in blocks([data], size))
        assert compressed / len(data) == pytest.approx(1 - percent / 100, abs=0.06), size
    # Both halves of a block compress alike, so storage that samples only the beginning sees the requested ratio.
    halves = [[len(zlib.compress(block[at : at + 2048], 1)) for block in blocks([data], 4096)] for at in (0, 2048)]
    assert sum(halves[0]) / sum(halves[1]) == pytest.approx(1, abs=0.1)


def test_the_share_of_duplicate_blocks_is_as_requested(engine: LocalEngine, place: Path) -> None:
    phase = TransferPhase("write", "write", "file-per-process", "segmented", MIB, 25 * MIB, duplicate_percent=40)
    files = written(engine, Plan(1, (phase,)), place, "p1")
    for size in (4 * KIB, 64 * KIB, 128 * KIB):
        every = blocks(files, size)
        assert len(set(every)) / len(every) == pytest.approx(0.6, abs=0.01), size
