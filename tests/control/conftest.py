from __future__ import annotations

from pathlib import Path

import pytest

from integration.conftest import labs

__all__ = ["labs"]


@pytest.fixture(autouse=True)
def own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the machine-wide records of changed knobs in a directory of the test, and return it."""
    monkeypatch.setenv("STRAKES_RUN", str(tmp_path / "run"))
    return tmp_path / "run" / "knobs"
