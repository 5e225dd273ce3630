"""The forecast of one figure: families of curves, averaged by how probable each makes what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from strakes.predict.evidence import STATED, Sifted, counter_bounds, growth_of, sift
from strakes.predict.families import Array, Caps, Family, Power, Scales, StationNetwork, Typical, Universal, Waiting
from strakes.predict.posterior import Population
from strakes.predict.scale import PARTS, MeasuredLevel, Part, Scale

COVERAGE = 0.8
# How much less is known with each doubling beyond what was measured, as a deviation of the logarithm, besides what the
# families differ by.
_PER_DOUBLING = 0.003
# How much is lost with each doubling of the files beyond what was measured, as a deviation of the logarithm, in every
# other draw: rates bend where names no longer fit into the memory of servers, and no smaller population shows where.
_PER_DOUBLING_OF_FILES = 0.06
# So many deviations of what continues in step with the ranks are held by an interval.
_END = 2.0
# No family is wholly out of the question.
_LEAST_WEIGHT = 0.01
# So many further walks yield draws of a family that alone counts.
_FURTHER = 3
# A part is scarce if it is busy for more than half of the time, and no other for 5 % of the time more than it.
_BUSY = 0.5
_AS_BUSY = 0.05
# A part is named if it is scarce in this share of the draws: then 4 % of made-up systems are named wrong (at most 5 %
# were to be), chosen on seeds 101 to 104.
SURE = 0.67


@dataclass(frozen=True)
class Forecast:
    """In the unit of the figure: the median, the ends of the 80 % interval, and what becomes scarce first.

    The interval is that of the true value. ``measurement``: the ends of the one for what runs like those that it was
    learned from would measure, which have an error of their own. None: nothing is measured, as of a gain.
    ``scarce``: how probable it is that the busiest part, or one as busy, is among some parts. Parts of which neither a
    counter, nor a stated limit, nor a change of their number tells anything are one such group: together they can be
    scarce, which of them is not known.
    """

    median: float
    low: float
    high: float
    scarce: Mapping[tuple[Part, ...], float]
    measurement: tuple[float, float] | None = None

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
        self.sifted = Sifted(tuple(levels), {}) if is_time else sift(levels, stated or {})
        self.levels, self._stated = self.sifted.levels, self.sifted.stated
        self._growth = None if is_time else growth_of(self.levels)
        # Parts that a counter or a stated limit tells of.
        self.told = {part for level in self.levels for part in level.busy} | set(self._stated)
        self._generator_seed = seed
        self._is_time = is_time
        families: tuple[Family, ...] = (Power(typical or Typical()),)
        if is_time:
            families = (Waiting(),)
        elif len({level.scale for level in levels}) > 1:
            may_be_dearer = (False, True)
            families = (
                *(StationNetwork(dearer=dearer) for dearer in may_be_dearer),
                *(Caps(dearer=dearer) for dearer in may_be_dearer),
                Universal(typical or Typical()),
                *families,
            )
        learned = [Population(family, self.levels, self._stated, seed) for family in families]
        # What hardly counts needs few draws.
        self._draws = [
            (population.walk_on(math.ceil(_FURTHER * weight - 0.1)), weight)
            for population, weight in zip(learned, _weights(learned), strict=True)
        ]

    def forecast(self, scale: Scale, coverage: float = COVERAGE) -> Forecast:
        """Return the forecast at that scale, with intervals that hold what they are for in that share of the cases."""
        (values,), weights, busy = self._draw([scale])
        further = self._may_reach(scale, coverage)
        low, middle, high = _interval(values, weights, coverage, further)
        # What will be measured has the error of a measurement, too.
        error = float(np.sqrt(np.mean([level.log_error**2 for level in self.levels])))
        again = error * np.random.default_rng(self._generator_seed + 1).standard_normal(len(values))
        ends = _interval(values + again, weights, coverage, further)
        # Draws of the error must not narrow it.
        return Forecast(middle, low, high, self._scarce(busy), (min(low, ends[0]), max(high, ends[2])))

    def curve(self, scales: Sequence[Scale]) -> list[Forecast]:
        """Return the forecasts at some scales, without what becomes scarce there and what would be measured."""
        every, weights, _ = self._draw(scales)
        ends = [
            _interval(values, weights, further=self._may_reach(scale, COVERAGE))
            for values, scale in zip(every, scales, strict=True)
        ]
        return [Forecast(middle, low, high, {}) for low, middle, high in ends]

    def gain(self, scale: Scale, instead: Scale) -> Forecast:
        """Return by how much the figure changes from one scale to another: a factor."""
        ratios, weights = [], []
        for draws, weight in self._draws:
            both = draws.log_values(Scales.of([scale, instead]))
            ratios.append(both[:, 1] - both[:, 0])
            weights.append(np.full(len(both), weight / len(both)))
        low, middle, high = _interval(np.concatenate(ratios), np.concatenate(weights))
        return Forecast(middle, low, high, {})

    @property
    def families(self) -> Mapping[str, float]:
        """How much each family counts."""
        return {draws.family.name: weight for draws, weight in self._draws}

    def _draw(self, scales: Sequence[Scale]) -> tuple[Array, Array, list[tuple[Array, float]]]:
        """Return logarithms of values (l, n) with their weights (n).

        And of families that know parts the shares for which these are busy at the first scale (n, p), each with its
        weight.
        """
        generator = np.random.default_rng(self._generator_seed)
        beyond = np.array([_doublings(self.levels, scale) for scale in scales])
        lost = _PER_DOUBLING_OF_FILES * np.array([[_doublings(self.levels, scale, ("files",))] for scale in scales])
        bounds = [self._bounds(scale) for scale in scales]
        values, weights, shares = [], [], []
        for draws, weight in self._draws:
            # One by one: what a scale needs stays near the processor.
            rates = [draws.family.rates(draws.parameters, Scales.of([scale])) for scale in scales]
            known = np.array([draws.factor + log_rates[:, 0] for log_rates, _ in rates])
            if (busy := rates[0][1]) is not None:
                shares.append((busy[:, 0, :], weight))
            elif not self._is_time:
                for of_part in zip(*bounds, strict=True):
                    bound, error, least = np.array(of_part).T[:, :, None]
                    carried = np.maximum(least, bound + error * generator.standard_normal(known.shape[1]))
                    known = np.minimum(known, carried)
            deviation = np.hypot(draws.misfit, _PER_DOUBLING * beyond[:, None])
            known = known + deviation * generator.standard_normal(known.shape[1])
            if lost.any():
                slower = lost * np.maximum(0, generator.standard_normal(known.shape[1]))
                known = known + slower if self._is_time else known - slower
            values.append(known)
            weights.append(np.full(known.shape[1], weight / known.shape[1]))
        return np.concatenate(values, axis=1), np.concatenate(weights), shares

    def _bounds(self, scale: Scale) -> list[tuple[float, float, float]]:
        """Return what parts can carry by their counters and by what is stated, for families that know nothing of parts.

        Logarithms, each with its standard error and with what it was seen to carry at least.
        """
        bounds = [(*bound, -np.inf) for bound in counter_bounds(self.levels, scale)]
        for part, capacity in self._stated.items():
            units = np.log(scale.units(part))
            most = max(level.log_value - np.log(level.scale.units(part)) for level in self.levels)
            bounds.append((np.log(capacity) + STATED[0] + units, STATED[1], most + units))
        return bounds

    def _may_reach(self, scale: Scale, coverage: float) -> float:
        """Return up to what an interval has to go in any case, as a logarithm.

        A rate that grew in step with the ranks may go on like that where no counter of servers and no stated limit
        tells of an end.
        """
        told = self.told - {"clients"}
        if self._growth != "linear" or told or coverage < COVERAGE:
            return -np.inf
        last = max(self.levels, key=lambda level: (level.scale.ranks, level.scale.mdts))
        most = last.log_value + np.log(scale.ranks / last.scale.ranks) + _END * last.log_error
        ends = [bound + _END * error for bound, error, _ in self._bounds(scale)]
        return float(most) if all(end >= most for end in ends) else -np.inf

    def _scarce(self, busy: Sequence[tuple[Array, float]]) -> dict[tuple[Part, ...], float]:
        groups = _groups(self.levels, self._stated)
        shares = dict.fromkeys(groups, 0.0)
        for each, weight in busy:
            most = each.max(axis=1, keepdims=True)
            scarce = (each >= most - _AS_BUSY) & (most > _BUSY)
            for group in groups:
                shares[group] += weight * float(scarce[:, [PARTS.index(part) for part in group]].any(axis=1).mean())
        # Without a counter, a limit or an end of growth nothing but what is usual speaks for a part: no evidence.
        shown = [group for group in groups if self._growth == "bent" or self.told & set(group)]
        total = sum(weight for _, weight in busy)
        return {group: shares[group] / total for group in shown} if total > 0 else {}


def _groups(levels: Sequence[MeasuredLevel], stated: Mapping[Part, float]) -> list[tuple[Part, ...]]:
    """Return the parts, those together that nothing tells apart: of the clients, and of what is beside them."""
    told = {part for level in levels for part in level.busy} | set(stated)
    told |= {part for part in ("mdts", "osts") if len({level.scale.units(part) for level in levels}) > 1}
    groups: list[tuple[Part, ...]] = [(part,) for part in PARTS if part in told]
    for side in (("clients", "links"), ("mdts", "osts", "shared")):
        rest = tuple(part for part in PARTS if part in side and part not in told)
        groups += [rest] if rest else []
    return groups


def _weights(learned: Sequence[Population]) -> list[float]:
    """Weigh families by how probable each makes all that was measured."""
    evidence = np.array([population.log_evidence for population in learned])
    shares = np.exp(evidence - evidence.max())
    shares = np.maximum(shares / shares.sum(), _LEAST_WEIGHT)
    return [float(share) for share in shares / shares.sum()]


def _doublings(
    levels: Sequence[MeasuredLevel], scale: Scale, names: Sequence[str] = ("clients", "mdts", "osts", "files")
) -> float:
    """Return how many doublings a scale lies beyond the measured ones, over these of its dimensions."""
    beyond = 0.0
    for name in names:
        most = max(getattr(level.scale, name) for level in levels)
        if most and getattr(scale, name) > most:
            beyond += float(np.log2(getattr(scale, name) / most))
    return beyond


def _interval(
    values: Array, weights: Array, coverage: float = COVERAGE, further: float = -np.inf
) -> tuple[float, float, float]:
    """Return the low end, the median and the high end of what has these logarithms; the high one not below a value."""
    order = np.argsort(values)
    summed = np.cumsum(weights[order])
    shares = np.array([(1 - coverage) / 2, 0.5, (1 + coverage) / 2])
    places = np.minimum(len(values) - 1, np.searchsorted(summed, shares * summed[-1]))
    low, middle, high = np.exp(values[order[places]]).tolist()
    return low, middle, max(high, math.exp(further))
