"""How often ``compare`` and a study of two file systems say something wrong, and how often they find a tenth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench.simulate.contrasts import CONFIDENCE
from bench.simulate.shapes import Shape
from strakes.statistics.comparison import ONE_PAIR, between_runs, block_scores, common_correlation, judge, within_blocks
from strakes.statistics.contrast import Verdict
from strakes.statistics.stopping import StoppingRule

if TYPE_CHECKING:
    import numpy as np

Design = Literal["apart", "apart, shifted", "apart, wandering", "in turn"]
CELLS = 4
MARGIN = 0.05
MOST_RUNS = 20
# What the time of day does to a whole run, and what a neighbour does to a block.
SHIFT, BLOCK_NOISE = 0.02, 0.1
# What changes a machine for some blocks, for some runs, and for longer: each of these many blocks, and by so much.
WANDERING_BLOCKS, WANDERING = (4, 16, 64, 256), 0.04
_CALLED = (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True)
class Told:
    """Shares of tries: a cell was called FASTER or SLOWER, all cells together were.

    SLOWER of all together, and of single cells.
    """

    any_cell_called: float
    overall_called: float
    overall_slower: float
    cells_slower: float
    runs: float


def told(shape: Shape, design: Design, slower: float, tries: int, seed: int) -> Told:
    """Two measurements of the same cells, the second slowed by that share.

    Each cell stops by its own interval or at 20 runs.

    ``apart``: two runs, one after the other. ``shifted``: besides, each run as a whole is a few percent off.
    ``wandering``: besides, the machine is faster or slower for a while, at all lengths of time. ``in turn``: one run,
    whose blocks are faster or slower as a whole.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    counts = [0, 0, 0, 0]
    runs = 0
    for _ in range(tries):
        a, b = _measured(shape, design, generator, 1.0), _measured(shape, design, generator, 1 - slower)
        if design == "in turn":
            blocks = np.exp(BLOCK_NOISE * generator.standard_normal(MOST_RUNS)).tolist()
            a, b = _times(a, blocks), _times(b, blocks)
        if design == "apart, wandering":
            blocks = _wandering(generator, 2 * MOST_RUNS)
            a, b = _times(a, blocks[:MOST_RUNS]), _times(b, blocks[MOST_RUNS:])
        cells, overall = _judge(a, b, design)
        counts[0] += any(cell in _CALLED for cell in cells)
        counts[1] += overall in _CALLED
        counts[2] += overall is Verdict.SLOWER
        counts[3] += sum(cell is Verdict.SLOWER for cell in cells)
        runs += sum(map(len, a))
    return Told(
        counts[0] / tries, counts[1] / tries, counts[2] / tries, counts[3] / tries / CELLS, runs / tries / CELLS
    )


def _measured(shape: Shape, design: Design, generator: np.random.Generator, factor: float) -> list[list[float]]:
    """Return the cells of one run, each with the values it took before it stopped."""
    import math

    shift = math.exp(SHIFT * float(generator.standard_normal())) if design == "apart, shifted" else 1.0
    rule = StoppingRule(max_runs=MOST_RUNS)
    drawn = (factor * shift * shape.draw(generator, (CELLS, MOST_RUNS))).tolist()
    return [cell[: _stops_at(rule, cell)] for cell in drawn]


def _times(cells: Sequence[Sequence[float]], blocks: Sequence[float]) -> list[list[float]]:
    return [[value * block for value, block in zip(cell, blocks, strict=False)] for cell in cells]


def _wandering(generator: np.random.Generator, count: int) -> list[float]:
    """Factors of blocks one after the other.

    A sum of autoregressions, each forgetting what it was after so many blocks.
    """
    import math

    logs = [0.0] * count
    for length in WANDERING_BLOCKS:
        kept = math.exp(-1 / length)
        state, *steps = generator.standard_normal(count).tolist()
        for block in range(count):
            logs[block] += WANDERING * state
            state = kept * state + math.sqrt(1 - kept * kept) * (steps[block] if block < len(steps) else 0.0)
    return [math.exp(log) for log in logs]


def _stops_at(rule: StoppingRule, values: Sequence[float]) -> int:
    return next(runs for runs in range(rule.smallest_runs, rule.max_runs + 1) if rule.judge(values[:runs]).stop)


def _judge(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], design: Design) -> tuple[list[Verdict], Verdict]:
    by_block = [[dict(enumerate(cell)) for cell in side] for side in (a, b)]
    scores = [block_scores([(cell, False) for cell in side]) for side in by_block]
    if design == "in turn":
        pairs = list(zip(*by_block, strict=True))
        alike = common_correlation(pairs)
        ratios = [within_blocks(side, other, correlation=alike) for side, other in pairs]
        together, least = within_blocks(scores[0], scores[1], correlation=alike), 0.0
    else:
        ratios = [between_runs(side, other) for side, other in zip(a, b, strict=True)]
        together, least = between_runs(list(scores[0].values()), list(scores[1].values())), ONE_PAIR
    cells = [judged.verdict for judged in judge(ratios, CONFIDENCE, MARGIN, least=least)]
    return cells, judge([together], CONFIDENCE, MARGIN, least=least)[0].verdict
