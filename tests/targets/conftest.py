from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mounts import loop_mounted, tmpfs_mounted

RUN = "20260101-000000-test-0000"


@pytest.fixture
def tmpfs() -> Iterator[Path]:
    with tmpfs_mounted() as place:
        yield place


@pytest.fixture(scope="module")
def xfs() -> Iterator[Path]:
    with loop_mounted("xfs") as place:
        yield place


@pytest.fixture(autouse=True)
def hearts_are_watched_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.targets.marker.WATCH_S", 0.01)
