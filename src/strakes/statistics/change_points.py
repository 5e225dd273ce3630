"""Where a series of runs changes its level: one step or several, each with a p-value.

Ranks, so that neither outliers nor the unit matter: the place where the runs before and after differ most in rank sum (Pettitt, Appl.
Statist. 28 (1979) 126, standardised for the lengths of both sides), judged against random orders of the same runs, and again within each
part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from strakes.statistics.interval import in_order, median

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A level needs as many runs as a median needs for an interval.
SHORTEST = 5
RANDOM_ORDERS = 1999
# Random orders are made a few at a time so that long series do not fill the memory.
VALUES_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class ChangePoint:
    """The level changes before run ``index``: from the median ``before`` to the median ``after``, each up to the next change."""

    index: int
    before: float
    after: float
    p_value: float


def change_points(values: Sequence[float], error: float = 0.01) -> tuple[ChangePoint, ...]:
    """The changes of level in time order; a series without any is given one with probability ``error``.

    Assumes runs that are independent within a level. A slow drift appears as one or more steps: see :func:`strakes.statistics.drift.trend`.
    The random orders are the same at every call. Raises ValueError for no values or one that is not finite.

    >>> found = change_points([100.0, 102.0, 99.0, 101.0, 98.0, 103.0] * 2 + [70.0, 72.0, 69.0, 71.0, 68.0, 73.0] * 2)
    >>> [(change.index, change.before, change.after) for change in found]
    [(12, 100.5, 70.5)]
    """
    import numpy as np

    in_order(values)
    steps = dict(_steps(np.asarray(values, dtype=float), error, np.random.default_rng(0)))
    ends = [*sorted(steps), len(values)]
    changes = []
    start = 0
    for index, end in pairwise(ends):
        changes.append(ChangePoint(index, median(values[start:index]), median(values[index:end]), steps[index]))
        start = index
    return tuple(changes)


def _steps(series: NDArray[np.float64], error: float, generator: np.random.Generator, offset: int = 0) -> list[tuple[int, float]]:
    """Places and p-values. Each part is tested at half the error of the whole, so that the parts share it."""
    if len(series) < 2 * SHORTEST or error < 1 / (RANDOM_ORDERS + 1):
        return []
    ranks = _centred_ranks(series)
    found = _contrasts(ranks[None, :])[0]
    place = int(found.argmax())
    beaten = sum(int((_contrasts(orders).max(axis=1) >= found[place] - 1e-9).sum()) for orders in _random_orders(ranks, generator))
    p_value = (1 + beaten) / (1 + RANDOM_ORDERS)
    if p_value > error:
        return []
    split = place + SHORTEST
    before = _steps(series[:split], error / 2, generator, offset)
    after = _steps(series[split:], error / 2, generator, offset + split)
    return [*before, (offset + split, p_value), *after]


def _centred_ranks(series: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    ordered = np.sort(series)
    ranks = (np.searchsorted(ordered, series, "left") + np.searchsorted(ordered, series, "right")) / 2
    return np.asarray(ranks - ranks.mean())


def _contrasts(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row and each split that leaves both sides long enough, how far the rank sums are from equal, in units of their spread."""
    import numpy as np

    length = ranks.shape[1]
    splits = np.arange(SHORTEST, length - SHORTEST + 1)
    sums = np.cumsum(ranks, axis=1)[:, SHORTEST - 1 : length - SHORTEST]
    return np.asarray(np.abs(sums) / np.sqrt(splits * (length - splits)))


def _random_orders(ranks: NDArray[np.float64], generator: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    import numpy as np

    rows = max(1, VALUES_AT_ONCE // len(ranks))
    for done in range(0, RANDOM_ORDERS, rows):
        yield generator.permuted(np.tile(ranks, (min(rows, RANDOM_ORDERS - done), 1)), axis=1)
