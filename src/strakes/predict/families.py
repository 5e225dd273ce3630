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
_ITERATIONS = 12


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

    def _demands(self, parameters: Array, scales: Scales) -> Array:
        """Return what an operation takes of a unit of each part, by what a rank waits for besides (p, n, l)."""
        # Parts first: arithmetic goes over whole blocks of memory.
        each, units = np.ascontiguousarray(parameters[:, : len(PARTS)].T), np.ascontiguousarray(scales.units.T)
        demands = 10 ** each[:, :, None] / units[:, None, :]
        if self._dearer:
            demands[_SHARED] *= 1 + 10 ** parameters[:, len(PARTS), None] * (scales.ranks - 1)
        return np.asarray(demands)


class StationNetwork(_Parts):
    """A closed queueing network: ranks are its customers, units of parts its stations; approximate mean value analysis.

    Schweitzer's approximation: an arriving operation meets the queue that all others would leave, (N - 1) / N of what
    is there.
    """

    def __init__(self, *, dearer: bool) -> None:
        super().__init__("network", (), dearer=dearer)

    def rates(self, parameters: Array, scales: Scales) -> tuple[Array, Array]:
        """Return the network's throughput, and its share of what each part carries."""
        demands = self._demands(parameters, scales)
        units, ranks = np.ascontiguousarray(scales.units.T), scales.ranks[None, :]
        met, most = demands * (ranks - 1) / ranks, 1 / demands.max(axis=0)
        queue = 0.5 * np.minimum(ranks, most) * demands
        for _ in range(_ITERATIONS):
            stay = demands + met * queue
            rate = ranks / (1 + np.einsum("pnl,pl->nl", stay, units))
            queue = 0.5 * (queue + rate * stay)
        rate = np.minimum(rate, most)
        return np.log(rate), (rate * demands).transpose(1, 2, 0)


class Caps(_Parts):
    """Each part carries so much and no more; nothing is lost long before. The last parameter: how sharp the bend is."""

    def __init__(self, *, dearer: bool) -> None:
        super().__init__("caps", ((1.0, 0.4),), dearer=dearer)

    def rates(self, parameters: Array, scales: Scales) -> tuple[Array, Array]:
        """Return the generalised least of what ranks ask and parts carry, and its share of what each carries."""
        demands = self._demands(parameters, scales)
        alone = scales.ranks[None, :] / (1 + 10 ** parameters[:, None, : len(PARTS)].sum(axis=2))
        sharp = 10 ** np.clip(parameters[:, -1], 0, 2)[:, None]
        # By the largest of all, so that no power overflows.
        most = np.maximum(demands.max(axis=0), 1 / alone)
        powers = ((demands / most) ** sharp).sum(axis=0) + (1 / (alone * most)) ** sharp
        rates = powers ** (-1 / sharp) / most
        return np.log(rates), np.minimum(1.0, rates * demands).transpose(1, 2, 0)


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
