from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is held is this test's, not the machine's."""
    monkeypatch.setenv("STRAKES_RUN", str(tmp_path / "run"))
    return tmp_path / "run" / "knobs"
