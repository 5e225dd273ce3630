"""Store measured blocks in a file, so that a long bench can be interrupted and continued."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

from bench.measure import Results, Series
from bench.work import Work


def load(path: Path) -> dict[Series, dict[int, float]]:
    """Return the results in the file, or an empty mapping if the file does not exist."""
    results: dict[Series, dict[int, float]] = defaultdict(dict)
    if path.exists():
        for entry in json.loads(path.read_text()):
            series = Series(entry["contender"], Work(**entry["work"]), entry["operation"])
            results[series] = {int(block): rate for block, rate in entry["rates"].items()}
    return results


def save(path: Path, results: Results) -> None:
    records = [
        {"contender": series.contender, "work": asdict(series.work), "operation": series.operation, "rates": rates}
        for series, rates in results.items()
    ]
    path.write_text(json.dumps(records))


def blocks_of(results: Results) -> int:
    """Return the number of measured blocks, which is also the index of the next block."""
    return 1 + max((block for rates in results.values() for block in rates), default=-1)
