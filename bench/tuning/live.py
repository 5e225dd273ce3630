"""Search a grid on the real file system, and compare the result with the exhaustive best in fresh, alternating runs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from bench.tuning.grids import Grid
from bench.tuning.landscape import PLACE, Runner, load, running
from bench.tuning.worth import Worth
from strakes.stats.ratios import paired_ratio
from strakes.tuning.tune_search import Search, TrialResult

KEPT = PLACE / "live.json"
# Number of pairs of fresh runs: one with the found setting, one with the best setting of the exhaustive search.
_PAIRS = 10
_CONFIDENCE = 0.9


def live(grid: Grid, directory: Path, seed: int, share: float) -> dict[str, Any]:
    """Search once with ``share`` times the repetitions of the exhaustive search; store and return the result."""
    budget = share * sum(grid.searched)
    best = grid.space.points[Worth(load(grid.name)).best]
    with running(grid, directory, seed) as runner:
        search, spent = _searched(grid, runner, seed, budget)
        ours: dict[int, float] = {}
        theirs: dict[int, float] = {}
        for pair in range(_PAIRS):
            for values, point in (
                ((ours, search.best), (theirs, best)) if pair % 2 else ((theirs, best), (ours, search.best))
            ):
                values[pair] = runner.value(point)
    ratio = paired_ratio(ours, theirs, _CONFIDENCE)
    assert ratio.interval is not None
    gain = search.gain
    row = {
        "grid": grid.name,
        "seed": seed,
        "measured": time.strftime("%Y-%m-%d", time.gmtime()),
        "evaluations": round(spent, 1),
        "found": grid.space.settings(search.best),
        "same_as_exhaustive": search.best == best,
        "share": [ratio.median, ratio.interval.low, ratio.interval.high],
        "gain": None
        if gain is None
        else [gain.median, *((gain.interval.low, gain.interval.high) if gain.interval else ())],
    }
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else []
    KEPT.write_text(json.dumps([*kept, row], indent=1) + "\n")
    return row


def _searched(grid: Grid, runner: Runner, seed: int, budget: float) -> tuple[Search, float]:
    search, spent = Search(grid.space, seed), 0.0
    while trials := search.next_block(spent / budget, lambda _trial: 1 / budget):
        block = search.blocks
        for trial in trials:
            search.told.append(TrialResult(trial, block, runner.value(trial.point)))
            spent += 1
    return search, spent
