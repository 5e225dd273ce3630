"""Where a series of runs changes its level: one step or several, each with a p-value.

Ranks, so that neither outliers nor the unit matter: the place where the runs before and after differ most in rank sum
(Pettitt, Appl. Statist. 28 (1979) 126, standardised for the lengths of both sides), judged against random orders of the
same runs, and again within each part.

Random orders are like the real one only where runs scatter alike at all times. So of several groups of runs a change
must stand against random signs, too, which hold whatever each run's scatter is, as long as it is as often above the
middle as below. Few runs on one side never do that, however far they are: of them their own scatter tells (Welch,
Biometrika 34 (1947) 28), or that no storm of scatter reaches as far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

from strakes.statistics.autoregression import p_value_of_change
from strakes.statistics.gradual import centred_ranks, rest_of_lines
from strakes.statistics.interval import in_order, median

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A level needs as many runs as a median needs for an interval.
SHORTEST = 5
RANDOM_ORDERS = 1999
# For errors below what those can show, as many as it takes, up to this many.
MOST_ORDERS = 99_999
# Random orders are made a few at a time so that long series do not fill the memory.
VALUES_AT_ONCE = 2_000_000
FIRST_ORDERS = 199
# No run counts as farther than so many standard deviations from the middle of its group.
FARTHEST = 4.0
# How much runs scatter at a time is what so many steps from one to the next show; less than a part of the usual tells
# of a clock that steps.
AT_A_TIME = 21
MOST_UNLIKE = 10.0
# The place of a change is where it looks greatest, which a test of two sides has to allow for.
SOUGHT = 4.0


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
    dependent: bool = False,
) -> tuple[ChangePoint, ...]:
    """Return the changes of level in time order; a series without any is given one with probability ``error``.

    ``shortest``: the fewest runs of a level. ``correlation``: of each run with the one before it, within a level; so
    many dependent runs tell less than as many independent ones, by the factor (1 - r) / (1 + r) of an autoregression
    (Bayley and Hammersley, J. R. Statist. Soc. Suppl. 8 (1946) 184). ``groups``: what each run measured; runs are then
    compared and reordered among their own only, so that it does not matter which of them come first, and how each
    scatters. ``dependent``: what runs that resemble the one before them do anyway is no change either
    (:mod:`strakes.statistics.autoregression`).

    A slow drift appears as one or more steps: see :func:`strakes.statistics.drift.trend`. The random orders are the
    same at every call. Raises ValueError for no values or one that is not finite.

    >>> found = change_points([100.0, 102.0, 99.0, 101.0, 98.0, 103.0] * 2 + [70.0, 72.0, 69.0, 71.0, 68.0, 73.0] * 2)
    >>> [(change.index, change.before, change.after) for change in found]
    [(12, 100.5, 70.5)]
    """
    import numpy as np

    in_order(values)
    orders = max(RANDOM_ORDERS, min(MOST_ORDERS, math.ceil(2 / error)))
    scale = math.sqrt((1 - correlation) / (1 + correlation))
    scan = _Scan(shortest, scale, np.random.default_rng(0), orders)
    names = np.unique(list(groups or [""] * len(values)), return_inverse=True)[1]
    steps = dict(scan.steps(np.asarray(values, dtype=float), names, error))
    if dependent:
        steps = _beyond_dependence(values, steps, error, shortest)
    ends = [*sorted(steps), len(values)]
    changes = []
    start = 0
    for index, end in pairwise(ends):
        changes.append(ChangePoint(index, median(values[start:index]), median(values[index:end]), steps[index]))
        start = index
    return tuple(changes)


def correlation_of(values: Sequence[float]) -> float:
    """Return how much each value resembles the one before it, beyond one change or a steady one; 0 if not shown.

    The correlation of neighbours in ranks, with its bias of -(1 + 3 r) / n put right (Marriott and Pope, Biometrika 41
    (1954) 390); below 1.645 standard errors of independent values it counts as none.

    >>> correlation_of([1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0])
    0.0
    """
    import numpy as np

    if len(values) < 2 * SHORTEST:
        return 0.0
    ranks = centred_ranks(np.asarray(values, dtype=float))
    steady = rest_of_lines(values)
    if steady is None:
        split = int(_contrasts(ranks[None, :], SHORTEST)[0].argmax()) + SHORTEST
        rest = np.concatenate([part - part.mean() for part in (ranks[:split], ranks[split:])])
    else:
        rest = steady
    power = float((rest**2).sum())
    if power == 0:
        return 0.0
    correlation = float((rest[1:] * rest[:-1]).sum()) / power
    if correlation + 1 / len(values) < 1.645 / math.sqrt(len(values)):
        return 0.0
    return min(0.95, max(0.0, correlation + (1 + 3 * correlation) / len(values)))


def _beyond_dependence(
    values: Sequence[float], steps: Mapping[int, float], error: float, shortest: int
) -> dict[int, float]:
    """Leave out changes that runs which resemble each other show anyway, the least likely one first.

    Each is judged on the two levels beside it: those farther away would only add to what looks like scatter. All that
    were proposed share the error.
    """
    kept = dict(steps)
    while kept:
        ends = [0, *sorted(kept), len(values)]
        judged = {
            place: max(kept[place], p_value_of_change(values[start:end], shortest))
            for start, place, end in zip(ends, ends[1:], ends[2:], strict=False)
        }
        weakest = max(judged, key=lambda place: judged[place])
        if judged[weakest] <= error / len(steps):
            return judged
        del kept[weakest]
    return {}


@dataclass
class _Scan:
    """``scale``: how much less a contrast weighs for dependent runs; ``orders``: how many random ones."""

    shortest: int
    scale: float
    generator: np.random.Generator
    orders: int

    def steps(
        self, series: NDArray[np.float64], groups: NDArray[np.intp], error: float, offset: int = 0
    ) -> list[tuple[int, float]]:
        """Return places and p-values.

        Each part is tested at half the error of the whole, so that the parts share it.
        """
        import numpy as np

        if len(series) < 2 * self.shortest or error < 1 / (self.orders + 1):
            return []
        members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
        ranks = _scores(series, members)
        contrasts = _contrasts(ranks[None, :], self.shortest)[0] * self.scale
        place = int(contrasts.argmax())
        beaten = 0
        for orders in _random_orders(ranks, members, self.orders, self.generator):
            beaten += int((_contrasts(orders, self.shortest).max(axis=1) >= contrasts[place] - 1e-9).sum())
            if beaten >= error * (1 + self.orders):
                return []
        p_value = (1 + beaten) / (1 + self.orders)
        if p_value > error:
            return []
        split = place + self.shortest
        if len(members) > 1 and not self._stands(series, ranks, members, split, contrasts[place], error):
            return []
        before = self.steps(series[:split], groups[:split], error / 2, offset)
        after = self.steps(series[split:], groups[split:], error / 2, offset + split)
        return [*before, (offset + split, p_value), *after]

    def _stands(
        self,
        series: NDArray[np.float64],
        scores: NDArray[np.float64],
        members: Sequence[NDArray[np.intp]],
        split: int,
        contrast: float,
        error: float,
    ) -> bool:
        """Whether the level differs on both sides, however unlike they scatter."""
        off = _off(series, members)
        if _p_value_of_unlike(off[:split], off[split:], self.scale) <= error / SOUGHT or _beyond_storms(
            off[:split], off[split:], error
        ):
            return True
        beaten = 0
        for signed in _random_signs(scores, members, self.orders, self.generator):
            beaten += int((_contrasts(signed, self.shortest).max(axis=1) >= contrast - 1e-9).sum())
            if 1 + beaten > error * (1 + self.orders):
                return False
        return True


def _off(series: NDArray[np.float64], members: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Return how far each run is from the middle of its group."""
    import numpy as np

    off = np.zeros(len(series))
    for places in members:
        off[places] = series[places] - np.median(series[places])
    return off


def _p_value_of_unlike(early: NDArray[np.float64], late: NDArray[np.float64], scale: float) -> float:
    """Return the chance of such a difference of means where both sides scatter as each shows, by Welch's t.

    Its tail is the normal one of Wallace, Ann. Math. Statist. 30 (1959) 1124, which is a little too large.

    >>> import numpy as np
    >>> wild, calm = np.array([-1.0, 0.2, 0.9, -0.8]), np.array([0.01, -0.01, 0.0] * 20)
    >>> round(_p_value_of_unlike(wild, calm, 1.0), 2), _p_value_of_unlike(calm[:4] - 0.5, calm, 1.0) < 0.001
    (0.72, True)
    """
    shares = [float(side.var(ddof=1)) / len(side) for side in (early, late)]
    difference = abs(float(early.mean() - late.mean()))
    if sum(shares) <= 0:
        return 0.0 if difference > 0 else 1.0
    t_squared = scale**2 * difference**2 / sum(shares)
    freedom = sum(shares) ** 2 / sum(
        share**2 / (len(side) - 1) for share, side in zip(shares, (early, late), strict=True)
    )
    normal = (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p(t_squared / freedom))
    return math.erfc(normal / math.sqrt(2))


def _beyond_storms(early: NDArray[np.float64], late: NDArray[np.float64], error: float) -> bool:
    """Whether the mean of the side with fewer runs is farther off than scatter much above the other side's takes it."""
    import numpy as np

    few, many = sorted((early, late), key=len)
    usual = np.median(many)
    scatter = 1.4826 * float(np.median(np.abs(many - usual)))
    farthest = NormalDist().inv_cdf(1 - error / 2) * MOST_UNLIKE * scatter / math.sqrt(len(few))
    return scatter > 0 and abs(float(few.mean() - usual)) > farthest


def _scores(series: NDArray[np.float64], members: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Return ranks, or among several groups how far each run lies from the middle of its own, in units of their spread.

    A rank cannot tell a first run ten times as fast from one that is a little faster. Far outliers are brought in, so
    that a stall weighs no more than a few runs. Random orders of runs are like the real one only where all scatter
    alike: so the spread is that of each run's time.
    """
    import numpy as np

    if len(members) == 1:
        return centred_ranks(series)
    off = _off(series, members)
    spread = 1.4826 * float(np.median(np.abs(off)))
    scores = (
        np.clip(off / (spread * relative_scatter(off, members)), -FARTHEST, FARTHEST) if spread > 0 else np.sign(off)
    )
    for places in members:
        scores[places] -= scores[places].mean()
    return np.asarray(scores)


def relative_scatter(off: NDArray[np.float64], members: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Return how much runs scatter at the time of each, beside all of them; 1 for few runs.

    By how far each is from the one before it, or from the one before it of its own group if that is nearer: so changes
    of level, of all groups or of some, hardly touch it, nor do runs that wander.

    >>> import numpy as np
    >>> off = np.array([5.0, -5.0] * 20 + [1.0, -1.0] * 20)
    >>> scatter = relative_scatter(off, [np.arange(80)])
    >>> round(float(scatter[0] / scatter[-1]), 2)
    5.0
    """
    import numpy as np

    if len(off) <= 2 * AT_A_TIME:
        return np.ones(len(off))
    steps = np.abs(np.diff(off, prepend=off[1]))
    for places in members:
        steps[places[1:]] = np.minimum(steps[places[1:]], np.abs(np.diff(off[places])))
    whole = float(np.median(steps))
    if whole == 0:
        return np.ones(len(off))
    near = np.median(np.lib.stride_tricks.sliding_window_view(steps, AT_A_TIME), axis=1)
    places = np.clip(np.arange(len(off)) - AT_A_TIME // 2, 0, len(near) - 1)
    return np.asarray(np.maximum(near[places] / whole, 1 / MOST_UNLIKE))


def _contrasts(ranks: NDArray[np.float64], shortest: int) -> NDArray[np.float64]:
    """For each row and each split: how far the rank sums of both sides are from equal, in units of their spread."""
    import numpy as np

    length = ranks.shape[1]
    splits = np.arange(shortest, length - shortest + 1)
    sums = np.cumsum(ranks, axis=1)[:, shortest - 1 : length - shortest]
    return np.asarray(np.abs(sums) / np.sqrt(splits * (length - splits)))


def _random_orders(
    ranks: NDArray[np.float64], members: Sequence[NDArray[np.intp]], number: int, generator: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """Yield so many of them in parts, each run among its own; most series are told from a change by the first few."""
    import numpy as np

    done, rows = 0, FIRST_ORDERS
    while done < number:
        rows = min(rows, number - done, max(1, VALUES_AT_ONCE // len(ranks)))
        orders = np.empty((rows, len(ranks)))
        for places in members:
            orders[:, places] = generator.permuted(np.tile(ranks[places], (rows, 1)), axis=1)
        yield orders
        done, rows = done + rows, number


def _random_signs(
    scores: NDArray[np.float64], members: Sequence[NDArray[np.intp]], number: int, generator: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """Yield so many of them in parts: each run as far from the middle of its group as it is, to either side."""
    # What is left of runs beside the mean of their group is smaller than they are.
    whole = scores.copy()
    for places in members:
        whole[places] *= math.sqrt(len(places) / max(1, len(places) - 1))
    done, rows = 0, FIRST_ORDERS
    while done < number:
        rows = min(rows, number - done, max(1, VALUES_AT_ONCE // len(scores)))
        signed = whole * generator.choice((-1.0, 1.0), size=(rows, len(scores)))
        for places in members:
            signed[:, places] -= signed[:, places].mean(axis=1, keepdims=True)
        yield signed
        done, rows = done + rows, number
