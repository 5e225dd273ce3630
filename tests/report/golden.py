"""Comparing with a golden file, and making it anew when asked to (``golden/README.md``)."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def assert_golden(name: str, text: str) -> None:
    """``text`` is what the golden file says; with STRAKES_UPDATE_GOLDEN set, the file says what ``text`` is."""
    path = GOLDEN / name
    if os.environ.get("STRAKES_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} differs; see tests/report/golden/README.md"
