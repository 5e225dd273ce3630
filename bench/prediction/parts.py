"""What was computed for the page is kept, so that an interrupted page goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# JSON: what is kept and what is made anew are of one form.
Value = Any


class Parts:
    """Values by name, kept in a file as soon as each is there; without a file only as long as this lives.

    A part counts as long as the sources that it was made by say the same as then.
    """

    def __init__(self, kept_at: Path | None = None) -> None:
        self._kept_at = kept_at
        there = kept_at is not None and kept_at.exists()
        self._kept: dict[str, Value] = json.loads(kept_at.read_text("utf-8")) if kept_at and there else {}

    def get(self, name: str, sources: Sequence[Path], make: Callable[[], Value]) -> Value:
        """Return the part, from what was kept where it can be."""
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
        key = f"{name}, {digest[:12]}"
        if key not in self._kept:
            self._kept[key] = json.loads(json.dumps(make()))
            if self._kept_at is not None:
                self._kept_at.write_text(json.dumps(self._kept) + "\n", encoding="utf-8")
        return self._kept[key]
