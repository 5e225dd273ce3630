"""Measured blocks as a file, so that a long bench can be done in pieces."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

from bench.measure import Results, Series
from bench.work import Work


def load(path: Path) -> dict[Series, dict[int, float]]:
    """What was kept; nothing where there is no such file."""
    found: dict[Series, dict[int, float]] = defaultdict(dict)
    if path.exists():
        for one in json.loads(path.read_text()):
            series = Series(one["contender"], Work(**one["work"]), one["operation"])
            found[series] = {int(block): rate for block, rate in one["rates"].items()}
    return found


def save(path: Path, results: Results) -> None:
    """All of it, in place of what was there."""
    records = [
        {"contender": one.contender, "work": asdict(one.work), "operation": one.operation, "rates": rates}
        for one, rates in results.items()
    ]
    path.write_text(json.dumps(records))


def blocks_of(results: Results) -> int:
    """How many there are; the next one has this number."""
    return 1 + max((block for rates in results.values() for block in rates), default=-1)
