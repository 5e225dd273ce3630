"""How often like runs are told apart, and a history tells a change, where each value resembles the one before it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.simulate.contrasts import CONFIDENCE
from strakes.statistics.change_points import change_points
from strakes.statistics.comparison import ONE_PAIR, between_runs, block_scores, common_correlation, judge, within_blocks
from strakes.statistics.contrast import Verdict

if TYPE_CHECKING:
    import numpy as np

MARGIN = 0.05
HISTORY_ERROR = 0.05
_CALLED = (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True)
class Called:
    """Shares of comparisons in which any cell is called FASTER or SLOWER, in which all together are, and of cells."""

    any_cell: float
    overall: float
    of_cells: float


def called(
    cells: int,
    runs: int,
    correlation: float,
    scatter: float,
    tries: int,
    seed: int,
    *,
    pairs: bool,
    apart: float = 0.0,
) -> Called:
    """Return how often runs are told apart that differ by so many times their scatter.

    ``runs`` of each cell, of both sides, each an autoregression of its own. ``pairs``: blocks of --against, or runs
    made in turn; otherwise one run against another.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    any_cell = overall = of_all = 0
    for _ in range(tries):
        sides = [
            [
                {
                    block: value * math.exp(off)
                    for block, value in enumerate(autoregression(generator, runs, correlation, scatter))
                }
                for _ in range(cells)
            ]
            for off in (0.0, apart * scatter)
        ]
        of_cells, together = _verdicts(sides[0], sides[1], pairs=pairs)
        of_all += sum(verdict in _CALLED for verdict in of_cells)
        any_cell += any(verdict in _CALLED for verdict in of_cells)
        overall += together in _CALLED
    return Called(any_cell / tries, overall / tries, of_all / tries / cells)


def _verdicts(a: list[dict[int, float]], b: list[dict[int, float]], *, pairs: bool) -> tuple[list[Verdict], Verdict]:
    score_a, score_b = (block_scores([(cell, False) for cell in side]) for side in (a, b))
    if pairs:
        alike, least = common_correlation(list(zip(a, b, strict=True))), 0.0
        ratios = [within_blocks(of_a, of_b, correlation=alike) for of_a, of_b in zip(a, b, strict=True)]
        together = within_blocks(score_a, score_b, correlation=alike)
    else:
        least = ONE_PAIR
        ratios = [between_runs([*of_a.values()], [*of_b.values()]) for of_a, of_b in zip(a, b, strict=True)]
        together = between_runs([*score_a.values()], [*score_b.values()])
    cells = [one.verdict for one in judge(ratios, CONFIDENCE, MARGIN, least=least)]
    return cells, judge([together], CONFIDENCE, MARGIN, least=least)[0].verdict


def changes_told(runs: int, correlation: float, scatter: float, tries: int, seed: int) -> float:
    """Share of histories of so many like runs in which a change is told."""
    import numpy as np

    generator = np.random.default_rng(seed)
    told = 0
    for _ in range(tries):
        values = [math.log(value) for value in autoregression(generator, runs, correlation, scatter)]
        told += bool(change_points(values, HISTORY_ERROR, dependent=True))
    return told / tries


def autoregression(generator: np.random.Generator, runs: int, correlation: float, scatter: float) -> list[float]:
    """Return rates around 1 whose logarithms are an autoregression of order 1 with that standard deviation."""
    state, *steps = generator.standard_normal(runs).tolist()
    values = [state]
    for step in steps:
        values.append(correlation * values[-1] + math.sqrt(1 - correlation**2) * step)
    return [math.exp(scatter * value) for value in values]
