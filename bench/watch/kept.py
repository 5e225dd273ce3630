"""Results that are kept, so that a long contest can be run in parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from bench.watch.crossed import Judged
from bench.watch.yardstick import Score


@dataclass
class Kept:
    """``tuned``: by half, settings of each rival. ``targets``: by name, series and ratio. ``year``: a row for each alarm."""

    tuned: dict[int, dict[str, str]] = field(default_factory=dict)
    judged: dict[tuple[str, int], Judged] = field(default_factory=dict)
    targets: dict[tuple[str, int, float], Score] = field(default_factory=dict)
    year: list[tuple[str, ...]] = field(default_factory=list)
    year_a_month: float = 0.0

    def targets_done(self, name: str) -> set[int]:
        """Return the series whose equals a detector was held to."""
        return {series for owner, series, _ in self.targets if owner == name}


def keep(path: Path, kept: Kept) -> None:
    """Write everything to ``path``."""
    document = {
        "tuned": kept.tuned,
        "judged": [
            [one.name, one.half, one.settings, one.a_month, one.explained, _rows(one.scores)]
            for one in kept.judged.values()
        ],
        "targets": _rows(kept.targets),
        "year": kept.year,
        "year_a_month": kept.year_a_month,
    }
    path.write_text(json.dumps(document))


def read_kept(path: Path) -> Kept:
    """Return what ``path`` holds; nothing where there is no such file."""
    if not path.exists():
        return Kept()
    document = json.loads(path.read_text())
    judged = {}
    for name, half, settings, a_month, explained, rows in document["judged"]:
        scores = {(variant, number, kind, ratio): score for (variant, number, kind, ratio), score in _scores(rows)}
        judged[name, half] = Judged(name, half, settings, tuple(a_month), tuple(explained), scores)
    return Kept(
        {int(half): settings for half, settings in document["tuned"].items()},
        judged,
        {(name, series, ratio): score for (name, series, ratio), score in _scores(document["targets"])},
        [tuple(row) for row in document["year"]],
        document["year_a_month"],
    )


def _rows(scores: Mapping[Any, Score]) -> list[Any]:
    return [[key, *astuple(each)] for key, each in scores.items()]


def _scores(rows: list[Any]) -> list[tuple[Any, Score]]:
    return [(tuple(key), Score(planted, tuple(after), *counts)) for key, planted, after, *counts in rows]
