"""Effects of settings on the rate, estimated by a model fitted to all trials before the final comparison.

The total effect of a setting is E[Var(rate | all other settings)] / Var(rate) (Saltelli et al., Global Sensitivity
Analysis, 2008, 4.5). A comparison of two levels uses only other settings that are allowed with both levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from strakes.model.portrait import Setting
from strakes.tuning.tune_search import Search
from strakes.tuning.tune_space import Point, SearchSpace
from strakes.tuning.tune_surrogate import Array

# A setting is important if it explains at least this share of the variance of rates.
MATTERS_SHARE = 0.05
_DRAWS = 200  # Number of posterior samples: a share of the variance has a standard error of at most 3.5 %.


@dataclass(frozen=True)
class LevelEffect:
    """Mean ratio of the rate with value ``level`` to the rate with the default, with all other settings equal."""

    factor: str
    level: Setting
    ratio: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class Effects:
    """Effects of all settings. ``parts``: share of the variance that each factor explains, largest first."""

    levels: tuple[LevelEffect, ...]
    parts: Mapping[str, float]

    @property
    def matter(self) -> tuple[str, ...]:
        """Factors that explain at least MATTERS_SHARE of the variance and have a value with a significant effect."""
        shown = {effect.factor for effect in self.levels if effect.low > 1 or effect.high < 1}
        return tuple(name for name, share in self.parts.items() if share >= MATTERS_SHARE and name in shown)


def effects(search: Search) -> Effects:
    """Return the effects of all settings, from the results of a search."""
    space, confidence = search.space, search.confidence
    numbers, drawn = search.drawn(_DRAWS)
    points = [space.points[number] for number in numbers]
    known = {point: place for place, point in enumerate(points)}
    ends = ((1 - confidence) / 2, (1 + confidence) / 2)
    levels = []
    for which, factor in enumerate(space.factors):
        for level in factor.levels:
            pairs = _pairs(known, which, level, factor.default)
            if pairs:
                apart = np.mean([drawn[:, a] - drawn[:, b] for a, b in pairs], axis=0)
                runs = sum(result.trial.point[which] == level for result in search.told)
                mean, low, high = map(float, np.exp([apart.mean(), *np.quantile(apart, ends)]))
                levels.append(LevelEffect(factor.name, level, mean, low, high, runs))
    return Effects(tuple(levels), _parts(space, points, drawn.mean(axis=0)))


def _pairs(known: Mapping[Point, int], which: int, level: Setting, default: Setting) -> list[tuple[int, int]]:
    points = ((place, point) for point, place in known.items() if point[which] == level)
    alike = {place: (*point[:which], default, *point[which + 1 :]) for place, point in points}
    return [(place, known[other]) for place, other in alike.items() if other in known]


def _parts(space: SearchSpace, points: Sequence[Point], mean: Array) -> dict[str, float]:
    whole = float(mean.var()) or 1.0  # If all rates are equal, each factor explains 0 % of the variance.
    varying = {which: factor.name for which, factor in enumerate(space.factors) if len(factor.levels) > 1}
    parts = {name: _within(points, mean, which) / whole for which, name in varying.items()}
    return dict(sorted(parts.items(), key=lambda part: -part[1]))


def _within(points: Sequence[Point], mean: Array, which: int) -> float:
    groups: dict[Point, list[int]] = {}
    for place, point in enumerate(points):
        groups.setdefault((*point[:which], *point[which + 1 :]), []).append(place)
    return float(sum(mean[places].var() * len(places) for places in groups.values()) / len(points))
