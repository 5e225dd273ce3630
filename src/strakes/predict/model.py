"""The forecast of one figure: families of curves, averaged by how probable each makes what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from strakes.predict.families import Array, Caps, Family, Power, Scales, StationNetwork, Typical, Waiting
from strakes.predict.posterior import BUSY_ERROR, Draws, learn
from strakes.predict.scale import PARTS, MeasuredLevel, Part, Scale

COVERAGE = 0.8
# How much less is known with each doubling beyond what was measured, as a deviation of the logarithm, besides what the
# families differ by.
_PER_DOUBLING = 0.003
# No family is wholly out of the question.
_LEAST_WEIGHT = 0.01
# No part carries more than this above what is stated of it, as a natural logarithm.
_ABOVE_STATED = 0.1
# A part is scarce if it is busy for more than half of the time, and no other for 5 % of the time more than it.
_BUSY = 0.5
_AS_BUSY = 0.05
# Of a part that was busy for less, no counter tells well enough how much more it can do.
_LEAST_BUSY = 0.2
# A part is named if it is scarce in this share of the draws.
SURE = 0.7


@dataclass(frozen=True)
class Forecast:
    """In the unit of the figure: the median, the ends of the 80 % interval, and what becomes scarce first.

    ``scarce``: how probable it is that the busiest part, or one as busy, is among some parts. Parts of which neither a
    counter, nor a stated limit, nor a change of their number tells anything are one such group: together they can be
    scarce, which of them is not known.
    """

    median: float
    low: float
    high: float
    scarce: Mapping[tuple[Part, ...], float]

    @property
    def likely(self) -> tuple[tuple[Part, ...], float] | None:
        """The group that is sure enough to be scarce first, and how sure."""
        group = max(self.scarce, key=lambda parts: self.scarce[parts], default=())
        return (group, self.scarce[group]) if group and self.scarce[group] >= SURE else None

    @property
    def saturates(self) -> Part | None:
        """The one part that saturates first; None: not known."""
        return self.likely[0][0] if self.likely and len(self.likely[0]) == 1 else None


class Model:
    """What was learned of one figure; asked for as many scales as one likes."""

    def __init__(
        self,
        levels: Sequence[MeasuredLevel],
        typical: Typical | None = None,
        stated: Mapping[Part, float] | None = None,
        seed: int = 1,
        *,
        is_time: bool = False,
    ) -> None:
        """Learn from at least one level. ``is_time``: the figure is a time that grows with the scale."""
        self.levels = tuple(levels)
        self._generator_seed = seed
        self._stated = dict(stated or {})
        self._is_time = is_time
        families: tuple[Family, ...] = (Power(typical or Typical()),)
        if is_time:
            families = (Waiting(),)
        elif len({level.scale for level in levels}) > 1:
            may_be_dearer = (False, True)
            families = (
                *(StationNetwork(dearer=dearer) for dearer in may_be_dearer),
                *(Caps(dearer=dearer) for dearer in may_be_dearer),
                *families,
            )
        learned = [learn(family, levels, stated or {}, seed) for family in families]
        self._draws = list(zip(learned, _weights(learned), strict=True))

    def forecast(self, scale: Scale) -> Forecast:
        """Return the forecast at that scale."""
        values, weights = self._values(scale)
        ends = ((1 - COVERAGE) / 2, 0.5, (1 + COVERAGE) / 2)
        low, middle, high = (float(np.exp(value)) for value in _quantiles(values, weights, ends))
        return Forecast(middle, low, high, self._scarce(scale))

    def gain(self, scale: Scale, instead: Scale) -> Forecast:
        """Return by how much the figure changes from one scale to another: a factor."""
        ratios, weights = [], []
        for draws, weight in self._draws:
            both = draws.log_values(Scales.of([scale, instead]))
            ratios.append(both[:, 1] - both[:, 0])
            weights.append(np.full(len(both), weight / len(both)))
        ends = ((1 - COVERAGE) / 2, 0.5, (1 + COVERAGE) / 2)
        found = _quantiles(np.concatenate(ratios), np.concatenate(weights), ends)
        low, middle, high = (float(np.exp(value)) for value in found)
        return Forecast(middle, low, high, {})

    @property
    def families(self) -> Mapping[str, float]:
        """How much each family counts."""
        return {draws.family.name: weight for draws, weight in self._draws}

    def _values(self, scale: Scale) -> tuple[Array, Array]:
        generator = np.random.default_rng(self._generator_seed)
        beyond = _doublings(self.levels, scale)
        # What will be measured has the error of a measurement, too.
        again = float(np.sqrt(np.mean([level.log_error**2 for level in self.levels])))
        values, weights = [], []
        for draws, weight in self._draws:
            known = draws.log_values(Scales.of([scale]))[:, 0]
            if not draws.family.knows_parts and not self._is_time:
                for bound, error in self._bounds_by_counters(scale):
                    known = np.minimum(known, bound + error * generator.standard_normal(len(known)))
            deviation = np.sqrt(draws.misfit**2 + (_PER_DOUBLING * beyond) ** 2 + again**2)
            values.append(known + deviation * generator.standard_normal(len(known)))
            weights.append(np.full(len(known), weight / len(known)))
        most = min((np.log(capacity * scale.units(part)) for part, capacity in self._stated.items()), default=np.inf)
        return np.minimum(np.concatenate(values), most + _ABOVE_STATED), np.concatenate(weights)

    def _bounds_by_counters(self, scale: Scale) -> list[tuple[float, float]]:
        """Return what parts can carry by how busy they were: logarithms with their standard errors.

        For families that know nothing of parts: a server that was busy for 60 % of the time cannot do twice as much.
        """
        bounds: dict[Part, list[tuple[float, float]]] = {}
        for level in self.levels:
            for part, share in level.busy.items():
                if share > _LEAST_BUSY:
                    more = np.log(scale.units(part) / level.scale.units(part) / share)
                    error = np.hypot(level.log_error, BUSY_ERROR / share)
                    bounds.setdefault(part, []).append((level.log_value + more, error**-2))
        return [
            (sum(bound * weight for bound, weight in each) / total, total**-0.5)
            for each in bounds.values()
            if (total := sum(weight for _, weight in each))
        ]

    def _scarce(self, scale: Scale) -> dict[tuple[Part, ...], float]:
        groups = _groups(self.levels, self._stated)
        shares = dict.fromkeys(groups, 0.0)
        total = 0.0
        for draws, weight in self._draws:
            _, busy = draws.family.rates(draws.parameters, Scales.of([scale]))
            if busy is None:
                continue
            total += weight
            most = busy[:, 0, :].max(axis=1)
            scarce = (busy[:, 0, :] >= most[:, None] - _AS_BUSY) & (most > _BUSY)[:, None]
            for group in groups:
                shares[group] += weight * float(scarce[:, [PARTS.index(part) for part in group]].any(axis=1).mean())
        return {group: share / total for group, share in shares.items()} if total > 0 else {}


def _groups(levels: Sequence[MeasuredLevel], stated: Mapping[Part, float]) -> list[tuple[Part, ...]]:
    """Return the parts, those together that nothing tells apart: of the clients, and of what is beside them."""
    told = {part for level in levels for part in level.busy} | set(stated)
    told |= {part for part in ("mdts", "osts") if len({level.scale.units(part) for level in levels}) > 1}
    groups: list[tuple[Part, ...]] = [(part,) for part in PARTS if part in told]
    for side in (("clients", "links"), ("mdts", "osts", "shared")):
        rest = tuple(part for part in PARTS if part in side and part not in told)
        groups += [rest] if rest else []
    return groups


def _weights(learned: Sequence[Draws]) -> list[float]:
    """Weigh families by how probable each makes all that was measured."""
    evidence = np.array([draws.log_evidence for draws in learned])
    shares = np.exp(evidence - evidence.max())
    shares = np.maximum(shares / shares.sum(), _LEAST_WEIGHT)
    return [float(share) for share in shares / shares.sum()]


def _doublings(levels: Sequence[MeasuredLevel], scale: Scale) -> float:
    """Return how many doublings a scale lies beyond the measured ones, over all of its dimensions."""
    beyond = 0.0
    for name in ("clients", "ranks", "mdts", "osts", "files"):
        most = max(getattr(level.scale, name) for level in levels)
        if most and getattr(scale, name) > most and name != "ranks":
            beyond += float(np.log2(getattr(scale, name) / most))
    return beyond


def _quantiles(values: Array, weights: Array, at: Sequence[float]) -> list[float]:
    order = np.argsort(values)
    summed = np.cumsum(weights[order])
    return [
        float(values[order][min(len(values) - 1, int(np.searchsorted(summed, share * summed[-1])))]) for share in at
    ]
