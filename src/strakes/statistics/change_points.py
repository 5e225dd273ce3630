"""Where a series of runs changes its level: one step or several, each with a p-value.

Ranks, so that neither outliers nor the unit matter: the place where the runs before and after differ most in rank sum
(Pettitt, Appl. Statist. 28 (1979) 126, standardised for the lengths of both sides), judged against random orders of the
same runs, and again within each part.
"""

from __future__ import annotations

import math
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
FIRST_ORDERS = 199


@dataclass(frozen=True)
class ChangePoint:
    """The level changes before run ``index``.

    From the median ``before`` to the median ``after``, each up to the next change.
    """

    index: int
    before: float
    after: float
    p_value: float


def change_points(
    values: Sequence[float],
    error: float = 0.01,
    *,
    shortest: int = SHORTEST,
    correlation: float = 0.0,
    groups: Sequence[str] | None = None,
) -> tuple[ChangePoint, ...]:
    """Return the changes of level in time order; a series without any is given one with probability ``error``.

    ``shortest``: the fewest runs of a level. ``correlation``: of each run with the one before it, within a level; so many
    dependent runs tell less than as many independent ones, by the factor (1 - r) / (1 + r) of an autoregression
    (Bayley and Hammersley, J. R. Statist. Soc. Suppl. 8 (1946) 184). ``groups``: what each run measured; runs are then
    ranked and reordered among their own only, so that it does not matter which of them come first, and how each scatters.

    A slow drift appears as one or more steps: see :func:`strakes.statistics.drift.trend`. The random orders are the same at
    every call. Raises ValueError for no values or one that is not finite.

    >>> found = change_points([100.0, 102.0, 99.0, 101.0, 98.0, 103.0] * 2 + [70.0, 72.0, 69.0, 71.0, 68.0, 73.0] * 2)
    >>> [(change.index, change.before, change.after) for change in found]
    [(12, 100.5, 70.5)]
    """
    import numpy as np

    in_order(values)
    scan = _Scan(shortest, math.sqrt((1 - correlation) / (1 + correlation)), np.random.default_rng(0))
    names = np.unique(list(groups or [""] * len(values)), return_inverse=True)[1]
    steps = dict(scan.steps(np.asarray(values, dtype=float), names, error))
    ends = [*sorted(steps), len(values)]
    changes = []
    start = 0
    for index, end in pairwise(ends):
        changes.append(ChangePoint(index, median(values[start:index]), median(values[index:end]), steps[index]))
        start = index
    return tuple(changes)


def correlation_of(values: Sequence[float]) -> float:
    """Return how much each value resembles the one before it, beyond a single change of level; 0 where that is not shown.

    The correlation of neighbours in ranks, with its bias of -(1 + 3 r) / n put right (Marriott and Pope, Biometrika 41
    (1954) 390); below 1.645 standard errors of independent values it counts as none.

    >>> correlation_of([1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0])
    0.0
    """
    import numpy as np

    if len(values) < 2 * SHORTEST:
        return 0.0
    ranks = _centred_ranks(np.asarray(values, dtype=float))
    split = int(_contrasts(ranks[None, :], SHORTEST)[0].argmax()) + SHORTEST
    rest = np.concatenate([part - part.mean() for part in (ranks[:split], ranks[split:])])
    power = float((rest**2).sum())
    if power == 0:
        return 0.0
    found = float((rest[1:] * rest[:-1]).sum()) / power
    if found + 1 / len(values) < 1.645 / math.sqrt(len(values)):
        return 0.0
    return min(0.95, max(0.0, found + (1 + 3 * found) / len(values)))


@dataclass
class _Scan:
    """``scale``: how much less a contrast weighs because runs depend on each other."""

    shortest: int
    scale: float
    generator: np.random.Generator

    def steps(
        self, series: NDArray[np.float64], groups: NDArray[np.intp], error: float, offset: int = 0
    ) -> list[tuple[int, float]]:
        """Return places and p-values. Each part is tested at half the error of the whole, so that the parts share it."""
        import numpy as np

        if len(series) < 2 * self.shortest or error < 1 / (RANDOM_ORDERS + 1):
            return []
        members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
        ranks = _ranks_within(series, members)
        contrasts = _contrasts(ranks[None, :], self.shortest)[0] * self.scale
        place = int(contrasts.argmax())
        beaten = 0
        for orders in _random_orders(ranks, members, self.generator):
            beaten += int((_contrasts(orders, self.shortest).max(axis=1) >= contrasts[place] - 1e-9).sum())
            if beaten >= error * (1 + RANDOM_ORDERS):
                return []
        p_value = (1 + beaten) / (1 + RANDOM_ORDERS)
        if p_value > error:
            return []
        split = place + self.shortest
        before = self.steps(series[:split], groups[:split], error / 2, offset)
        after = self.steps(series[split:], groups[split:], error / 2, offset + split)
        return [*before, (offset + split, p_value), *after]


def _ranks_within(series: NDArray[np.float64], members: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Return ranks among their own, centred; where there are several groups, as shares of their numbers."""
    import numpy as np

    ranks = np.zeros(len(series))
    for places in members:
        ranks[places] = _centred_ranks(series[places]) / (len(places) + 1 if len(members) > 1 else 1)
    return ranks


def _centred_ranks(series: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    ordered = np.sort(series)
    ranks = (np.searchsorted(ordered, series, "left") + np.searchsorted(ordered, series, "right")) / 2
    return np.asarray(ranks - ranks.mean())


def _contrasts(ranks: NDArray[np.float64], shortest: int) -> NDArray[np.float64]:
    """For each row and each split: how far the rank sums of both sides are from equal, in units of their spread."""
    import numpy as np

    length = ranks.shape[1]
    splits = np.arange(shortest, length - shortest + 1)
    sums = np.cumsum(ranks, axis=1)[:, shortest - 1 : length - shortest]
    return np.asarray(np.abs(sums) / np.sqrt(splits * (length - splits)))


def _random_orders(
    ranks: NDArray[np.float64], members: Sequence[NDArray[np.intp]], generator: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """Yield RANDOM_ORDERS of them in parts, each run among its own; most series are told from a change by the first few."""
    import numpy as np

    done, rows = 0, FIRST_ORDERS
    while done < RANDOM_ORDERS:
        rows = min(rows, RANDOM_ORDERS - done, max(1, VALUES_AT_ONCE // len(ranks)))
        orders = np.empty((rows, len(ranks)))
        for places in members:
            orders[:, places] = generator.permuted(np.tile(ranks[places], (rows, 1)), axis=1)
        yield orders
        done, rows = done + rows, RANDOM_ORDERS
