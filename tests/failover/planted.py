"""Mistakes, each planted in a good configuration.

Each line of ``planted.jsonl`` is a mistake: ``old``, a regular expression, is replaced by ``new`` in ``file`` of
``base``. ``rule`` names the rule that finds it; it is ``refused`` if a program of the cluster refuses the file, and
empty if the mistake is not found. ``costs`` is true if the mistake may cost data or the service.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# The value of ``rule`` if one of the cluster's own programs refuses the file.
REFUSED = "refused"
# The value of ``old`` if the file is removed.
_REMOVED = "removed"


@dataclass(frozen=True)
class Mistake:
    """One planted mistake."""

    name: str
    base: str
    file: str
    old: str
    new: str
    costs: bool
    rule: str

    @contextmanager
    def planted(self, directory: Path) -> Iterator[None]:
        """Plant the mistake in the configuration ``base`` in a directory, and restore the file afterwards."""
        path = directory / self.file
        before = path.read_text() if path.exists() else None
        if self.old == _REMOVED:
            path.unlink()
        elif not self.old:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.new)
        else:
            text, times = re.subn(self.old, self.new, before or "")
            assert times, f"{self.old} is not in {self.file} of {self.base}"
            path.write_text(text)
        yield
        if before is None:
            path.unlink()
        else:
            path.write_text(before)


_LINES = (Path(__file__).parent / "planted.jsonl").read_text(encoding="utf-8").splitlines()
PLANTED = {mistake.name: mistake for mistake in (Mistake(**json.loads(line)) for line in _LINES)}
