"""Families of curves: how a rate may grow with the scale, and what is plausible before anything is measured.

All rates are up to a common factor, which the measured rates fix. Arrays: ``n`` draws, ``l`` scales, ``p`` parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from strakes.predict.scale import PARTS, Scale

Array = NDArray[np.float64]
# After these less than 0.02 % of the throughput is missing in 99 of 100 draws, 0.4 % in the worst.
_STEPS = 3
_LOG_10 = float(np.log(10))


@dataclass(frozen=True)
class Scales:
    """Some scales as arrays: ``ranks`` (l), ``units`` (l, p)."""

    ranks: Array
    units: Array
    clients: Array
    files: Array

    @classmethod
    def of(cls, scales: Sequence[Scale]) -> Scales:
        """Return them in their order."""
        return cls(
            np.array([scale.ranks for scale in scales], float),
            np.array([[scale.units(part) for part in PARTS] for scale in scales], float),
            np.array([scale.clients for scale in scales], float),
            np.array([max(1, scale.files) for scale in scales], float),
        )


class Family(Protocol):
    """``means``, ``deviations``: of the parameters, normally distributed and independent (d)."""

    name: str
    means: Array
    deviations: Array

    def rates(self, parameters: Array, scales: Scales) -> tuple[Array, Array | None]:
        """Return the logarithms of the rates (n, l), and the busy share of a unit of each part (n, l, p) or None."""
        ...


# log10 of a part's demand of one operation by what a rank waits for besides: a unit carries 10 to the minus that many
# ranks.
_DEMANDS = {
    "clients": (-0.8, 0.9),
    "links": (-0.8, 0.9),
    "mdts": (-1.8, 1.0),
    "osts": (-1.3, 1.0),
    "shared": (-1.9, 1.0),
}
_SHARED = PARTS.index("shared")
# log10 of how much dearer what is shared becomes by each further rank, where it becomes dearer at all.
_DEARER = (-2.9, 1.0)


class _Parts:
    """What families share that know of parts: first the parts' demands, then how much dearer what is shared becomes.

    ``dearer``: whether it does. Where nothing shows that it does, the family without that parameter explains as much
    with less, and counts more.
    """

    def __init__(self, name: str, bends: Sequence[tuple[float, float]], *, dearer: bool) -> None:
        self.name = "dearer-" + name if dearer else name
        self._dearer = dearer
        parameters = [*(_DEMANDS[part] for part in PARTS), *([_DEARER] if dearer else []), *bends]
        self.means = np.array([mean for mean, _ in parameters])
        self.deviations = np.array([deviation for _, deviation in parameters])

    def _longer(self, parameters: Array, scales: Scales) -> Array:
        """Return by what factor an operation takes longer of what is shared (l, n)."""
        return np.asarray(1 + np.exp(_LOG_10 * parameters[:, len(PARTS)]) * (scales.ranks[:, None] - 1))


class StationNetwork(_Parts):
    """A closed queueing network: ranks are its customers, units of parts its stations; approximate mean value analysis.

    Schweitzer's approximation: an arriving operation meets the queue that all others would leave, (N - 1) / N of what
    is there.
    """

    def __init__(self, *, dearer: bool) -> None:
        super().__init__("network", (), dearer=dearer)

    def rates(self, parameters: Array, scales: Scales) -> tuple[Array, Array]:
        """Return the network's throughput, and its share of what each part carries."""
        # Draws last: arithmetic and sums over parts go over whole blocks of memory.
        wholes, ranks = _wholes(parameters)[:, None, :], scales.ranks[:, None]
        if self._dearer:
            wholes = np.repeat(wholes, len(ranks), axis=1)
            wholes[_SHARED] *= self._longer(parameters, scales)
        demands = wholes / scales.units.T[:, :, None]
        # Where nobody meets anybody, as a single rank does, or one part is always busy.
        rate = np.minimum(ranks / np.add.reduce(wholes, initial=1.0), 1 / np.maximum.reduce(demands))
        rate = _meet(rate, wholes, demands, ranks)
        return np.log(rate).T, (rate * demands).T


def _wholes(parameters: Array) -> Array:
    """Return what an operation takes of each part, were it one unit (p, n), by what a rank waits for besides."""
    return np.asarray(np.exp(_LOG_10 * parameters[:, : len(PARTS)].T))


def _meet(rate: Array, wholes: Array, demands: Array, ranks: Array) -> Array:
    """Return the throughput (l, n) by Newton's method, from one that is not too small.

    At each part an operation waits for whole * (1 + met * queue), and the queue is what the throughput leaves there, so
    for whole / (1 - met * throughput * demand). The throughput is ranks / what is waited for in all; this is concave in
    it, so that every step comes nearer from above.
    """
    met = demands * ((ranks - 1) / ranks)
    for _ in range(_STEPS):
        longer = met * rate
        np.subtract(1, longer, out=longer)
        np.divide(1, longer, out=longer)
        waits = wholes * longer
        waited = np.add.reduce(waits, initial=1.0)
        waits *= longer
        waits *= met
        left = ranks / waited
        rate = rate - (rate - left) / (1 + left * np.add.reduce(waits) / waited)
    return rate


class Caps(_Parts):
    """Each part carries so much and no more; nothing is lost long before. The last parameter: how sharp the bend is."""

    def __init__(self, *, dearer: bool) -> None:
        super().__init__("caps", ((1.0, 0.4),), dearer=dearer)

    def rates(self, parameters: Array, scales: Scales) -> tuple[Array, Array]:
        """Return the generalised least of what ranks ask and parts carry, and its share of what each carries."""
        # In logarithms: powers of many draws are dear.
        demands = _LOG_10 * parameters[:, : len(PARTS)].T[:, None, :] - np.log(scales.units.T)[:, :, None]
        if self._dearer:
            demands[_SHARED] += np.log(self._longer(parameters, scales))
        # Until a part is full nobody meets others: a rank waits for what is shared as one that is alone.
        waited = np.log1p(np.add.reduce(_wholes(parameters))) - np.log(scales.ranks)[:, None]
        sharp = np.exp(_LOG_10 * np.minimum(np.maximum(parameters[:, -1], 0), 2))
        # By the largest of all, so that no power overflows.
        most = np.maximum(np.maximum.reduce(demands), waited)
        powers = demands - most
        powers *= sharp
        np.exp(powers, out=powers)
        log_rates = -np.log(np.add.reduce(powers) + np.exp(sharp * (waited - most))) / sharp - most
        demands += log_rates
        return log_rates.T, np.minimum(1.0, np.exp(demands, out=demands)).T


@dataclass(frozen=True)
class Typical:
    """Exponents with which rates usually grow, each with its standard deviation.

    Those of clients and ranks are of 139 phases of 13 systems of the IO500 list, each measured with two numbers of
    nodes
    (IO500/submission-data, 2018 to 2025); phases hardly differ.

    ``same``: those of clients and of ranks each are one and the same, as far as is known.
    """

    clients: tuple[float, float] = (0.5, 0.49)
    ranks_each: tuple[float, float] = (0.5, 0.49)
    mdts: tuple[float, float] = (0.4, 0.35)
    osts: tuple[float, float] = (0.4, 0.35)
    files: tuple[float, float] = (-0.03, 0.05)
    same: bool = False


class Power:
    """A power law in clients, ranks of each, metadata targets, data targets and files."""

    name = "power law"

    def __init__(self, typical: Typical) -> None:
        exponents = (typical.clients, typical.ranks_each, typical.mdts, typical.osts, typical.files)
        self.means = np.array([mean for mean, _ in exponents])
        self.deviations = np.array([deviation for _, deviation in exponents])
        self._same = typical.same

    def rates(self, parameters: Array, scales: Scales) -> tuple[Array, None]:
        """Return the sum of exponents by logarithms of the scale."""
        logs = np.log(
            np.stack(
                [
                    scales.clients,
                    scales.ranks / scales.clients,  # ranks each
                    scales.units[:, PARTS.index("mdts")],
                    scales.units[:, PARTS.index("osts")],
                    scales.files,
                ]
            )
        )
        if self._same:
            logs[0] += logs[1]
            logs[1] = 0.0
        return parameters @ logs, None


class Universal:
    """The universal scalability law in ranks (Gunther 2007): some work is serial, and ranks wait for each other.

    In metadata targets, data targets and files a power law, as nothing of that law is about them.
    """

    name = "universal scalability"
    # log10 of the serial share, and of what each pair of ranks costs, by the work of one rank.
    _LAW = ((-1.5, 0.8), (-3.0, 1.0))

    def __init__(self, typical: Typical) -> None:
        parameters = (*self._LAW, typical.mdts, typical.osts, typical.files)
        self.means = np.array([mean for mean, _ in parameters])
        self.deviations = np.array([deviation for _, deviation in parameters])

    def rates(self, parameters: Array, scales: Scales) -> tuple[Array, None]:
        """Return the logarithm of the law, and the sum of exponents by logarithms of the rest of the scale."""
        others = scales.ranks - 1
        serial, pairs = np.exp(_LOG_10 * parameters[:, :2].T)[:, :, None]
        law = np.log(scales.ranks) - np.log1p(serial * others + pairs * others * scales.ranks)
        units = scales.units[:, [PARTS.index("mdts"), PARTS.index("osts")]]
        return law + parameters[:, 2:] @ np.log(np.column_stack([units, scales.files])).T, None


class Waiting:
    """A time with a fixed part and one that grows with what there is to do: clients to come back, files to walk."""

    name = "time"
    # log10 of the fixed part by what one client or file adds; the power with which these add up.
    means = np.array([0.5, 1.0])
    deviations = np.array([1.2, 0.12])

    def rates(self, parameters: Array, scales: Scales) -> tuple[Array, None]:
        """Return the logarithm of the time: of the fixed part and the growing one."""
        amount = np.where(scales.files > 1, scales.files, scales.clients)[None, :]
        return np.logaddexp(np.log(10) * parameters[:, :1], parameters[:, 1:] * np.log(amount)), None
