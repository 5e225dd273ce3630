"""Mistakes planted one at a time in good configurations: in plans of our own, and in those of other styles.

``planted.jsonl`` has one mistake a line: ``old`` (a regular expression) becomes ``new`` in ``file`` of ``base``. ``rule``
is the rule that finds it, ``refused`` where a program of the cluster refuses the file, and empty where the mistake is
not found; ``costs`` says whether it costs data or the service.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from failover.clusters import EXAMPLES, planned
from failover.styles import write
from failover.styles_files import ALL
from failover.styles_pairs import PAIR_STYLES
from failover.styles_shared import SHARED_STYLES

# In place of a rule: one of the cluster's own programs refuses the file.
REFUSED = "refused"
# In place of a text to replace: the file is not there.
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

    def plant(self, directory: Path) -> Path:
        """Write the configuration with the mistake into the directory."""
        write_base(self.base, directory)
        path = directory / self.file
        if self.old == _REMOVED:
            path.unlink()
        elif not self.old:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.new)
        else:
            text, times = re.subn(self.old, self.new, path.read_text())
            assert times, f"{self.old} is not in {self.file} of {self.base}"
            path.write_text(text)
        return directory


def write_base(base: str, directory: Path) -> Path:
    """Write a good configuration: the plan of an example, or one of another style."""
    if base in EXAMPLES:
        return planned(base, directory)
    return write(ALL[base](), directory, 0o644 if base in {**PAIR_STYLES, **SHARED_STYLES} else 0o600)


_LINES = (Path(__file__).parent / "planted.jsonl").read_text(encoding="utf-8").splitlines()
PLANTED = {mistake.name: mistake for mistake in (Mistake(**json.loads(line)) for line in _LINES)}
