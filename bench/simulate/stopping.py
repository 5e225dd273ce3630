"""How often the interval of a cell covers the true median, whatever stopped the cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench.simulate.shapes import Shape
from strakes.statistics.interval import symmetric_rank
from strakes.statistics.stopping import StoppingRule, sequential_rank

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Stop = Literal["width", "runs", "time"]


@dataclass(frozen=True)
class Coverage:
    """Share of tries whose final interval held the median, and the runs it took."""

    covered: float
    mean_runs: float


def coverage_under(
    shape: Shape, stop: Stop, tries: int, seed: int, *, usual: bool = False, rule: StoppingRule | None = None
) -> Coverage:
    """Simulate cells judged after every run.

    ``width``: until the interval is narrow enough, or the most runs. ``runs``: or until a number of runs between 5 and
    30 that somebody else chose. ``time``: or until time is spent, slow runs spending more of it. ``usual`` takes the
    interval for a fixed number of runs instead.
    """
    import numpy as np

    rule = rule or StoppingRule()
    first, last = rule.smallest_runs, rule.max_runs
    generator = np.random.default_rng(seed)
    rates = shape.draw(generator, (tries, last))
    limits = _limits(rates, stop, first, generator)
    rank_of = symmetric_rank if usual else sequential_rank
    running = np.arange(tries)
    covered, runs_made = 0, 0
    for runs in range(first, last + 1):
        ordered = np.sort(rates[running, :runs], axis=1)
        rank = rank_of(runs, rule.confidence)
        low, high = ordered[:, rank - 1], ordered[:, runs - rank]
        middle = (ordered[:, (runs - 1) // 2] + ordered[:, runs // 2]) / 2
        stopping = (high - low) / 2 <= rule.relative_half_width * middle
        stopping |= limits[running] <= runs
        covered += int(np.count_nonzero(stopping & (low <= shape.median) & (shape.median <= high)))
        runs_made += runs * int(np.count_nonzero(stopping))
        running = running[~stopping]
        if len(running) == 0:
            break
    return Coverage(covered / tries, runs_made / tries)


def _limits(rates: NDArray[np.float64], stop: Stop, first: int, generator: np.random.Generator) -> NDArray[np.int64]:
    import numpy as np

    tries, last = rates.shape
    if stop == "width":
        return np.full(tries, last)
    if stop == "runs":
        return np.asarray(generator.integers(first, 31, tries))
    spent = np.cumsum(1 / np.maximum(rates, 0.01), axis=1)
    within = np.count_nonzero(spent <= generator.uniform(first, 30, (tries, 1)), axis=1)
    return np.asarray(np.clip(within, first, last))


def ever_missed(runs: int, confidence: float, rank_of: Sequence[int] | None = None) -> float:
    """Return the exact chance that any of the intervals after 1 ..

    ``runs`` runs misses the median of a continuous distribution.

    ``rank_of`` are other ranks to judge, by number of runs; by default the sequence strakes uses.

    >>> round(ever_missed(5, 0.9), 4), ever_missed(60, 0.9) <= 0.1
    (0.0625, True)
    """
    ranks = rank_of or [sequential_rank(count, confidence) for count in range(runs + 1)]
    below = {0: 1.0}
    missed = 0.0
    for count in range(1, runs + 1):
        grown: dict[int, float] = {}
        for number, chance in below.items():
            grown[number] = grown.get(number, 0.0) + chance / 2
            grown[number + 1] = grown.get(number + 1, 0.0) + chance / 2
        rank = ranks[count]
        below = {number: chance for number, chance in grown.items() if rank <= number <= count - rank}
        missed += sum(chance for number, chance in grown.items() if number not in below)
    return missed
