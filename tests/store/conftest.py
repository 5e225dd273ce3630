from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mounts import tmpfs_mounted
from strakes.store import RunWriter, Store

MakeRun = Callable[..., RunWriter]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes that tests start import strakes even if it is not installed."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    directory = tmp_path / "measured"
    directory.mkdir()
    return directory


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def make_run(store: Store, measured: Path) -> MakeRun:
    """Return a function that creates a run in the store; the test closes it."""

    def make(name: str = "transfer-size", fingerprint: str = "f", kind: str = "study") -> RunWriter:
        return store.create(kind, name, measured, {"fingerprint": fingerprint}, {"mount": {"file_system": "xfs"}})

    return make


@pytest.fixture
def tmpfs() -> Iterator[Path]:
    with tmpfs_mounted("4m") as place:
        yield place
