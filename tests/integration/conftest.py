"""Labs, a small file system in memory, and background commands."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.running import Labs, own_labs
from mounts import tmpfs_mounted
from strakes.model.phases import MetadataPhase
from strakes.runs.run import Run
from strakes.runs.store import Store


@pytest.fixture
def labs() -> Iterator[Labs]:
    with own_labs() as found:
        yield found


@pytest.fixture(scope="module")
def shared_labs() -> Iterator[Labs]:
    with own_labs() as found:
        yield found


@pytest.fixture
def target() -> Iterator[Path]:
    with tmpfs_mounted("256m") as place:
        yield place


@pytest.fixture
def place(mount: Path) -> Iterator[Path]:
    """Create a directory with a workspace marker on the mount, and check afterwards that only the marker is left."""
    directory = mount / "marked"
    directory.mkdir()
    (directory / ".strakes-marker").write_text("{}")
    yield directory
    assert sorted(path.name for path in directory.iterdir()) == [".strakes-marker"]
    (directory / ".strakes-marker").unlink()
    directory.rmdir()


def items_of(backend: str, operation: str, **more: object) -> MetadataPhase:
    return MetadataPhase(
        operation,
        operation,  # type: ignore[arg-type]
        "shared",
        items=40,
        depth=1,
        branch=2,
        file_bytes=100,
        backend=backend,
        **more,  # type: ignore[arg-type]
    )


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "strakes", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def most_measured() -> int:
    return max((sum(visit.is_measurement for visit in Run(run.path).visits) for run in Store().runs()), default=0)


def wait_for_visits(running: subprocess.Popen[str], visits: int) -> None:
    """Wait until a run has ``visits`` measuring visits. Fail if the process ``running`` ends before."""
    while most_measured() < visits:
        assert running.poll() is None, running.communicate()[1]
        time.sleep(0.02)
