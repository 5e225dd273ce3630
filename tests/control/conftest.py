from __future__ import annotations

from pathlib import Path

import pytest

from integration.conftest import labs

__all__ = ["labs"]


@pytest.fixture(autouse=True)
def own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STRAKES_RUN", str(tmp_path / "run"))
    return tmp_path / "run" / "knobs"
