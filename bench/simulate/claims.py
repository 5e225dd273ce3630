"""How often a saturation point, a drift or two groups of runs are claimed, rightly and wrongly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.simulate.shapes import Shape
from strakes.statistics.bimodality import two_groups
from strakes.statistics.drift import pooled_trend, trend
from strakes.statistics.saturation import Level, saturation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

THRESHOLD = 0.95
BLOCK_NOISE = 0.1


@dataclass(frozen=True)
class Curve:
    """The true medians of the levels of a factor.

    ``exact`` levels have hardly any noise (the worst case for false claims).
    """

    name: str
    medians: tuple[float, ...]
    exact: frozenset[int] = frozenset()


CURVES = (
    Curve("seven at 94 %, the largest best", (*(0.94,) * 7, 1.0)),
    Curve("the best in the middle of seven at 94 %", (*(0.94,) * 4, 1.0, *(0.94,) * 3)),
    Curve("seven at 94.9 %, the best exact", (*(0.949,) * 7, 1.0), frozenset({7})),
    Curve("0.5, 0.8, 1, 1", (0.5, 0.8, 1.0, 1.0)),
    Curve("0.3, 0.5, 0.7, 0.85, 1, 1", (0.3, 0.5, 0.7, 0.85, 1.0, 1.0)),
    Curve("0.4, 0.8, 1, 0.9, 0.7", (0.4, 0.8, 1.0, 0.9, 0.7)),
    Curve("six alike", (1.0,) * 6),
)


@dataclass(frozen=True)
class Claims:
    """Shares of tries: a level was named, it was the smallest good one, it was not good enough."""

    named: float
    smallest: float
    false: float


def saturation_claims(curve: Curve, shape: Shape, blocks: int, tries: int, seed: int) -> Claims:
    """Simulate a study of one factor in blocks that are faster or slower as a whole by 10 %."""
    import numpy as np

    generator = np.random.default_rng(seed)
    good = [place for place, middle in enumerate(curve.medians) if middle >= THRESHOLD * max(curve.medians)]
    named = smallest = false = 0
    for _ in range(tries):
        common = np.exp(BLOCK_NOISE * generator.standard_normal(blocks))
        levels = []
        for place, middle in enumerate(curve.medians):
            rates = (
                np.full(blocks, middle)
                if place in curve.exact
                else middle * shape.draw(generator, (blocks,)) / shape.median
            )
            levels.append(Level(place, dict(enumerate((rates * common).tolist()))))
        place_found = saturation(levels, 0.9, THRESHOLD).x
        if place_found is not None:
            named += 1
            smallest += place_found == good[0]
            false += place_found not in good
    return Claims(named / tries, smallest / tries, false / tries)


def drift_claims(shape: Shape, runs: int, change: float, tries: int, seed: int, *, error: float = 0.05) -> float:
    """Share of cells whose trend is called at ``error`` when the rate falls by ``change`` in all over the runs."""
    import numpy as np

    generator = np.random.default_rng(seed)
    rates = shape.draw(generator, (tries, runs)) * _falling(runs, change)
    return sum(trend(row).p_value <= error for row in rates.tolist()) / tries


def pooled_drift_claims(
    shape: Shape,
    cells: int,
    blocks: int,
    change: float,
    tries: int,
    seed: int,
    *,
    error: float = 0.05,
    block_noise: float = 0.0,
) -> float:
    """Return the same for many cells visited once a block, together.

    ``block_noise`` makes whole blocks faster or slower, without a trend.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    called = 0
    for _ in range(tries):
        common = _falling(blocks, change) * np.exp(block_noise * generator.standard_normal(blocks))
        rates = shape.draw(generator, (cells, blocks)) * common
        called += pooled_trend([dict(enumerate(row)) for row in rates.tolist()]).p_value <= error
    return called / tries


def group_claims(shape: Shape, runs: int, tries: int, seed: int) -> float:
    """Share of cells whose runs are said to fall into two groups."""
    import numpy as np

    rates = shape.draw(np.random.default_rng(seed), (tries, runs))
    return sum(two_groups(row) is not None for row in rates.tolist()) / tries


def _falling(runs: int, change: float) -> NDArray[np.float64]:
    import numpy as np

    return 1 - change * np.arange(runs) / (runs - 1)
