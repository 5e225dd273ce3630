"""Whether the target became faster or slower while it was measured.

Mann-Kendall: of all pairs of runs, in how many is the later one faster; exact for any distribution: Kendall, Biometrika
30 (1938) 81. Ties are counted as neither, which makes it cautious.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

from strakes.statistics.interval import in_order, median

# Smaller p-values have no normal quantile.
_LEAST = 1e-15


@dataclass(frozen=True)
class Trend:
    """Where the values went in time order.

    ``change`` is the rise from the median of the first third to that of the last, relative to the first.

    ``direction`` is that of the pairs counted, however weak: ``p_value`` says what it is worth.
    """

    direction: Literal["up", "down", "none"]
    p_value: float
    change: float
    runs: int


def trend(values: Sequence[float]) -> Trend:
    """Test values in time order. With fewer than 5 of them no p-value below 0.05 is possible.

    Raises ValueError for none.

    >>> found = trend([100.0, 98.0, 97.0, 95.0, 94.0, 90.0])
    >>> found.direction, round(found.p_value, 4), round(found.change, 3)
    ('down', 0.0028, -0.071)
    """
    in_order(values)
    runs = len(values)
    ups = sum(values[late] > values[early] for early in range(runs) for late in range(early + 1, runs))
    downs = sum(values[late] < values[early] for early in range(runs) for late in range(early + 1, runs))
    direction: Literal["up", "down", "none"] = "up" if ups > downs else "down" if downs > ups else "none"
    return Trend(direction, _p_value(runs, abs(ups - downs)), _change(values), runs)


def pooled_trend(cells: Sequence[Mapping[int, float]], correlation: float = 0.0) -> Trend:
    """Test many cells at once, each with its values by block.

    Cells are visited once a block, so that drift shows in all of them.

    Each value becomes its rank among its own cell's, and a block the mean rank of what was visited in it; the blocks
    are then tested in order. So no cell counts for more because it is faster, and what slows a whole block counts once.
    ``change`` is the median over the cells. ``correlation``: of each cell's values with the one before, other than by a
    trend; p-values are as much larger. Raises ValueError without a block.

    >>> slow, fast = {0: 10.0, 1: 9.0, 2: 8.5, 3: 8.0, 4: 7.0}, {0: 500.0, 1: 480.0, 2: 470.0, 3: 475.0, 4: 460.0}
    >>> pooled_trend([slow, fast]).direction
    'down'
    """
    ranks: dict[int, list[float]] = {}
    changes = []
    for values in cells:
        ordered = sorted(values.values())
        if len(ordered) < 2:
            continue
        for block, value in values.items():
            rank = (bisect_left(ordered, value) + bisect_right(ordered, value) - 1) / 2
            ranks.setdefault(block, []).append(rank / (len(ordered) - 1))
        changes.append(_change([values[block] for block in sorted(values)]))
    of_blocks = trend([round(sum(ranks[block]) / len(ranks[block]), 9) for block in sorted(ranks)])
    p_value = _of_dependent(of_blocks.p_value, correlation)
    return Trend(of_blocks.direction, p_value, median(changes), of_blocks.runs)


def _of_dependent(p_value: float, correlation: float) -> float:
    """Return the p-value of a trend of runs that resemble the one before: its scatter is that of so many fewer."""
    if correlation <= 0:
        return p_value
    normal = NormalDist()
    beyond = normal.inv_cdf(1 - max(p_value, _LEAST) / 2) * math.sqrt((1 - correlation) / (1 + correlation))
    return min(1.0, 2 * (1 - normal.cdf(beyond)))


def _change(values: Sequence[float]) -> float:
    """From the first third to the last: what was seen, where a slope would go beyond it after a step."""
    third = max(1, len(values) // 3)
    first, last = median(values[:third]), median(values[-third:])
    return last / first - 1 if first > 0 else 0.0


def _p_value(runs: int, score: int) -> float:
    """Two-sided chance of a score (pairs up less pairs down) at least this large when every order is equally likely."""
    pairs = runs * (runs - 1) // 2
    chances = _inversion_chances(runs)
    return min(1.0, 2 * sum(chances[: (pairs - score) // 2 + 1]))


@lru_cache(maxsize=128)
def _inversion_chances(runs: int) -> tuple[float, ...]:
    """Return the chance of 0, 1, 2, ... inversions in a random order of ``runs`` values."""
    chances = [1.0]
    for length in range(2, runs + 1):
        grown = []
        window = 0.0
        for inversions in range(length * (length - 1) // 2 + 1):
            window += chances[inversions] if inversions < len(chances) else 0.0
            window -= chances[inversions - length] if inversions >= length else 0.0
            grown.append(window / length)
        chances = grown
    return tuple(chances)
