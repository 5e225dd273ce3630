"""Rivals tuned, then everybody held to the yardstick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.watch.known import GRIDS, of_targets
from bench.watch.yardstick import (
    AsItIs,
    Detector,
    Score,
    as_they_are,
    plants,
    score,
    score_targets,
)
from strakes.watch.values import WatchedSeries

RATIOS = (0.9, 0.8, 0.6)
KINDS = (*(("level", ratio) for ratio in RATIOS), ("week", 0.6))
_TUNING_SEED, _TUNING_PLANTS = 1, 40
# Seed 2 was used while the detector was chosen.
_JUDGING_SEED = 21


@dataclass(frozen=True)
class Contestant:
    """A detector with the settings it has, and what it did."""

    name: str
    settings: str
    as_it_is: AsItIs
    scores: Mapping[tuple[str, float], Score]


def tune(series: Sequence[WatchedSeries], name: str) -> tuple[str, Detector]:
    """Return the settings of a rival that find most at no more than one alarm a month, and that detector."""
    grid = GRIDS[name]
    rates = {settings: as_they_are(series, detector).a_month for settings, detector in grid.items()}
    allowed = [settings for settings, rate in rates.items() if rate <= 1] or [min(rates, key=lambda key: rates[key])]
    found = {
        settings: sum(
            score(series, list(plants(series, kind, ratio, _TUNING_SEED, _TUNING_PLANTS)), grid[settings]).found
            for kind, ratio in KINDS
        )
        for settings in allowed
    }
    best = max(found, key=lambda key: found[key])
    return best, grid[best]


def judge(
    series: Sequence[WatchedSeries],
    year: Sequence[WatchedSeries],
    name: str,
    settings: str,
    detector: Detector,
    count: Mapping[str, int],
    of_equals: Detector | None = None,
) -> Contestant:
    """Return everything that the yardstick asks of one detector. ``count``: of plants, of levels and of targets.

    Changes are planted into ``series``; alarms on series as they are are those of the whole ``year``.

    ``of_equals``: the detector of one of 16 equals, where that is another one.
    """
    scores = {
        (kind, ratio): score(series, list(plants(series, kind, ratio, _JUDGING_SEED, count["level"])), detector)
        for kind, ratio in KINDS
    }
    for ratio in RATIOS:
        all_plants = list(plants(series, "target", ratio, _JUDGING_SEED, count["target"]))
        scores["target", ratio] = score_targets(series, all_plants, of_targets(of_equals or detector))
    return Contestant(name, settings, as_they_are(year, detector), scores)
