"""The universal scalability law: the rate of N clients is X(N) = r N / (1 + c (N - 1) + k N (N - 1)).

r is the rate of one client, c the share of work that queues (contention), k the cost of coherency between clients.
Because of k, the rate falls beyond sqrt((1 - c) / k) clients. Source: Gunther, Guerrilla Capacity Planning (2007).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strakes.stats.interval import Interval, in_order, median

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Minimum number of different client counts for a fit. The scalability law has three coefficients, so it fits any three
# rates. A survey measures five client counts, so no fit would be possible with a doubled minimum of eight.
FEWEST_LEVELS = 4
# Number of bootstrap samples. Each end of a 90% interval has an error of 9% of a standard deviation.
RESAMPLES = 500
# Maximum relative residual for an extrapolation. In 30 simulated systems, 80% of the intervals at 64 clients (fitted up
# to 32) contain the true rate. With double this maximum, only 57% do.
_DESCRIBES = 0.05


@dataclass(frozen=True)
class Law:
    """The coefficients of the scalability law."""

    rate_of_one: float
    contention: float
    coherency: float

    def rate(self, clients: float) -> float:
        """Return the total rate of ``clients`` clients.

        >>> Law(100.0, 0.0, 0.0).rate(8), Law(100.0, 1.0, 0.0).rate(8)
        (800.0, 100.0)
        """
        delay = 1 + self.contention * (clients - 1) + self.coherency * clients * (clients - 1)
        return self.rate_of_one * clients / delay if delay > 0 else math.inf

    @property
    def peak(self) -> float:
        """Return the number of clients beyond which the rate falls, infinite if the rate never falls.

        >>> Law(100.0, 0.1, 0.001).peak, Law(100.0, 0.1, 0.0).peak
        (30.0, inf)
        """
        if self.contention >= 1:
            return 1.0
        return max(1.0, math.sqrt((1 - self.contention) / self.coherency)) if self.coherency > 0 else math.inf


@dataclass(frozen=True)
class Scalability:
    """The law fitted to the medians of runs, with intervals from laws fitted to resampled runs.

    ``worst_residual``: largest relative distance of a measured median from the law. If it exceeds 5 %, intervals of
    extrapolated rates also contain the law's rate at the largest measured number of clients. Resampled laws may have
    negative coefficients, because setting them to zero would bias extrapolated rates.
    """

    law: Law
    resampled: tuple[Law, ...]
    confidence: float
    measured_up_to: int
    worst_residual: float

    @property
    def contention(self) -> Interval:
        """Return the interval of the share of work that queues."""
        return self._interval([max(0.0, law.contention) for law in self.resampled], self.law.contention)

    @property
    def coherency(self) -> Interval:
        """Return the interval of the cost of coherency."""
        return self._interval([max(0.0, law.coherency) for law in self.resampled], self.law.coherency)

    @property
    def peak(self) -> Interval:
        """Return the interval of the client count with the highest rate (upper end infinite if no rate decreased)."""
        return self._interval([law.peak for law in self.resampled], self.law.peak)

    def rate(self, clients: float) -> Interval:
        """Return the interval of the total rate of ``clients`` clients."""
        interval = self._interval([law.rate(clients) for law in self.resampled], self.law.rate(clients))
        if clients <= self.measured_up_to or self.worst_residual <= _DESCRIBES:
            return interval
        last = self.law.rate(self.measured_up_to)
        stays_low, stays_high = last * (1 - self.worst_residual), last * (1 + self.worst_residual)
        return Interval(min(interval.low, stays_low), max(interval.high, stays_high), self.confidence)

    def _interval(self, values: Sequence[float], of_law: float) -> Interval:
        ordered = sorted(values)
        cut = int((1 - self.confidence) / 2 * len(ordered))
        return Interval(min(of_law, ordered[cut]), max(of_law, ordered[-1 - cut]), self.confidence)


def fit(rates: Mapping[int, Sequence[float]], confidence: float = 0.9) -> Scalability:
    """Fit the law to ``rates``: the rates of runs by number of clients.

    Raises ValueError for fewer than four different numbers of clients, or for a rate that is not positive.

    >>> found = fit({clients: [Law(100.0, 0.05, 0.001).rate(clients)] * 5 for clients in (1, 2, 4, 8, 16, 32)})
    >>> round(found.law.contention, 4), round(found.law.coherency, 5), round(found.law.peak, 1)
    (0.05, 0.001, 30.8)
    """
    import numpy as np
    from scipy.optimize import nnls

    clients = sorted(rates)
    if len(clients) < FEWEST_LEVELS or clients[0] < 1:
        raise ValueError(f"the scalability law needs at least {FEWEST_LEVELS} different numbers of clients above zero")
    if any(in_order(rates[number])[0] <= 0 for number in clients):
        raise ValueError("the scalability law needs rates above zero")
    generator = np.random.default_rng(0)
    medians = np.array([[median(rates[number]) for number in clients]])
    drawn = [
        np.median(generator.choice(np.asarray(rates[number]), (RESAMPLES, len(rates[number]))), axis=1)
        for number in clients
    ]
    terms, scale = _terms(clients, medians[0])
    law = _laws(clients, medians[0], nnls(terms, np.ones(len(clients)))[0][None, :] / scale)[0]
    worst = max(abs(law.rate(number) / middle - 1) for number, middle in zip(clients, medians[0].tolist(), strict=True))
    resampled = np.array(drawn).T
    terms, scale = _terms(clients, resampled)
    laws = _laws(clients, resampled, np.linalg.pinv(terms).sum(axis=2) / scale)
    return Scalability(law, tuple(laws), confidence, clients[-1], worst)


def _terms(clients: Sequence[int], rates: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the regressors 1, N - 1, N (N - 1), divided by their maxima and weighted by X(N) / N; and the maxima."""
    import numpy as np

    number = np.asarray(clients, dtype=float)
    terms = np.stack([np.ones_like(number), number - 1, number * (number - 1)], axis=1)
    scale = terms.max(axis=0)
    return terms / scale * (rates / number)[..., None], scale


def _laws(clients: Sequence[int], rates: NDArray[np.float64], coefficients: NDArray[np.float64]) -> list[Law]:
    import numpy as np

    first = np.maximum(coefficients[:, 0], 1e-6 * np.min(np.asarray(clients) / rates))
    rows = np.column_stack([first, coefficients[:, 1:]]).tolist()
    return [Law(1 / row, queued / row, agreed / row) for row, queued, agreed in rows]
